"""Finished runs that are written down and not trained."""

import gzip
import json
from pathlib import Path


def result(seed=0, exact=0.5, **more):
    part = {"role": "test", "n": 1000, "exact_match_interval": [max(0, exact - 0.3), min(1, exact + 0.3)], "slices": {}}
    part["metrics"] = {"exact_match": exact, "token_accuracy": 0.7, "oracle_length_exact_match": 0.6}
    made = {
        "format": 2, "run": f"{seed:064d}", "preset": "default", "task": "scan", "split": "length", "arch": "lstm",
        "seed": seed, "experiment": "e", "decode": {"method": "greedy"}, "eval": {"max_examples": 0}, "device": "cpu",
        "smoke": False, "status": "finished", "checkpoint": "last", "parameters": 1000, "overlap": {"test": 0},
        "train_seconds": 30.0, "evaluate_seconds": 6.0, "splits": {"test": part},
    }  # fmt: skip
    return made | more


def write(study, *results):
    for made in results:
        folder = study / f"scan-{made['split']}" / made["arch"] / f"s{made['seed']}-{made['run']}"
        folder.mkdir(parents=True)
        train = {"train": {"steps": made["step"]}} if "step" in made else {}
        config = {"seed": made["seed"], "model": {"dim": made["experiment"]}} | train
        (folder / "config.yaml").write_text(json.dumps(config))
        (folder / "test_reads.csv").write_text("test,run\n")
        (folder / "result.json").write_text(json.dumps(made))
    return study


def edit_result(path: Path, **more: object) -> None:
    """Change the result of a run, and leave out its digest, as in a record of older code."""
    content = json.loads((path / "result.json").read_text()) | more
    (path / "result.json").write_text(json.dumps({key: content[key] for key in content if key != "digest"}))


ENVIRONMENT = {"versions": {"torch": "2.9", "python": "3.11"}, "data": "d" * 64, "commit": "c" * 40}


def predict(study: Path, *made: tuple[str, str]) -> Path:
    """Gives every run of a study predictions: pairs of a target and a prediction."""
    for path in study.glob("*/*/s*"):
        lines = [json.dumps({"source": f"s{n}", "target": t, "prediction": p}) for n, (t, p) in enumerate(made)]
        (path / "predictions").mkdir()
        (path / "predictions" / "test.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
        (path / "env.json").write_text(json.dumps([ENVIRONMENT]))
    return study


def rival(seed: int, exact: float, arch: str = "cnn") -> dict:
    return result(seed, exact, arch=arch, experiment=arch, run=f"{arch}{seed}")


GOLD = "a b c d"
HOSTILE = "a <script>alert(1)</script> & ' \" \u202e\u05e9\u05dc\u05d5\u05dd"


def three_architectures(folder: Path) -> Path:
    """A study of an LSTM and a CNN that differ, a Transformer with one seed, and a run that is not finished."""
    records = [result(seed, 0.2 + seed / 100) for seed in range(4)]
    records += [rival(seed, 0.8 - seed / 50) for seed in range(4)]
    study = write(folder / "study", *records, rival(0, 0.5, "transformer"))
    unfinished = study / "scan-length" / "cnn" / "s9-0a"
    unfinished.mkdir()
    (unfinished / "config.yaml").write_text("")
    return predict(study, (GOLD, GOLD), (GOLD, "a b"), (GOLD, "a x c d"), (GOLD, HOSTILE))

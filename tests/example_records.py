"""Finished runs that are written down and not trained."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tfstudy.evaluation.breakdown import summarize_errors
from tfstudy.runs.files import digest_of, sealed
from tfstudy.runs.schema import FORMAT, Environment, Event
from tfstudy.runs.store import DIGESTED, EVENTS, add_events, open_run, read_predictions


def result(seed=0, exact=0.5, **more):
    part = {"role": "test", "n": 1000, "exact_match_interval": [max(0, exact - 0.3), min(1, exact + 0.3)], "slices": {}}
    part["metrics"] = {"exact_match": exact, "token_accuracy": 0.7, "oracle_length_exact_match": 0.6}
    made = {
        "format": FORMAT, "run": f"{seed:064d}", "preset": "default", "task": "scan", "split": "length", "arch": "lstm",
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
        add_events(folder, Event(event="test read", split="test", reason="run"))
        seal(folder, made)
    return study


def seal(path: Path, made: dict[str, object]) -> None:
    """Write a result, also an impossible one, with the digests of the other files as they are now."""
    contents = {file: (path / file).read_bytes() for file in DIGESTED if (path / file).exists()}
    digests = {file: digest_of(content) for file, content in contents.items()}
    body = {key: value for key, value in made.items() if key != "sha256"}
    more = {"files": digests, "events_size": len(contents[EVENTS])}
    (path / "result.json").write_bytes(sealed({"format": FORMAT} | body | more))


def edit_result(path: Path, **more: object) -> None:
    """Change the result of a run, and take its other files as they are now."""
    seal(path, json.loads((path / "result.json").read_text()) | more)


def put(path: Path, name: str, text: str) -> None:
    """Replace a file of a finished run, and take it into the digests of its result."""
    (path / name).write_text(text)
    edit_result(path)


ENVIRONMENT = {"versions": {"torch": "2.9", "python": "3.11"}, "data": "d" * 64, "commit": "c" * 40}


def set_environments(path: Path, *entries: dict[str, object]) -> None:
    """Give a run the records of these processes, in place of others."""
    starts = [Event(event="started", environment=msgspec.convert(entry, Environment)) for entry in entries]
    others = [event for event in open_run(path).events if event.event != "started"]
    (path / EVENTS).unlink(missing_ok=True)
    add_events(path, *starts, *others)
    if (path / "result.json").exists():
        edit_result(path)


def put_predictions(path: Path, split: str, lines: Iterable[str]) -> None:
    """Write predictions of a run, with their digest in its result if it is finished."""
    content = gzip.compress("\n".join(lines).encode())
    (path / "predictions").mkdir(exist_ok=True)
    (path / "predictions" / f"{split}.jsonl.gz").write_bytes(content)
    if (path / "result.json").exists():
        splits = json.loads((path / "result.json").read_text()).get("splits", {})
        splits.get(split, {})["predictions"] = digest_of(content)
        edit_result(path, splits=splits)


def put_summary(path: Path, split: str) -> None:
    """Add the summary of its predictions to the result of a run."""
    kinds = msgspec.to_builtins(summarize_errors(read_predictions(path, split)))
    splits = json.loads((path / "result.json").read_text())["splits"]
    splits[split] |= {"n": sum(kind["n"] for kind in kinds.values()), "errors": kinds}
    edit_result(path, splits=splits)


def predict(study: Path, *made: tuple[str, str]) -> Path:
    """Gives every run of a study predictions: pairs of a target and a prediction."""
    for path in study.glob("*/*/s*"):
        lines = [json.dumps({"source": f"s{n}", "target": t, "prediction": p}) for n, (t, p) in enumerate(made)]
        put_predictions(path, "test", lines)
        if (path / "result.json").exists():
            set_environments(path, ENVIRONMENT)
            put_summary(path, "test")
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

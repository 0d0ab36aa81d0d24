"""Everything that needs a GPU, in one run of at most 25 minutes: tests first, then benchmarks as ratios. `make gpu`.

Each part is a process of its own. After each, the results so far are written to `gpu.json` and `gpu.md` in the folder
that the environment variable OUT names (default: results-gpu), beside the output of all parts (`gpu.log`), so a run
that is cut short keeps what it measured. Runs are in a temporary folder. Without a CUDA device it says so and ends.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
ARCHITECTURES = ("transformer", "lstm", "cnn")
SIDE_BY_SIDE = (4, 8)
PACKAGES = (  # by the names that they are imported by
    "torch", "lightning", "torchmetrics", "datasets", "pandas", "seaborn", "matplotlib", "typer", "pydantic", "numpy",
    "scipy", "msgspec", "jinja2", "rich", "jaxtyping", "yaml", "sacrebleu", "tokenizers", "safetensors", "pytest",
    "hypothesis", "beartype",
)  # fmt: skip
PYTEST = (sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-m", "")
TFSTUDY = (sys.executable, "-m", "tfstudy")
GRAPHED = ("--accelerator", "cuda", "--execution", "graphed")


class Part(NamedTuple):
    """A command, its time limit in seconds, and how many runs it trains side by side."""

    name: str
    command: Sequence[str]
    limit: float
    runs: int = 0


def parts(runs: Path) -> Iterator[Part]:
    """Iterate over all parts, the most important first."""
    yield Part("smoke", (*PYTEST, "tests/gpu/test_smoke.py"), 240)
    yield Part("tests", (*PYTEST, "tests/gpu", "--deselect", "tests/gpu/test_smoke.py"), 420)
    for arch in ARCHITECTURES:
        yield Part(
            f"training {arch}", (sys.executable, "-m", "benchmarks.training.gpu_steps", "--arch", arch, "--quick"), 240
        )
    yield Part("decoding", (sys.executable, "-m", "benchmarks.evaluation.gpu_decoding", "--quick"), 180)
    yield Part("packed rows", (sys.executable, "-m", "benchmarks.models.gpu_packed_rows", "--quick"), 120)
    for arch in ARCHITECTURES:
        for size in SIDE_BY_SIDE:
            yield Part(f"{size} runs of {arch}", side_by_side(arch, size, runs / f"{arch}-{size}"), 120, size)
    grid = (*TFSTUDY, "grid", "scan", *GRAPHED, "--results", str(runs / "grid"), "--per-device", "8")
    yield Part("grid of 60 runs", grid, 1200)


def side_by_side(arch: str, size: int, results: Path) -> Sequence[str]:
    """Return the command of runs that share the GPU and differ in their seed, for 500 steps of 256 examples."""
    words = ("--task", "scan", "--arch", arch, "--split", "simple", "--seed", f"0-{size - 1}")
    settings = ("train.steps=500", "train.batch_size=256", "train.validation_interval=500", "eval.max_examples=16")
    sets = [word for setting in settings for word in ("--set", setting)]
    return (*TFSTUDY, "grid", *words, *sets, *GRAPHED, "--per-device", str(size), "--results", str(results))


def run(part: Part, log: Path, runs: Path, seconds: float) -> dict[str, Any]:
    """Run a part for at most this time; return what to record of it."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"PYTHONPATH": path}  # tests change the working folder
    start, before = time.monotonic(), log.stat().st_size if log.exists() else 0
    print(f"== {part.name} (at most {seconds:.0f} s)", flush=True)
    with log.open("a") as file:
        process = subprocess.Popen(
            part.command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True, cwd=ROOT, env=environment
        )
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
    lines = log.read_bytes()[before:].decode(errors="replace").splitlines()
    print("\n".join(lines[-4:]), flush=True)
    record = {"name": part.name, "seconds": round(time.monotonic() - start, 1), "exit_code": code, "end": lines[-3:]}
    record["measured"] = [json.loads(line) for line in lines if line.startswith('{"group"')]
    if part.runs:
        record["measured"] += shared_speed(part, runs)
    return record


def shared_speed(part: Part, runs: Path) -> list[dict[str, Any]]:
    """Return the examples per second of all runs of a part together, if all have finished."""
    arch = part.name.rpartition(" ")[2]
    results = [json.loads(path.read_text()) for path in (runs / f"{arch}-{part.runs}").rglob("result.json")]
    if len(results) != part.runs:
        return []
    longest = max(result["train_seconds"] for result in results)
    speed = sum(result["step"] * 256 for result in results) / longest
    return [{"group": arch, "way": f"{part.runs} runs side by side", "baseline": "Lightning", "examples/s": speed}]


def table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Iterate over the lines of the report in Markdown."""
    yield from ("| part | seconds | result |", "|---|---|---|")
    for record in records:
        code = record["exit_code"]
        result = "out of time" if code is None else "passed" if code == 0 else f"exit code {code}"
        last = record["end"][-1:] if record["name"] in ("smoke", "tests") else []
        yield f"| {record['name']} | {record['seconds']} | {'; '.join([result, *last])} |"
    measured = [row for record in records for row in record["measured"]]
    for group in dict.fromkeys(row["group"] for row in measured):
        rows = [row for row in measured if row["group"] == group]
        [unit] = [key for key in rows[0] if key not in ("group", "way", "baseline")]
        speeds = {
            way: statistics.median(r[unit] for r in rows if r["way"] == way) for way in {r["way"]: 0 for r in rows}
        }
        base = speeds.get(rows[0]["baseline"])
        yield from ("", f"| {group} | {unit} | ratio |", "|---|---|---|")
        yield from (f"| {way} | {v:,.0f} | {f'{v / base:.2f}' if base else ''} |" for way, v in speeds.items())


def write(out: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write all results so far."""
    import torch

    device = {"device": torch.cuda.get_device_name(), "count": torch.cuda.device_count(), "torch": torch.__version__}
    (out / "gpu.json").write_text(json.dumps({**device, "parts": records}, indent=1))
    heading = f"{device['device']} ({device['count']}), torch {device['torch']}"
    (out / "gpu.md").write_text("\n".join([heading, "", *table(records), ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=25.0, help="time limit of all parts together")
    chosen = parser.parse_args()
    if missing := [name for name in PACKAGES if not find_spec(name)]:
        print(f"missing packages: {', '.join(missing)}; install them in the versions of constraints.txt")
        raise SystemExit(2)
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device: nothing is tested or measured")
        return
    out, end = Path(os.environ.get("OUT", "results-gpu")).absolute(), time.monotonic() + 60 * chosen.minutes
    out.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tfstudy-gpu-") as runs:
        for part in parts(Path(runs)):
            if (left := end - time.monotonic()) < 10:
                break
            records.append(run(part, out / "gpu.log", Path(runs), min(left, part.limit)))
            write(out, records)
    print((out / "gpu.md").read_text())
    raise SystemExit(any(record["exit_code"] != 0 for record in records if record["name"] in ("smoke", "tests")))


if __name__ == "__main__":
    main()

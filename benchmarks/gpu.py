"""What needs a GPU, in at most 8 minutes, the most important first: tests, then speeds as ratios. `make gpu`.

    python -m benchmarks.gpu                all parts
    python -m benchmarks.gpu training       one of them
    python -m benchmarks.gpu --dry-run      all parts in small on a CPU, without graphs, to see that they work

Each part is a process of its own with a time limit. After each, what is known so far is written to `gpu.md` in the
folder that the environment variable OUT names (default: results-gpu), beside the output of all parts (`gpu.log`), so a
machine that is taken away leaves what it measured. Runs are in a temporary folder.
"""

import argparse
import copy
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning.pytorch import LightningModule, Trainer

from benchmarks import against_plain_lightning as usual_code
from benchmarks.decoding import compare
from benchmarks.timing import alternate, now, quiet, scan, table
from tfstudy.experiment.prepare import Prepared
from tfstudy.experiment.train import training_data
from tfstudy.training.fit import fit
from tfstudy.training.graphs import Execution
from tfstudy.training.module import Seq2Seq

ROOT = Path(__file__).parent.parent
ARCHITECTURES = ("transformer", "lstm", "cnn", "mingru")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-m", "")
FIRST = ("tests/gpu/test_graphs.py::test_graphed_steps_train_as_eager_steps_do", "tests/gpu/test_decoding.py")
BATCH = 256  # rows
WINDOW, WINDOWS, WARM_UP = 50, 8, 2  # steps that are timed together; windows, of which the first have captures
TOGETHER, STEPS = (1, 8, 16, 32), 500  # runs on one GPU; steps of each
THREADS = (1, 2, 4, 8, 16)
LIMITS = {  # seconds of each part, in their order
    "tests": 90, "training": 150, "decoding": 90, "together": 150, "threads": 75, "compiled": 150, "more tests": 120,
}  # fmt: skip


class Done(NamedTuple):
    """How a part ended."""

    name: str
    seconds: float
    code: int | None  # exit code; None: out of time
    output: str


def command(part: str, dry: bool) -> Sequence[str]:
    """Return the command that computes a part."""
    if part == "tests":
        return (*PYTEST, *FIRST)
    if part == "more tests":
        return (*PYTEST, "tests/gpu", *(word for test in FIRST for word in ("--deselect", test)))
    return (sys.executable, "-m", "benchmarks.gpu", part, *(["--dry-run"] if dry else []))


def run(part: str, dry: bool, log: Path, seconds: float) -> Done:
    """Run a part for at most this time."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}  # tests change the working folder
    start, before = time.monotonic(), log.stat().st_size if log.exists() else 0
    print(f"== {part} (at most {seconds:.0f} s)", flush=True)
    with log.open("a") as file:
        process = subprocess.Popen(
            command(part, dry), stdout=file, stderr=subprocess.STDOUT, start_new_session=True, cwd=ROOT, env=environment
        )
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
    output = log.read_bytes()[before:].decode(errors="replace").strip()
    print(output[-3000:], flush=True)
    return Done(part, time.monotonic() - start, code, output)


def report(done: Sequence[Done]) -> str:
    """Return what all parts measured, and what was left out, in Markdown."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "dry run on a CPU"
    texts = [f"# {device}, torch {torch.__version__}"]
    for one in done:
        result = {None: "out of time", 0: "passed"}.get(one.code, f"exit code {one.code}")
        texts.append(f"## {one.name}: {result}, {one.seconds:.0f} s\n\n```text\n{one.output[-6000:]}\n```")
    left = [part for part in LIMITS if part not in {one.name for one in done if one.code is not None}]
    return "\n\n".join([*texts, f"Left out or cut short: {', '.join(left) or 'nothing'}."]) + "\n"


def every_part(minutes: float, dry: bool) -> None:
    """Run all parts for which there is time; exit code 1 if one failed."""
    out, end = Path(os.environ.get("OUT", "results-gpu")).absolute(), time.monotonic() + 60 * minutes
    out.mkdir(parents=True, exist_ok=True)
    done: list[Done] = []
    for part, limit in LIMITS.items():
        if (left := end - time.monotonic()) < 10:
            break
        done.append(run(part, dry, out / "gpu.log", min(left, limit)))
        (out / "gpu.md").write_text(report(done))
    print(report(done).splitlines()[-1])
    raise SystemExit(any(one.code for one in done))


class Windows(usual_code.Speed):
    """Measures the time of each window of steps, at the end of which the device is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step % WINDOW == 0:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.times.append(now())

    def median(self) -> float:
        """Return examples per second after the first windows."""
        return statistics.median(WINDOW * BATCH / (b - a) for a, b in pairwise(self.times[WARM_UP:]))


def accelerator() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def lightning(prepared: Prepared) -> float:
    """Return the speed of the usual way."""
    speed = Windows()
    usual_code.usual(prepared, accelerator(), speed)
    return speed.median()


def ours(prepared: Prepared, execution: str) -> float:
    """Return the speed of our steps, computed in this way."""
    speed, recorded = Windows(), [""]
    module = Seq2Seq(copy.deepcopy(prepared.model), len(prepared.data.target_vocab), prepared.config.train)
    chosen = Execution(execution, recorded.append)
    fit(module, training_data(prepared), callbacks=[speed], accelerator=accelerator(), execution=chosen)
    if execution == "graphed" and accelerator() == "cuda" and not recorded[-1].endswith("graphed"):
        raise RuntimeError(f"steps were {recorded[-1]}")
    return speed.median()


def training(archs: Sequence[str], compiled: bool = False) -> None:
    """Print examples per second of training steps, and peak memory: the usual way, eager, graphed or compiled."""
    settings = {"steps": WINDOW * WINDOWS, "batch_size": BATCH, "validation_interval": 10_000}
    for arch in archs:
        plain, peaks = scan(arch, **settings), {}
        ways: dict[str, Callable[[], float]] = {"Lightning": partial(lightning, plain)}
        if compiled:
            mixed = scan(arch, compile=True, precision="bf16-mixed", **settings)
            ways["compiled, graphed"] = partial(ours, scan(arch, compile=True, **settings), "graphed")
            ways["compiled, graphed, bf16"] = partial(ours, mixed, "graphed")
        else:
            ways |= {"eager": partial(ours, plain, "eager"), "graphed": partial(ours, plain, "graphed")}
            ways["graphed, bf16"] = partial(ours, scan(arch, precision="bf16-mixed", **settings), "graphed")

        def measured(name: str, way: Callable[[], float], peaks: dict[str, float] = peaks) -> float:
            if torch.cuda.is_available():
                torch.cuda.reset_peak_memory_stats()
            speed = way()
            if torch.cuda.is_available():
                peaks[name] = torch.cuda.max_memory_allocated() / 2**20
            return speed

        speeds = alternate({name: partial(measured, name, way) for name, way in ways.items()}, 1)
        table(f"{arch}, batches of {BATCH}", "examples/s", speeds, "Lightning")
        print("  peak memory in MiB:", ", ".join(f"{name} {peak:,.0f}" for name, peak in peaks.items()))


def together(counts: Sequence[int]) -> None:
    """Print what several runs at once on one device train in a second and in a minute, and how busy the device is."""
    query = ("nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "--loop-ms=500")
    print("runs at once; examples/s of all; runs per minute; device busy, median percent; memory used, MiB at most")
    for count in counts:
        words = ("--task", "scan", "--arch", "transformer", "--split", "simple", "--seed", f"0-{count - 1}", "--quiet")
        settings = {"steps": STEPS, "batch_size": BATCH, "validation_interval": STEPS, "log_interval": min(50, STEPS)}
        sets = [word for key, value in settings.items() for word in ("--set", f"train.{key}={value}")]
        how = ("--accelerator", accelerator(), "--execution", "graphed", "--per-device", str(count))
        with tempfile.TemporaryDirectory(prefix="tfstudy-gpu-") as folder, tempfile.TemporaryFile("w+") as watched:
            last = ("--set", "eval.max_examples=16", "--results", folder)
            watch = subprocess.Popen(query, stdout=watched) if shutil.which(query[0]) else None
            start = time.monotonic()
            subprocess.run([sys.executable, "-m", "tfstudy", "grid", *words, *sets, *how, *last], check=True)
            seconds = time.monotonic() - start
            if watch:
                watch.terminate()
                watch.wait()
            watched.seek(0)
            cells = [[cell.strip() for cell in line.split(",")] for line in watched]
            # a part of a GPU has no utilisation, and the last line may be incomplete
            busy = [(int(row[0]), int(row[1])) for row in cells if len(row) == 2 and all(map(str.isdigit, row))] or [
                (0, 0)
            ]
            found = [json.loads(path.read_text()) for path in Path(folder).rglob("result.json")]
        speed = sum(run["step"] * BATCH for run in found) / max(run["train_seconds"] for run in found)
        device = f"{statistics.median(a for a, _ in busy):.0f}; {max(b for _, b in busy):,}"
        print(f"{count}; {speed:,.0f}; {60 * count / seconds:.1f}; {device}", flush=True)


def threads(archs: Sequence[str], counts: Sequence[int], steps: int) -> None:
    """Print target tokens per second of a run on a CPU: the default two micro-batches, and as many as threads."""
    for arch in archs:
        speeds: dict[str, list[float]] = {}
        for count in counts:
            for micro_batches in sorted({2, max(2, count)}):
                torch.set_num_threads(count)
                prepared = scan(arch, steps=usual_code.SKIP + steps, batch_size=BATCH, micro_batches=micro_batches)
                name = f"{count} threads, {micro_batches} micro-batches"
                speeds[name] = [usual_code.ours(prepared).tokens_per_second()]
        table(f"{arch}, batches of {BATCH}, CPU", "tokens/s", speeds, next(iter(speeds)))


def main() -> None:
    global WINDOW, WINDOWS, STEPS, BATCH
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=[part for part in LIMITS if "tests" not in part], help="only this")
    parser.add_argument("--minutes", type=float, default=8.0, help="time limit of all parts together")
    parser.add_argument("--dry-run", action="store_true", help="all parts in small on a CPU")
    chosen = parser.parse_args()
    small = chosen.dry_run
    if small:  # before CUDA is asked for
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if not torch.cuda.is_available() and not small:
        print("no CUDA device: nothing is tested or measured (--dry-run tries the parts on a CPU)")
        return
    quiet()
    if small:
        WINDOW, WINDOWS, STEPS, BATCH = 1, 4, 4, 16
    archs = ARCHITECTURES[:1] if small else ARCHITECTURES
    match chosen.part:
        case "training":
            training(archs)
        case "compiled":
            training(ARCHITECTURES[:1], compiled=True)
        case "decoding":
            for arch in archs[:3]:
                compare(arch, *((64, 1, 20) if small else (0, 1)))
        case "together":
            together(TOGETHER[:1] if small else TOGETHER)
        case "threads":
            available = len(os.sched_getaffinity(0))
            threads(archs, [count for count in THREADS if count <= available], 2 if small else 10)
        case _:
            every_part(chosen.minutes, small)


if __name__ == "__main__":
    main()

"""What needs a GPU, in at most 8 minutes, the most important first: tests and speeds as ratios. `make gpu`.

    python -m benchmarks.gpu                                     everything
    python -m benchmarks.gpu --training transformer --compiled   only the speed of training steps

Each part is a process of its own. After each, what is known so far is written to `gpu.md` in the folder that the
environment variable OUT names (default: results-gpu), beside the output of all parts (`gpu.log`), so a run that is cut
short keeps what it measured. Runs are in a temporary folder. Without a CUDA device it says so and ends.
"""

import argparse
import copy
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning.pytorch import LightningModule, Trainer

from benchmarks.against_plain_lightning import Speed, usual
from benchmarks.timing import alternate, now, quiet, scan, table
from tfstudy.experiment.prepare import Prepared
from tfstudy.experiment.train import training_data
from tfstudy.training.fit import fit
from tfstudy.training.graphs import Execution
from tfstudy.training.module import Seq2Seq

ROOT = Path(__file__).parent.parent
ARCHITECTURES = ("transformer", "lstm", "cnn")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-m", "")
SMOKE = "tests/gpu/test_graphs.py::test_graphed_steps_train_as_eager_steps_do"
TRAINING = (sys.executable, "-m", "benchmarks.gpu", "--training")
TOGETHER = 8  # runs
STEPS, BATCH = 500, 256  # of each of them; rows of a batch
WINDOW, WINDOWS, WARM_UP = 50, 8, 2  # steps that are timed together; windows, of which the first have captures


class Part(NamedTuple):
    """A command, and its time limit in seconds."""

    name: str
    command: Sequence[str]
    limit: float


class Done(NamedTuple):
    """How a part ended."""

    name: str
    seconds: float
    code: int | None  # exit code; None: out of time
    lines: Sequence[str]  # the last of its output


def parts(runs: Path) -> Iterator[Part]:
    """Yield all parts, the most important first."""
    yield Part("smoke", (*PYTEST, SMOKE), 120)
    yield from (Part(f"training {arch}", (*TRAINING, arch), 90) for arch in ARCHITECTURES)
    yield Part("runs side by side", side_by_side("transformer", runs), 120)
    yield Part("decoding", (sys.executable, "-m", "benchmarks.decoding", "--arch", "transformer", "--quick"), 90)
    yield Part("tests", (*PYTEST, "tests/gpu", "--deselect", SMOKE), 240)
    yield Part("training transformer, compiled", (*TRAINING, "transformer", "--compiled"), 240)


def side_by_side(arch: str, results: Path) -> Sequence[str]:
    """Return the command that trains several runs on one GPU, which differ in their seed."""
    words = ("--task", "scan", "--arch", arch, "--split", "simple", "--seed", f"0-{TOGETHER - 1}")
    settings = (f"steps={STEPS}", f"batch_size={BATCH}", f"validation_interval={STEPS}")
    sets = [word for setting in settings for word in ("--set", f"train.{setting}")]
    how = ("--accelerator", "cuda", "--execution", "graphed", "--per-device", str(TOGETHER))
    limited = ("--set", "eval.max_examples=16", "--results", str(results))
    return (sys.executable, "-m", "tfstudy", "grid", *words, *sets, *limited, *how)


def speed_side_by_side(results: Path) -> str:
    """Return a line with the examples per second of all runs of a folder together; empty if some did not finish."""
    found = [json.loads(path.read_text()) for path in results.rglob("result.json")]
    if len(found) != TOGETHER:
        return ""
    longest = max(result["train_seconds"] for result in found)
    return f"{sum(result['step'] * BATCH for result in found) / longest:,.0f} examples/s of {TOGETHER} runs together"


def run(part: Part, log: Path, seconds: float) -> Done:
    """Run a part for at most this time."""
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
    print("\n".join(lines[-8:]), flush=True)
    return Done(part.name, time.monotonic() - start, code, lines[-8:])


def report(done: Sequence[Done]) -> str:
    """Return what all parts measured, in Markdown."""
    texts = []
    for one in done:
        result = {None: "out of time", 0: "passed"}.get(one.code, f"exit code {one.code}")
        texts.append("\n".join([f"## {one.name}: {result}, {one.seconds:.0f} s", "", "```text", *one.lines, "```", ""]))
    return "\n".join(texts)


def every_part(minutes: float) -> None:
    """Run all parts for which there is time; exit code 1 if a test failed."""
    out, end = Path(os.environ.get("OUT", "results-gpu")).absolute(), time.monotonic() + 60 * minutes
    out.mkdir(parents=True, exist_ok=True)
    heading = f"# {torch.cuda.get_device_name()}, torch {torch.__version__}\n\n"
    done: list[Done] = []
    with tempfile.TemporaryDirectory(prefix="tfstudy-gpu-") as runs:
        for part in parts(Path(runs)):
            if (left := end - time.monotonic()) < 10:
                break
            done.append(run(part, out / "gpu.log", min(left, part.limit)))
            if part.name == "runs side by side":
                done[-1] = done[-1]._replace(lines=[*done[-1].lines, speed_side_by_side(Path(runs))])
            (out / "gpu.md").write_text(heading + report(done))
    raise SystemExit(any(one.code != 0 for one in done if one.name in ("smoke", "tests")))


class Windows(Speed):
    """Measures the time of each window of steps, at the end of which the device is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step % WINDOW == 0:
            torch.cuda.synchronize()
            self.times.append(now())

    def median(self) -> float:
        """Return examples per second after the first windows."""
        return statistics.median(WINDOW * BATCH / (b - a) for a, b in pairwise(self.times[WARM_UP:]))


def lightning(prepared: Prepared) -> float:
    """Return the speed of the usual way."""
    speed = Windows()
    usual(prepared, "cuda", speed)
    return speed.median()


def ours(prepared: Prepared, execution: str) -> float:
    """Return the speed of our steps, computed in this way."""
    speed, recorded = Windows(), [""]
    module = Seq2Seq(copy.deepcopy(prepared.model), len(prepared.data.target_vocab), prepared.config.train)
    chosen = Execution(execution, recorded.append)
    fit(module, training_data(prepared), callbacks=[speed], accelerator="cuda", execution=chosen)
    if "not" in recorded[-1]:
        raise RuntimeError(f"steps were {recorded[-1]}")
    return speed.median()


def training(arch: str, compiled: bool) -> None:
    """Print the examples per second of training steps: the usual way, eager, graphed, and with `compiled` compiled."""
    settings = {"steps": WINDOW * WINDOWS, "batch_size": BATCH, "validation_interval": 10_000}
    plain = scan(arch, **settings)
    ways: dict[str, Callable[[], float]] = {
        "Lightning": partial(lightning, plain),
        "eager": partial(ours, plain, "eager"),
        "graphed": partial(ours, plain, "graphed"),
    }
    if compiled:
        mixed = scan(arch, compile=True, precision="bf16-mixed", **settings)
        ways["compiled, graphed"] = partial(ours, scan(arch, compile=True, **settings), "graphed")
        ways["compiled, graphed, bf16"] = partial(ours, mixed, "graphed")
    table(f"{arch}, batches of {BATCH}", "examples/s", alternate(ways, 1), "Lightning")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0, help="time limit of all parts together")
    parser.add_argument("--training", metavar="ARCH", help="measure only training steps of this architecture")
    parser.add_argument("--compiled", action="store_true", help="with --training: also compiled steps (minutes)")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device: nothing is tested or measured")
        return
    quiet()
    if chosen.training:
        training(chosen.training, chosen.compiled)
    else:
        every_part(chosen.minutes)


if __name__ == "__main__":
    main()

"""Training speed on a CUDA device: the usual Lightning code, and our steps eager, graphed, and compiled and graphed.

The figure is examples per second: the median over windows of steps, each of which waits for the device once. Captures
and compilation are in the first windows, which are left out.
"""

import copy
import json
import statistics
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer

from benchmarks.timing import Measurements, alternate, cuda_arguments, now, scan, table
from benchmarks.training.against_plain_lightning import Speed, usual
from tfstudy.experiment.prepare import Prepared
from tfstudy.experiment.train import training_data
from tfstudy.training.execution import Execution
from tfstudy.training.fit import fit
from tfstudy.training.module import Seq2Seq

BATCH = 256
WINDOW = 50  # steps
WARM_UP = 2  # windows


class ExamplesPerSecond(Speed):
    """Measures the time of each window of steps."""

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
        times = self.times[WARM_UP:]
        return statistics.median(WINDOW * BATCH / (end - start) for start, end in pairwise(times))


def lightning(prepared: Prepared) -> float:
    """Return the speed of the usual way."""
    speed = ExamplesPerSecond()
    usual(prepared, "cuda", speed)
    return speed.median()


def ours(prepared: Prepared, execution: str) -> float:
    """Return the speed of our steps, computed in this way."""
    speed, recorded = ExamplesPerSecond(), [""]
    module = Seq2Seq(copy.deepcopy(prepared.model), len(prepared.data.target_vocab), prepared.config.train)
    chosen = Execution(execution, record=recorded.append)
    fit(module, training_data(prepared), callbacks=[speed], accelerator="cuda", execution=chosen)
    if "not" in recorded[-1]:
        raise RuntimeError(f"steps were {recorded[-1]}")
    return speed.median()


def ways(arch: str, windows: int) -> dict[str, Callable[[], float]]:
    """Return what measures each way once."""
    settings = {"steps": WINDOW * windows, "batch_size": BATCH, "validation_interval": 10_000}
    plain, compiled = scan(arch, **settings), scan(arch, compile=True, **settings)
    mixed = scan(arch, compile=True, precision="bf16-mixed", **settings)
    return {
        "Lightning": partial(lightning, plain),
        "eager": partial(ours, plain, "eager"),
        "graphed": partial(ours, plain, "graphed"),
        "compiled, graphed": partial(ours, compiled, "graphed"),
        "compiled, graphed, bf16": partial(ours, mixed, "graphed"),
    }


def measure(arch: str, windows: int, rounds: int) -> Measurements:
    """Return the speeds of all ways, each printed as a line of JSON at once; nan for one that fails."""

    def guarded(name: str, way: Callable[[], float]) -> float:
        try:
            speed = way()
        except Exception as error:  # the others are measured all the same
            print(f"{arch}, {name}: {type(error).__name__}: {error}", flush=True)
            return float("nan")
        print(json.dumps({"group": arch, "way": name, "baseline": "Lightning", "examples/s": speed}), flush=True)
        return speed

    return alternate({name: partial(guarded, name, way) for name, way in ways(arch, windows).items()}, rounds)


def main() -> None:
    chosen = cuda_arguments(__doc__)
    for arch in chosen.arch:
        measured = measure(arch, 8, 1 if chosen.quick else 2)
        table(f"{arch}, batches of {BATCH}", "examples/s", measured, "Lightning")


if __name__ == "__main__":
    main()

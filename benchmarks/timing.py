"""What the benchmarks share: arguments, a prepared preset, alternating measurements and their table."""

import argparse
import logging
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tfstudy import models
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge
from tfstudy.experiment.prepare import Prepared, prepare

Measurements = dict[str, list[float]]  # by method, one for each round


class Clock:
    """Which time is measured: wall-clock time, or CPU time."""

    cpu = False


def now() -> float:
    """Return the wall-clock time, or with `--cpu` the CPU seconds of this process and its finished children."""
    if not Clock.cpu:
        return time.perf_counter()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def arguments(description: str | None, archs: bool = True, sizes: bool = False) -> argparse.Namespace:
    """Parse the command line: `threads`, `cpu`, `quick`, `arch` (a list), `width`, `batch_size`."""
    parser = argparse.ArgumentParser(description=description)
    if sizes:
        parser.add_argument("--width", type=int, default=0, help="width of the models (0: that of the preset)")
        parser.add_argument("--batch-size", type=int, default=0, help="rows of a batch (0: those of the preset)")
    if archs:
        parser.add_argument("--arch", action="append", choices=models.names(), help="repeatable; default: all")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch (0: torch's default)")
    parser.add_argument("--cpu", action="store_true", help="measure CPU time, for a busy machine; use with --threads 1")
    parser.add_argument("--quick", action="store_true", help="a few short rounds, to check that it works")
    chosen = parser.parse_args()
    if archs:
        chosen.arch = chosen.arch or models.names()
    Clock.cpu = chosen.cpu
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    quiet()
    warnings.filterwarnings("ignore", ".*(does not have many workers|GPU available|lr_scheduler.step).*")
    return chosen


def quiet() -> None:
    """Suppress the messages in which Lightning describes itself and advertises other products."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".*LeafSpec.*")


def scan(arch: str, model: Mapping[str, Any] | None = None, **train: Any) -> Prepared:
    """Prepare the default preset of SCAN simple for `arch`, with changes to its sections `model` and `train`."""
    tree = {"task": "scan", "arch": arch, "data": {"split": "simple"}}
    return prepare(resolve(merge(tree, preset("scan", arch), {"train": train, "model": dict(model or {})})))


def widths(arch: str, dim: int) -> dict[str, int]:
    """Return the settings of section `model` that scale the default preset of SCAN to width `dim`."""
    model = scan(arch).config.model
    keys = {*models.find(arch).widths, "feedforward"} & set(type(model).model_fields)
    return {key: round(getattr(model, key) * dim / model.dim) for key in keys}


def alternate(methods: Mapping[str, Callable[[], float]], rounds: int) -> Measurements:
    """Return the measurements of each method, in turn (A B C A B C ...) so that load affects all of them equally."""
    measurements: Measurements = {name: [] for name in methods}
    for _ in range(rounds):
        for name, measure in methods.items():
            measurements[name].append(measure())
    return measurements


def seconds(work: Callable[[], object]) -> float:
    """Return the time of one call."""
    start = now()
    work()
    return now() - start


def ratios(measured: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """Return the ratio of each pair of measurements."""
    return [a / b for a, b in zip(measured, baseline, strict=True)]


def table(title: str, unit: str, measurements: Measurements, baseline: str, faster: bool = False) -> None:
    """Print the median of each method, and the median, minimum and maximum of its ratio to `baseline` over the rounds.

    With `faster` the measurements are times, and the ratio is the speed-up over the baseline.
    """
    print(f"\n{title}\n  {'':<28}{unit:>18}{'ratio':>10}{'min':>10}{'max':>10}")
    for name, own in measurements.items():
        pairs = ratios(measurements[baseline], own) if faster else ratios(own, measurements[baseline])
        numbers = f"{statistics.median(pairs):>10.2f}{min(pairs):>10.2f}{max(pairs):>10.2f}"
        print(f"  {name:<28}{statistics.median(own):>18,.2f}{numbers}", flush=True)

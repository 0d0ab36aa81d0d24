"""What the benchmarks share: arguments, the preset made real, ways measured in turn, and the table of them."""

import argparse
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
from tfstudy.training.fit import quiet

Measured = dict[str, list[float]]  # of each way, a figure for every round


class Clock:
    """What times are read from."""

    cpu = False


def now() -> float:
    """Seconds by the clock on the wall, or of work by this process and its ended children if that was asked for."""
    if not Clock.cpu:
        return time.perf_counter()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def arguments(about: str | None, archs: bool = True) -> argparse.Namespace:
    """The command line of every benchmark: `threads`, `cpu`, `quick` and, with `archs`, `arch` (a list)."""
    parser = argparse.ArgumentParser(description=about)
    if archs:
        parser.add_argument("--arch", action="append", choices=models.names(), help="again for more; all by default")
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0 leaves its own choice")
    parser.add_argument("--cpu", action="store_true", help="time of the processor: for a busy machine, with one thread")
    parser.add_argument("--quick", action="store_true", help="few and short rounds: shows that it works")
    chosen = parser.parse_args()
    if archs:
        chosen.arch = chosen.arch or models.names()
    Clock.cpu = chosen.cpu
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    quiet()
    warnings.filterwarnings("ignore", ".*(does not have many workers|GPU available|lr_scheduler.step).*")
    return chosen


def scan(arch: str, **train: Any) -> Prepared:
    """The default preset of SCAN simple for `arch`, with these changes to its section `train`."""
    tree = {"task": "scan", "arch": arch, "data": {"split": "simple"}}
    return prepare(resolve(merge(tree, preset("scan", arch), {"train": train})))


def alternate(ways: Mapping[str, Callable[[], float]], rounds: int) -> Measured:
    """What each way returns, round by round: A B C A B C ..., so that a busy machine slows all of them alike."""
    out: Measured = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            out[name].append(way())
    return out


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    began = now()
    work()
    return now() - began


def ratios(measured: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """One way's figures over another's, pair by pair."""
    return [a / b for a, b in zip(measured, baseline, strict=True)]


def table(title: str, unit: str, measured: Measured, baseline: str, faster: bool = False) -> None:
    """Prints every way's median and its ratio to `baseline`: the median of the pairs, their least and greatest.

    With `faster` the figures are times and the ratio says how many times faster a way is than the baseline.
    """
    print(f"\n{title}\n  {'':<28}{unit:>18}{'ratio':>10}{'least':>10}{'greatest':>10}")
    for name, figures in measured.items():
        pairs = ratios(measured[baseline], figures) if faster else ratios(figures, measured[baseline])
        numbers = f"{statistics.median(pairs):>10.2f}{min(pairs):>10.2f}{max(pairs):>10.2f}"
        print(f"  {name:<28}{statistics.median(figures):>18,.2f}{numbers}", flush=True)

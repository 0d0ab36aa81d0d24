"""Time in which each member of a cohort takes one step on the CPU, by the number of members.

The baseline is a cohort of one. Members take turns, so the time is proportional to their number if turns cost nothing.
"""

import copy
import json
import threading
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from matplotlib.ticker import FuncFormatter, LogLocator

from benchmarks.timing import Measurements, alternate, arguments, now, scan, table, widths
from tfstudy.analysis.medians import median_interval
from tfstudy.experiment.prepare import Prepared
from tfstudy.experiment.train import training_data
from tfstudy.report.plots import layout
from tfstudy.report.plots.series_style import architecture_colours
from tfstudy.training.cohort import Cohort, Member
from tfstudy.training.fit import fit
from tfstudy.training.module import Seq2Seq

WIDTH, BATCH = 64, 32
SKIP = 5  # first steps that are not measured


class Ends(Callback):
    """Keeps when each step ended, after the work of all members so far."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.times.append(now())


def milliseconds(prepared: Prepared, members: int) -> float:
    """Return the milliseconds in which every member of a cohort takes a step."""
    cohort, ends, started = Cohort(), Ends(), threading.Event()

    def train(number: int, member: Member) -> None:
        started.wait()
        model = copy.deepcopy(prepared.model)
        module = Seq2Seq(model, len(prepared.data.target_vocab), prepared.config.train, number, member)
        fit(module, training_data(prepared), callbacks=[] if number else [ends], accelerator="cpu")

    threads = [cohort.start(partial(train, number), members) for number in range(members)]
    started.set()
    for thread in threads:
        thread.join()
    return 1000 * (ends.times[-1] - ends.times[SKIP - 1]) / (len(ends.times) - SKIP)


def draw(measured: dict[str, Measurements], unit: str) -> layout.Plot:
    """Return the figure: a line for each architecture, and dotted the multiples of the time of one member."""
    colours, sizes = architecture_colours(measured), [int(size) for size in next(iter(measured.values()))]
    with layout.theme():
        title = "Time of a step of all members of a cohort"
        note = f"Width {WIDTH}, batches of {BATCH}; median with its 95 % interval by {unit}."
        figure, [axes] = layout.panels(layout.SCREEN, title, 1, notes=[note, "Dotted: a multiple of the time of one."])
        for arch, rounds in measured.items():
            middle, low, high = zip(*(median_interval(times)[:3] for times in rounds.values()), strict=True)
            axes.plot(sizes, middle, color=colours[arch], marker="o", ms=4, lw=1.3, label=arch)
            axes.fill_between(sizes, low, high, color=colours[arch], alpha=0.15, lw=0)
            axes.plot(sizes, [middle[0] * size for size in sizes], color=colours[arch], ls=":", lw=1)
        axes.set(xscale="log", yscale="log", xlabel="members", ylabel="milliseconds")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.legend()
    times = (
        f"{arch} {', '.join(f'{median(one):.0f}' for one in rounds.values())}" for arch, rounds in measured.items()
    )
    return layout.Plot("cohorts", figure, f"{title} of {', '.join(map(str, sizes))}, in ms: {'; '.join(times)}.")


def main(sizes: Sequence[int] = (1, 2, 4, 8)) -> None:
    chosen = arguments(__doc__, figure=True)
    steps, rounds = (SKIP + 10, 2) if chosen.quick else (SKIP + 20, 6)
    measured: dict[str, Measurements] = {}
    for arch in chosen.arch:
        prepared = scan(arch, widths(arch, WIDTH), batch_size=BATCH, steps=steps)
        ways = {str(size): partial(milliseconds, prepared, size) for size in sizes}
        measured[arch] = alternate(ways, rounds)
        table(f"{arch}, {torch.get_num_threads()} threads", "ms/step of all", measured[arch], "1")
    if chosen.figure:
        draw(measured, "CPU time" if chosen.cpu else "wall-clock time").save(chosen.figure)
        chosen.figure.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What more data, and what more parameters are worth."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from math import log10
from typing import TYPE_CHECKING, Any, NamedTuple

from tasks.errors import UserError
from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition, main_metrics
from tfstudy.analysis.statistics import Fit, log_fit
from tfstudy.report.plots.layout import PERCENT, Picture, capital, legend, listed, metric_name, name_axes, panels, place
from tfstudy.report.plots.series_style import Look, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZED = re.compile(r"_p\d+$|_num\d+_rep\d+$")  # the end of an experiment's name that says how much is trained on
SETTING = re.compile(r" (?=[\w.]+=)")  # between two settings of a row


class Series(NamedTuple):
    """Runs that differ in their size and seed alone."""

    label: str
    arch: str
    sizes: list[int]  # of each run
    values: list[float]  # in per cent

    @property
    def fit(self) -> Fit | None:
        """Against the logarithm of the size; None if there is one size."""
        return log_fit(self.sizes, self.values) if len(set(self.sizes)) > 1 else None


Panels = dict[str, list[Series]]


def data(rows: Sequence[Condition]) -> Picture:
    """The main metric against the number of training examples, a point a run, with a log-linear fit."""
    return _picture("data", rows, "data.", "training examples", lambda run: run.result.train_examples)


def scaling(rows: Sequence[Condition]) -> Picture:
    """The main metric against the number of parameters, a point a run, with a log-linear fit."""
    return _picture("scaling", rows, "model.", "parameters", lambda run: run.result.parameters)


def _panels(rows: Sequence[Condition], metric: str, section: str, size_of: Callable[[RunRecord], int]) -> Panels:
    """The series of each test split that has one of several sizes; the settings that decide the size differ in it."""
    alike: dict[tuple[str, str, str], list[Condition]] = {}
    for row in rows:
        split = SIZED.sub("_*", row.split) if section == "data." else row.split
        if any(map(size_of, row.runs)):
            alike.setdefault((place(row._replace(split=split), rows), row.arch, row.preset), []).append(row)
    found: dict[str, dict[str, Series]] = {}
    for (name, arch, _), members in alike.items():
        decide = _deciding(members, section, size_of)
        for row in members:
            label = _label(row, decide)
            series = found.setdefault(name, {}).setdefault(label, Series(label, arch, [], []))
            by_seed = row.by_seed(metric)
            for run in row.runs:
                if (size := size_of(run)) and run.result.seed in by_seed:
                    series.sizes.append(size)
                    series.values.append(by_seed[run.result.seed])
    kept = {name: [one for one in members.values() if one.sizes] for name, members in found.items()}
    return {name: members for name, members in kept.items() if any(one.fit for one in members)}


def _deciding(rows: Sequence[Condition], section: str, size_of: Callable[[RunRecord], int]) -> set[str]:
    """The numbers of a section of the config that follow from the size: one value for each, whatever the rows."""
    values: dict[str, dict[int, set[Any]]] = {}
    for row in rows:
        for key, value in row.config.items():
            if key.startswith(section) and isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(key, {}).setdefault(max(map(size_of, row.runs)), set()).add(value)
    return {key for key, by_size in values.items() if all(len(found) == 1 for found in by_size.values())}


def _label(row: Condition, decide: Collection[str]) -> str:
    """The row's label without the settings that decide its size."""
    told = [setting for setting in SETTING.split(row.settings) if setting and setting.split("=")[0] not in decide]
    return " ".join([row.arch, *([row.preset] if row.preset != "default" else []), *told])


def _picture(
    name: str, rows: Sequence[Condition], section: str, size: str, size_of: Callable[[RunRecord], int]
) -> Picture:
    metrics = main_metrics(rows)
    found: Panels = {}
    drawn: dict[str, str] = {}  # tasks that are, and their metrics
    for task, metric in metrics.items():
        own = _panels([row for row in rows if row.task == task], metric, section, size_of)
        found |= {f"{task} {place}" if len(metrics) > 1 else place: members for place, members in own.items()}
        drawn |= {task: metric} if own else {}
    if not found:
        raise UserError(f"no two runs here differ in their number of {size} with all else equal, so it can't be drawn")
    slopes = [f"{where}: {one.label} {_slope(fit)}" for where in found for one in found[where] if (fit := one.fit)]
    what = metric_name(drawn)
    alt = f"{what} against the number of {size}; points gained for ten times as many, {listed(slopes)}."
    return Picture(name, lambda: _draw(found, size, what), capital(alt))


def _slope(fit: Fit) -> str:
    ends = "" if fit.low != fit.low else f" [{fit.low:+.1f}, {fit.high:+.1f}]"
    return f"{fit.slope:+.1f}{ends}".replace("-", "\N{MINUS SIGN}")


def _draw(found: Panels, size: str, metric: str) -> "Figure":
    from matplotlib.lines import Line2D

    looked = looks({one.label: one.arch for members in found.values() for one in members})
    lines = max(sum(one.fit is not None for one in members) for members in found.values())
    title = f"What more {size} are worth"
    figure, axes = panels(len(found), title, [*looked, "numbers: points for ten times"], (3.0, 2.2 + 0.14 * lines))
    for one, (name, members) in zip(axes, found.items(), strict=True):
        _panel(one, name, members, looked)
    name_axes(axes, f"{size} (log)", metric)
    note = Line2D([], [], color="0.4", lw=1.1, label="log-linear fit; numbers: points for\nten times as many [95 %]")
    legend(figure, looked, [note])
    return figure


def _panel(axes: "Axes", name: str, members: Sequence[Series], looked: Mapping[str, Look]) -> None:
    fits = [(looked[one.label], one, fit) for one in members if (fit := one.fit)]
    for one in members:
        look = looked[one.label]
        axes.scatter(one.sizes, one.values, color=look.colour, marker=look.marker, s=22, alpha=0.8, lw=0, zorder=3)
    for number, (look, one, fit) in enumerate(reversed(fits)):
        ends = [min(one.sizes), max(one.sizes)]
        axes.plot(
            ends, [fit.intercept + fit.slope * log10(end) for end in ends], color=look.colour, ls=look.line, lw=1.1
        )
        alone = sum(other.arch == one.arch for _, other, _ in fits) == 1
        text = f"{one.arch if alone else one.label} {_slope(fit)}"
        corner = (0, 5 + 10 * number)
        axes.annotate(text, (0, 1), corner, "axes fraction", "offset points", color=look.colour, fontsize=7.5)
    axes.set_title(name, loc="left", pad=8 + 10 * len(fits))
    sizes = sorted({size for one in members for size in one.sizes})
    axes.set(xscale="log", ylim=PERCENT, xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    axes.set_xticks(_apart(sizes), [_short(size) for size in _apart(sizes)])
    axes.minorticks_off()


def _apart(sizes: Sequence[int]) -> list[int]:
    """Of sizes in order those whose labels have room on a logarithmic axis."""
    room = log10(sizes[-1] / sizes[0]) / 6
    out = [sizes[0]]
    for size in sizes[1:]:
        if log10(size / out[-1]) > room:
            out.append(size)
    return out


def _short(size: int) -> str:
    """`500`, `16.1k`, `0.67M`."""
    return f"{size / 1e6:.3g}M" if size >= 100_000 else f"{size / 1e3:.3g}k" if size >= 1000 else str(size)

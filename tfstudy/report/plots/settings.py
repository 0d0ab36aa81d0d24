"""`--kind settings`: the mean of each setting (rows) on each test set (columns), as a heat map."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from statistics import mean

import matplotlib as mpl
from matplotlib.axes import Axes

from tfstudy.analysis.conditions import Condition, main_metrics
from tfstudy.config.trees import short_key
from tfstudy.errors import UserError
from tfstudy.report.plots import captions, layout
from tfstudy.report.plots.grouping import group_by_test_set
from tfstudy.report.plots.series_style import condition_styles

CELL = (0.62, 0.21)  # inches
COLOURS, DARK = "Blues", 60.0  # percent above which a number is white
DEFAULT = "(default)"
Means = Mapping[str, Mapping[str, float]]  # by row, then by column, in percent


def plot(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the mean over seeds of the main metric; `UserError` if no architecture has two settings.

    A setting that was not evaluated on a test set leaves its cell empty.
    """
    metrics = main_metrics(conditions)
    shown = [condition for condition in conditions if condition.values(metrics[condition.task])]
    labels, groups = list(condition_styles(shown)), group_by_test_set(shown)
    found: dict[str, dict[str, float]] = {label: {} for label in labels}
    for name, members in groups.items():
        for one in members:
            found[row_label(one, labels)][name] = mean(one.values(metrics[one.task]))
    means = {label: own for label, own in found.items() if own}
    if len(means) == len({condition.arch for condition in shown}):
        raise UserError("a plot of settings needs at least two settings of an architecture, evaluated on a test set")
    rows = dict(zip(row_names(list(means)), means.values(), strict=True))
    slanted = 0.65 * sheet.letter * max(map(len, groups))  # the names of the columns
    width, height = CELL[0] * len(groups), CELL[1] * len(rows) + slanted + 0.2
    beside = 1.2 * sheet.letter * max(map(len, rows)) + 0.3
    figure, [axes] = layout.uneven_panels(
        sheet, "Mean of each setting on each test set", [height], width + beside, 1, [],
        [f"{captions.metric_label(metrics)}, mean over seeds.", captions.run_caption(shown)],
    )  # fmt: skip
    _draw(axes, rows, list(groups), sheet)
    described = captions.join([f"{name}: {_describe(own)}" for name, own in rows.items()])
    return layout.Plot("settings", figure, f"Mean {captions.metric_label(metrics)} of each setting: {described}.")


def row_label(condition: Condition, labels: Sequence[str]) -> str:
    """Return the label of a condition, or one that says more and is true of it too: of a task that varies more."""
    words = set(condition.label.split())
    settings = {short_key(key): str(value) for key, value in condition.config.items()}

    def is_true(word: str) -> bool:
        key, _, value = word.partition("=")
        return word == condition.preset or settings.get(key) == value

    longer = (label for label in labels if words < set(label.split()))
    return next((label for label in longer if all(map(is_true, set(label.split()) - words))), condition.label)


def row_names(labels: Sequence[str]) -> list[str]:
    """Return labels without the words that all of them start with."""
    texts = [label.split() for label in labels]
    shared = len(list(takewhile(lambda words: len(set(words)) == 1, zip(*texts, strict=False))))
    return [" ".join(words[shared:]) or DEFAULT for words in texts]


def _describe(means: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in means.items())


def _draw(axes: Axes, rows: Means, columns: Sequence[str], sheet: layout.Sheet) -> None:
    grid = [[own.get(column, float("nan")) for column in columns] for own in rows.values()]
    axes.imshow(grid, cmap=COLOURS, norm=mpl.colors.Normalize(0, 100), aspect="auto", interpolation="none")
    axes.grid(visible=False)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")
    for y, cells in enumerate(grid):
        for x, value in enumerate(cells):
            if value == value:  # not nan
                ink = "white" if value > DARK else "0.2"
                axes.text(x, y, f"{value:.0f}", ha="center", va="center", fontsize=min(7.5, sheet.points), color=ink)

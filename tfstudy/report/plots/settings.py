"""`--kind settings`: a heat map of the mean of each setting on each test set."""

from collections.abc import Sequence
from itertools import takewhile

import pandas as pd
import seaborn as sns

from tfstudy.analysis.labels import Condition
from tfstudy.config.trees import short_key
from tfstudy.errors import UserError
from tfstudy.report.plots import layout, series

CELL = (0.62, 0.21)  # inches
DEFAULT = "(default)"
MAX_LETTERS = 80  # in a line on a screen


def settings(conditions: Sequence[Condition], sheet: layout.Sheet) -> layout.Plot:
    """Return the mean over seeds of the main metric; `UserError` if no architecture has two settings.

    A setting that was not evaluated on a test set leaves its cell empty.
    """
    metrics = series.main_metrics(conditions)
    shown = [condition for condition in conditions if condition.each_seed]
    labels, groups = list(series.condition_styles(shown)), series.group_by_test_set(shown)
    means = {(row_label(one, labels), name): one.mean for name, members in groups.items() for one in members}
    frame = pd.Series(means).unstack().reindex(columns=list(groups)) if means else pd.DataFrame()
    frame = frame.reindex([label for label in labels if label in frame.index])
    if len(frame) == len({condition.arch for condition in shown}):
        raise UserError("a plot of settings needs at least two settings of an architecture, evaluated on a test set")
    names = row_names(list(frame.index))
    width = CELL[0] * len(groups)
    letters = (
        max(sheet.letters, int((sheet.width - 0.4 * len(groups)) / layout.LETTER / sheet.points))
        if sheet.width
        else MAX_LETTERS
    )
    written = [sheet._replace(letters=letters).wrapped(name) for name in names]
    lines = max(name.count("\n") + 1 for name in written)
    height = max(CELL[1], layout.LINE * sheet.points * lines + 0.04) * len(frame)
    panels = layout.uneven_panels(sheet, "Mean of each setting on each test set", width, [height], 1)
    [axes] = panels.axes
    font = {"fontsize": min(7.5, sheet.points)}
    sns.heatmap(frame, vmin=0, vmax=100, cmap="Blues", annot=True, fmt=".0f", annot_kws=font, cbar=False, ax=axes)
    axes.set_yticks(axes.get_yticks(), written, rotation=0)
    axes.set_xticks(axes.get_xticks(), list(groups), rotation=40, ha="right", rotation_mode="anchor")
    axes.set(xlabel="", ylabel="")
    metric = series.metric_label(metrics)
    texts = [
        f"{name}: {', '.join(f'{column} {value:.1f}' for column, value in own.dropna().items())}"
        for name, (_, own) in zip(names, frame.iterrows(), strict=True)
    ]
    notes = [f"{metric}, mean over seeds.", series.run_caption(shown)]
    return panels.plot("settings", f"Mean {metric} of each setting: {series.join(texts)}.", notes=notes)


def row_label(condition: Condition, labels: Sequence[str]) -> str:
    """Return the label of a condition, or one that says more and is true of it too: of a task that varies more."""
    words = set(condition.label.split())
    known = {short_key(key): str(value) for key, value in condition.config.items()}

    def is_true(word: str) -> bool:
        key, _, value = word.partition("=")
        return word == condition.preset or known.get(key) == value

    longer = (label for label in labels if words < set(label.split()))
    return next((label for label in longer if all(map(is_true, set(label.split()) - words))), condition.label)


def row_names(labels: Sequence[str]) -> list[str]:
    """Return labels without the words that all of them start with."""
    texts = [label.split() for label in labels]
    shared = len(list(takewhile(lambda words: len(set(words)) == 1, zip(*texts, strict=False))))
    return [" ".join(words[shared:]) or DEFAULT for words in texts]

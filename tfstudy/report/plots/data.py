"""`--kind data`: what more training examples are worth."""

from collections.abc import Sequence

from tfstudy.analysis.conditions import Condition
from tfstudy.report.plots.layout import Plot, Sheet
from tfstudy.report.plots.scaling import Size, plot_size


def plot(conditions: Sequence[Condition], sheet: Sheet) -> Plot:
    """Return the main metric against the number of training examples: each run, means, slopes of log-linear fits."""
    return plot_size(Size("data", "training examples", lambda run: run.result.train_examples), conditions, sheet)

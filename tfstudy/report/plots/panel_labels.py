"""Labels and titles of panels, wrapped where a panel is narrow."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes

TICK_LABELS = 0.35  # inches beside a panel
OVERHANG = 0.35  # inches that a title must not be wider, so that it does not run into a legend on the right
BESIDE = "beside"  # label of a legend on the right of the panels
LETTER = 0.0077  # inches of a letter, for each point of its size


def label_axes(axes: Sequence[Axes], x: str, y: str) -> None:
    """Label the x axes of the lowest panels and the y axes of the first panel in each row."""
    for number, panel in enumerate(axes):
        spec = panel.get_subplotspec()
        assert spec is not None  # noqa: S101 - always true; for the type checker
        lowest = number + spec.get_gridspec().ncols >= len(axes)
        panel.set_xlabel(_wrapped(panel, x, float(panel.xaxis.label.get_fontsize())) if lowest else "")
        panel.set_ylabel(fill(y, 26) if spec.is_first_col() else "")


def set_title(axes: Axes, title: str, **options: Any) -> None:
    """Set a panel's title, in several lines if it is wider than the panel."""
    axes.set_title(_wrapped(axes, title, float(axes.title.get_fontsize())), **options)


def _wrapped(axes: Axes, text: str, points: float) -> str:
    spec, figure = axes.get_subplotspec(), axes.get_figure(root=True)
    assert spec is not None  # noqa: S101 - always true; for the type checker
    assert figure is not None  # noqa: S101 - always true; for the type checker
    beside = sum(box.get_window_extent().width for box in figure.legends if box.get_label() == BESIDE) / figure.dpi
    width = (figure.get_figwidth() - beside) / spec.get_gridspec().ncols - TICK_LABELS - (OVERHANG if beside else 0)
    return fill(text, int(width / (LETTER * points)), break_long_words=False, break_on_hyphens=False)

"""How all pictures are laid out: sizes, panels, legends, names; and how a picture becomes a file."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from tasks.errors import UserError
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.metrics import NAMES
from tfstudy.report.plots.series_style import Look, looks_of
from tfstudy.runs.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")
PERCENT = (-3.0, 103.0)  # the ends of an axis of shares
LARGEST = 60_000  # pixels; matplotlib draws no more than 65,536
WRAP = 34  # letters in a line of a legend


class Picture(NamedTuple):
    """What can be drawn of some records, and a sentence for those who can't see it."""

    name: str
    draw: "Callable[[], Figure]"
    alt: str


@contextmanager
def theme() -> Iterator[None]:
    """What holds while a picture is drawn and written, whatever the user's own settings of matplotlib are."""
    import seaborn as sns
    from matplotlib import style

    ours = {"font.family": "DejaVu Sans", "svg.hashsalt": "tfstudy", "axes.titlesize": 9, "figure.titlesize": 10}
    ours |= {"legend.frameon": False, "grid.color": "0.88", "grid.linewidth": 0.7, "axes.edgecolor": "0.75"}
    with style.context(["default", sns.axes_style("whitegrid"), sns.plotting_context("paper"), ours]):
        yield


def canvas(width: float, height: float, title: str) -> "Figure":
    """An empty picture, in inches."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.07, h_pad=0.07)
    figure = Figure(figsize=(max(width, 0.085 * len(title)), height), layout=layout)
    figure.suptitle(title, x=0.01, ha="left")
    return figure


def panels(
    count: int, title: str, names: Iterable[str] = (), size: tuple[float, float] = (2.9, 2.2), columns: int = 3
) -> "tuple[Figure, list[Axes]]":
    """A picture of so many panels of `size` inches, one alone larger, with room for a legend of these names."""
    across = 2 if count == 4 and columns > 2 else min(columns, count)
    down = ceil(count / across)
    scale = 1.35 if count == 1 else 1.0
    figure = canvas(across * scale * size[0] + beside(names), down * scale * size[1] + 0.4, title)
    found = list(figure.subplots(down, across, squeeze=False).flat)
    for axes in found[count:]:
        axes.remove()
    return figure, found[:count]


def name_axes(panels: "Sequence[Axes]", x: str, y: str) -> None:
    """Names the axes below the lowest and left of the first panels of a grid that is filled row by row."""
    for number, axes in enumerate(panels):
        spec = axes.get_subplotspec()
        if spec and number + spec.get_gridspec().ncols >= len(panels):
            axes.set_xlabel(x)
        if spec and spec.is_first_col():
            axes.set_ylabel(y)


def beside(names: Iterable[str]) -> float:
    """The inches that a legend of these names takes beside the panels."""
    widths = [len(line) for name in names for line in wrapped(name).splitlines()]
    return 0.6 + 0.068 * max(widths) if widths else 0.0


def legend(figure: "Figure", shown: Mapping[str, Look], more: Sequence[Any] = (), kind: str = "points") -> None:
    """Beside the panels: the series, as points, lines or bars, and further handles."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for name, look in shown.items():
        if kind == "bars":
            handles.append(Patch(label=wrapped(name), **painted(look)))
        else:
            point = Line2D([], [], color=look.colour, marker=look.marker, markersize=5, label=wrapped(name))
            point.set_linestyle(look.line if kind == "lines" else "none")
            handles.append(point)
    handles += more
    lines = sum(handle.get_label().count("\n") + 1 for handle in handles)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, max(height, 0.155 * lines + 0.065 * len(handles) + 0.3))  # nothing of it is cut off
    figure.legend(handles=handles, loc="outside right upper", handlelength=2.6)


def painted(look: Look) -> dict[str, Any]:
    """The options of a bar."""
    return {"facecolor": look.colour, "hatch": look.hatch, "edgecolor": "white", "linewidth": 0.4}


def wrapped(name: str) -> str:
    """A row's label in lines of a legend."""
    return fill(plain(name), WRAP, break_long_words=False, break_on_hyphens=False)


def plain(name: str) -> str:
    """A row's label without the name of the default preset, which says nothing beside settings."""
    return name.replace(" default ", " ")


def metric_name(metrics: Mapping[str, str]) -> str:
    """What an axis of the tasks' main metrics is called: `exact match (%)`, `exact match, translation: BLEU (%)`."""
    names = {task: NAMES.get(metric, metric.replace("_", " ")) for task, metric in metrics.items()}
    if len(set(names.values())) == 1:
        return f"{next(iter(names.values()))} (%)"
    others = [f"{task}: {name}" for task, name in names.items() if name != "exact match"]
    return ", ".join(["exact match", *others] if len(others) < len(names) else others) + " (%)"


def place(row: Condition, rows: Sequence[Condition]) -> str:
    """The row's experiment and test split, with its task if there are several."""
    return f"{row.task} {row.place}" if len({other.task for other in rows}) > 1 else row.place


def by_place(rows: Sequence[Condition]) -> dict[str, list[Condition]]:
    """The rows of each place, those of an architecture beside each other, in the order of the legend."""
    order = list(looks_of(rows))
    out: dict[str, list[Condition]] = {}
    for row in rows:
        out.setdefault(place(row, rows), []).append(row)
    return {name: sorted(members, key=lambda row: order.index(row.label)) for name, members in out.items()}


def in_columns(places: Mapping[str, list[Condition]], most: int = 45) -> list[dict[str, list[Condition]]]:
    """The places in up to three columns of about as many rows each, so that a picture is no ribbon."""
    rows = sum(map(len, places.values()))
    count = min(3, ceil(rows / most))
    columns: list[dict[str, list[Condition]]] = [{} for _ in range(count)]
    before = 0
    for name, members in places.items():
        columns[before * count // rows][name] = members
        before += len(members)
    return [column for column in columns if column]


def capital(text: str) -> str:
    """The text as the begin of a sentence."""
    return text[0].upper() + text[1:]


def listed(parts: Sequence[str], most: int = 12) -> str:
    """For an alt text; what is beyond `most` is counted."""
    return "; ".join([*parts[:most], *([f"and {len(parts) - most} more"] if len(parts) > most else [])])


def content(figure: "Figure", ending: str, salt: str = "tfstudy") -> bytes:
    """The picture as a file of this ending; the same records give the same bytes.

    `salt` decides the ids within an SVG, so that pictures of one page have different ones.
    """
    import matplotlib as mpl

    out = io.BytesIO()
    dateless = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
    dpi = min(160, LARGEST / max(figure.get_size_inches()))
    with theme(), mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(out, format=ending[1:], dpi=dpi, metadata=dateless)
    return out.getvalue()


def save(figure: "Figure", out: Path) -> None:
    """Writes the picture whole, of the kind that its ending says; `UserError` if it can't be written."""
    try:
        write_whole(out, content(figure, out.suffix.lower()))
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror}") from None

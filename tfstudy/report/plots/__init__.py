"""Pictures of a study's records, a kind a function: rows in, a picture out."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import UserError, one_of
from tfstudy.analysis.collection import Study, read_finished
from tfstudy.analysis.conditions import Condition, conditions
from tfstudy.report.plots.differences import differences
from tfstudy.report.plots.error_kinds import errors
from tfstudy.report.plots.layout import ENDINGS, Picture, content, save, theme
from tfstudy.report.plots.learning import learning
from tfstudy.report.plots.lengths import length
from tfstudy.report.plots.operands import operands
from tfstudy.report.plots.sizes import data, scaling
from tfstudy.report.plots.slices import slices, tags
from tfstudy.report.plots.splits import split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KINDS", "Picture", "draw", "figures", "picture", "svg"]

SLICES = "slices"
KINDS: dict[str, Callable[[Sequence[Condition]], Picture]] = {
    "split": split,
    "length": length,
    "learning": learning,
    "operands": operands,
    "data": data,
    "scaling": scaling,
    "differences": differences,
    "errors": errors,
}


def draw(root: Path, kind: str, out: Path, tag: str = "") -> None:
    """Writes a picture of the study of a folder; `UserError` before anything is written if that can't be."""
    one_of("--kind", kind, (*KINDS, SLICES))
    one_of("--out's ending", out.suffix.lower(), ENDINGS)
    if tag and kind != SLICES:
        raise UserError(f"--tag goes with --kind {SLICES} alone, but the kind is '{kind}'")
    save(picture(read_finished(root), kind, tag).draw(), out)


def picture(study: Study, kind: str, tag: str = "") -> Picture:
    """The picture of this kind, `slices` by a tag; `UserError` if these records do not have what it shows."""
    if kind != SLICES:
        return themed(KINDS[kind](conditions(study.runs)))
    known = tags(conditions(study.runs))
    if not known:
        raise UserError("these runs were not measured by any tag, so there are no slices")
    return themed(slices(conditions(study.runs, one_of("--tag", tag, known)), tag))


def figures(study: Study) -> Iterator[Picture]:
    """Every picture that these records support: its name, a function that draws it, and its alt text."""
    found = conditions(study.runs)
    names = set()
    for kind in KINDS.values():
        try:
            one = kind(found)
        except UserError:  # they do not have what it shows
            continue
        names.add(one.name)
        yield themed(one)
    for tag in tags(found):
        if tag not in names:  # by length there are curves
            yield themed(slices(conditions(study.runs, tag), tag))


def themed(one: Picture) -> Picture:
    """The same picture, drawn in our style."""

    def drawn() -> "Figure":
        with theme():
            return one.draw()

    return one._replace(draw=drawn)


def svg(one: Picture) -> str:
    """A picture as the text of an SVG file, its ids unlike those of other pictures of the same page."""
    return content(one.draw(), ".svg", one.name).decode()

"""Plots of a study's records. Each kind is the module of its name; matplotlib is imported when one is drawn."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import UserError, one_of
from tfstudy.analysis.collection import Study, read_finished_runs
from tfstudy.analysis.conditions import conditions

if TYPE_CHECKING:
    from tfstudy.report.plots.layout import Plot

SLICES = "slices"
KINDS = ("split", "length", "learning", "operands", "data", "scaling", "differences", "errors", SLICES)
FILE_TYPES = (".png", ".svg", ".pdf")


def save_plot(root: Path, kind: str, out: Path, tag: str = "") -> None:
    """Plot the study in a folder; `UserError`, before anything is written, if that is not possible."""
    one_of("kind of plot", kind, KINDS)
    one_of("file type", out.suffix.lower(), FILE_TYPES)
    if tag and kind != SLICES:
        raise UserError(f"--tag is only valid with --kind {SLICES}, not with --kind {kind}")
    make_plot(read_finished_runs(root), kind, tag).save(out)


def make_plot(study: Study, kind: str, tag: str = "") -> "Plot":
    """Return the plot of this kind, for `slices` by a tag; `UserError` if these records lack the data for it."""
    from tfstudy.report.plots.layout import theme

    shown = conditions(study.runs)
    if kind == SLICES:
        known = tags(study)
        if not known:
            raise UserError("no run was evaluated by a tag, so there are no slices")
        shown = conditions(study.runs, one_of("tag", tag, known))
    with theme():
        plot: Plot = import_module(f"tfstudy.report.plots.{kind}").plot(shown)
        return plot


def all_plots(study: Study) -> Iterator["Plot"]:
    """Yield every plot for which these records have the data."""
    drawn = set()
    for kind in KINDS[:-1]:
        try:
            plot = make_plot(study, kind)
        except UserError:  # the data are missing
            continue
        drawn.add(plot.name)
        yield plot
    for tag in tags(study):
        if tag not in drawn:  # a length plot shows more than slices by length
            yield make_plot(study, SLICES, tag)


def tags(study: Study) -> list[str]:
    """Return the tags by which the test sets of these runs can be sliced."""
    scores = (part for run in study.runs for part in run.result.splits.values() if part.role == "test" and part.n)
    return sorted({tag for part in scores for tag in part.slices})

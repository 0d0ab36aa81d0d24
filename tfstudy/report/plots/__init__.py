"""Plots of a study's records. Each kind is a function of its name; matplotlib is imported when one is drawn."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfstudy.analysis.frame import Study, read_finished_runs
from tfstudy.analysis.summary import conditions
from tfstudy.errors import UserError, one_of, quoted

if TYPE_CHECKING:
    from tfstudy.report.plots.layout import Plot

SLICES, DIFFERENCES = "slices", "differences"
KINDS = {  # in the order of a report; the module of each, whose function has the name of the kind
    "split": "rows", "length": "curves", "learning": "curves", "data": "curves", "settings": "rows",
    DIFFERENCES: "rows", "errors": "rows", SLICES: "rows",
}  # fmt: skip
FILE_TYPES = (".png", ".svg", ".pdf")


def save_plot(roots: Sequence[Path], kind: str, out: Path, tag: str = "", tasks: str = "") -> list[str]:
    """Plot the studies in these folders, and return lines on the runs that are left out.

    `UserError`, before anything is written, if that is not possible.
    """
    one_of("kind of plot", kind, list(KINDS))
    check_file_type(out)
    if tag and kind != SLICES:
        raise UserError(f"--tag is only valid with --kind {SLICES}, not with --kind {kind}")
    if len(roots) > 1 and kind == DIFFERENCES:
        raise UserError(f"--kind {DIFFERENCES} plots one study, since its comparisons are one family of tests")
    studies = [read_finished_runs(root) for root in roots]
    make_plot(merge_studies(studies), kind, tag, tasks).save(out)
    return [note for study in studies for note in study.left_out_notes()]


def check_file_type(out: Path) -> None:
    """Raise `UserError` unless the name of a file ends as that of an image does."""
    if not out.suffix:
        raise UserError(f"the name of the image must end in {', '.join(FILE_TYPES)}, but is {quoted(out)}")
    one_of("file type", out.suffix.lower(), FILE_TYPES)


def merge_studies(studies: Sequence[Study]) -> Study:
    """Return one study with the runs of all; a run that several studies have counts once."""
    runs = {(run.result.experiment, run.result.seed): run for study in reversed(studies) for run in study.runs}
    left_out = [entry for study in studies for entry in study.left_out]
    return studies[0] if len(studies) == 1 else Study(studies[0].root.parent, list(runs.values()), left_out)


def make_plot(study: Study, kind: str, tag: str = "", tasks: str = "", metric: str = "") -> "Plot":
    """Return the plot of this kind; `UserError` if these records lack the data for it.

    `tag` is that of slices; `tasks`, one or several separated by commas, are the only ones that are shown. `metric` is
    what means are of, in place of each task's main metric.
    """
    if kind == SLICES and not tag:
        raise UserError(f"--kind {SLICES} needs --tag with one of: {', '.join(tags(study)) or '(no run has tags)'}")
    found = conditions(study.runs, tag and one_of("tag", tag, tags(study)), metric)
    from tfstudy.report.plots.layout import theme

    shown = [one_of("task", text, sorted(found["task"].unique())) for text in tasks.split(",") if text]
    frame = found[found["task"].isin(shown)] if shown else found
    more: dict[str, Any] = {"family": found} if kind == DIFFERENCES else {}
    with theme():
        plot: Plot = getattr(import_module(f"{__name__}.{KINDS[kind]}"), kind)(frame, **more)
        return plot


def all_plots(study: Study, metric: str = "") -> Iterator["Plot"]:
    """Yield every plot for which these records have the data."""
    drawn = set[str]()
    for kind, tag in [*((kind, "") for kind in KINDS if kind != SLICES), *((SLICES, tag) for tag in tags(study))]:
        with suppress(UserError):  # the data are missing
            if tag not in drawn:  # a length plot shows more than slices by length
                plot = make_plot(study, kind, tag, metric=metric)
                drawn.add(plot.name)
                yield plot


def tags(study: Study) -> list[str]:
    """Return the tags by which the test sets of these runs can be sliced."""
    scores = (part for run in study.runs for part in run.result.splits.values() if part.role == "test" and part.n)
    return sorted({tag for part in scores for tag in part.slices})

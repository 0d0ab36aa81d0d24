"""Published figures beside a condition: which one of each paper, whether its settings are the same, and its source."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.counterparts import has_settings
from tfstudy.analysis.published import Figure, best_known, of_same_kind, papers
from tfstudy.report.markup import plural

OTHER_SETTINGS = "†"  # the sign of a figure that was measured under other settings than the runs beside it
SIGN_NOTE = f"{OTHER_SETTINGS} other settings than these runs"
SPREADS = {"sd": "standard deviation", "sem": "standard error", "ci95": "95 % interval"}


class Quotation(NamedTuple):
    """A published figure beside a condition."""

    figure: Figure
    same_settings: bool  # the paper's and the condition's

    @property
    def text(self) -> str:
        """`69.2 ± 8.2 [dessi-2019]†`."""
        return f"{self.figure.text} [{self.figure.paper}]{OTHER_SETTINGS * (not self.same_settings)}"


def quotations(condition: Condition, metric: str) -> list[Quotation]:
    """Return one figure of each paper: under the condition's settings if it has one, never a maximum over settings."""
    figures = of_same_kind(condition, metric)
    own = [figure for figure in figures if figure.preset == condition.preset]
    with_own = {figure.paper for figure in own}
    chosen = best_known([*own, *(figure for figure in figures if figure.paper not in with_own)])
    return [Quotation(figure, has_settings(figure, condition)) for figure in chosen]


def source_notes(quoted: Iterable[Quotation]) -> list[str]:
    """Return a line for each paper: its key, authors, year, where its figures are printed, and what follows their ±."""
    places: dict[str, dict[str, None]] = {}
    for figure in (one.figure for one in quoted):
        places.setdefault(_citation(figure), {})[_place(figure)] = None
    return [f"{citation}: {'; '.join(places[citation])}" for citation in sorted(places)]


def _citation(figure: Figure) -> str:
    arxiv = f", arXiv {figure.arxiv}" * bool(figure.arxiv)
    return f"[{figure.paper}] {figure.citation}{arxiv}{f', quoted in {figure.quoted_from}' * bool(figure.quoted_from)}"


def _place(figure: Figure) -> str:
    if figure.spread is None:
        return figure.place + " (one run)" * (figure.value_kind == "single")
    seeds = f" of {plural(figure.n, 'seed')}" * bool(figure.n) if figure.n else ""
    return f"{figure.place} (±: {SPREADS.get(figure.spread_kind, 'not explained')}{seeds})"


def bibtex(keys: Sequence[str]) -> str:
    """Return the BibTeX entries of these papers, as they are in `configs/papers.bib`."""
    return "\n\n".join(papers()[key].entry for key in sorted(set(keys))) + "\n" if keys else ""

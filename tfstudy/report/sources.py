"""The papers that a report refers to, with links, and what the ids of claims mean."""

import unicodedata
from collections.abc import Iterable, Sequence

from tfstudy.analysis.published import Paper, papers
from tfstudy.report.claims import ClaimText
from tfstudy.report.table_lines import Table

IDS = {
    "L": "L, such as L2: a statement of lecture notes on Transformers (EE 641 Unit 6, 2025)",
    "P": "P, such as P7: a statement of a paper, named as its source",
}


def id_notes(claims: Sequence[ClaimText]) -> list[str]:
    """Return what the first letters of these ids mean."""
    return [note for letter, note in IDS.items() if any(claim.id.startswith(letter) for claim in claims)]


def cited_papers(table: Table, claims: Iterable[ClaimText]) -> list[Paper]:
    """Return the papers with published figures in the table, and those that are sources of the claims, by key."""
    keys = {
        key
        for line in table.lines
        for quoted in (line.published, line.published_oracle, line.published_over_lengths)
        for one in quoted
        for key in (one.figure.paper, one.figure.quoted_from)
    }
    sources = [_plain(claim.source) for claim in claims]
    return [
        paper
        for key, paper in sorted(papers().items())
        if key in keys or any(_plain(paper.short) in source for source in sources)
    ]


def _plain(text: str) -> str:
    """Return text without accents: sources spell Dessì as Dessi."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()

"""The report of a study as Markdown, as shown by repository hosts."""

from collections.abc import Iterable, Sequence

from tfstudy.report.claims import ClaimText, protocol
from tfstudy.report.markup import escape_markdown, markdown_list, markdown_table, plural
from tfstudy.report.study_page import Page, RunLink
from tfstudy.report.table_formats import markdown as table_markdown

MARK = "<!-- tfstudy report -->"  # identifies a file as a report
COMPARISON_HEADS = (
    "test set", "result", "difference", "simultaneous interval", "p, corrected", "test", "needed to decide",
)  # fmt: skip


def markdown(page: Page) -> str:
    """Return the comparisons, the claims, the table and its notes, the figures, the runs, and what is left out."""
    notes = [escape_markdown(note) for note in page.notes]
    runs = [
        f"{escape_markdown(name)}: {_runs(page, line.runs)}" for name, line in zip(page.names, page.lines, strict=True)
    ]
    blocks = [
        f"{MARK}\n\n# {escape_markdown(page.name)}",
        f"{page.counts}. Written by tfstudy {page.version}; `index.html`, which `tfstudy report` writes beside this "
        "page, has the same, examples of errors, and the protocol of each condition.",
        f"**{plural(page.unfinished, 'run')} not finished.** Results may change." if page.unfinished else "",
        "## Comparisons",
        *_comparisons(page),
        *_claims(page.claims),
        "## Table",
        table_markdown(page.table._replace(notes=notes)).rstrip("\n"),
        *_figures(page),
        "## Runs",
        markdown_list(runs),
        *_left_out(page),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _comparisons(page: Page) -> list[str]:
    comparisons = page.comparisons
    rows = [
        (c.test_set, f"**{c.verdict}**" if c.decided else c.verdict, c.difference, c.interval, c.p, c.test, c.needed)
        for c in comparisons.tested
    ]
    untested = [f"not tested on {name}: {', '.join(labels)}" for name, labels in comparisons.untested.items()]
    return [
        comparisons.summary,
        _table(COMPARISON_HEADS, rows),
        markdown_list(map(_escaped, [*comparisons.notes, *untested])),
    ]


def _claims(claims: Sequence[ClaimText]) -> list[str]:
    if not claims:
        return []
    rows = [(claim.id, claim.claim, f"**{claim.verdict}**", _evidence(claim), claim.source) for claim in claims]
    heads = ("id", "claim", "verdict", "evidence", "source")
    return ["## Claims", _table(heads, rows), markdown_list(map(_escaped, protocol()))]


def _evidence(claim: ClaimText) -> str:
    statements = [f"({number}) {text}" for number, text in enumerate(claim.evidence, 1)]
    return ": ".join(filter(None, (claim.reason, "; ".join(statements))))


def _figures(page: Page) -> list[str]:
    if not page.figures:
        return []
    alts = [_escaped(figure.alt).replace("[", "(").replace("]", ")") for figure in page.figures]
    return ["## Figures", *(f"![{alt}](figures/{one.file})" for alt, one in zip(alts, page.figures, strict=True))]


def _left_out(page: Page) -> list[str]:
    lines = [_escaped(line) for line in page.left_out]
    lines += [
        f"[{escape_markdown(run.path.name)}]({page.link(run.path)}) diverged: {_escaped(why)}"
        for run, why in page.diverged
    ]
    return ["## Left out", markdown_list(lines)] if lines else []


def _runs(page: Page, runs: Sequence[RunLink]) -> str:
    """Return each run's seed and result, linked to its folder."""
    links = (f"[seed {run.result.seed}{': ' * bool(value)}{value}]({page.link(run.path)})" for run, value in runs)
    return ", ".join(links) or "no finished run"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    escaped = [[_escaped(cell) for cell in row] for row in rows]
    return markdown_table(heads, escaped) if escaped else ""


def _escaped(text: str) -> str:
    """Return text without Markdown of its own, except that bold text as a whole stays bold."""
    bold = text.startswith("**") and text.endswith("**") and len(text) > 4
    return f"**{escape_markdown(text[2:-2])}**" if bold else escape_markdown(text)

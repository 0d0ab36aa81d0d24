"""The report of a study as Markdown, as shown by repository hosts."""

from collections.abc import Iterable, Sequence

from tfstudy.report.claims import ClaimText, protocol
from tfstudy.report.markup import escape_markdown, markdown_list, markdown_table, plural
from tfstudy.report.render import render
from tfstudy.report.study_page import FigureFile, Page, RunLink
from tfstudy.report.tables import cells

MARK = "<!-- tfstudy report -->"  # identifies a file as a report
COMPARISON_HEADS = (
    "test set", "result", "difference", "simultaneous interval", "p, corrected", "test", "needed to decide",
)  # fmt: skip


def markdown(page: Page) -> str:
    """Return what was studied, the main figure, the verdict, then the rest in the order of the HTML page."""
    notes = [escape_markdown(note) for note in page.notes]
    runs = [
        f"{escape_markdown(name)}: {_runs(page, line.runs)}" for name, line in zip(page.names, page.lines, strict=True)
    ]
    blocks = [
        f"{MARK}\n\n# {escape_markdown(page.name)}",
        _escaped(" ".join(page.about)),
        f"**{plural(page.unfinished, 'run')} not finished.** Results may change." if page.unfinished else "",
        _picture(page.main_figure) if page.main_figure else "",
        "## Verdict",
        *map(_escaped, page.verdict),
        "## Table",
        f"{page.counts}.",
        render(cells(page.table), notes, "md").rstrip("\n"),
        "## Comparisons",
        *_comparisons(page),
        *_figures(page),
        *_claims(page),
        *_sources(page),
        "## Runs",
        markdown_list(runs),
        f"Written by tfstudy {page.version}; `index.html`, which `tfstudy report` writes beside this page, has the "
        "same, examples of errors, and the protocol of each condition.",
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


def _claims(page: Page) -> list[str]:
    if not page.claims:
        return []
    rows = [(claim.id, claim.claim, f"**{claim.verdict}**", _evidence(claim), claim.source) for claim in page.claims]
    heads = ("id", "claim", "verdict", "evidence", "source")
    return ["## Claims", _table(heads, rows), markdown_list(map(_escaped, [*page.id_notes, *protocol()]))]


def _sources(page: Page) -> list[str]:
    lines = [
        f"[{paper.key}] {_escaped(f'{paper.short}: {paper.title}')}, <{paper.url}>".removesuffix(", <>")
        for paper in page.papers
    ]
    return ["## Sources", markdown_list(lines)] if lines else []


def _evidence(claim: ClaimText) -> str:
    statements = [f"({number}) {text}" for number, text in enumerate(claim.evidence, 1)]
    return ": ".join(filter(None, (claim.reason, "; ".join(statements))))


def _figures(page: Page) -> list[str]:
    pictures = [_picture(figure) for figure in page.figures if figure != page.main_figure]
    return ["## Figures", *map(_escaped, page.figure_notes), *pictures] if pictures or page.figure_notes else []


def _picture(figure: FigureFile) -> str:
    alt = _escaped(figure.alt).replace("[", "(").replace("]", ")")
    return f"![{alt}](figures/{figure.file})"


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

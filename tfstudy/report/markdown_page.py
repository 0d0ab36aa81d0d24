"""A report as Markdown, to be read where a repository is kept."""

from collections.abc import Iterable, Sequence

from tfstudy.analysis.collection import RunRecord
from tfstudy.report.markup import markdown as as_markdown
from tfstudy.report.study_page import Claim, Page, plural

MARK = "<!-- tfstudy report -->"
SPECIAL = str.maketrans({"&": "&amp;", "<": "&lt;", "|": r"\|", "*": r"\*", "`": r"\`"})
VERDICTS = ("examples", "verdict", "difference", "95 % interval", "p, corrected", "test", "to decide it")


def markdown(page: Page) -> str:
    """The verdicts, the claims, the table and its notes, the figures, the runs, and what was left out."""
    notes = [note.translate(SPECIAL) for note in page.notes]
    parts = [
        f"{MARK}\n\n# {page.name.translate(SPECIAL)}",
        f"{page.counts}. Made by tfstudy {page.version}; [index.html](index.html) has the same, examples of errors and "
        "the protocol of each row.",
        f"**Not finished: {plural(page.running, 'run')}.** What stands here can change." if page.running else "",
        "## Verdicts",
        *_verdicts(page),
        *_claims(page),
        "## Table",
        as_markdown(page.table._replace(notes=notes)).rstrip("\n"),
        *_figures(page),
        "## Runs",
        _listed(f"{name}: {_runs(page, one.runs)}" for name, one in zip(page.names, page.lines, strict=True)),
        *_left_out(page),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _verdicts(page: Page) -> list[str]:
    found = page.findings
    told = [
        (f.place, f"**{f.says}**" if f.decided else f.says, f.difference, f.interval, f.p, f.test, f.more)
        for f in found.tested
    ]
    untested = [f"not tested on {place}: {', '.join(labels)}" for place, labels in found.untested.items()]
    return [found.summary, _table(VERDICTS, told), _listed(map(_plain, [*found.notes, *untested]))]


def _claims(page: Page) -> list[str]:
    if not page.claims.conditions:
        return []
    told = [(c.id, c.claim, f"**{c.verdict}**", _evidence(c), c.source) for c in page.claims.conditions]
    heads = ("id", "claim", "verdict", "evidence", "source")
    return ["## Claims", _table(heads, told), _listed(map(_plain, page.claims.notes))]


def _evidence(claim: Claim) -> str:
    parts = [f"({number}) {part}" for number, part in enumerate(claim.evidence, 1)]
    return ": ".join(filter(None, (claim.why, "; ".join(parts))))


def _figures(page: Page) -> list[str]:
    told = [(_plain(figure.alt).replace("[", "(").replace("]", ")"), figure.file) for figure in page.figures]
    return ["## Figures", *(f"![{alt}](figures/{file})" for alt, file in told)] if told else []


def _left_out(page: Page) -> list[str]:
    told = [_plain(line) for line in page.left_out]
    told += [f"[{run.path.name}]({page.link(run.path)}) diverged: {_plain(reason)}" for run, reason in page.diverged]
    return ["## Left out", _listed(told)] if told else []


def _runs(page: Page, runs: Sequence[tuple[RunRecord, str]]) -> str:
    """Each run's seed and figure, linked to its folder."""
    told = (f"[seed {run.result.seed}{': ' * bool(value)}{value}]({page.link(run.path)})" for run, value in runs)
    return ", ".join(told) or "no finished run"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([_plain(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if rows else ""


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _plain(text: str) -> str:
    """Without what Markdown would take for its own, but for bold as a whole."""
    strong = text.startswith("**") and text.endswith("**") and len(text) > 4
    return f"**{text[2:-2].translate(SPECIAL)}**" if strong else " ".join(text.split()).translate(SPECIAL)

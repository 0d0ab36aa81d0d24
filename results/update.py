"""Write the documents of `results/` from its records: tables of studies, claims, figures.

A comment in a page says what prints the table below it: `<!-- tfstudy table STUDY OPTIONS without: COLUMN, ROW -->`.

python results/update.py            # tables and claims (seconds)
python results/update.py --figures  # figures too (a minute)
"""

import argparse
import contextlib
import io
import re
import tempfile
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tfstudy.cli import main as tfstudy
from tfstudy.runs.find import find_runs
from tfstudy.runs.store import is_finished, read_result

RESULTS = Path(__file__).resolve().parent
PAGES = sorted(RESULTS.glob("*/README.md"))
PERFORMANCE = "performance"  # the measurements of `tfstudy bench`
TRANSLATION = ("translation-sizes", "translation-corpora", "translation-corpora-all")  # one learning curve
FIGURES = (  # file, then the command that draws it
    ("tasks/exact-match.png", "plot", "tasks", "--kind", "settings"),
    ("scan/differences.png", "plot", "scan", "--kind", "differences"),
    ("scan/errors.png", "plot", "scan", "--kind", "errors"),
    ("scan/exact-match.png", "plot", "scan", "dessi-2019"),
    ("scan-mcd/exact-match.png", "plot", "scan-mcd"),
    ("scan-templates/exact-match.png", "plot", "scan-templates"),
    ("scan-simple/learning.png", "plot", "scan-simple", "--kind", "learning"),
    ("state-tracking/lengths.png", "plot", "state-tracking"),
    ("inflection/exact-match.png", "plot", "inflection"),
    ("slog/categories.png", "plot", "slog", "--kind", "slices", "--tag", "category"),
    ("cogs/categories.png", "plot", "cogs", "--kind", "slices", "--tag", "category"),
    ("blocks/settings.png", "plot", "blocks", "--kind", "settings"),
    ("positions/settings.png", "plot", "positions", "--kind", "settings"),
    ("claims-tasks/lengths.png", "plot", "claims-tasks", "--kind", "length"),
    ("claims-translation/settings.png", "plot", "claims-translation", "--kind", "settings"),
    ("translation-sizes-synthetic/pairs.png", "plot", "translation-sizes-synthetic", "--kind", "data"),
    ("translation-sizes/pairs.png", "plot", *TRANSLATION, "--kind", "data"),
    ("translation-checkpoints/weights.png", "plot", "translation-checkpoints", *TRANSLATION[:2], "--kind", "data"),
    ("scan-settings/settings.png", "plot", "scan", "scan-settings", "--kind", "settings"),
    ("dessi-2019/exact-match.png", "plot", "dessi-2019"),
)
TABLE = re.compile(
    r"(<!-- tfstudy (table .+?)(?: without: (.+?))? -->\n).*?(?=^<!-- end of table -->)", re.DOTALL | re.MULTILINE
)
TABLES = {found[2].split()[1] for page in PAGES for found in TABLE.finditer(page.read_text(encoding="utf-8"))}
STUDY = re.compile(r"^(\| \[(\S+)\]\(\S+/README\.md\S*\) \| [^|]+\|)([^|]*)\|([^|]*)\|$", re.MULTILINE)
TOTAL = re.compile(r"^\| all \|.*$", re.MULTILINE)


@contextlib.contextmanager
def only_committed_studies() -> Iterator[None]:
    """Change into a folder with links to the committed studies, so that other studies change no document."""
    with tempfile.TemporaryDirectory() as folder:
        for study in (*TABLES, PERFORMANCE):
            (Path(folder) / study).symlink_to(RESULTS / study, target_is_directory=True)
        with contextlib.chdir(folder):
            yield


def output(*words: str) -> str:
    """Return what a command prints about the results in the current folder."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            tfstudy([*words, "--results", "."])
        except SystemExit as end:
            if end.code:
                raise
    return out.getvalue()


def without(text: str, heads: Collection[str]) -> str:
    """Return Markdown tables without the columns and rows of these heads, which are patterns such as `* small *`."""

    def is_left_out(cell: str) -> bool:
        return any(fnmatchcase(cell.strip(), head) for head in heads)

    lines: list[str] = []
    shown: list[int] = []  # the columns of the current table
    for line in text.splitlines():
        cells = line.removeprefix("|").removesuffix("|").split("|")
        if not line.startswith("|"):
            shown = []
            lines.append(line)
        elif not shown or not is_left_out(cells[0]):
            shown = shown or [i for i, cell in enumerate(cells) if not is_left_out(cell)]
            lines.append(f"|{'|'.join(cells[i] for i in shown)}|")
    return "\n".join(lines) + "\n"


def with_tables(page: str) -> str:
    """Return a page with the tables that its comments name; a note that several share is under the first only."""
    notes: set[str] = set()

    def table(found: re.Match[str]) -> str:
        text = without(output(*found[2].split(), "--format", "md"), (found[3] or "").split(", "))
        lines = [line for line in text.splitlines() if line not in notes]
        notes.update(line for line in lines if line.startswith("- "))
        return found[1] + "\n".join(lines).rstrip() + "\n"

    return TABLE.sub(table, page)


def with_costs(page: str) -> str:
    """Return a page whose table of studies has the number of runs and the device hours of each, and of all.

    A run that several studies have counts once in the sum.
    """
    seconds: dict[str, float] = {}  # by run

    def row(found: re.Match[str]) -> str:
        folder = Path(found[2]) if found[2] in TABLES else RESULTS / found[2]
        results = [read_result(run) for run in find_runs(folder) if is_finished(run)]
        if not results:
            return found[0]
        seconds.update({one.run: one.seconds for one in results})
        return f"{found[1]} {len(results)} | {sum(one.seconds for one in results) / 3600:.1f} |"

    page = STUDY.sub(row, page)
    return TOTAL.sub(f"| all | | {len(seconds):,} | {sum(seconds.values()) / 3600:.1f} |", page)


def documents() -> Iterator[tuple[Path, str]]:
    """Yield each document that contains numbers, with its text by the records in the current folder."""
    for page in PAGES:
        yield page, with_tables(page.read_text(encoding="utf-8"))
    yield RESULTS / "claims.md", output("claims")
    page = RESULTS / "README.md"
    yield page, with_costs(page.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", action="store_true", help="also draw the figures")
    figures = parser.parse_args().figures
    with only_committed_studies():
        for page, text in documents():
            page.write_text(text, encoding="utf-8")
    if figures:
        with contextlib.chdir(RESULTS):
            for file, *words in FIGURES:
                output(*words, "--out", file)


if __name__ == "__main__":
    main()

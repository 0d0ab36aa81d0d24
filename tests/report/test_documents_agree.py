"""Tables, reports and claims agree: no comparison has two p values or intervals."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import ROOT
from tests.example_claims import values
from tfstudy.report.claims import judged_claims
from tfstudy.report.evidence import measured

MINUS = str.maketrans("\N{MINUS SIGN}", "-")
Found = Iterator[tuple[tuple[object, ...], tuple[str, ...]]]  # what is stated, and its p and interval


def rows(text: str, *columns: str) -> Iterator[dict[str, str]]:
    """The rows of all Markdown tables with these columns."""
    heads: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip().replace("**", "").replace("&lt;", "<") for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            heads = []
        elif not heads:
            heads = cells
        elif set("".join(cells)) <= set("-:"):
            continue
        elif set(columns) <= set(heads):
            yield dict(zip(heads, cells, strict=False))


def numbers(interval: str) -> tuple[str, ...]:
    """The mean and ends of an interval without signs, in one order for both directions of a difference."""
    found = re.findall(r"[-+]?\d+\.\d+", interval.translate(MINUS))
    mean, *ends = found
    sign = -1 if mean.startswith("-") else 1  # -0.0 too
    low, high = sorted(sign * float(end) for end in ends)
    return f"{abs(float(mean)):.1f}", f"{low:.1f}", f"{high:.1f}"


def plain(p: str) -> str:
    return p.removeprefix("= ").replace("< ", "<")


def table_comparisons(study: str, text: str) -> Found:
    """What a study's table says of each condition and the baseline."""
    for row in rows(text, "split", "architecture", "p"):
        head = next(name for name in row if name.startswith("vs "))
        if row["p"]:
            label = row["architecture"] + ("" if row["preset"] == "default" else f" {row['preset']}")
            key = (study, row["split"], frozenset((label, head.removeprefix("vs "))))
            yield key, (plain(row["p"]), *numbers(row[head]))


def report_comparisons(study: str, text: str) -> Found:
    """What a study's report lists."""
    for row in rows(text, "test set", "result", "p, corrected"):
        labels = re.split(r" is higher than | or ", row["result"].removesuffix(": undecided"))
        ends = next(cell for head, cell in row.items() if head.endswith("interval"))
        yield (
            (study, row["test set"], frozenset(labels)),
            (row["p, corrected"], *numbers(f"{row['difference']} {ends}")),
        )


def claim_comparisons(results: Path) -> Found:
    """What claims say of two conditions of a study, which their page names by what the claim selects."""
    for one in (statement for verdict in judged_claims(results, ())[0] for statement in verdict.statements):
        if one.statement.compares and one.estimate:
            first, second = one.conditions
            interval, _, test = measured(one).partition(" (n = ")
            if not one.estimate.test:  # too few seeds
                continue
            p = re.search(r"p ([<=] \.?\d+(\.\d+)?) against 0 ", test)[1]
            key = (Path(first.study).name, first.split_label, frozenset((first.label, second.label)))
            yield key, (plain(p), *numbers(interval))


def conflicts(*sources: Found) -> dict[tuple[object, ...], set[tuple[str, ...]]]:
    """What is stated in two ways."""
    known = defaultdict(set)
    for key, value in (pair for source in sources for pair in source):
        known[key].add(value)
    return {key: results for key, results in known.items() if len(results) > 1}


def of_documents(results: Path) -> list[Found]:
    """The comparisons of all documents of a folder of results, and those of claims."""
    found = [claim_comparisons(results)]
    for page in results.glob("*/README.md"):
        found.append(table_comparisons(page.parent.name, page.read_text(encoding="utf-8")))
    for page in results.glob("*/report/report.md"):
        found.append(report_comparisons(page.parents[1].name, page.read_text(encoding="utf-8")))
    return found


def test_no_comparison_in_the_committed_documents_has_two_p_values_or_intervals():
    found = [list(source) for source in of_documents(ROOT / "results")]
    assert sum(map(bool, found)) >= 3, "claims, a table and a report compare conditions"
    assert conflicts(*map(iter, found)) == {}


@pytest.fixture
def results(tmp_path, capsys, monkeypatch):
    """Documents of a study: the table with a baseline and the report without figures."""
    monkeypatch.setattr("tfstudy.report.study_page.all_plots", lambda *_: iter(()))
    root = tmp_path / "results"
    for arch, shares in (("lstm", (0.3, 0.35, 0.33)), ("transformer", (0.1, 0.12, 0.2)), ("cnn", (0.3, 0.31, 0.28))):
        for split in ("length", "addprim_jump"):
            values(root / "study", arch, *shares, name=f"{arch}{split}", split=split)
    assert tfstudy("table", "study", "--baseline", "transformer", "--format", "md", "--results", str(root)) == 0
    (root / "study" / "README.md").write_text(capsys.readouterr().out, encoding="utf-8")
    assert tfstudy("report", "study", "--out", str(root / "study" / "report"), "--results", str(root)) == 0
    return root


def test_documents_of_the_same_records_agree(results):
    found = [list(source) for source in of_documents(results)]
    keys = [dict(source).keys() for source in found]
    assert all(keys)
    assert set.intersection(*map(set, keys)), "the same comparison stands in all three"
    assert conflicts(*map(iter, found)) == {}

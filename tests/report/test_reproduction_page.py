"""A paper's figures beside ours in the terminal, as Markdown and as JSON."""

import json
import re

import pytest

from tests.example_reproductions import runs
from tfstudy.analysis.published import figures_of, papers
from tfstudy.report.markup import MINUS
from tfstudy.report.reproduction import paper_lines, reproduction_text

LENGTH = "lake-2018-09"  # 13.8 on length, the preset lake-2018


@pytest.fixture
def study(tmp_path):
    runs(tmp_path, "lake-2018", 0.14, 0.145, 0.135)
    return runs(tmp_path, "default", 0.99, 1.0, 0.995, split="simple")


def text(study, format_, paper="lake-2018"):
    return reproduction_text(study, paper, 5.0, format_).replace(MINUS, "-")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("paper", ["lake-2018", "dessi-2019", "newman-2020", "deletang-2022", "hupkes-2020"])
def test_the_terminal_output_fits_the_width(study, monkeypatch, width, paper):
    monkeypatch.setenv("COLUMNS", f"{width}")
    unbroken = (str(study), "left out", "--split")  # paths and commands
    lines = [line for line in text(study, "text", paper).splitlines() if not any(one in line for one in unbroken)]
    assert max(map(len, lines)) <= width


def test_the_terminal_table_has_a_row_for_each_figure_with_a_counterpart_and_numbered_reasons(study, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = text(study, "text")
    _, table, notes = out.split("\n\n")[:3]
    rows = dict(re.findall(r"^ ?(\d+)  (.*)$", table, re.MULTILINE))
    assert len(rows) == 13
    [number] = [number for number, row in rows.items() if row.endswith("agrees")]
    assert re.split(r"  +", rows[number])[:4] == ["LSTM", "13.8", "14.0", "3"]
    assert f"{number}: agrees: within 5 points; theirs has no standard error" in notes
    assert "no counterpart (2 figures): a simple recurrent network, which tfstudy lacks: lake-2018 3-4" in out
    assert re.search(r"runs: \S*/scan-length/lstm, seeds 0-2", out)


def test_a_line_counts_the_figures_of_each_verdict(study, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    line = "20 figures of Lake & Baroni 2018: 1 agrees, 1 differs, 0 undecided, 7 not run, 4 other settings"
    assert line in text(study, "text").splitlines()[0]


def test_columns_stand_two_spaces_apart_where_an_interval_is_folded(study, monkeypatch):
    monkeypatch.setenv("COLUMNS", "68")
    lines = text(study, "text").split("\n\n")[1].splitlines()
    [row] = [number for number, line in enumerate(lines) if line.endswith("agrees")]
    assert re.fullmatch(r" *\d+  LSTM  +13.8  +14.0  3  \+0.2  +agrees", lines[row])
    assert re.fullmatch(r" +\[-\d.\d, \+\d.\d\]", lines[row + 1])


def test_markdown_has_a_row_for_each_figure_with_ours_and_the_reason(study):
    out = text(study, "md")
    rows = [line.split(" | ") for line in out.splitlines() if line.startswith("| lake-2018-")]
    assert len(rows) == len(figures_of("lake-2018"))
    [row] = [row for row in rows if LENGTH in row[0]]
    assert row[4:7] == ["13.8 (n = 5)", "14.0 [12.8, 15.2] (lstm lake-2018)", "3"]
    assert row[7].startswith("+0.2 [")
    assert row[8] == "agrees"
    assert "lake-2018: preset lake-2018, 1,000 parameters, 100,000 steps" in out
    assert "[s0](" in out


def test_json_has_every_value_and_each_seed(study):
    tree = json.loads(text(study, "json"))
    assert (tree["paper"], tree["family"], tree["level"]) == ("lake-2018", 8, pytest.approx(1 - 0.05 / 8))
    results = {one["figure"]["id"]: one for one in tree["results"]}
    assert list(results) == [figure.id for figure in figures_of("lake-2018")]
    own = results[LENGTH]
    assert (own["verdict"], own["figure"]["preset"], own["theirs"]["mean"]) == ("agrees", "lake-2018", 13.8)
    assert own["conditions"][0]["each_seed"] == pytest.approx({"0": 14.0, "1": 14.5, "2": 13.5})
    assert len(own["conditions"][0]["runs"]) == 3
    assert (results["lake-2018-02"]["verdict"], results["lake-2018-02"]["difference"]) == ("other settings", None)


def test_the_list_of_papers_counts_their_figures():
    lines = {line.split()[0]: line.split()[1:4] for line in paper_lines() if line.split()[0] in papers()}
    assert set(lines) == set(papers())
    assert lines["csordas-2021"] == ["1", "0", "5"]
    assert sum(map(int, lines["dessi-2019"])) == len(figures_of("dessi-2019"))
    totals = [sum(int(counts[i]) for counts in lines.values()) for i in range(3)]
    assert [line.split()[1:4] for line in paper_lines() if line.startswith("all ")] == [[*map(str, totals)]]
    assert max(map(len, paper_lines())) <= 80


def test_only_runs_of_the_tasks_of_the_paper_are_named_as_left_out(study):
    for name in ("sorting-symbols", "scan-length"):
        run = study / name / "lstm" / "s9-0a"
        run.mkdir(parents=True)
        (run / "config.yaml").write_text("{}")
    found = [line for line in text(study, "md").splitlines() if "left out" in line]
    assert found == ["- left out (not finished): scan-length/lstm/s9-0a"]

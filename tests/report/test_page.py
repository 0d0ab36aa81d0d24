"""The report of a study: complete, valid, escaped, without links and requests; it overwrites nothing else."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import escape

from tests.commands import tfstudy
from tests.example_records import edit_result, result, three_architectures, write
from tfstudy.analysis.claim_files import Claim
from tfstudy.analysis.frame import read_finished_runs
from tfstudy.errors import UserError
from tfstudy.report.claims import ClaimText
from tfstudy.report.page import Section, write_report
from tfstudy.report.plots.layout import Plot
from tfstudy.report.render import Cells


class Elements(HTMLParser):
    """The elements of a page with their attributes, and what is left open or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def values(self, tag: str, name: str) -> list[str]:
        return [attributes[name] for found, attributes in self.elements if found == tag and name in attributes]


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    """A study whose report has no figures: they take seconds, and most tests are of something else."""
    monkeypatch.setattr("tfstudy.report.plots.all_plots", lambda *_: iter(()))
    return three_architectures(tmp_path)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A report with figures: the HTML, its elements, and its content."""
    folder = tmp_path_factory.mktemp("report")
    claim = Claim(id="L1", claim="It <script>alert(1)</script>", source="a book")
    claims = [ClaimText(claim, "refuted", "It gets 1 % right; b")]
    content = write_report(read_finished_runs(three_architectures(folder)), folder / "out", claims)
    text = (folder / "out" / "index.html").read_text()
    return text, Elements(text), content


def blocks(content, kind):
    """The blocks of a kind, such as tables, folded ones too."""
    every = [block for section in content.sections for block in section.blocks]
    every += [inner for block in every if isinstance(block, Section) for inner in block.blocks]
    return [block for block in every if isinstance(block, kind)]


def test_a_report_opens_with_the_finding_and_has_everything_in_its_order(published):
    text, page, content = published
    titles = ["Verdict", "Table", "Comparisons", "Figures", "Claims", "Runs", "Left out"]
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", text) == [section.title for section in content.sections] == titles
    plots = blocks(content, Plot)
    assert [one.name for one in plots] == ["split", "differences", "errors"]
    assert (page.open, page.wrong) == ([], [])
    assert sorted(page.values("img", "alt")) == sorted(one.alt for one in plots)
    finding = content.sections[0].blocks[0]
    places = [text.index(part) for part in ("<h1>", finding, "<img", 'class="about"', "<table", "<details")]
    assert places == sorted(places)
    assert set(page.values("th", "scope")) == {"row", "col"}
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {link.removeprefix("#") for link in page.values("a", "href")} <= ids, "nothing outside of the file"


def test_a_page_requests_nothing_runs_nothing_and_escapes_foreign_text(published):
    text, page, _ = published
    assert all(source.startswith("data:") for source in page.values("img", "src") + page.values("link", "href"))
    assert "script" not in [tag for tag, _ in page.elements]
    assert "default-src 'none'" in page.values("meta", "content")[3]
    assert not re.search(r"url\((?!%23)|@import", text), "but within a figure"
    assert ">It &lt;script&gt;alert(1)&lt;/script&gt;</td>" in text


def test_a_page_has_every_cell_and_traces_a_number_to_its_run(published):
    text, _, content = published
    for cells in blocks(content, Cells):
        for cell in (cell for column in cells.texts("<strong>{}</strong>", escape).values() for cell in column):
            assert f">{cell}</" in text, cell
    assert "<strong>refuted</strong>" in text
    assert "1 run not finished." in text
    assert "left out (not finished): scan-length/cnn/s9-0a" in text
    runs = blocks(content, Cells)[-1].frame
    [at] = [i for i, run in enumerate(runs["run"]) if run.startswith("scan-length/lstm/s3-")]
    assert (runs["condition"][at], runs["seed"][at], runs["result"][at]) == ("lstm", "3", "23.0")


def test_a_file_that_is_no_report_is_not_overwritten(study, tmp_path):
    mine = tmp_path / "index.html"
    mine.write_text("<h1>mine</h1>")
    for out, message in (
        (tmp_path, "index.html is not a report of tfstudy"),
        (mine, "must be a folder"),
        (next(study.glob("*/lstm/s*")), "must not be the folder of a run"),
    ):
        with pytest.raises(UserError, match=message):
            write_report(read_finished_runs(study), out)
    assert mine.read_text() == "<h1>mine</h1>"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["index.html", "study"]


def test_a_report_has_the_same_bytes_again_and_a_failure_leaves_it_and_other_files_whole(study, tmp_path, monkeypatch):
    path = tmp_path / "out" / "index.html"
    path.parent.mkdir()
    (path.parent / "notes.txt").write_text("mine")
    write_report(read_finished_runs(study), path.parent)
    before = path.read_bytes()
    write_report(read_finished_runs(study), path.parent)
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(UserError, match="No space left on device"):
        write_report(read_finished_runs(study), path.parent)
    assert path.read_bytes() == before
    assert sorted(item.name for item in path.parent.iterdir()) == ["index.html", "notes.txt"]


def test_the_command_writes_a_report_and_an_unknown_name_writes_nothing(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert tfstudy("report", "study", "--results", tmp_path, "--out", "out", "--baseline", "lstm") == 0
    output = capsys.readouterr().out
    assert output.startswith("out/index.html (0.")
    assert "9 runs, 3 conditions, 1 to 4 seeds per condition\nleft out (not finished): scan-length/cnn/s9-0a" in output
    assert "difference from lstm in points (q)" in Path("out/index.html").read_text()
    assert tfstudy("report", "study", "--results", tmp_path, "--out", "other", "--metric", "exact") == 2
    assert "did you mean 'exact_match'?" in capsys.readouterr().err
    assert not Path("other").exists()


def test_what_a_record_lacks_is_unknown_and_names_that_are_not_text_and_diverged_runs_are_written(tmp_path):
    diverged = result(1, status="diverged", reason="loss is nan")
    del diverged["splits"]
    study = write(tmp_path / os.fsdecode(b"caf\xe9"), result(0), diverged)
    for run in study.glob("*/*/*"):
        (run / "events.jsonl").write_bytes(b"")
        edit_result(run)
    content = write_report(read_finished_runs(study), tmp_path / "out")
    assert "diverged: loss is nan" in (tmp_path / "out" / "index.html").read_text()
    runs = blocks(content, Cells)[-1].frame
    assert (runs["commit"], runs["data"]) == (["unknown"], ["unknown"])

"""The report of a study: complete, valid, escaped and linked; it overwrites nothing else."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.commands import tfstudy
from tests.example_records import result, three_architectures, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.errors import UserError
from tfstudy.report import html_page
from tfstudy.report.html_page import publish


class Page(HTMLParser):
    """The elements of a page with their attributes, its text, and what is left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def values(self, tag: str, name: str) -> list[str]:
        return [attributes[name] for found, attributes in self.elements if found == tag and name in attributes]


@pytest.fixture
def study(tmp_path) -> Path:
    return three_architectures(tmp_path)


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take seconds, and most tests are of something else."""
    monkeypatch.setattr("tfstudy.report.study_page.all_plots", lambda *_: [])


def test_a_report_has_everything_in_its_order(study, tmp_path):
    out = tmp_path / "out"
    path, content = publish(read_finished_runs(study), out)
    text = path.read_text()
    heads = ["Verdict", "Table", "Comparisons", "Figures", "Errors", "Sources", "Protocol", "Left out"]
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", text) == heads  # no claims, so no section of them
    assert re.findall(r"<li><a href=\"#[\w-]+\">(.*?)</a>", text) == heads
    assert sorted(item.name for item in (out / "figures").iterdir()) == sorted(one.file for one in content.figures)
    page = Page(text)
    assert (page.open, page.wrong) == ([], [])
    images = page.values("img", "alt")
    assert len(images) == 2 * len(content.figures) > 0, "each as wide as a page and as a phone"
    assert all(len(alt) > 20 for alt in images)
    assert (
        text.index("<h1>") < text.index('class="about"') < text.index("<img") < text.index("<h2") < text.index("<table")
    )
    assert set(page.values("th", "scope")) == {"row", "col"}
    assert len(page.values("th", "scope")) == text.count("<th ")
    assert f'<button type="button">{"exact match"}</button>' in text


def test_a_page_requests_nothing(study, tmp_path):
    text = publish(read_finished_runs(study), tmp_path / "out")[0].read_text()
    page = Page(text)
    assert all(source.startswith("data:") for source in page.values("img", "src") + page.values("link", "href"))
    assert page.values("script", "src") == []
    assert "default-src 'none'" in page.values("meta", "content")[3]
    assert not re.search(r"url\((?!%23)|@import|fetch\(|XMLHttp", text), "but within a figure"


def test_every_link_has_a_target(study, tmp_path):
    out = tmp_path / "elsewhere" / "out"
    page = Page(publish(read_finished_runs(study), out)[0].read_text())
    ids = {attributes.get("id") for _, attributes in page.elements}
    links = [link for link in page.values("a", "href") if not link.startswith("https://arxiv.org/abs/")]
    runs = {
        (out / unquote(link)).resolve() for link in links if "s" in Path(link).name[:1] and not link.startswith("#")
    }
    assert runs >= {run.path.resolve() for run in read_finished_runs(study).runs}
    assert all((link[1:] in ids) if link.startswith("#") else (out / unquote(link)).exists() for link in links)
    links = re.findall(r"\]\(([^)]+)\)", (out / "report.md").read_text())
    assert len(links) > 9
    assert all((out / unquote(link)).exists() for link in links)


@pytest.mark.usefixtures("no_figures")
def test_links_survive_names_that_no_url_can_have(tmp_path):
    study = write(tmp_path / "a study, 100%?#", result(0))
    page = Page(publish(read_finished_runs(study), tmp_path / "out")[0].read_text())
    [link] = {link for link in page.values("a", "href") if not link.startswith(("#", "https://"))}
    assert (tmp_path / "out" / unquote(link)).resolve() == next(study.glob("*/*/s*"))
    assert not re.search(r"[ ?#]", link)


@pytest.mark.usefixtures("no_figures")
def test_table_and_comparisons_are_the_same_in_markdown(study, tmp_path):
    _, page = publish(read_finished_runs(study), tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text()
    for line in page.lines:
        assert f"{line.cells['exact match']}" in text
    assert "| length | **cnn is higher than lstm** | +55.5 |" in text
    assert "not tested on length: transformer" in text
    assert "**1 run not finished.**" in text
    assert "left out (not finished): scan-length/cnn/s9-0a" in text
    assert "[seed 3: 23.0](../study/scan-length/lstm/s3-" in text
    assert all(note.replace("&", "&amp;").replace("<", "&lt;") in text for note in page.notes)


@pytest.mark.usefixtures("no_figures")
def test_predictions_are_escaped(study, tmp_path):
    text = publish(read_finished_runs(study), tmp_path / "out")[0].read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert [found for found, _ in Page(text).elements].count("script") == 1


@pytest.mark.usefixtures("no_figures")
def test_an_undecodable_name_does_not_stop_a_report(tmp_path):
    study = write(tmp_path / os.fsdecode(b"caf\xe9"), result(0))
    text = publish(read_finished_runs(study), tmp_path / "out")[0].read_text()
    assert r"<h1>caf\udce9</h1>" in text
    assert "../caf%E9/scan-length/" in text


@pytest.mark.usefixtures("no_figures")
def test_the_same_records_give_the_same_bytes(study, tmp_path):
    one, other = (publish(read_finished_runs(study), tmp_path / name)[0].read_bytes() for name in ("one", "two"))
    assert one == other


@pytest.mark.usefixtures("no_figures")
def test_diverged_runs_are_named_with_the_reason(tmp_path):
    diverged = {
        key: value for key, value in result(1, status="diverged", reason="loss is nan").items() if key != "splits"
    }
    study = write(tmp_path / "study", result(0), diverged)
    text = publish(read_finished_runs(study), tmp_path / "out")[0].read_text()
    assert "diverged: loss is nan" in text


@pytest.mark.usefixtures("no_figures")
def test_a_report_writes_only_its_own_files(study, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    publish(read_finished_runs(study), out)
    publish(read_finished_runs(study), out)
    assert sorted(item.name for item in out.iterdir()) == ["index.html", "notes.txt", "report.md"]
    assert (out / "notes.txt").read_text() == "mine"


def test_figures_of_the_previous_report_are_removed(study, tmp_path, monkeypatch):
    out = tmp_path / "out"
    publish(read_finished_runs(study), out)
    (out / "figures" / "mine.svg").write_text("")
    monkeypatch.setattr("tfstudy.report.study_page.all_plots", lambda *_: [])
    publish(read_finished_runs(study), out)
    assert [item.name for item in (out / "figures").iterdir()] == ["mine.svg"]


@pytest.mark.parametrize("name", ["index.html", "report.md"])
def test_a_file_that_is_no_report_is_not_overwritten(study, tmp_path, name):
    (tmp_path / name).write_text("<h1>mine</h1>")
    with pytest.raises(UserError, match=f"{name} is not a report of tfstudy"):
        publish(read_finished_runs(study), tmp_path)
    assert (tmp_path / name).read_text() == "<h1>mine</h1>"
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([name, "study"])


def test_a_report_is_not_written_over_a_file_or_into_a_run(study, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="must be a folder"):
        publish(read_finished_runs(study), tmp_path / "file")
    with pytest.raises(UserError, match="must not be the folder of a run"):
        publish(read_finished_runs(study), next(study.glob("*/lstm/s*")))


@pytest.mark.usefixtures("no_figures")
def test_a_failure_leaves_the_previous_page_whole(study, tmp_path, monkeypatch):
    path = publish(read_finished_runs(study), tmp_path / "out")[0]
    before = path.read_bytes()
    monkeypatch.setattr(html_page, "render", lambda page: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        publish(read_finished_runs(study), tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setattr("tfstudy.report.study_page.all_plots", lambda *_: [])
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(UserError, match="No space left on device"):
        publish(read_finished_runs(study), tmp_path / "out")
    assert path.read_bytes() == before
    assert sorted(item.name for item in path.parent.iterdir()) == ["index.html", "report.md"]


def test_the_command_writes_a_report_and_reports_what_is_left_out(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tfstudy.report.study_page.all_plots", lambda *_: [])
    assert tfstudy("report", "study", "--results", tmp_path, "--out", "out", "--baseline", "lstm") == 0
    output = capsys.readouterr().out
    assert output.startswith("out/index.html (0.")
    assert "9 runs, 3 conditions, 1 to 4 seeds per condition\nleft out (not finished): scan-length/cnn/s9-0a" in output
    assert '<button type="button">vs lstm</button>' in Path("out/index.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stdy"], "did you mean 'study'"),
        (["study", "--baseline", "lsmt"], "did you mean 'lstm'?"),
        (["study", "--metric", "exact"], "did you mean 'exact_match'?"),
    ],
)
def test_an_invalid_name_writes_nothing(study, tmp_path, capsys, words, message):
    assert tfstudy("report", *words, "--results", tmp_path, "--out", tmp_path / "out") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("limit", ["MAX_PLOTTED", "MAX_PLOTTED_RUNS"])
def test_a_large_study_has_no_figures_and_the_page_says_why(study, tmp_path, monkeypatch, limit):
    monkeypatch.setattr(f"tfstudy.report.study_page.{limit}", 1)
    page, content = publish(read_finished_runs(study), tmp_path / "out")
    assert content.figures == []
    assert "No figures for more than 200 conditions or 2,000 runs" in page.read_text()

"""The report of a study: complete, valid, escaped and linked; it overwrites nothing else; it works in a browser."""

import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.commands import tfstudy
from tests.example_records import ENVIRONMENT, predict, result, rival, three_architectures, write
from tfstudy.analysis.frame import read_finished_runs
from tfstudy.analysis.summary import conditions, rows_of
from tfstudy.errors import UserError
from tfstudy.report import html_page
from tfstudy.report.claims import ClaimText
from tfstudy.report.html_page import publish
from tfstudy.report.study_page import cited_papers, grid_about, summarize_study
from tfstudy.report.tables import build_table

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


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


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A report with figures, far from its runs: the study, the folder, the page as text, and its content."""
    folder = tmp_path_factory.mktemp("report")
    study, out = three_architectures(folder), folder / "elsewhere" / "out"
    path, content = publish(read_finished_runs(study), out)
    return study, out, path.read_text(), content


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take seconds, and most tests are of something else."""
    monkeypatch.setattr("tfstudy.report.study_page.all_plots", lambda *_: iter(()))


def test_a_report_has_everything_in_its_order(published):
    _, out, text, content = published
    heads = ["Verdict", "Table", "Comparisons", "Figures", "Errors", "Sources", "Protocol", "Left out"]
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", text) == heads  # no claims, so no section of them
    assert re.findall(r"<li><a href=\"#[\w-]+\">(.*?)</a>", text) == heads
    assert sorted(item.name for item in (out / "figures").iterdir()) == sorted(one.file for one in content.figures)
    page = Page(text)
    assert (page.open, page.wrong) == ([], [])
    images = page.values("img", "alt")
    assert sorted(images) == sorted(one.alt for one in content.figures)
    assert [one.name for one in content.figures] == ["split", "differences", "errors"]
    places = [text.index(part) for part in ("<h1>", 'class="about"', "<img", "<h2", "<table")]
    assert places == sorted(places)
    assert set(page.values("th", "scope")) == {"row", "col"}
    assert len(page.values("th", "scope")) == text.count("<th ")


def test_a_page_requests_nothing(published):
    _, _, text, _ = published
    page = Page(text)
    assert all(source.startswith("data:") for source in page.values("img", "src") + page.values("link", "href"))
    assert page.values("script", "src") == []
    assert "default-src 'none'" in page.values("meta", "content")[3]
    assert not re.search(r"url\((?!%23)|@import|fetch\(|XMLHttp", text), "but within a figure"


def test_every_link_has_a_target(published):
    study, out, text, _ = published
    page = Page(text)
    ids = {attributes.get("id") for _, attributes in page.elements}
    links = [link for link in page.values("a", "href") if not link.startswith("https://arxiv.org/abs/")]
    folders = {(out / unquote(link)).resolve() for link in links if not link.startswith("#")}
    assert folders >= {run.path.resolve() for run in read_finished_runs(study).runs}
    assert all((link[1:] in ids) if link.startswith("#") else (out / unquote(link)).exists() for link in links)
    links = re.findall(r"\]\(([^)]+)\)", (out / "report.md").read_text())
    assert len(links) > 9
    assert all((out / unquote(link)).exists() for link in links)


def test_foreign_text_is_escaped(published):
    _, _, text, _ = published
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert [found for found, _ in Page(text).elements].count("script") == 1


def test_table_and_comparisons_are_the_same_in_markdown(published):
    _, out, _, page = published
    text = (out / "report.md").read_text()
    assert all(line.cells["exact match"] in text for line in page.lines)
    assert "| length | **cnn is higher than lstm** | +55.5 |" in text
    assert "not tested on length: transformer" in text
    assert "**1 run not finished.**" in text
    assert "left out (not finished): scan-length/cnn/s9-0a" in text
    assert "[seed 3: 23.0](../../study/scan-length/lstm/s3-" in text
    assert all(note.replace("&", "&amp;").replace("<", "&lt;") in text for note in page.notes)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("name", ["a study, 100%?#", os.fsdecode(b"caf\xe9")])
def test_links_survive_names_that_no_url_can_have(tmp_path, name):
    study = write(tmp_path / name, result(0))
    page = Page(publish(read_finished_runs(study), tmp_path / "out")[0].read_text())
    [link] = {link for link in page.values("a", "href") if not link.startswith(("#", "https://"))}
    assert (tmp_path / "out" / os.fsdecode(unquote_to_bytes(link))).resolve() == next(study.glob("*/*/s*"))
    assert not re.search(r"[ ?#]", link)


def unquote_to_bytes(link: str) -> bytes:
    return unquote(link, errors="surrogateescape").encode(errors="surrogateescape")


@pytest.mark.usefixtures("no_figures")
def test_diverged_runs_are_named_with_the_reason(tmp_path):
    diverged = result(1, status="diverged", reason="loss is nan")
    del diverged["splits"]
    text = publish(read_finished_runs(write(tmp_path / "study", result(0), diverged)), tmp_path / "out")[0].read_text()
    assert "diverged: loss is nan" in text


@pytest.mark.usefixtures("no_figures")
def test_a_report_writes_only_its_own_files_and_the_same_bytes_again(study, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    first, second = (publish(read_finished_runs(study), out)[0].read_bytes() for _ in range(2))
    assert first == second
    assert sorted(item.name for item in out.iterdir()) == ["index.html", "notes.txt", "report.md"]
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["index.html", "report.md"])
def test_a_file_that_is_no_report_is_not_overwritten(study, tmp_path, name):
    (tmp_path / name).write_text("<h1>mine</h1>")
    with pytest.raises(UserError, match=f"{name} is not a report of tfstudy"):
        publish(read_finished_runs(study), tmp_path)
    assert (tmp_path / name).read_text() == "<h1>mine</h1>"
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([name, "study"])
    with pytest.raises(UserError, match="must be a folder"):
        publish(read_finished_runs(study), tmp_path / name)
    with pytest.raises(UserError, match="must not be the folder of a run"):
        publish(read_finished_runs(study), next(study.glob("*/lstm/s*")))


@pytest.mark.usefixtures("no_figures")
def test_a_failure_leaves_the_previous_page_whole(study, tmp_path, monkeypatch):
    path = publish(read_finished_runs(study), tmp_path / "out")[0]
    before = path.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(html_page, "render", lambda page: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            publish(read_finished_runs(study), tmp_path / "out")
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(UserError, match="No space left on device"):
        publish(read_finished_runs(study), tmp_path / "out")
    assert path.read_bytes() == before
    assert sorted(item.name for item in path.parent.iterdir()) == ["index.html", "report.md"]


@pytest.mark.usefixtures("no_figures")
def test_the_command_writes_a_report_and_an_unknown_name_writes_nothing(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert tfstudy("report", "study", "--results", tmp_path, "--out", "out", "--baseline", "lstm") == 0
    output = capsys.readouterr().out
    assert output.startswith("out/index.html (0.")
    assert "9 runs, 3 conditions, 1 to 4 seeds per condition\nleft out (not finished): scan-length/cnn/s9-0a" in output
    assert '<button type="button">vs lstm</button>' in Path("out/index.html").read_text()
    assert tfstudy("report", "study", "--results", tmp_path, "--out", "other", "--metric", "exact") == 2
    assert "did you mean 'exact_match'?" in capsys.readouterr().err
    assert not Path("other").exists()


def test_a_large_study_has_no_figures_and_the_page_says_why(study, tmp_path, monkeypatch):
    monkeypatch.setattr("tfstudy.report.study_page.MAX_PLOTTED", 1)
    page, content = publish(read_finished_runs(study), tmp_path / "out")
    assert content.figures == []
    assert "No figures for more than 200 conditions or 2,000 runs" in page.read_text()


# What was studied, and sources


def summary(study, *command):
    for run in study.glob("*/*/s*") if command else ():
        (run / "env.json").write_text(json.dumps([ENVIRONMENT | {"arguments": list(command)}]))
    found = read_finished_runs(study)
    return summarize_study(found, rows_of(conditions(found.runs)))


def test_the_facts_are_those_of_the_records(tmp_path):
    dates = {"started": "2026-01-30T23:00:00Z", "finished": "2026-02-01T01:00:00Z", "step": 3000}
    made = [result(seed, 0.5, train_examples=16140, **dates) for seed in range(3)] + [rival(0, 0.2)]
    assert summary(write(tmp_path / "study", *made)) == [
        "4 runs of scan; split scheme length; 2 architectures (cnn and lstm) of 1k parameters; 1 to 3 seeds per "
        "condition; 3,000 training steps; 16,140 training examples; run from 2026-01-30 to 2026-02-01. Results are "
        "exact match on test sets, from 0 to 100."
    ]
    assert summary(write(tmp_path / "older", result(0, parameters=0))) == [
        "1 run of scan; split scheme length; architecture lstm; 1 seed per condition. Results are exact match on test "
        "sets, from 0 to 100."
    ]


def test_a_study_of_a_grid_has_its_words(tmp_path):
    study = write(tmp_path / "mine", result(0))
    about = summary(study, "grid", "scan", "--tier", "quick")[0]
    assert about == "Grid scan: Four SCAN splits on which architectures differ, with presets of equal size."
    summary(study, "grid", "no-such")
    assert grid_about(read_finished_runs(study)) == ""


def test_papers_of_figures_and_of_claims_are_listed_once(tmp_path):
    study = read_finished_runs(write(tmp_path / "study", result(0)))
    table = build_table(study, conditions(study.runs))
    quoted = {one.figure.paper for own in table.rows["published"] for one in own}
    claim = ClaimText("P6", "It learns", "refuted", "", [], "Dessi & Baroni 2019, table 2", [])
    found = {paper.key: paper for paper in cited_papers(table, [claim])}
    assert list(found) == sorted(found)
    assert found.keys() >= {"dessi-2019", *quoted} > {"dessi-2019"}
    assert found["lake-2018"].url == "https://arxiv.org/abs/1711.00350"
    assert found["dessi-2019"].title.startswith("CNNs Found to Jump Around"), "without the braces of BibTeX"


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with its chromedriver on this machine")
def test_a_browser_sorts_filters_and_opens_links_without_an_error_or_a_request(tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    made = [result(seed, 0.09 + seed / 100) for seed in range(3)] + [rival(seed, 0.8 + seed / 50) for seed in range(3)]
    study = write(tmp_path / "study", *made, rival(0, 1.0, "transformer"))
    hostile = '<img src="http://example.invalid/x.png" onerror="alert(1)"> \u05e9\u05dc\u05d5\u05dd'
    predict(study, ("a b c d", "a b c d"), ("a b c d", "a b"), ("a b c d", hostile))
    page = publish(read_finished_runs(study), tmp_path / "out")[0]
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1280,900"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path / 'chromium'}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))

    def find(selector):
        return driver.find_element("css selector", selector)

    def column(number):
        rows = "[...document.querySelectorAll('#rows tbody tr')].filter((row) => !row.hidden)"
        return driver.execute_script(f"return {rows}.map((row) => row.cells[{number}].innerText.trim())")

    try:
        driver.get(page.as_uri())
        driver.execute_script("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        heads = [one.text for one in driver.find_elements("css selector", "#rows th[scope=col]")]
        place = heads.index("exact match")
        button = driver.find_elements("css selector", "#rows th[scope=col] button")[place]
        firsts = []
        for _ in range(3):
            button.click()
            firsts.append([text.split()[0] for text in column(place)])
        assert firsts == [["10.0", "82.0", "100.0"], ["100.0", "82.0", "10.0"], ["82.0", "10.0", "100.0"]]
        find("[data-filter]").send_keys("LENGTH lstm")
        assert column(heads.index("architecture")) == ["lstm"]
        assert find("#table output").text == "1 of 3 rows"
        links = driver.find_elements("css selector", "#rows td details a")
        folders = [Path(unquote(link.get_attribute("href")).removeprefix("file://")) for link in links]
        assert len(folders) == 6
        assert all((folder / "result.json").exists() for folder in folders)
        assert driver.execute_script("return [...document.images].every((image) => image.naturalWidth > 100)")
        size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        assert driver.get_log("browser") == []
        sent = [json.loads(line["message"])["message"] for line in driver.get_log("performance")]
        urls = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
        assert page.as_uri() in urls
        assert [url for url in urls if not url.startswith((page.as_uri(), "data:", "chrome"))] == []
    finally:
        driver.quit()

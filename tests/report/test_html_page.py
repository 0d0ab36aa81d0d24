"""Reports: what a page says of made records, that it is whole, escaped and linked, and what it refuses."""

import gzip
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tasks.errors import UserError
from tests.commands import tfstudy
from tests.example_records import predict, result, rival, write
from tfstudy.analysis.collection import read_finished
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.error_kinds import KINDS
from tfstudy.report import html_page
from tfstudy.report.comparisons import findings
from tfstudy.report.error_browser import EXAMPLES, FILES, LONGEST, browse, marked
from tfstudy.report.html_page import publish
from tfstudy.report.protocol import ledger
from tfstudy.report.study_claims import claims_of
from tfstudy.report.study_page import Claim, Claims
from tfstudy.report.tables import table
from tfstudy.runs.reader import predictions

GOLD = "a b c d"
HOSTILE = "a <script>alert(1)</script> & ' \" \u202e\u05e9\u05dc\u05d5\u05dd"


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
    """An LSTM and a CNN that differ, a Transformer of one seed that can't be tested, and a run that is not finished."""
    made = [result(seed, 0.2 + seed / 100) for seed in range(4)] + [rival(seed, 0.8 - seed / 50) for seed in range(4)]
    folder = write(tmp_path / "study", *made, rival(0, 0.5, "transformer"))
    begun = folder / "scan-length" / "cnn" / "s9-0a"
    begun.mkdir()
    (begun / "config.yaml").write_text("")
    return predict(folder, (GOLD, GOLD), (GOLD, "a b"), (GOLD, "a x c d"), (GOLD, HOSTILE))


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take seconds, and most tests are of something else."""
    monkeypatch.setattr("tfstudy.report.study_page.figures", lambda study: [])


def test_a_report_has_everything_in_its_order(study, tmp_path):
    out = tmp_path / "out"
    path, made = publish(read_finished(study), out)
    text = path.read_text()
    heads = ["Verdicts", "Table", "Figures", "Errors", "Protocol", "Left out"]
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", text) == heads  # no claims, so no section of them
    assert re.findall(r"<li><a href=\"#[\w-]+\">(.*?)</a>", text) == heads
    assert sorted(item.name for item in (out / "figures").iterdir()) == sorted(one.file for one in made.figures)
    page = Page(text)
    assert (page.open, page.wrong) == ([], [])
    images = page.values("img", "alt")
    assert len(images) == len(made.figures) > 0
    assert all(len(alt) > 20 for alt in images)
    assert set(page.values("th", "scope")) == {"row", "col"}
    assert len(page.values("th", "scope")) == text.count("<th ")
    assert f'<button type="button">{"exact match"}</button>' in text


def test_a_page_asks_for_nothing(study, tmp_path):
    text = publish(read_finished(study), tmp_path / "out")[0].read_text()
    page = Page(text)
    assert all(source.startswith("data:") for source in page.values("img", "src") + page.values("link", "href"))
    assert page.values("script", "src") == []
    assert "default-src 'none'" in page.values("meta", "content")[3]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp", text)


def test_every_link_leads_to_what_is_there(study, tmp_path):
    out = tmp_path / "elsewhere" / "out"
    page = Page(publish(read_finished(study), out)[0].read_text())
    links, ids = page.values("a", "href"), {attributes.get("id") for _, attributes in page.elements}
    runs = {
        (out / unquote(link)).resolve() for link in links if "s" in Path(link).name[:1] and not link.startswith("#")
    }
    assert runs >= {run.path.resolve() for run in read_finished(study).runs}
    assert all((link[1:] in ids) if link.startswith("#") else (out / unquote(link)).exists() for link in links)
    told = re.findall(r"\]\(([^)]+)\)", (out / "report.md").read_text())
    assert len(told) > 9
    assert all((out / unquote(link)).exists() for link in told)


@pytest.mark.usefixtures("no_figures")
def test_links_survive_names_that_an_address_can_not_have(tmp_path):
    study = write(tmp_path / "a study, 100%?#", result(0))
    page = Page(publish(read_finished(study), tmp_path / "out")[0].read_text())
    [link] = {link for link in page.values("a", "href") if not link.startswith("#")}
    assert (tmp_path / "out" / unquote(link)).resolve() == next(study.glob("*/*/s*"))
    assert not re.search(r"[ ?#]", link)


def test_verdicts_say_what_is_higher_and_what_is_not_decided(study):
    found = findings(table(study, baseline="lstm"))
    [one] = found.tested
    assert one.says == "cnn is higher than lstm"
    assert (one.place, one.difference, one.p, one.test) == ("length", "+55.5", "<.001", "Welch, 8 values")
    assert found.untested == {"length": ["transformer"]}
    assert found.summary.startswith("3 comparisons of two rows on the same examples: 1 decided, 0 undecided, 2 not")


def test_an_undecided_verdict_says_how_many_seeds_it_needs(tmp_path):
    close = [rival(seed, value) for seed, value in enumerate((0.5, 0.62, 0.55))]
    found = findings(table(write(tmp_path / "a", *(result(seed, 0.5) for seed in range(3)), *close)))
    assert re.fullmatch(r"needs about \d+ more seeds?", found.tested[0].more)
    assert found.tested[0].says == "cnn or lstm: undecided"
    equal = [one for seed in range(3) for one in (result(seed, 0.5), rival(seed, 0.5))]
    assert findings(table(write(tmp_path / "b", *equal))).tested[0].more == "no difference to find"


def test_of_many_verdicts_the_clearest_are_told(study, monkeypatch):
    monkeypatch.setattr("tfstudy.report.comparisons.MOST", 1)
    many = [rival(seed, 0.3 + (-1) ** seed / 50, arch) for arch in ("gru", "mlp") for seed in range(4)]
    write(study, *many)
    found = findings(table(study))
    assert len(found.tested) == 1
    assert "1 of 6 comparisons are told here" in found.notes[1]


@pytest.mark.usefixtures("no_figures")
def test_the_table_and_the_verdicts_are_the_same_on_the_forge(study, tmp_path):
    _, made = publish(read_finished(study), tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text()
    for line in made.lines:
        assert f"{line.cells['exact match']}" in text
    assert "| length | **cnn is higher than lstm** | +55.5 |" in text
    assert "not tested on length: transformer" in text
    assert "**Not finished: 1 run.**" in text
    assert "left out, not finished: scan-length/cnn/s9-0a" in text
    assert "[seed 3: 23.0](../study/scan-length/lstm/s3-" in text
    assert all(note in text for note in made.notes)


@pytest.mark.usefixtures("no_figures")
def test_claims_have_a_section_if_there_are_any(study, tmp_path):
    run = next(study.glob("*/lstm/s*"))
    claims = Claims(
        [Claim("L1", "It <learns>", "refuted", "all parts", ["a: 1 [0, 2]", "b"], "a book", [run])], ["how"]
    )
    text = publish(read_finished(study), tmp_path / "out", claims)[0].read_text()
    assert text.index('id="verdicts"') < text.index('id="claims"') < text.index('id="table"')
    assert "It &lt;learns&gt;" in text
    assert "<ol><li>a: 1 [0, 2]</li><li>b</li></ol>" in text
    assert (
        "| L1 | It &lt;learns> | **refuted** | all parts: (1) a: 1 [0, 2]; (2) b |"
        in (tmp_path / "out" / "report.md").read_text()
    )


def test_claims_that_a_study_has_runs_for_are_judged(study, tmp_path):
    found = claims_of(read_finished(study))
    length = next(claim for claim in found.rows if claim.id == "L3")
    assert len(length.evidence) == 2
    assert length.evidence[0].startswith("lstm on length, said to be 18.2 ± 5: 21.5 [")
    assert {path.parent.name for path in length.runs} == {"lstm", "transformer"}
    assert "L2" not in {claim.id for claim in found.rows}  # is on another split
    assert claims_of(read_finished(write(tmp_path / "other", result(0, split="no_such")))).rows == []


@pytest.mark.usefixtures("no_figures")
def test_predictions_are_escaped(study, tmp_path):
    text = publish(read_finished(study), tmp_path / "out")[0].read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert [found for found, _ in Page(text).elements].count("script") == 1


@pytest.mark.usefixtures("no_figures")
def test_a_name_that_is_no_text_does_not_stop_a_report(tmp_path):
    study = write(tmp_path / os.fsdecode(b"caf\xe9"), result(0))
    text = publish(read_finished(study), tmp_path / "out")[0].read_text()
    assert r"<h1>caf\udce9</h1>" in text
    assert "../caf%E9/scan-length/" in text


@pytest.mark.usefixtures("no_figures")
def test_the_same_records_give_the_same_bytes(study, tmp_path):
    one, other = (publish(read_finished(study), tmp_path / name)[0].read_bytes() for name in ("one", "two"))
    assert one == other


def test_the_first_wrong_token_is_marked(study):
    found = browse(conditions(read_finished(study).runs))
    cnn = found.rows[0]
    assert (cnn.row.arch, cnn.seeds, cnn.n) == ("cnn", [0, 1, 2, 3], 16)
    kinds = {kind.name: kind for kind in cnn.kinds}
    assert list(kinds) == [kind for kind in KINDS if kind in kinds]
    early = kinds["stops early"]
    assert (early.n, early.share, early.first_error) == (4, 25.0, 50.0)
    assert early.examples[0].target == ("a b", "c", "d")
    assert early.examples[0].prediction == ("a b", "(end)", "")
    assert kinds["one token for another"].examples[0].prediction == ("a", "x", "c d")
    assert kinds["right"].examples == []
    assert "right" not in found.kinds


def test_examples_are_few_and_from_everywhere(tmp_path):
    study = predict(write(tmp_path / "study", result(0)), *[(GOLD, "a b")] * 100)
    [kind] = browse(conditions(read_finished(study).runs)).rows[0].kinds
    assert (kind.n, len(kind.examples)) == (100, EXAMPLES)
    assert [one.source for one in kind.examples[:3]] == ["s0", "s5", "s10"]


def test_long_texts_are_cut_around_the_first_wrong_token():
    tokens = [str(n) for n in range(1000)]
    before, token, after = marked(" ".join(tokens), 500)
    assert token == "500"
    assert (before[:7], before[-3:], after[:3], after[-3:]) == ("... 440", "499", "501", "...")
    assert len(f"{before} {token} {after}".split()) == LONGEST + 2
    assert marked("a b", 2) == ("a b", "(end)", "")
    assert marked(" ".join(tokens), 1000).before.startswith("... 880")


@pytest.mark.parametrize("content", [None, b"", b"no gzip", gzip.compress(b'{"source": "a"}\n[1', mtime=0)[:-9]])
def test_predictions_that_are_not_there_are_said_so(tmp_path, content):
    study = predict(write(tmp_path / "study", result(0)), (GOLD, "a"))
    [file] = study.glob("*/*/*/predictions/test.jsonl.gz")
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(UserError, match="has no predictions of 'test' that can be read"):
        predictions(file.parent.parent, "test")
    found = browse(conditions(read_finished(study).runs))
    assert found.rows == []
    assert found.notes[-1] == "No predictions that can be read are in the records of 1 rows: scan length lstm."


def test_of_many_rows_some_are_browsed_and_it_is_said(study, monkeypatch):
    monkeypatch.setattr("tfstudy.report.error_browser.FILES", 2)
    found = browse(conditions(read_finished(study).runs))
    assert [one.seeds for one in found.rows] == [[0], [0]]
    assert found.notes[1] == "Only the first 2 of 3 rows are here, so that the file stays small."
    assert "all predictions of the first seed" in found.notes[0]
    assert FILES > 100


def test_the_protocol_tells_once_what_all_rows_share(study):
    found = ledger(conditions(read_finished(study).runs))
    assert found.shared["checkpoint"] == "last"
    assert found.shared["data hash"] == "d" * 12
    assert found.shared["versions"] == "python 3.11, torch 2.9"
    assert found.shared["test reads"] == "1"
    assert found.shared["overlap with train"] == "0"
    assert [entry.row.arch for entry in found.entries] == ["cnn", "lstm", "transformer"]
    assert [entry.facts["seconds of training"] for entry in found.entries] == ["30 (30 to 30)", "30 (30 to 30)", "30"]


def test_what_a_record_does_not_say_is_unknown(tmp_path):
    study = write(tmp_path / "study", result(0, overlap={}))
    next(study.glob("*/*/*/test_reads.csv")).unlink()
    [entry] = ledger(conditions(read_finished(study).runs)).entries
    facts = {
        name: entry.facts[name] for name in ("versions", "data hash", "commit", "overlap with train", "test reads")
    }
    assert set(list(facts.values())[:3]) == {"unknown"}
    assert set(list(facts.values())[3:]) == {"not noted"}


@pytest.mark.usefixtures("no_figures")
def test_diverged_runs_are_named_with_the_reason(tmp_path):
    diverged = {
        key: value for key, value in result(1, status="diverged", reason="loss is nan").items() if key != "splits"
    }
    study = write(tmp_path / "study", result(0), diverged)
    text = publish(read_finished(study), tmp_path / "out")[0].read_text()
    assert "diverged and measured nothing: loss is nan" in text


@pytest.mark.usefixtures("no_figures")
def test_a_report_writes_its_own_files_alone(study, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    publish(read_finished(study), out)
    publish(read_finished(study), out)
    assert sorted(item.name for item in out.iterdir()) == ["index.html", "notes.txt", "report.md"]
    assert (out / "notes.txt").read_text() == "mine"


def test_figures_of_a_former_report_do_not_stay(study, tmp_path, monkeypatch):
    out = tmp_path / "out"
    publish(read_finished(study), out)
    (out / "figures" / "mine.svg").write_text("")
    monkeypatch.setattr("tfstudy.report.study_page.figures", lambda study: [])
    publish(read_finished(study), out)
    assert [item.name for item in (out / "figures").iterdir()] == ["mine.svg"]


@pytest.mark.parametrize("name", ["index.html", "report.md"])
def test_what_is_not_a_report_is_left_as_it_is(study, tmp_path, name):
    (tmp_path / name).write_text("<h1>mine</h1>")
    with pytest.raises(UserError, match=f"{name} is not a report of tfstudy"):
        publish(read_finished(study), tmp_path)
    assert (tmp_path / name).read_text() == "<h1>mine</h1>"
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([name, "study"])


def test_a_file_or_a_run_is_no_place_for_a_report(study, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="must be a folder"):
        publish(read_finished(study), tmp_path / "file")
    with pytest.raises(UserError, match="must not be a run's folder"):
        publish(read_finished(study), next(study.glob("*/lstm/s*")))


@pytest.mark.usefixtures("no_figures")
def test_what_fails_leaves_the_former_page_whole(study, tmp_path, monkeypatch):
    path = publish(read_finished(study), tmp_path / "out")[0]
    before = path.read_bytes()
    monkeypatch.setattr(html_page, "hypertext", lambda made: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        publish(read_finished(study), tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setattr("tfstudy.report.study_page.figures", lambda study: [])
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(UserError, match="No space left on device"):
        publish(read_finished(study), tmp_path / "out")
    assert path.read_bytes() == before
    assert sorted(item.name for item in path.parent.iterdir()) == ["index.html", "report.md"]


def test_the_command_writes_a_report_and_names_what_is_left_out(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tfstudy.report.study_page.figures", lambda study: [])
    assert tfstudy("report", "study", "--results", tmp_path, "--out", "out", "--baseline", "lstm") == 0
    told = capsys.readouterr().out
    assert told.startswith("out/index.html (0.")
    assert "9 runs in 3 rows, 1 to 4 seeds a row\nleft out, not finished: scan-length/cnn/s9-0a" in told
    assert '<button type="button">to lstm</button>' in Path("out/index.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stdy"], "did you mean 'study'"),
        (["study", "--baseline", "lsmt"], "did you mean 'lstm'?"),
        (["study", "--metric", "exact"], "did you mean 'exact_match'?"),
    ],
)
def test_a_mistake_writes_nothing(study, tmp_path, capsys, words, said):
    assert tfstudy("report", *words, "--results", tmp_path, "--out", tmp_path / "out") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

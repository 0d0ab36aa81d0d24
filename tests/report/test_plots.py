"""What all plots share: files, errors without data, which runs are selected, the layout, styles and captions."""

from itertools import combinations

import matplotlib as mpl
import pandas as pd
import pytest

from tests.commands import refused, tfstudy
from tests.example_plots import PART, drawn, folder, predict, runs, tagged, texts
from tests.example_records import put, result, write
from tfstudy import models
from tfstudy.analysis.frame import read_study
from tfstudy.errors import UserError
from tfstudy.report.plots import all_plots, make_plot, merge_studies, save_plot
from tfstudy.report.plots.layout import COLOURS, architecture_colours, styles_of


@pytest.mark.parametrize(("ending", "begin"), [(".png", b"\x89PNG"), (".SVG", b"<?xml"), (".pdf", b"%PDF")])
def test_the_suffix_decides_the_file_format(tmp_path, capsys, ending, begin):
    write(tmp_path / "study", *runs("lstm", 0.5, 0.6), *runs("other", 0.1))
    out = tmp_path / "new" / f"picture{ending}"
    assert tfstudy("plot", "study", "--out", out, "--results", tmp_path) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert out.read_bytes().startswith(begin)
    with pytest.raises(UserError, match="cannot write"):
        save_plot([tmp_path / "study"], "split", out / "within-a-file.svg")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--out a.gif", "'.gif'; expected one of: .png, .svg, .pdf"),
        ("--out o/a", "must end in .png, .svg, .pdf, but is"),
        ("--kind lenght", "did you mean 'length'?"),
        ("--tag length", "--kind slices"),
        ("--kind slices", "--kind slices needs --tag with one of: depth, width"),
        ("--kind slices --tag widht", "did you mean 'width'?"),
        ("--kind length", "length"),
        ("--kind learning", "metrics.csv"),
        ("--kind data", "training examples"),
        ("--kind settings", "two settings of an architecture"),
        ("--kind differences", "2 seeds"),
        ("--kind differences other", "one study"),
        ("--kind errors", "predictions"),
        ("--task scna", "scan"),
    ],
)
def test_a_plot_that_cannot_be_drawn_is_one_error_and_no_file(tmp_path, capsys, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    slices = {tag: {"1": {"n": 5, "metrics": {"exact_match": 0.5}}} for tag in ("width", "depth")}
    for name in ("study", "other"):
        write(tmp_path / "results" / name, result(0, splits={"test": PART | {"slices": slices}}))
    out = [] if "--out" in words else ["--out", "a.png"]
    assert expected in refused(capsys, "plot", "study", *words.split(), *out)


def test_a_plot_is_of_the_metric_that_is_asked_for_and_says_how_many_runs_diverged(tmp_path):
    lost = [one | {"status": "diverged"} for one in runs("cnn", 0, 0, 0)[2:]]
    study = read_study(write(tmp_path, *runs("lstm", 0.5, 0.6), *runs("cnn", 0.2, 0.1), *lost))
    assert "Mean exact match" in make_plot(study, "split").alt
    assert "Mean token accuracy" in make_plot(study, "split", metric="token_accuracy").alt
    assert "1 run diverged" in " ".join(texts(make_plot(study, "split").figure)).replace("\n", " ")
    with pytest.raises(UserError, match="a test needs 2 seeds of both conditions, and none that diverged"):
        make_plot(study, "differences")


def test_the_same_records_give_the_same_bytes_whatever_the_users_settings(tmp_path):
    study = read_study(write(tmp_path, *runs("lstm", 0.5, 0.6), *runs("cnn <b> & d='1'", 0.5)))
    first = make_plot(study, "split").encode(".svg").decode()
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert make_plot(study, "split").encode(".svg").decode() == first
    assert "<dc:date>" not in first
    assert "cnn &lt;b&gt; &amp; d='1'" in first, "text is text, and escaped"


def test_a_task_selects_runs_and_several_studies_are_in_one_plot(tmp_path):
    copying = runs("lstm", 0.5, task="copying", split="copy")
    study = write(tmp_path / "one", *runs("lstm", 0.5), *runs("lstm", 0.6, split="simple"), *copying)

    def headings(**selection):
        names = ("length", "simple", "copying copy", "copy")
        return [text for text in texts(drawn(study, "split", **selection)) if text in names]

    assert headings(tasks="copying") == ["copy"]
    assert headings(tasks="scan") == ["length", "simple"]
    first = write(tmp_path / "first", *runs("lstm", 0.5, 0.6))
    second = write(tmp_path / "second", *runs("lstm", 0.5), *runs("cnn", 0.1))
    both = merge_studies([read_study(first), read_study(second)])
    assert sorted((run.result.arch, run.result.seed) for run in both.runs) == [("cnn", 0), ("lstm", 0), ("lstm", 1)]


def test_all_plots_are_those_that_the_records_have_data_for(tmp_path):
    slices = {"depth": {"shallow": PART, "a rather long name of a value": PART}}
    made = [one | {"splits": {"test": one["splits"]["test"] | {"slices": slices}}} for one in runs("lstm", 0.5, 0.6)]
    plots = list(all_plots(read_study(write(tmp_path, *made, *runs("cnn", 0.2, 0.1)))))
    assert [one.name for one in plots] == ["split", "differences", "slices-depth"]
    assert all(one.alt.endswith(".") and one.alt[0].isupper() and "\n" not in one.alt for one in plots)


def test_architectures_have_colours_and_their_conditions_markers_and_lines():
    many = architecture_colours([*models.names(), "gru", "s4", "mamba", "rwkv"])
    assert len(set(many.values())) == len(many) == len(models.names()) + 4
    assert {name: colour for name, colour in many.items() if name in COLOURS} == COLOURS
    assert architecture_colours(["gru"])["gru"] == many["gru"]
    styles = styles_of(pd.DataFrame({"label": [f"lstm dim={n}" for n in range(28)], "arch": "lstm"}))
    assert len(set(map(str, styles.values()))) == 28
    assert {style["color"] for style in styles.values()} == {COLOURS["lstm"]}
    assert list(styles)[:3] == ["lstm dim=0", "lstm dim=1", "lstm dim=2"]  # not 10 before 2


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A study for which most kinds of plots can be drawn."""
    made = []
    for arch in ("lstm", "transformer"):
        for size in (1, 2):
            more = {"experiment": f"{arch}{size}", "parameters": size * 1000, "step": 3000}
            made += [tagged(one, {"test": {"1": 1.0, "2": 0.5}}) for one in runs(arch, 0.5, 0.6, **more)]
    study = write(tmp_path_factory.mktemp("everything"), *made)
    for one in made:
        predict(study, one, ("x", "a b", "a b"), ("y", "a b", "a"))
        put(folder(study, one), "metrics.csv", "step,metric,value\n50,train_loss,1\n100,train_loss,0.1\n")
    return read_study(study)


@pytest.mark.parametrize("kind", ["split", "length", "learning", "settings", "differences", "errors", "slices"])
def test_a_plot_is_as_wide_as_a_page_with_readable_text_the_line_about_its_runs_and_no_overlaps(everything, kind):
    figure = make_plot(everything, kind, "length" * (kind == "slices")).figure
    figure.draw_without_rendering()
    total, height = figure.get_size_inches()
    assert round(total, 3) == 6.9
    outline = figure.get_tightbbox()
    assert min(outline.x0, outline.y0) >= -0.01
    assert max(outline.x1 - total, outline.y1 - height) <= 0.01
    written = [text for text in figure.findobj(lambda one: hasattr(one, "get_fontsize")) if text.get_text()]
    assert min(text.get_fontsize() for text in written) >= 7
    if kind in ("split", "differences", "errors", "slices"):  # the unit of their y axes are inches
        heights = [axes.get_window_extent().height / figure.dpi for axes in figure.axes]
        assert heights == pytest.approx([axes.get_ylim()[0] for axes in figure.axes], rel=0.1)
    caption = "2 seeds per condition; 3,000 steps; 1k to 2k parameters"
    [notes] = [text for text in figure.texts if caption in text.get_text().replace("\n", " ")]
    boxes = [notes.get_window_extent(), *(box.get_window_extent() for box in figure.legends)]
    boxes += [axes.get_tightbbox() for axes in figure.axes]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2) if one.height * other.height)

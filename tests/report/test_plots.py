"""Plots of a study: files, the error when data are missing, the layout and the styles that all kinds share."""

import subprocess
import sys
from itertools import pairwise

import matplotlib as mpl
import pytest

from tests.example_plots import PART, drawn, legend, runs
from tests.example_records import result, write
from tfstudy.analysis.collection import read_study
from tfstudy.cli import main
from tfstudy.errors import UserError
from tfstudy.report.plots import all_plots, make_plot, save_plot
from tfstudy.report.plots.grouping import balanced_columns
from tfstudy.report.plots.series_style import COLOURS, architecture_colours, series_styles


@pytest.mark.parametrize(("ending", "begin"), [(".png", b"\x89PNG"), (".SVG", b"<?xml"), (".pdf", b"%PDF")])
def test_the_suffix_decides_the_file_format(tmp_path, ending, begin):
    study = write(tmp_path / "study", *runs("lstm", 0.5, 0.6), *runs("cnn", 0.4), *runs("other", 0.1))
    save_plot([study], "split", tmp_path / f"picture{ending}")
    assert (tmp_path / f"picture{ending}").read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("kind", "out", "tag", "expected"),
    [
        ("split", "a.gif", "", "'.gif'; expected one of: .png, .svg, .pdf"),
        ("split", "o/a", "", "must end in .png, .svg, .pdf, but is"),
        ("lenght", "a.png", "", "did you mean 'length'?"),
        ("split", "a.png", "length", "--kind slices"),
        ("slices", "a.png", "", "--kind slices needs --tag with one of: depth, width"),
        ("slices", "a.png", "widht", "did you mean 'width'?"),
        ("length", "a.png", "", "length"),
        ("learning", "a.png", "", "metrics.csv"),
        ("operands", "a.png", "", "digits_left"),
        ("data", "a.png", "", "training examples"),
        ("scaling", "a.png", "", "parameters"),
        ("settings", "a.png", "", "two settings of an architecture"),
        ("differences", "a.png", "", "2 seeds"),
        ("errors", "a.png", "", "predictions"),
    ],
)
def test_a_plot_that_cannot_be_drawn_is_one_error_and_no_file(tmp_path, capsys, kind, out, tag, expected):
    slices = {tag: {"1": {"n": 5, "metrics": {"exact_match": 0.5}}} for tag in ("width", "depth")}
    write(tmp_path / "results" / "study", result(0, splits={"test": PART | {"slices": slices}}))
    before = sorted(tmp_path.rglob("*"))
    words = ["study", "--kind", kind, "--out", str(tmp_path / out), "--results", str(tmp_path / "results")]
    with pytest.raises(SystemExit) as end:
        main(["plot", *words, *(["--tag", tag] if tag else [])])
    [line] = capsys.readouterr().err.splitlines()
    assert end.value.code == 2
    assert line.startswith("error: ")
    assert expected in line
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_writes_the_file_and_prints_its_name(tmp_path, capsys):
    write(tmp_path / "results" / "study", result(0))
    out = tmp_path / "new" / "a.svg"
    with pytest.raises(SystemExit) as end:
        main(["plot", "study", "--out", str(out), "--results", str(tmp_path / "results")])
    assert (end.value.code, capsys.readouterr().out.strip()) == (0, str(out))
    assert out.read_text().startswith("<?xml")


def test_a_file_that_cannot_be_written_is_a_user_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="taken"):
        save_plot([write(tmp_path / "study", result(0))], "split", tmp_path / "taken" / "a.svg")


def test_the_same_records_give_the_same_bytes_whatever_the_users_settings(tmp_path):
    study = read_study(write(tmp_path, *runs("lstm", 0.5, 0.6)))
    first = make_plot(study, "split").svg()
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert make_plot(study, "split").svg() == first
    assert "<dc:date>" not in first
    assert make_plot(study, "split")._replace(name="other").svg() != first  # ids differ within one page


def test_the_command_line_and_a_report_import_no_matplotlib_before_they_draw():
    code = (
        "import sys, tfstudy.cli, tfstudy.report.plots, tfstudy.report.study_page; "
        "sys.exit(bool({'torch', 'matplotlib', 'seaborn', 'pandas'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_all_plots_are_those_that_the_records_have_data_for(tmp_path):
    slices = {"depth": {"1": {"n": 5, "metrics": {"exact_match": 0.5}}}}
    records = [*runs("lstm", 0.5, 0.6), *runs("cnn", 0.2, 0.1)]
    study = write(
        tmp_path, *(one | {"splits": {"test": one["splits"]["test"] | {"slices": slices}}} for one in records)
    )
    plots = list(all_plots(read_study(study)))
    assert [one.name for one in plots] == ["split", "differences", "slices-depth"]
    assert all(one.alt.endswith(".") and one.alt[0].isupper() and "\n" not in one.alt for one in plots)
    assert "length: lstm 55.0, cnn 15.0" in plots[0].alt
    assert "1 of 1 are significant" in plots[1].alt


def test_an_architecture_has_one_colour_in_every_study():
    assert series_styles({"cnn": "cnn"})["cnn"].colour == COLOURS["cnn"]
    many = architecture_colours(["cnn", "lstm", "transformer", "gru", "s4", "mamba", "rwkv"])
    assert len(set(many.values())) == 7
    assert architecture_colours(["gru"])["gru"] == architecture_colours(["gru", "lstm", "cnn"])["gru"]
    assert list(many)[:3] == list(COLOURS)


def test_conditions_of_an_architecture_differ_in_marker_and_line():
    styles = series_styles({f"lstm dim={n}": "lstm" for n in range(28)})
    assert len({(style.marker, str(style.line)) for style in styles.values()}) == 28
    assert {style.colour for style in styles.values()} == {COLOURS["lstm"]}
    assert list(styles)[:3] == ["lstm dim=0", "lstm dim=1", "lstm dim=2"]  # not 10 before 2


@pytest.mark.parametrize("count", [1, 12])
def test_nothing_overlaps_with_few_conditions_and_with_many(tmp_path, count):
    many = [f"e{n}-with-long-settings another={n} and-a-third={n} to-take-some-lines={n}" for n in range(count)]
    made = [one for n, name in enumerate(many) for one in runs("lstm", 0.1, 0.2 + n / 50, experiment=name)]
    figure = drawn(write(tmp_path, *made), "split")
    figure.draw_without_rendering()
    [axes] = figure.axes
    [box] = figure.legends
    assert box.get_window_extent().x0 > axes.get_window_extent().x1
    assert box.get_window_extent().y0 > 0
    assert max(figure.get_size_inches()) < 12
    assert len(axes.get_yticklabels()) == count
    levels = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(above.y0 > below.y1 for above, below in pairwise(levels))


def test_nothing_is_cut_off(tmp_path):
    splits = {"test": PART | {"slices": {"depth": {"shallow": PART, "a rather long name of a value": PART}}}}
    study = write(tmp_path, *(one | {"splits": splits} for arch in ("lstm", "cnn") for one in runs(arch, 0.5, 0.6)))
    plots = list(all_plots(read_study(study)))
    assert {plot.name for plot in plots} >= {"split", "differences", "slices-depth"}
    for plot in plots:
        plot.figure.draw_without_rendering()
        (width, height), drawn = plot.figure.get_size_inches(), plot.figure.get_tightbbox()
        assert min(drawn.x0, drawn.y0) >= -0.01, plot.name
        assert max(drawn.x1 - width, drawn.y1 - height) <= 0.01, plot.name


def test_the_legend_has_only_marks_that_are_drawn(tmp_path):
    one = make_plot(read_study(write(tmp_path / "one", result(0, split="unpublished"))), "split")
    several = make_plot(read_study(write(tmp_path / "several", *runs("lstm", 0.5, 0.6))), "split")
    assert [len(legend(plot.figure)) for plot in (one, several)] == [1, 3]


def test_many_conditions_are_distributed_over_columns():
    groups = {str(n): [None] * 3 for n in range(40)}
    columns = balanced_columns(groups)
    assert [len(column) for column in columns] == [14, 13, 13]
    assert [name for column in columns for name in column] == list(groups)
    assert balanced_columns({"a": [None] * 200}) == [{"a": [None] * 200}]

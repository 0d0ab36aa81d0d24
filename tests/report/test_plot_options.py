"""What `plot` shows of which studies, how wide it is, and the line about the runs in every picture."""

from itertools import combinations

import pytest

from tests.example_plots import drawn, folder, predict, runs, tagged, texts
from tests.example_records import write
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions
from tfstudy.cli import main
from tfstudy.report.plots import Selection, make_plot, merge_studies
from tfstudy.report.plots.captions import run_caption


def call(tmp_path, *words):
    """Run `tfstudy plot` and return its exit code."""
    with pytest.raises(SystemExit) as end:
        main(["plot", *words, "--results", str(tmp_path), "--out", str(tmp_path / "a.svg")])
    return end.value.code


def headings(figure):
    return [text for text in texts(figure) if text in ("length", "simple", "copying copy", "copy")]


def test_a_task_and_a_split_scheme_select_runs(tmp_path):
    copying = runs("lstm", 0.5, task="copying", split="copy")
    study = write(tmp_path, *runs("lstm", 0.5), *runs("lstm", 0.6, split="simple"), *copying)
    assert headings(drawn(study, "split", task="copying")) == ["copy"]
    assert headings(drawn(study, "split", task="scan")) == ["length", "simple"]
    assert headings(drawn(study, "split", task="scan", split="simple")) == ["simple"]
    assert headings(drawn(study, "split", split="simple,length")) == ["length", "simple"]


@pytest.mark.parametrize(
    ("option", "name", "nearest"),
    [("--task", "scna", "scan"), ("--split", "lenght", "length"), ("--width", "colum", "column")],
)
def test_an_unknown_name_is_an_error_with_the_nearest_one(tmp_path, capsys, option, name, nearest):
    write(tmp_path / "study", *runs("lstm", 0.5))
    assert call(tmp_path, "study", option, name) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"'{name}'" in line
    assert nearest in line
    assert not (tmp_path / "a.svg").exists()


def test_several_studies_are_in_one_plot_and_a_run_of_both_counts_once(tmp_path):
    first = write(tmp_path / "first", *runs("lstm", 0.5, 0.6))
    second = write(tmp_path / "second", *runs("lstm", 0.5), *runs("cnn", 0.1))
    both = merge_studies([read_study(first), read_study(second)])
    assert sorted((run.result.arch, run.result.seed) for run in both.runs) == [("cnn", 0), ("lstm", 0), ("lstm", 1)]
    assert call(tmp_path, "first", "second") == 0
    assert "cnn" in (tmp_path / "a.svg").read_text()


def test_differences_are_of_one_study(tmp_path, capsys):
    for name in ("first", "second"):
        write(tmp_path / name, *runs("lstm", 0.5, 0.6), *runs("cnn", 0.1, 0.2))
    assert call(tmp_path, "first", "second", "--kind", "differences") == 2
    assert "one study" in capsys.readouterr().err


def test_the_caption_gives_seeds_steps_and_sizes_as_ranges_where_they_differ(tmp_path):
    small = runs("lstm", 0.5, 0.6, step=3000, parameters=660_000)
    large = runs("cnn", 0.5, step=5000, parameters=2_370_000)
    study = read_study(write(tmp_path, *small, *large))
    assert (
        run_caption(conditions(study.runs))
        == "1 to 2 seeds per condition; 3,000 to 5,000 steps; 0.66M to 2.37M parameters"
    )
    tiny = read_study(
        write(tmp_path / "tiny", *runs("lstm", 0.5, parameters=48_800), *runs("cnn", 0.5, parameters=412_000))
    )
    assert run_caption(conditions(tiny.runs)).endswith("48.8k to 0.412M parameters"), "by size, not as text"
    lstm = [condition for condition in conditions(study.runs) if condition.arch == "lstm"]
    assert run_caption(lstm) == "2 seeds per condition; 3,000 steps; 0.66M parameters"


def test_the_caption_gives_the_steps_of_training_and_not_that_of_the_best_weights(tmp_path):
    study = write(tmp_path, *runs("lstm", 0.5, 0.6, step=2700))
    for path in study.rglob("config.yaml"):
        path.write_text(path.read_text().replace("2700", "3000"))
    assert "; 3,000 steps; " in run_caption(conditions(read_study(study).runs))


def study_with_everything(tmp_path):
    """Return a study for which every kind of plot but `operands` can be drawn."""
    made = []
    for arch in ("lstm", "transformer"):
        for size in (1, 2):
            own = runs(arch, 0.5, 0.6, experiment=f"{arch}{size}", parameters=size * 1000, step=3000)
            made += [tagged(one, {"test": {"1": 1.0, "2": 0.5}}) for one in own]
    study = write(tmp_path, *made)
    for one in made:
        predict(study, one, ("x", "a b", "a b", {}), ("y", "a b", "a", {}))
        (folder(study, one) / "metrics.csv").write_text("step,metric,value\n50,train_loss,1\n100,train_loss,0.1\n")
    return read_study(study)


@pytest.mark.parametrize(("width", "inches"), [("column", 3.35), ("page", 6.9), ("", None)])
def test_every_kind_of_plot_has_the_width_readable_text_and_the_line_about_its_runs(tmp_path, width, inches):
    study = study_with_everything(tmp_path)
    for kind in ("split", "length", "learning", "differences", "errors"):
        figure = make_plot(study, kind, Selection(width=width)).figure
        figure.draw_without_rendering()
        total, height = figure.get_size_inches()
        assert inches is None or round(total, 3) == inches
        assert any(
            "2 seeds per condition; 3,000 steps; 1k to 2k parameters" in text.replace("\n", " ")
            for text in texts(figure)
        )
        outline = figure.get_tightbbox()
        assert min(outline.x0, outline.y0) >= -0.01, kind
        assert max(outline.x1 - total, outline.y1 - height) <= 0.01, kind
        sizes = [
            text.get_fontsize() for text in figure.findobj(lambda one: hasattr(one, "get_fontsize")) if text.get_text()
        ]
        assert min(sizes) >= 7, kind


@pytest.mark.parametrize("width", ["column", "page", ""])
def test_the_notes_and_the_legend_do_not_overlap_the_panels(tmp_path, width):
    study = study_with_everything(tmp_path)
    for kind in ("split", "length", "learning", "differences", "errors"):
        figure = make_plot(study, kind, Selection(width=width)).figure
        figure.draw_without_rendering()
        [notes] = [text for text in figure.texts if "seeds per condition" in text.get_text().replace("\n", " ")]
        boxes = [notes.get_window_extent(), *(box.get_window_extent() for box in figure.legends)]
        boxes += [axes.get_tightbbox() for axes in figure.axes]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2) if one.height * other.height), kind


def test_long_titles_and_headings_are_wrapped_in_a_narrow_plot(tmp_path):
    name = "a rather long name of a split scheme that is wider than a column"
    one = tagged(runs("lstm", 0.5, split=name)[0], {"test": {"1": 1.0, "2": 0.5}})
    study = read_study(write(tmp_path, one))
    for kind in ("split", "length"):
        figure = make_plot(study, kind, Selection(width="column")).figure
        figure.draw_without_rendering()
        [title] = [text for text in texts(figure) if text.replace("\n", " ") == name]
        assert "\n" in title, kind
        assert figure.get_tightbbox().x1 <= figure.get_figwidth(), kind


@pytest.mark.parametrize("kind", ["split", "differences", "errors"])
def test_long_labels_leave_room_for_the_axes_of_a_narrow_plot(tmp_path, kind):
    made = []
    for arch in ("lstm", "cnn"):
        made += runs(arch, 0.5, 0.6, experiment=f"{arch}_a_setting_with_a_name.as_long_as_a_line_of_a_paper=1000")
        made += runs(arch, 0.2, 0.3)
    study = write(tmp_path, *made)
    for one in made:
        predict(study, one, ("x", "a b", "a b", {}), ("y", "a b", "a", {}))
    figure = make_plot(read_study(study), kind, Selection(width="column")).figure
    figure.draw_without_rendering()
    [axes] = figure.axes
    assert axes.get_window_extent().width / figure.dpi > 0.25 * figure.get_figwidth()
    assert figure.get_tightbbox().x0 >= -0.01

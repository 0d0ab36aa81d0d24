"""Published figures beside the result of a run."""

from pathlib import Path

from tests.example_records import result as record
from tests.example_records import write
from tests.report.test_run_summary import printed, result
from tfstudy.report.run_figures import published_figures, published_parts
from tfstudy.runs.reader import read_result


def test_of_each_paper_the_figure_of_a_preset_or_the_highest_comes_with_its_own_architecture_last():
    chosen = published_figures(result("addprim_jump", arch="cnn"))
    kinds = [(figure.paper, figure.metric, figure.family) for figure in chosen]
    assert len(kinds) == len(set(kinds))
    assert next(figure.id for figure in chosen if figure.paper == "dessi-2019") == "dessi-2019-02"
    families = [figure.family == "cnn" for figure in chosen]
    assert families == sorted(families)
    assert {figure.method for figure in chosen} == {"plain"}


def test_the_table_names_the_preset_that_has_the_settings_of_a_figure():
    lines = printed(*published_parts(result("length"))).splitlines()
    own = [line for line in lines if line.startswith("LSTM") and "Lake & Baroni 2018" in line]
    assert own
    assert all(line.rstrip().endswith("lake-2018") for line in own)


def test_figures_of_the_own_architecture_say_how_the_settings_differ(tmp_path):
    [path] = write(tmp_path / "study", record(0, 0.2)).glob("*/*/*")
    text = printed(*published_parts(read_result(path), Path(path)))
    assert "Lake & Baroni 2018: " in text
    assert "preset default" in text
    assert "ours: " not in printed(*published_parts(read_result(path))), "the folder has the settings"

"""Tables and pictures of studies, from made records."""

import json

import pytest

from tasks.base import UserError
from tfstudy.report.plots import by_length, by_split, longest_trained
from tfstudy.report.summary import published, summary
from tfstudy.report.table import markdown, rows


def result(seed=0, exact=0.5, **more):
    part = {"role": "test", "n": 10, "exact_match_interval": [0.2, 0.8], "slices": {}}
    part["metrics"] = {"exact_match": exact, "token_accuracy": 0.7, "oracle_length_exact_match": 0.6}
    made = {
        "format": 1, "run": f"{seed:064d}", "preset": "default", "task": "scan", "split": "length", "arch": "lstm",
        "seed": seed, "experiment": "e", "decode": {"method": "greedy"}, "eval": {"limit": 0}, "device": "cpu",
        "smoke": False, "status": "finished", "checkpoint": "last", "parameters": 1000, "overlap": {"test": 0},
        "train_seconds": 30.0, "evaluate_seconds": 6.0, "splits": {"test": part},
    }  # fmt: skip
    return made | more


def write(study, *results):
    for place, made in enumerate(results):
        folder = study / f"scan-{made['split']}" / made["arch"] / f"s{made['seed']}-{place}"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(json.dumps({"seed": made["seed"], "model": {"dim": made["experiment"]}}))
        (folder / "test_reads.csv").write_text("test,run\n")
        (folder / "result.json").write_text(json.dumps(made))
    return study


def row(text, arch):
    [line] = [line for line in text.splitlines() if f"| {arch} |" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_is_mean_and_deviation_over_seeds_beside_figures_of_the_same_metric(tmp_path):
    cells = row(markdown(write(tmp_path, result(0, 0.2), result(1, 0.4), result(2, 0.6))), "lstm")
    assert cells[3:6] == ["3", "40.0 ± 20.0", "20.0, 40.0, 60.0"]
    assert "13.8 LSTM (Lake & Baroni 2018)" in cells[6]
    assert "60.2" not in cells[6]
    assert cells[7] == "60.0 ± 0.0"
    assert "60.2 GRU+attention (Lake & Baroni 2018)" in cells[8]


def test_one_seed_has_no_deviation(tmp_path):
    assert row(markdown(write(tmp_path, result(0, 0.2))), "lstm")[3:5] == ["1", "20.0"]


def test_every_test_split_has_a_row_of_its_own_in_the_order_of_length(tmp_path):
    part = result(0)["splits"]["test"]
    names = ("test_11_15", "test_9_10", "test", "test_depth")
    splits = {name: part | {"metrics": part["metrics"] | {"exact_match": share}} for share, name in enumerate(names)}
    lengths = {"L90": 10, "L50": 15, "longest": 15, "exact_match": {}}
    text = markdown(write(tmp_path, result(0, splits=splits, lengths=lengths)))
    found = [line.split(" | ") for line in text.splitlines() if "| lstm |" in line]
    places = ["length", "length depth", "length 9_10", "length 11_15"]  # words before numbers
    assert [(cells[0].strip("| "), float(cells[4])) for cells in found] == list(
        zip(places, [200, 300, 100, 0], strict=True)
    )
    assert found[0][-2:] == ["10", ">=15 |"]
    assert found[1][-1].strip(" |") == ""


def test_runs_that_differ_in_more_than_the_seed_are_no_replications(tmp_path):
    table, _ = rows(write(tmp_path, result(0), result(1, experiment="other")))
    assert [(len(row.results), row.name) for row in table] == [
        (1, "default model.dim=e"),
        (1, "default model.dim=other"),
    ]


def test_the_same_seed_twice_is_refused(tmp_path):
    with pytest.raises(UserError, match="there twice"):
        rows(write(tmp_path, result(0), result(0, 0.9)))


def test_diverged_runs_are_counted(tmp_path):
    diverged = {k: v for k, v in result(1, status="diverged", reason="nan").items() if k != "splits"}
    assert row(markdown(write(tmp_path, result(0), diverged)), "lstm")[3] == "1, 1 diverged"


def test_what_is_left_out_is_named(tmp_path):
    study = write(tmp_path, result(0), result(1, smoke=True))
    begun = study / "scan-length" / "cnn" / "s0-x"
    begun.mkdir(parents=True)
    (begun / "config.yaml").write_text("")
    text = markdown(study)
    assert "s1-1 is a smoke run" in text
    assert f"{begun} is not a finished run" in text
    assert "1 runs on cpu; checkpoint: last; decoding: greedy" in text
    assert "scored 1 time(s)" in text


def test_a_study_without_finished_runs_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match="no finished run"):
        markdown(tmp_path)


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_a_picture_of_a_study(tmp_path, ending):
    study = write(tmp_path / "study", result(0), result(1), result(0, arch="cnn"), result(0, arch="other"))
    by_split(study, tmp_path / f"picture{ending}")
    assert (tmp_path / f"picture{ending}").stat().st_size > 1000


def test_a_picture_of_another_kind_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"must be one of .png, .svg, .pdf, but is '.gif'"):
        by_split(tmp_path, tmp_path / "picture.gif")


def test_every_published_figure_names_its_paper_metric_and_source():
    figures = [f for split in ("simple", "length", "addprim_jump", "mcd1") for f in published("scan", split)]
    assert len(figures) > 20
    assert all(f["paper"] and f["source"] and f["metric"].startswith("exact match") for f in figures)


def test_a_diverged_run_says_why():
    [text] = summary(result(status="diverged", reason="the training loss is nan at step 50"))
    assert "diverged (the training loss is nan at step 50)" in text


def test_accuracy_by_length_is_drawn_with_what_was_trained_on(tmp_path):
    part = result(0)["splits"]["test"]
    splits = {"validation": part | {"role": "validation", "slices": {"length": {"3": part, "12": part}}}, "test": part}
    curve = {str(length): {"n": 50, "exact_match": 1 / length} for length in range(1, 20)}
    lengths = {"L90": 1, "L50": 2, "longest": 19, "exact_match": curve}
    study = write(tmp_path / "study", result(0, splits=splits, lengths=lengths))
    by_length(study, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes()[1:4] == b"PNG"
    assert longest_trained(rows(study)[0][0]) == 12


def test_a_study_without_lengths_has_no_curves(tmp_path):
    with pytest.raises(UserError, match="says its accuracy by length"):
        by_length(write(tmp_path / "study", result(0)), tmp_path / "out.png")
    assert not (tmp_path / "out.png").exists()

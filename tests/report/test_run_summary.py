"""The result of one run as a table, with published results."""

from pathlib import Path

import msgspec
from rich.console import Console

from tests.example_records import result as record
from tests.example_records import write
from tests.example_study import SCORES
from tfstudy.report.run_summary import length_lines, published_figures, published_parts, show, summary
from tfstudy.runs.schema import FORMAT, Lengths, Result
from tfstudy.runs.store import read_result


def result(split: str, **changes) -> Result:
    metrics = {"exact_match": 0.25, "token_accuracy": 0.5}
    scores = {**SCORES, "metrics": metrics, "exact_match_interval": [0.1, 0.5]}
    part = {key: scores[key] for key in ("n", "metrics", "exact_match_interval")}
    tests = {"test": {**scores, "slices": {"length": {"3": part, "24": part}}}}
    tree = {"format": FORMAT, "run": "0", "experiment": "e", "task": "scan", "split": split, "arch": "lstm", "seed": 4}
    tree |= {"smoke": False, "status": "finished"}
    tree |= {"splits": {"validation": {"role": "validation", "n": 0}, **tests}} | changes
    return msgspec.json.decode(msgspec.json.encode(tree), type=Result)


def printed(*parts) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get()


def test_the_result_stands_below_the_published_figures_of_its_split_scheme():
    text = printed(*summary(result("mcd1")))
    figures, table = text.split("scan mcd1, lstm, seed 4")
    assert all(fact in table for fact in ("25.0", "[10.0, 50.0]"))
    assert all(fact in figures for fact in ("Conklin et al. 2021", "4.7", "exact match"))
    assert "Dessì" not in figures, "figures of other split schemes are not listed"


def test_a_split_scheme_without_published_results_and_a_smoke_run_list_none():
    assert "published" not in printed(*summary(result("filler_num0")))
    text = printed(*summary(result("mcd1", smoke=True)))
    assert "published" not in text
    assert "SMOKE RUN" in text


def test_a_diverged_result_is_a_line_with_its_reason():
    [line] = summary(result("simple", status="diverged", reason="the training loss is nan at step 5"))
    assert all(fact in str(line) for fact in ("scan simple, lstm, seed 4", "diverged", "nan at step 5"))


def test_a_table_has_a_row_for_each_value_of_a_tag():
    lines = printed(*summary(result("filler_num0"), by="length")).splitlines()
    assert [line.split()[:3] for line in lines[3:]] == [
        ["validation", "all", "0"],
        ["test", "all", "10"],
        ["3", "10", "25.0"],
        ["24", "10", "25.0"],
    ]


def test_a_narrow_terminal_leaves_out_columns_and_has_the_metrics_of_the_task_below_each_other(capsys, monkeypatch):
    main = ("bleu", "chrf", "exact_match", "token_accuracy", "oracle_length_exact_match", "teacher_forced_accuracy")
    own = {f"property_{n}": 1 / n for n in range(1, 9)}
    scores = {**SCORES, "n": 300, "metrics": dict.fromkeys(main, 0.5) | own, "exact_match_interval": [0.4, 0.6]}
    tree = result("length", splits={"negative_questions": scores, "test": scores})

    def lines(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        show(tree)
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    narrow, wide = lines(80), lines(160)
    assert max(map(len, narrow)) <= 80
    assert "left out to fit 80 characters: teacher-forced; --format json has all metrics" in narrow
    assert "forced" in "".join(wide)
    assert not [line for line in wide if "left out" in line]
    [row] = [line.split()[1:] for line in narrow if line.startswith("negative_questions")]
    assert len(row) == 8, "n, metrics and an interval"
    own = [line.split()[-2:] for line in narrow if line.startswith("property")]
    assert own == [[f"{100 / n:.1f}"] * 2 for n in range(1, 9)]


def test_trivial_systems_have_a_table_with_their_first_two_metrics():
    copy, words = {"exact_match": 0.0, "bleu": 0.031, "chrf": 0.2}, {"bleu": 0.05}
    scores = {**SCORES, "baselines": {"copy": copy, "word by word": words}}
    text = printed(*summary(result("mcd1", splits={"test": scores, "longer": SCORES}), width=200))
    rows = [line.split() for line in text.partition("trivial systems")[2].splitlines()]
    assert rows[1] == ["copy:", "copy:", "word", "by", "word:"]
    assert rows[2] == ["split", "BLEU", "chrF", "BLEU"]
    assert rows[3] == ["test", "3.1", "20.0", "5.0"]
    assert not [row for row in rows if row[:1] == ["longer"]], "no row without a trivial system"
    assert "trivial" not in printed(*summary(result("mcd1")))


def test_limits_and_peaks_of_memory_have_a_line_each():
    scores = {**SCORES, "n": 200, "limit_hits": 3}
    limit = {"per_source_token": 1.175, "constant": 16}
    tree = {"splits": {"test": scores}, "generation_limit": limit, "train_peak_mib": 1234.4, "evaluate_peak_mib": 800.0}
    text = printed(*summary(result("mcd1", **tree)))
    assert "outputs of at most 1.175 x source length + 16 tokens; cut there: 3 of 200 on test (1.5 %)" in text
    assert "peak memory: 1,234 MiB in training, 800 MiB in evaluation" in text


def test_longer_lengths_with_too_few_examples_to_count_are_named():
    def line(**few):
        curve = {str(n): {"n": 12, "exact_match": 0.5} for n in range(1, 9)} | few
        return length_lines(Lengths(8, None, 8, curve))[0]

    assert line().endswith("90 % and 50 % (longest tested: 8)")
    assert line(**{"16": {"n": 3, "exact_match": 0.0}}).endswith("at least 10 examples: 8; 16 with fewer)")


# Published figures


def test_of_each_paper_the_figure_of_a_preset_or_the_highest_comes_with_its_own_architecture_last():
    chosen = published_figures(result("addprim_jump", arch="cnn"))
    kinds = [(figure.paper, figure.metric, figure.family) for figure in chosen]
    assert len(kinds) == len(set(kinds))
    assert next(figure.id for figure in chosen if figure.paper == "dessi-2019") == "dessi-2019-02"
    families = [figure.family == "cnn" for figure in chosen]
    assert families == sorted(families)
    assert {figure.method for figure in chosen} == {"plain"}


def test_figures_of_the_own_architecture_say_how_the_settings_differ(tmp_path):
    [path] = write(tmp_path / "study", record(0, 0.2)).glob("*/*/*")
    text = printed(*published_parts(read_result(path), Path(path)))
    assert "Lake & Baroni 2018: " in text
    assert "preset default" in text
    assert "ours: " not in printed(*published_parts(read_result(path))), "the folder has the settings"

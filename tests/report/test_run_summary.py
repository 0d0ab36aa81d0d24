"""The result of one run as a table, with published results."""

import msgspec
from rich.console import Console

from tests.example_study import SCORES
from tfstudy.analysis.published import published
from tfstudy.report.run_summary import summary
from tfstudy.runs.schema import FORMAT, Result


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


def test_published_results_are_listed_below_the_table_of_their_split_scheme():
    rows = published("scan", "mcd1")
    text = printed(*summary(result("mcd1")))
    table, figures = text.split("published, on test")
    assert "scan mcd1, lstm, seed 4" in table
    assert "25.0" in table
    assert "10.0 to 50.0" in table
    assert len(rows) >= 3
    assert "Dessi" not in figures, "results of other split schemes are not listed"


def test_a_split_scheme_without_published_results_and_a_smoke_run_list_none():
    assert "published" not in printed(*summary(result("filler_num0")))
    text = printed(*summary(result("mcd1", smoke=True)))
    assert "published" not in text
    assert "SMOKE RUN" in text


def test_a_diverged_result_is_a_line_with_its_reason():
    [line] = summary(result("simple", status="diverged", reason="the training loss is nan at step 5"))
    assert all(fact in line for fact in ("scan simple, lstm, seed 4", "diverged", "nan at step 5"))


def test_a_table_has_a_row_for_each_value_of_a_tag():
    lines = printed(*summary(result("filler_num0"), by="length")).splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in lines if line.startswith("│")]
    assert cells == [["validation", "all", "0"], ["test", "all", "10"], ["", "3", "10"], ["", "24", "10"]]

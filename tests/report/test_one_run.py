"""One run: its result, what has changed since it started, how two runs differ, and wrong predictions."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.commands import tfstudy
from tests.example_records import predict, put, result, set_environments, write
from tests.example_tables import text_of
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import first_error
from tfstudy.report.markup import MINUS
from tfstudy.report.one_run import changes, errors, listing, marked
from tfstudy.runs.schema import Result
from tfstudy.runs.store import open_run, write_failure


@pytest.fixture
def runs(trained, tmp_path, capsys) -> list[Path]:
    """Copies of two finished runs, which differ in their seed."""
    capsys.readouterr()
    return sorted(Path(shutil.copytree(trained, tmp_path / "results")).glob("study/*/*/s*"))


@pytest.fixture
def run(runs) -> Path:
    return runs[0]


def why(path: Path) -> str:
    return text_of(changes(path))


def edit_record(path: Path, change: Callable[[dict], object]) -> None:
    entries = [msgspec.to_builtins(entry) for entry in open_run(path).environments]
    change(entries[-1])
    set_environments(path, *entries)


def edit_config(path: Path, old: str, new: str) -> None:
    text = (path / "config.yaml").read_text()
    assert old in text
    (path / "config.yaml").write_text(text.replace(old, new))


def test_a_run_that_just_finished_is_up_to_date_also_with_other_code_of_the_same_versions(run, capsys):
    assert tfstudy("result", run, "--changes") == 0
    path, state, verdict = capsys.readouterr().out.splitlines()
    assert (path, state) == (str(run), "  finished")
    assert verdict.startswith("up to date")
    assert tfstudy("result", run, "--changes", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"path", "state", "verdict", "reason", "differences"}
    assert (found["verdict"], found["differences"]) == ("up to date", {})
    edit_record(run, lambda entry: entry.update(commit="0123456789+"))
    text = why(run)
    assert "up to date" in text
    assert ["commit", "01234567+"] in [line.split()[:2] for line in text.splitlines()]
    (run / "events.jsonl").unlink()
    assert "unknown: events.jsonl is damaged: it is missing" in why(run)


def test_a_raised_version_changed_data_and_other_defaults_outdate_a_run_but_missing_data_do_not(run, monkeypatch):
    monkeypatch.setattr("tfstudy.report.one_run.fingerprint", lambda task: read_corpus())
    assert "up to date" in why(run)
    assert "not compared (can't read the corpus)" in why(run)
    monkeypatch.setattr("tfstudy.experiment.code_versions._named_versions", lambda *names: (1, 3))
    monkeypatch.setattr("tfstudy.report.one_run.fingerprint", lambda task: "f" * 64)
    edit_record(run, lambda entry: entry["settings"]["train"].update(beta2=0.98))
    verdict, head, *rows = [line.split() for line in why(run).splitlines()[2:] if line]
    assert (verdict, head) == (["outdated"], ["then", "now"])
    now = {row[0]: row[-1] for row in rows}
    assert {"model": "3", "data": "f" * 8, "train.beta2": "default"}.items() <= now.items()


def read_corpus():
    raise UserError("can't read the corpus")


def test_an_edited_config_is_damaged_and_if_the_run_has_no_result_the_key_and_both_values_are_reported(run):
    for n, (old, new) in enumerate({"dim: 8": "dim: 9", "seed: 0\nsmoke": "seed: 5\nsmoke"}.items()):
        edit_config(run, old, new)
        assert n or "unknown: config.yaml is damaged" in why(run)
        (run / "result.json").unlink(missing_ok=True)
    lines = [line.split() for line in why(run).splitlines()]
    assert ["outdated"] in lines
    assert ["model.dim", "8", "9"] in lines
    assert ["seed", "0", "5"] in lines
    edit_config(run, "dim: 9", "dmi: 9")
    assert "no longer valid" in why(run)
    assert "'model.dim'" in why(run)


def test_unfinished_and_failed_runs_are_reported_as_such(run):
    (run / "result.json").unlink()
    retry = f"`tfstudy grid --resume study --results {run.parents[3]}` resumes it"
    assert f"; {retry}\nnot finished: its settings" in why(run)
    write_failure(run, "out of memory", 2)
    assert ": out of memory" in why(run)


def test_the_difference_of_two_runs_has_settings_environment_and_metrics_in_percentage_points(runs, capsys):
    edit_record(runs[1], lambda entry: entry.update(threads=64))
    put(runs[1], "config.yaml", (runs[1] / "config.yaml").read_text().replace("dim: 8", "dim: 16"))
    assert tfstudy("result", *runs) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model.dim", "8", "16"] in lines
    assert ["seed", "0", "1"] in lines
    assert ["threads", "64"] in [[line[0], line[-1]] for line in lines if line[:1] == ["threads"]]
    assert not [line for line in lines if line[:1] == ["data"]], "they are the same"
    [row] = [line for line in lines if line[:3] == ["test", "exact", "match"]]
    assert float(row[5].replace(MINUS, "-")) == pytest.approx(float(row[4]) - float(row[3]), abs=0.11)
    assert tfstudy("result", *runs, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"a", "b", "differences", "metrics"}
    assert found["differences"]["seed"] == {"a": "0", "b": "1"}
    assert found["metrics"]["test exact match"] == {"a": float(row[3]), "b": float(row[4])}
    (runs[1] / "result.json").unlink()
    assert tfstudy("result", *runs) == 0
    out = capsys.readouterr().out
    assert "model.dim" in out
    assert f"{runs[1]} has not finished" in out


def summarized(split: str, **more: object) -> str:
    """The lines of `tfstudy result` for a run on this split scheme."""
    tree = result(4, 0.25, split=split) | more
    return text_of(listing(msgspec.json.decode(msgspec.json.encode(tree), type=Result)))


def test_a_result_has_each_metric_with_its_interval_then_trivial_systems_and_says_if_it_is_of_a_smoke_run():
    test = result(4, 0.25)["splits"]["test"] | {"baselines": {"copy": {"exact_match": 0.125}}}
    test["metrics"] = test["metrics"] | {"own_metric": 0.5}
    title, *lines = summarized("mcd1", splits={"test": test}, smoke=True).splitlines()
    assert "SMOKE RUN" in title
    assert "scan mcd1, lstm, seed 4" in title
    assert "own metric" in " ".join(lines[0].split())
    own, copy = (line.split() for line in lines[1:3])
    assert (own[0], own[2:5], own[-1]) == ("test", ["25.0", "[0.0,", "55.0]"], "50.0")
    assert copy == ["test:", "copy", "12.5"]


# Wrong predictions

LONG = [f"w{number}" for number in range(100)]


@pytest.mark.parametrize(
    ("target", "prediction", "shown"),
    [
        ("a bb c", "a b c", ["a | bb c", "a | b c"]),
        ("a b", "a b c", ["a b | (end)", "a b | c"]),
        ("a b", "", ["| a b", "| (end)"]),
        ("a b", "a b", ["a b", "a b"]),
        (
            " ".join(LONG),
            " ".join([*LONG[:70], "x", *LONG[71:]]),
            [f"... {' '.join(LONG[65:70])} | {one} {' '.join(LONG[71:75])} ..." for one in ("w70", "x")],
        ),
    ],
)
def test_a_bar_stands_before_the_first_wrong_token(target, prediction, shown):
    both = [text.split() for text in (target, prediction)]
    assert [marked(tokens, first_error(*both)) for tokens in both] == shown


def test_lines_and_values_have_the_kinds_with_the_most_frequent_first(tmp_path):
    study = predict(write(tmp_path, result(0)), ("a", "a"), ("a b", ""), ("a b", "a"), ("a b", "a"))
    [path] = study.glob("*/*/s0-*")
    text = text_of(errors(path, "test", 1))
    title, _, *kinds = text.split("\n\n")[0].splitlines()
    assert title == f"lstm {path.name}, test: 4 predictions"
    shown = ["correct 1 25.0 %", "stops early 2 50.0 % 50 %", "empty 1 25.0 % 0 %"]
    assert [" ".join(line.split()) for line in kinds] == shown
    assert [line.split()[-1] for line in text.splitlines() if "source" in line] == ["s2", "s1"], "an example of each"
    assert re.search(r"\ntoken 2 of 2 +target +a \| b\n", text)
    early = errors(path, "test", 2).values["kinds"]["stops early"]
    assert (early["n"], early["first_error_share"]) == (2, 0.5)
    assert [one["first_error"] for one in early["examples"]] == [2, 2]
    with pytest.raises(UserError, match="did you mean 'test'"):
        errors(path, "tset", 1)
    put(path, "config.yaml", "task: pairs\narch: lstm\ndata: {tokens: characters}\n")
    predict(study, ("ab", "a"), ("a b", "a"))
    assert {*errors(path, "test", 1).values["kinds"]} == {"stops early"}, "tokens are characters, spaces too"

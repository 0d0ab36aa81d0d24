"""The comparisons of a study in words, and its protocol."""

import re
from pathlib import Path

import pytest

from tests.example_records import result, rival, three_architectures, write
from tfstudy.analysis.claim_files import read_claims
from tfstudy.analysis.claims import family_size, timed_ratios
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.analysis.conditions import conditions
from tfstudy.report.comparisons import summarize_comparisons
from tfstudy.report.protocol import build_protocol
from tfstudy.report.tables import table


@pytest.fixture
def study(tmp_path) -> Path:
    return three_architectures(tmp_path)


def test_comparisons_say_what_is_higher_and_what_is_not_tested(study):
    summary = summarize_comparisons(table(study, baseline="lstm"))
    [one] = summary.tested
    assert one.verdict == "cnn is higher than lstm"
    assert (one.test_set, one.difference, one.p, one.test) == ("length", "+55.5", "<.001", "Welch, 8 values")
    assert summary.untested == {"length": ["transformer"]}
    assert summary.summary.startswith("3 comparisons on the same examples: 1 decided, 0 undecided, 2 not")


def test_an_undecided_comparison_says_how_many_seeds_it_needs(tmp_path):
    close = [rival(seed, value) for seed, value in enumerate((0.5, 0.62, 0.55))]
    summary = summarize_comparisons(table(write(tmp_path / "a", *(result(seed, 0.5) for seed in range(3)), *close)))
    assert re.fullmatch(r"about \d+ more seeds?", summary.tested[0].needed)
    assert summary.tested[0].verdict == "cnn or lstm: undecided"
    equal = [one for seed in range(3) for one in (result(seed, 0.5), rival(seed, 0.5))]
    assert summarize_comparisons(table(write(tmp_path / "b", *equal))).tested[0].needed == "no difference to find"


def test_the_page_on_statistics_has_the_number_of_statements_of_claims():
    number, ratios = family_size(read_claims().values()), timed_ratios(read_claims().values())
    page = Path(__file__).parents[2].joinpath("docs/concepts/statistics.md").read_text()
    assert set(re.findall(r"(\d+)\s+statements of all claims|, (\d+) at present|- \.05/(\d+)", page)) == {
        (f"{number}", "", ""), ("", f"{number}", ""), ("", "", f"{number}"), ("", "", f"{ratios}")
    }  # fmt: skip
    assert set(re.findall(r"it is one of (\d+)|the (\d+) such statements", page)) == {
        (f"{number}", ""),
        ("", f"{ratios}"),
    }


def test_of_many_comparisons_the_clearest_are_listed(study, monkeypatch):
    monkeypatch.setattr("tfstudy.report.comparisons.MAX_LISTED", 1)
    many = [rival(seed, 0.3 + (-1) ** seed / 50, arch) for arch in ("gru", "mlp") for seed in range(4)]
    write(study, *many)
    summary = summarize_comparisons(table(study))
    assert len(summary.tested) == 1
    assert "1 of 6 comparisons are listed" in summary.notes[1]


def test_the_protocol_lists_once_what_all_conditions_share(study):
    protocol = build_protocol(conditions(read_finished_runs(study).runs))
    assert protocol.shared["checkpoint"] == "last"
    assert protocol.shared["data hash"] == "d" * 12
    assert protocol.shared["versions"] == "python 3.11, torch 2.9"
    assert protocol.shared["test evaluations"] == "1"
    assert protocol.shared["overlap with training"] == "0"
    assert [entry.condition.arch for entry in protocol.entries] == ["cnn", "lstm", "transformer"]
    assert [entry.facts["training seconds"] for entry in protocol.entries] == ["30 (30 to 30)", "30 (30 to 30)", "30"]


def test_what_a_record_lacks_is_unknown(tmp_path):
    study = write(tmp_path / "study", result(0, overlap={}))
    next(study.glob("*/*/*/test_reads.csv")).unlink()
    [entry] = build_protocol(conditions(read_finished_runs(study).runs)).entries
    names = ("versions", "data hash", "commit", "overlap with training", "test evaluations")
    facts = {name: entry.facts[name] for name in names}
    assert set(list(facts.values())[:3]) == {"unknown"}
    assert set(list(facts.values())[3:]) == {"not recorded"}

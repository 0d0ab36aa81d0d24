"""Published figures beside conditions: which ones, whether their settings are the same, and their sources."""

import pytest

from tests.example_records import result, write
from tests.report.table_studies import quotation
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.counterparts import quotations
from tfstudy.report.table_notes import source_notes


def condition(folder, **settings):
    [found] = conditions(read_study(write(folder, result(0, arch="cnn", split="addprim_jump") | settings)).runs)
    return found


def differ(monkeypatch, *settings):
    """The settings in which every condition differs from its preset."""
    monkeypatch.setattr("tfstudy.analysis.counterparts.differing_settings", lambda condition: set(settings))


def test_a_figure_under_other_settings_has_a_sign(tmp_path):
    assert [one.text for one in quotations(condition(tmp_path), "exact_match")] == ["69.2 ± 8.2 [dessi-2019]†"]


def test_a_figure_under_exactly_the_settings_of_the_runs_has_no_sign(tmp_path, monkeypatch):
    runs = condition(tmp_path, preset="dessi-2019")
    differ(monkeypatch)
    assert [one.text for one in quotations(runs, "exact_match")] == ["69.2 ± 8.2 [dessi-2019]"]
    differ(monkeypatch, "train.steps")
    assert [one.text for one in quotations(runs, "exact_match")] == ["69.2 ± 8.2 [dessi-2019]†"]


@pytest.mark.parametrize("split", ["length", "template_around_right", "addprim_jump", "mcd1", "simple"])
@pytest.mark.parametrize("arch", ["cnn", "lstm", "transformer"])
def test_each_paper_has_one_figure_and_never_a_maximum(tmp_path, split, arch):
    found = quotations(condition(tmp_path, split=split, arch=arch), "exact_match")
    assert len({one.figure.paper for one in found}) == len(found)
    assert not [one.figure.id for one in found if one.figure.value_kind == "max"]
    assert {(one.figure.family, one.figure.method) for one in found} <= {(arch, "plain")}


def test_a_source_is_its_key_authors_year_place_and_what_follows_its_sign():
    both = [quotation("dessi-2019-02"), quotation("dessi-2019-07"), quotation("loula-2018-01")]
    dessi, loula = source_notes([*both, *both])
    assert dessi.startswith("[dessi-2019] Dessì & Baroni 2019, arXiv 1905.08527: Table 2;")
    assert "(±: standard deviation of 5 seeds); footnote 1" in dessi
    assert "quoted in dessi-2019: Dessi & Baroni, Table 2" in loula

"""The published figures and their bibliography, as data."""

import csv
import math
import re

import pytest

from tfstudy import tasks
from tfstudy.analysis import published
from tfstudy.analysis.claim_files import DIVERGED, METRICS
from tfstudy.config.files import configs
from tfstudy.config.presets import preset
from tfstudy.errors import UserError

FIGURES = published.all_figures()
OTHER_METRICS = {  # to their units: metrics of papers that tfstudy does not measure
    "token_accuracy_over_lengths_gain": "points",
    "consistency": "percent",
    "bleu_tokenized": "points",
    "bleu_lowercase": "points",
    "bleu_tokenized_lowercase": "points",
    "bleu_delta": "points",
    "bleu_kept": "percent",
    "perplexity_wordpiece": "none",
    "heads_prunable": "percent",
}
UNITS = {metric: "points" if metric in ("bleu", "chrf") else "percent" for metric in METRICS} | OTHER_METRICS


def violations(condition):
    return [figure.id for figure in FIGURES if not condition(figure)]


def test_the_file_has_a_column_for_each_field():
    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        columns = next(csv.reader(file))
    assert columns == [name for name in published.Figure.__struct_fields__ if name != "printed"]


def test_ids_are_unique_and_are_the_paper_and_a_number():
    assert len({figure.id for figure in FIGURES}) == len(FIGURES)
    assert violations(lambda f: re.fullmatch(rf"{f.paper}-\d{{2,3}}", f.id)) == []


def test_each_metric_has_its_unit_and_values_are_within_what_it_can_be():
    assert violations(lambda f: UNITS.get(f.metric) == f.unit) == []
    assert violations(lambda f: f.unit != "percent" or 0 <= f.value <= 100) == []


def test_spreads_say_what_they_are():
    assert violations(lambda f: (f.spread is not None) == (f.spread_kind not in ("", "range"))) == []
    assert violations(lambda f: bool(f.ddof) == (f.spread_kind == "sd")) == []
    assert violations(lambda f: (f.spread_low is None) == (f.spread_high is None)) == []
    assert violations(lambda f: f.spread_low is None or f.spread_low <= f.value <= (f.spread_high or math.inf)) == []


def test_the_best_of_several_seeds_says_of_how_many():
    assert violations(lambda f: f.value_kind != "best" or f.best_of) == []
    assert violations(lambda f: f.best_of is None or (f.value_kind != "mean" and f.best_of <= (f.n or f.best_of))) == []
    assert violations(lambda f: f.value_kind != "single" or f.n in (None, 1)) == []


def test_a_figure_that_is_quoted_is_not_read_in_its_own_paper():
    assert violations(lambda f: not f.quoted_from or f.checked != "primary") == []


def test_a_preset_exists_for_the_network_of_its_figure_and_only_for_plain_training():
    with_preset = [figure for figure in FIGURES if figure.preset]
    assert all(preset(figure.task, figure.family, figure.preset) for figure in with_preset)
    assert all((figure.method, bool(figure.test)) == ("plain", True) for figure in with_preset)
    assert all(figure.split in tasks.find(figure.task).split_schemes() for figure in with_preset)
    assert len(with_preset) >= 13
    # the other kinds, such as bounds and the best of several seeds, are not compared with runs
    assert {figure.value_kind for figure in with_preset} <= {"mean", "median", "single", "approximate"}
    assert {figure.metric for figure in with_preset} <= METRICS.keys() - {DIVERGED}
    assert {figure.unit for figure in with_preset} == {"percent"}


def test_every_paper_has_an_entry_in_the_bibliography_with_authors_and_an_address():
    papers = published.papers()
    assert {figure.paper for figure in FIGURES} == set(papers)
    text = (configs() / "papers.bib").read_text(encoding="utf-8")
    assert len(re.findall(r"^@", text, re.MULTILINE)) == len(papers)
    assert len(re.findall(r"^  url = \{https://", text, re.MULTILINE)) == len(papers)
    for figure in FIGURES:
        entry = text.partition(f"{{{figure.paper},")[2].partition("\n}")[0]
        assert not figure.arxiv or f"eprint = {{{figure.arxiv}}}" in entry
    assert all(paper.authors and all(paper.authors) for paper in papers.values())


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("kim-2021", "Kim 2021"),
        ("dessi-2019", "Dessì & Baroni 2019"),
        ("csordas-2021", "Csordás et al. 2021"),
        ("csordas-2021b", "Csordás et al. 2021b"),
        ("pytorch-seq2seq", "Trevett"),
    ],
)
def test_a_citation_has_the_authors_and_the_year(key, text):
    assert published.papers()[key].short == text


@pytest.mark.parametrize(
    ("id_", "text"),
    [
        ("dessi-2019-02", "69.2 ± 8.2"),
        ("dessi-2019-08", "max 11.66"),
        ("lake-2018-03", "< 1.5"),
        ("lake-2018-04", "59.7 (18.4 to 94)"),
        ("lake-2018-05", "about 5"),
        ("newman-2020-02", "median 58"),
        ("deletang-2022-09", "best of 10: 52.0"),
    ],
)
def test_the_text_of_a_figure_says_what_kind_of_value_it_is(id_, text):
    assert published.figure_of(id_).text == text


def test_a_population_deviation_is_enlarged_before_it_becomes_a_standard_error():
    population = published.figure_of("dessi-2019-02")
    assert (population.ddof, population.n) == ("0", 5)
    assert population.standard_error == pytest.approx(8.2 / 2)  # 8.2 sqrt(5 / 4) / sqrt 5
    unknown = published.figure_of("li-2023-01")
    assert unknown.standard_error == pytest.approx(0.4 / math.sqrt(5))
    assert published.figure_of("lake-2018-09").standard_error is None


def test_an_unknown_paper_or_figure_is_a_config_error_with_the_nearest_name():
    with pytest.raises(UserError, match="did you mean 'lake-2018'"):
        published.figures_of("lake-2019")
    with pytest.raises(UserError, match="did you mean 'dessi-2019-02'"):
        published.figure_of("dessi-2019-002")

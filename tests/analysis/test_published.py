"""The published figures and their bibliography, as data."""

import csv
import math
import re

import pytest

from tfstudy import tasks
from tfstudy.analysis import published
from tfstudy.analysis.claim_files import DIVERGED, METRICS
from tfstudy.config.presets import preset
from tfstudy.config.trees import configs
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


RULES = {
    "ids are the paper and a number": lambda f: re.fullmatch(rf"{f.paper}-\d{{2,3}}", f.id),
    "each metric has its unit": lambda f: UNITS.get(f.metric) == f.unit,
    "a share is between 0 and 100": lambda f: f.unit != "percent" or 0 <= f.value <= 100,
    "spreads say what they are": lambda f: (f.spread is not None) == (f.spread_kind not in ("", "range")),
    "a standard deviation says by what it is divided": lambda f: bool(f.ddof) == (f.spread_kind == "sd"),
    "a range has two ends": lambda f: (f.spread_low is None) == (f.spread_high is None),
    "a range has the value": lambda f: f.spread_low is None or f.spread_low <= f.value <= (f.spread_high or math.inf),
    "the best says of how many": lambda f: f.value_kind != "best" or f.best_of,
    "a mean is not the best": lambda f: f.best_of is None or f.value_kind != "mean",
    "the best is of the seeds": lambda f: f.best_of is None or f.best_of <= (f.n or f.best_of),
    "a single run is one": lambda f: f.value_kind != "single" or f.n in (None, 1),
    "what is quoted was not read in its paper": lambda f: not f.quoted_from or f.checked != "primary",
}


def test_every_figure_follows_the_rules_of_the_file():
    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        columns = next(csv.reader(file))
    assert columns == [name for name in published.Figure.__struct_fields__ if name != "printed"]
    assert len({figure.id for figure in FIGURES}) == len(FIGURES)
    assert [(figure.id, name) for figure in FIGURES for name, holds in RULES.items() if not holds(figure)] == []


def test_a_figure_with_a_preset_can_be_compared_with_runs():
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
    assert all(paper.url.startswith("https://") for paper in papers.values())
    assert all(not figure.arxiv or f"eprint = {{{figure.arxiv}}}" in papers[figure.paper].entry for figure in FIGURES)
    assert all(paper.authors and all(paper.authors) for paper in papers.values())


def test_the_text_of_a_figure_says_what_kind_of_value_it_is():
    texts = {
        "dessi-2019-02": "69.2 ± 8.2", "dessi-2019-08": "max 11.66", "lake-2018-03": "< 1.5",
        "lake-2018-04": "59.7 (18.4 to 94)", "lake-2018-05": "about 5", "newman-2020-02": "median 58",
        "deletang-2022-09": "best of 10: 52.0",
    }  # fmt: skip
    assert {id_: published.figure_of(id_).text for id_ in texts} == texts
    with pytest.raises(UserError, match="did you mean 'dessi-2019-02'"):
        published.figure_of("dessi-2019-002")

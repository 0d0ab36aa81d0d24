"""The published figures and their bibliography as data, and figures beside ours: which runs, and the verdict."""

import csv
import math
import re

import numpy as np
import pytest
import yaml
from scipy import stats

from tests.example_claims import values
from tests.example_records import ENVIRONMENT, edit_result, put, set_environments
from tests.example_tables import rows
from tfstudy import tasks
from tfstudy.analysis.claim_files import DIVERGED, METRICS
from tfstudy.analysis.published import (
    AGREES,
    DIFFERS,
    NOT_RUN,
    OPEN,
    Figure,
    all_figures,
    decide,
    figure_of,
    judge_figure,
    papers,
)
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import configs, flatten, merge
from tfstudy.errors import UserError

FIGURES = all_figures()
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
    assert columns == [name for name in Figure.__struct_fields__ if name != "printed"]
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
    entries = papers()
    assert {figure.paper for figure in FIGURES} == set(entries)
    text = (configs() / "papers.bib").read_text(encoding="utf-8")
    assert len(re.findall(r"^@", text, re.MULTILINE)) == len(entries)
    assert all(paper.url.startswith("https://") for paper in entries.values())
    assert all(not figure.arxiv or f"eprint = {{{figure.arxiv}}}" in entries[figure.paper].entry for figure in FIGURES)
    assert all(paper.authors and all(paper.authors) for paper in entries.values())


def test_the_text_of_a_figure_says_what_kind_of_value_it_is():
    texts = {
        "dessi-2019-02": "69.2 ± 8.2", "dessi-2019-08": "max 11.66", "lake-2018-03": "< 1.5",
        "lake-2018-04": "59.7 (18.4 to 94)", "lake-2018-05": "about 5", "newman-2020-02": "median 58",
        "deletang-2022-09": "best of 10: 52.0",
    }  # fmt: skip
    assert {id_: figure_of(id_).text for id_ in texts} == texts
    with pytest.raises(UserError, match="did you mean 'dessi-2019-02'"):
        figure_of("dessi-2019-002")


LENGTH = "lake-2018-09"  # 13.8 on length, 5 seeds, no spread, the preset lake-2018
NEAR = (0.135, 0.145, 0.14, 0.13)


def runs(study, name, *shares, arch="lstm", split="length", changes=None, **more):
    """Write runs of a preset, with all their settings; `changes` are settings that differ from it."""
    tree = {"task": "scan", "arch": arch, "data": {"split": split}}
    config = resolve(merge(merge(preset("scan", arch, name), tree), changes or {}))
    settings = config.model_dump(mode="json", exclude_defaults=True)
    label = f"{arch}-{name}-{split}-{'-'.join(flatten(changes or {}))}"
    values(study, arch, *shares, name=label, preset=name, split=split, **more)
    for path in study.glob(f"*/*/s*-{label}[0-9]"):
        put(path, "config.yaml", yaml.safe_dump(config.model_dump(mode="json")))
        set_environments(path, ENVIRONMENT | {"settings": settings})
    return study


def judged(study, id_=LENGTH):
    return judge_figure(figure_of(id_), rows(study))


# Which runs a figure is compared with


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        (NEAR, AGREES),
        ((0.235, 0.245, 0.24, 0.23), DIFFERS),
        ((0.02, 0.14, 0.25), OPEN),
        ((0.138, 0.137), OPEN),
    ],
)
def test_a_figure_is_compared_with_runs_of_its_own_settings(tmp_path, shares, verdict):
    found = judged(runs(tmp_path, "lake-2018", *shares))
    assert (found.verdict, found.condition.preset) == (verdict, "lake-2018")
    assert found.difference.mean == pytest.approx(100 * np.mean(shares) - 13.8)


@pytest.mark.parametrize(("name", "changes"), [("default", {}), ("lake-2018", {"train": {"steps": 50000}})])
def test_runs_of_another_preset_or_of_one_changed_setting_neither_agree_nor_differ(tmp_path, name, changes):
    study = runs(tmp_path, name, *NEAR, changes=changes)
    found = judged(study)
    assert (found.verdict, found.condition, found.difference) == (NOT_RUN, None, None)
    assert found.reason == "no run with the preset lake-2018"
    runs(study, "lake-2018", 0.3, 0.31, 0.32)
    assert judged(study).ours.mean == pytest.approx(31)
    edit_result(next(study.glob("*/*/s2-lstm-lake-2018-length-[0-9]")), status="diverged", reason="nan", splits={})
    found = judged(study)
    assert (found.verdict, found.reason[:10]) == (OPEN, "1 diverged")


# The verdict

JUMP = (0.31, 0.58, 0.4, 0.46, 0.61)


def test_a_standard_deviation_makes_welchs_interval(tmp_path):
    found = judged(runs(tmp_path, "dessi-2019", *JUMP, arch="cnn", split="addprim_jump"), "dessi-2019-02")
    ours, theirs = 100 * np.array(JUMP), 8.2 * np.sqrt(5 / 4)  # 69.2 ± 8.2, a population SD of 5 seeds
    test = stats.ttest_ind_from_stats(ours.mean(), ours.std(ddof=1), 5, 69.2, theirs, 5, equal_var=False)
    a, b = ours.var(ddof=1) / 5, theirs**2 / 5
    degrees = (a + b) ** 2 / (a**2 / 4 + b**2 / 4)
    ends = stats.t.interval(0.95, degrees, ours.mean() - 69.2, np.sqrt(a + b))
    assert found.difference[:3] == pytest.approx((ours.mean() - 69.2, *ends))
    assert (test.pvalue < 0.05) == (found.verdict == DIFFERS)


@pytest.mark.parametrize(
    ("id_", "phrase", "spread"),
    [("lake-2018-05", "approximate", 0.1), ("dessi-2019-11", "one run", 0.1), ("lake-2018-09", "no standard error", 0)],
)
def test_a_value_without_a_standard_error_is_taken_as_a_mean_with_our_spread(tmp_path, id_, phrase, spread):
    """The spread of equal results is that of rounding: 1,000 examples, 0.1 points each."""
    figure = figure_of(id_)
    shares = [figure.value / 100 + step * spread / 100 for step in (-1, 0, 1)]
    found = judged(runs(tmp_path, figure.preset, *shares, arch=figure.family, split=figure.split), id_)
    deviation = spread or 0.1 / np.sqrt(12)
    half = deviation * np.sqrt(1 / 3 + 1 / (figure.n or 1)) * stats.t.ppf(0.975, 2)
    assert (found.verdict, found.difference.method) == (AGREES, "t")
    assert found.difference.high - found.difference.mean == pytest.approx(half)
    assert phrase in found.reason


@pytest.mark.parametrize(
    ("excess", "half", "verdict"),
    [(4, 1, AGREES), (4, 5.01, OPEN), (5.5, 6, OPEN), (5.5, 1, DIFFERS), (6.5, 6, DIFFERS)],
)
def test_ours_agrees_within_the_tolerance_and_differs_outside_it_and_the_prediction_interval(excess, half, verdict):
    assert decide(excess, half) == verdict

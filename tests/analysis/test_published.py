"""The published figures and their bibliography as data, and figures beside ours: which runs, and the verdict."""

import csv
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from scipy import stats

from tests.example_claims import claim, values
from tests.example_records import ENVIRONMENT, edit_result, put, set_environments
from tests.example_tables import rows
from tfstudy import tasks
from tfstudy.analysis.claim_files import DIVERGED, METRICS
from tfstudy.analysis.claims import judge
from tfstudy.analysis.frame import read_studies
from tfstudy.analysis.published import (
    NOT_RUN,
    OPEN,
    REFUTED,
    SUPPORTED,
    all_figures,
    figure_of,
    half_width,
    judge_figure,
    place,
)
from tfstudy.analysis.published import papers as bibliography
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import configs, flatten, merge
from tfstudy.errors import UserError
from tfstudy.report.claims import line

FIGURES = all_figures()
RULES = {
    "ids are the paper and a number": lambda f: re.fullmatch(rf"{f.paper}-\d{{2,3}}", f.id),
    "spreads say what they are": lambda f: (f.spread is not None) == (f.spread_kind not in ("", "range")),
    "a standard deviation says by what it is divided": lambda f: bool(f.ddof) == (f.spread_kind == "sd"),
    "a range has two ends": lambda f: (f.spread_low is None) == (f.spread_high is None),
    "a range has the value": lambda f: f.spread_low is None or f.spread_low <= f.value <= (f.spread_high or math.inf),
    "the best says of how many": lambda f: f.value_kind != "best" or f.best_of,
    "a mean is not the best": lambda f: f.best_of is None or f.value_kind != "mean",
    "the best is of the seeds": lambda f: f.best_of is None or f.best_of <= (f.n or f.best_of),
    "a single run is one": lambda f: f.value_kind != "single" or f.n in (None, 1),
}


def test_every_figure_follows_the_rules_of_the_file():
    with (configs() / "published.csv").open(newline="", encoding="utf-8") as file:
        shares = [float(line["value"]) for line in csv.DictReader(file) if line["unit"] == "percent"]
    assert 0 <= min(shares) <= max(shares) <= 100
    assert len({figure.id for figure in FIGURES}) == len(FIGURES)
    assert [(figure.id, name) for figure in FIGURES for name, holds in RULES.items() if not holds(figure)] == []


def test_a_figure_with_a_preset_can_be_compared_with_runs():
    with_preset = [figure for figure in FIGURES if figure.preset]
    assert all(preset(figure.task, figure.family, figure.preset) for figure in with_preset)
    assert {figure.method for figure in with_preset} == {"plain"}
    generated = [figure for figure in with_preset if figure.task != "translation"]
    assert all(figure.test and figure.split in tasks.find(figure.task).split_schemes() for figure in generated)
    assert len(with_preset) >= 13
    # the other kinds, such as bounds and the best of several seeds, are not compared with runs
    assert {figure.value_kind for figure in with_preset} <= {"mean", "median", "single", "approximate"}
    assert {figure.metric for figure in generated} <= METRICS.keys() - {DIVERGED, "bleu", "chrf"}  # in percent
    corpora = {(figure.split, figure.test, figure.metric) for figure in with_preset if figure not in generated}
    assert corpora == {(f"multi30k_{pair}_test2016", "", "bleu") for pair in ("de_en", "en_de_tok")}


def test_every_paper_has_an_entry_in_the_bibliography_with_authors_and_an_address():
    papers = bibliography()
    assert {figure.paper for figure in FIGURES} == set(papers)
    text = (configs() / "papers.bib").read_text(encoding="utf-8")
    assert len(re.findall(r"^@", text, re.MULTILINE)) == len(papers)
    assert all(re.search(r"url = \{https://", paper.entry) for paper in papers.values())
    assert all(not figure.arxiv or f"eprint = {{{figure.arxiv}}}" in papers[figure.paper].entry for figure in FIGURES)
    assert all(re.match(r"\w", paper.short) for paper in papers.values())
    names = ("dessi-2019", "lake-2018", "csordas-2021")
    assert [papers[key].short for key in names] == ["Dessì & Baroni 2019", "Lake & Baroni 2018", "Csordás et al. 2021"]


def test_the_text_of_a_figure_says_what_kind_of_value_it_is():
    texts = {
        "dessi-2019-02": "69.2 ± 8.2", "dessi-2019-08": "max 11.66", "lake-2018-03": "< 1.5",
        "lake-2018-04": "59.7 (18.4 to 94)", "lake-2018-05": "about 5", "newman-2020-02": "median 58",
        "deletang-2022-09": "best of 10: 52.0",
    }  # fmt: skip
    assert {id_: figure_of(id_).text for id_ in texts} == texts
    with pytest.raises(UserError, match="did you mean 'dessi-2019-02'"):
        figure_of("dessi-2019-002")


def test_figures_on_files_are_beside_runs_on_a_folder_of_that_name():
    known = {(figure.task, figure.split, figure.test) for figure in FIGURES}

    def found(task, folder, test):
        return place(SimpleNamespace(task=task, split="given", corpus=folder, test=test)) in known

    assert found("translation", "multi30k-de-en", "test2016")
    assert found("translation", "multi30k-en-de-tok", "test2016")
    assert not found("translation", "multi30k-de-en", "test")
    assert not found("translation", "captions", "test2016")
    assert found("pairs", "cogs-variable-free", "gen")
    assert not found("pairs", "my-cogs", "gen")


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
    return SimpleNamespace(**judge_figure(figure_of(id_), rows(study)))


@pytest.mark.parametrize(
    ("shares", "verdict", "reason"),
    [
        (NEAR, SUPPORTED, "within 5 points"),
        ((0.235, 0.245, 0.24, 0.23), REFUTED, "higher than a replication"),
        ((0.02, 0.14, 0.25), OPEN, ""),
        ((0.138, 0.137), OPEN, "2 of at least 3 seeds"),
    ],
)
def test_a_figure_is_compared_with_runs_of_its_own_settings(tmp_path, shares, verdict, reason):
    found = judged(runs(tmp_path, "lake-2018", *shares))
    assert (found.verdict, found.conditions[0].preset) == (verdict, "lake-2018")
    assert found.reason == "; ".join(filter(None, [reason, "theirs has no standard error"]))
    assert found.mean == pytest.approx(100 * np.mean(shares))


@pytest.mark.parametrize(("name", "changes"), [("default", {}), ("lake-2018", {"train": {"steps": 50000}})])
def test_runs_of_another_preset_or_of_one_changed_setting_neither_agree_nor_differ(tmp_path, name, changes):
    study = runs(tmp_path, name, *NEAR, changes=changes)
    found = judged(study)
    assert vars(found) == {"verdict": NOT_RUN, "reason": "no run with the preset lake-2018"}
    runs(study, "lake-2018", 0.3, 0.31, 0.32)
    assert judged(study).mean == pytest.approx(31)
    edit_result(next(study.glob("*/*/s2-lstm-lake-2018-length-[0-9]")), status="diverged", reason="nan", splits={})
    found = judged(study)
    assert (found.verdict, found.reason[:10]) == (OPEN, "1 diverged")


def test_of_studies_with_the_same_settings_a_statement_judges_the_one_that_it_names(tmp_path):
    runs(tmp_path / "ours", "lake-2018", *NEAR)
    runs(tmp_path / "theirs", "lake-2018", 0.3, 0.31, 0.32)
    named = [{"published": LENGTH, "study": study} for study in ("ours", "theirs", "third")]
    found = list(judge([claim(*named)], read_studies(tmp_path)).itertuples())
    assert [row.verdict for row in found] == [SUPPORTED, REFUTED, NOT_RUN]
    assert line(found[1]).startswith("on scan length, study theirs, preset lake-2018: the LSTM scores 31.0")


def test_the_prediction_interval_is_welchs_with_a_standard_deviation_and_students_without():
    ours, theirs = np.array((31.0, 58, 40, 46, 61)), 8.2 * np.sqrt(5 / 4)  # 69.2 ± 8.2, a population SD of 5 seeds
    a, b = ours.var(ddof=1) / 5, theirs**2 / 5
    degrees = (a + b) ** 2 / (a**2 / 4 + b**2 / 4)
    expected = stats.t.ppf(0.975, degrees) * np.sqrt(a + b)
    error = figure_of("dessi-2019-02").standard_error
    assert half_width(ours.var(ddof=1), 5, error, 5) == pytest.approx(expected)
    expected = np.sqrt(4.0 * (1 / 3 + 1 / 5)) * stats.t.ppf(0.975, 2)
    assert half_width(4.0, 3, seeds=5) == pytest.approx(expected)
    assert half_width(4.0, 1) == math.inf


@pytest.mark.parametrize(
    ("id_", "phrase"), [("lake-2018-05", "approximate"), ("dessi-2019-11", "one run"), (LENGTH, "no standard error")]
)
def test_a_value_without_a_standard_error_is_taken_as_a_mean_and_the_reason_says_so(tmp_path, id_, phrase):
    figure = figure_of(id_)
    study = runs(tmp_path, figure.preset, *[figure.value / 100] * 3, arch=figure.family, split=figure.split)
    found = judged(study, id_)
    assert found.verdict == SUPPORTED
    assert phrase in found.reason


@pytest.mark.parametrize(
    ("excess", "half", "verdict"),
    [(4, 1, SUPPORTED), (4, 5.01, OPEN), (5.5, 6, OPEN), (5.5, 1, REFUTED), (6.5, 6, REFUTED)],
)
def test_ours_agrees_within_the_tolerance_and_differs_outside_it_and_the_prediction_interval(
    tmp_path, monkeypatch, excess, half, verdict
):
    monkeypatch.setattr("tfstudy.analysis.published.half_width", lambda *_: half)
    assert judged(runs(tmp_path, "lake-2018", *[(13.8 + excess) / 100] * 3)).verdict == verdict

"""Plots of test sets and of differences: our results, published figures and trivial systems, intervals and tests."""

import msgspec
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from tests.example_plots import colour, drawn, legend, runs, texts
from tests.example_records import result, write
from tests.example_tables import compared, rows
from tfstudy.analysis.published import figure_of
from tfstudy.report.plots.series import COLOURS
from tfstudy.report.plots.split import TRIVIAL_COLOUR, Mark, marks_beside

WITH = {"copy": {"bleu": 0.01}, "word by word": {"bleu": 0.125, "chrf": 0.4}}
CLOSE = {  # of four networks, some of which differ
    "cnn": (0.1, 0.13, 0.2, 0.16, 0.12),
    "gru": (0.17, 0.21, 0.3, 0.24, 0.18),
    "lstm": (0.26, 0.2, 0.33, 0.3, 0.24),
    "transformer": (0.6, 0.55, 0.62, 0.58, 0.64),
}


def black_marks(axes):
    """Return the position and the face of each published figure that is drawn."""
    lines = [line for line in axes.lines if line.get_marker() not in ("", "None", None) and colour(line) == "#000000"]
    return [(line.get_xdata()[0], line.get_markerfacecolor()) for line in lines]


def figure(**columns):
    """Return a published figure with these columns."""
    return msgspec.structs.replace(figure_of("dessi-2019-02"), **columns)


def published(monkeypatch, *figures):
    """Put these figures in the place of the file's."""
    monkeypatch.setattr("tfstudy.analysis.published.published", lambda *_: list(figures))


def test_split_shows_the_mean_its_interval_the_seeds_and_published_figures(tmp_path):
    study = write(tmp_path, *runs("lstm", 0.2, 0.4, 0.6))
    [condition] = rows(study)
    [axes] = drawn(study, "split").axes
    assert (13.8, "white") in black_marks(axes)  # under other settings
    [ours] = [list(line.get_xdata()) for line in axes.lines if colour(line) == COLOURS["lstm"]]
    assert ours == [condition.mean]
    whisker, seeds = axes.collections
    assert [x for x, _ in whisker.get_segments()[0]] == [condition.low, condition.high]
    assert [round(x, 6) for x, _ in seeds.get_offsets()] == [20, 40, 60]


@pytest.mark.parametrize("same", [True, False])
def test_a_figure_is_beside_the_runs_of_its_own_settings_if_there_are_any(tmp_path, monkeypatch, same):
    published(monkeypatch, figure())
    monkeypatch.setattr("tfstudy.analysis.published.differing", lambda _: set() if same else {"model.dim"})
    paper = runs("cnn", 0.4, 0.5, split="addprim_jump", preset="dessi-2019", experiment="paper")
    ours = runs("cnn", 0.1, 0.2, split="addprim_jump", experiment="ours")
    study = write(tmp_path, *paper, *ours)
    shown = rows(study)
    by_row = marks_beside(shown)
    signs = {condition.preset: [mark.sign for mark in by_row[condition.key]] for condition in shown}
    expected = {"dessi-2019": ["same"], "default": []} if same else {"dessi-2019": ["other"], "default": ["other"]}
    assert signs == expected
    faces = [face for _, face in black_marks(drawn(study, "split").axes[0])]
    assert faces == (["black"] if same else ["white", "white"])


@pytest.mark.parametrize(
    ("columns", "ends"),
    [
        ({"value": 50.0, "spread": 10.0, "spread_kind": "sd"}, (40, 60)),
        ({"value": 5.0, "spread": 10.0, "spread_kind": "unknown"}, (0, 15)),
        ({"value": 50.0, "spread": None, "spread_kind": "range", "spread_low": 1.0, "spread_high": 70.0}, (1, 70)),
        ({"value": 50.0, "spread": None, "spread_kind": "", "spread_low": None, "spread_high": None}, None),
    ],
)
def test_the_bar_of_a_published_figure_is_its_spread(columns, ends):
    assert Mark(figure(**columns), False, 1).ends == ends


# Trivial systems


def translation(seed, bleu, baselines):
    """A run of the translation task, with these trivial systems."""
    one = result(seed, task="translation", split="embedded")
    test = one["splits"]["test"]
    test["metrics"] |= {"bleu": bleu}
    return one | {"splits": {"test": test | {"baselines": baselines}}}


def test_trivial_systems_are_lines_through_the_rows_of_their_test_set(tmp_path):
    for baselines, shown in ((WITH, [(1.0, ":"), (12.5, "--")]), ({}, [])):
        study = write(tmp_path / str(len(shown)), *(translation(seed, 0.17, baselines) for seed in range(3)))
        figure = drawn(study, "split")
        [axes] = figure.axes
        drawn_lines = [one for one in axes.collections if to_hex(one.get_edgecolor()[0]) == to_hex(TRIVIAL_COLOUR)]
        assert [one.get_segments()[0][0][0] for one in drawn_lines] == [value for value, _ in shown]
        for one, (_, style) in zip(drawn_lines, shown, strict=True):
            assert (
                one.get_linestyle()
                == LineCollection([], linestyles=style, linewidths=one.get_linewidth()).get_linestyle()
            )
        names = [text for text in legend(figure) if "trivial" in text]
        assert names == [f"trivial system: {name}" for name in baselines]
        assert axes.get_xlim() == pytest.approx((-0.6, 20.6))


# Differences


def drawn_intervals(figure):
    """Return the ends of each interval and whether its mark is filled, from top to bottom."""
    found = []
    for axes in figure.axes:
        intervals, marks = axes.collections
        filled = [to_hex(face) != "#ffffff" for face in marks.get_facecolors()]
        ends = [(low, high) for (low, _), (high, _) in intervals.get_segments()]
        found += [(*own, one) for own, one in zip(ends, filled, strict=True)]
    return found


def test_significant_comparisons_are_filled_and_their_intervals_exclude_0(tmp_path):
    study = write(tmp_path, *(one for arch, shares in CLOSE.items() for one in runs(arch, *shares)))
    comparisons = [pair.row for pair in compared(study)]
    figure = drawn(study, "differences")
    intervals = drawn_intervals(figure)
    assert [is_filled for *_, is_filled in intervals] == [comparison.significant for comparison in comparisons]
    assert {is_filled for *_, is_filled in intervals} == {True, False}
    assert all(low > 0 or high < 0 for low, high, is_filled in intervals if is_filled)
    assert any("p adjusted for 6 comparisons" in text for text in texts(figure))


def test_the_intervals_of_some_split_schemes_are_those_of_the_whole_study(tmp_path):
    made = [one for split in ("length", "simple") for a, x in CLOSE.items() for one in runs(a, *x, split=split)]
    study = write(tmp_path, *made)
    every = drawn_intervals(drawn(study, "differences"))
    figure = drawn(study, "differences", split="simple")
    assert drawn_intervals(figure) == every[6:]
    assert any("adjusted for 12 comparisons" in text for text in texts(figure))

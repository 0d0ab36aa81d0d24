"""Plots of test sets: our results, and the published figures beside them."""

import msgspec
import pytest

from tests.example_plots import colour, drawn, legend, runs, texts
from tests.example_records import write
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.comparisons import mean_interval
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.published import figure_of
from tfstudy.report.plots.published_marks import Mark, marks_beside
from tfstudy.report.plots.series_style import COLOURS

METRICS = {"scan": "exact_match"}


def black_marks(axes):
    """Return the position and the face of each published figure that is drawn."""
    lines = [line for line in axes.lines if line.get_marker() not in ("", "None", None) and colour(line) == "#000000"]
    return [(line.get_xdata()[0], line.get_markerfacecolor()) for line in lines]


def figure(**columns):
    """Return a published figure with these columns."""
    return msgspec.structs.replace(figure_of("dessi-2019-02"), **columns)


def published(monkeypatch, *figures):
    """Put these figures in the place of the file's."""
    monkeypatch.setattr("tfstudy.analysis.published._of_split", lambda *_: figures)


def test_split_shows_the_mean_its_interval_the_seeds_and_published_figures(tmp_path):
    study = write(tmp_path, *runs("lstm", 0.2, 0.4, 0.6))
    [condition] = conditions(read_study(study).runs)
    [axes] = drawn(study, "split").axes
    assert (13.8, "white") in black_marks(axes)  # under other settings
    [ours] = [list(line.get_xdata()) for line in axes.lines if colour(line) == COLOURS["lstm"]]
    expected = mean_interval(condition, "exact_match")
    assert ours == [expected.mean]
    whisker, seeds = axes.collections
    assert [x for x, _ in whisker.get_segments()[0]] == [expected.low, expected.high]
    assert [round(x, 6) for x, _ in seeds.get_offsets()] == [20, 40, 60]


@pytest.mark.parametrize(
    ("arch", "shown", "others"),
    [("lstm", [13.8], [20.8]), ("cnn", [], [11.66])],  # 20.8 is a GRU's, 11.66 the maximum of 580 settings
)
def test_a_maximum_and_the_figures_of_another_network_are_not_drawn(tmp_path, arch, shown, others):
    [axes] = drawn(write(tmp_path, *runs(arch, 0.1, 0.2)), "split").axes
    positions = [x for x, _ in black_marks(axes)]
    assert positions
    assert set(shown) <= set(positions)
    assert not set(others) & set(positions)


def test_an_approximate_figure_has_its_own_sign(tmp_path):
    study = write(tmp_path, *runs("cnn", 0.9, 0.95, split="addprim_turn_left"))
    [mark] = marks_beside(conditions(read_study(study).runs), METRICS).popitem()[1]
    one = drawn(study, "split")
    assert (mark.sign, mark.figure.value) == ("approximate", 100)
    assert "published, approximate" in legend(one)
    assert "about 100 [1]" in texts(one)


@pytest.mark.parametrize("same", [True, False])
def test_a_figure_is_beside_the_runs_of_its_own_settings_if_there_are_any(tmp_path, monkeypatch, same):
    published(monkeypatch, figure())
    monkeypatch.setattr("tfstudy.analysis.counterparts.differing_settings", lambda _: set() if same else {"model.dim"})
    paper = runs("cnn", 0.4, 0.5, split="addprim_jump", preset="dessi-2019", experiment="paper")
    ours = runs("cnn", 0.1, 0.2, split="addprim_jump", experiment="ours")
    study = write(tmp_path, *paper, *ours)
    shown = conditions(read_study(study).runs)
    by_row = marks_beside(shown, METRICS)
    signs = {condition.preset: [mark.sign for mark in by_row[id(condition)]] for condition in shown}
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


def test_the_picture_names_the_source_of_every_figure_and_the_legend_every_sign(tmp_path, monkeypatch):
    other = {"paper": "lake-2018", "preset": ""}
    published(
        monkeypatch, figure(printed="70.0", preset=""), figure(id="b", value_kind="upper_bound", value=2.0, **other)
    )
    one = drawn(write(tmp_path, *runs("cnn", 0.4, 0.5, split="addprim_jump")), "split")
    [note] = [text for text in texts(one) if "Published:" in text]
    note = note.replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")
    assert "[1] Dessì & Baroni 2019" in note
    assert "[2] Lake & Baroni 2018" in note
    assert "published, other settings" in legend(one)
    assert "published upper bound" in legend(one)
    assert "published, approximate" not in legend(one)
    assert any("standard deviation" in text for text in legend(one))
    assert any("70" in text and "[1]" in text for text in texts(one))


def test_without_a_published_figure_the_plot_says_nothing_of_them(tmp_path):
    one = drawn(write(tmp_path, *runs("cnn", 0.4, 0.5, split="unpublished")), "split")
    assert not [text for text in texts(one) if "published" in text.replace("unpublished", "").lower()]

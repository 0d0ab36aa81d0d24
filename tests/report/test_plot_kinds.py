"""Kinds of plots: the numbers that they draw."""

import json
import math

import pytest
from matplotlib.colors import to_hex

from tests.example_plots import PART, colour, curves, drawn, folder, intervals, plotted, predict, runs, tagged, texts
from tests.example_records import put, result, set_environments, write
from tests.example_tables import compared, rows
from tfstudy.analysis.frame import read_study
from tfstudy.analysis.published import figure_of
from tfstudy.report.plots import all_plots
from tfstudy.report.plots.layout import COLOURS
from tfstudy.report.plots.rows import TRIVIAL_COLOUR

LSTM, CNN, BLACK = COLOURS["lstm"], COLOURS["cnn"], "#000000"

# split


def published(axes):
    """Return the position and the face of each published figure that is drawn."""
    return [
        (line.get_xdata()[0], line.get_markerfacecolor())
        for line in axes.lines
        if line.get_marker() == "D" and colour(line) == BLACK
    ]


def test_split_shows_the_mean_its_interval_the_seeds_and_published_figures(tmp_path):
    study = write(tmp_path, *runs("lstm", 0.2, 0.4, 0.6), runs("cnn", 0.0)[0] | {"status": "diverged"})
    condition, [axes] = next(row for row in rows(study) if row.arch == "lstm"), drawn(study, "split").axes
    assert (13.8, "white") in published(axes), "under other settings"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["lstm"], "a CNN that diverged has no result"
    assert [x for hue, _, x, _ in curves(axes) if hue == LSTM] == [[condition.mean]]
    assert intervals(axes) == [(LSTM, condition.low, condition.high)]
    assert [round(x, 6) for x, _ in axes.collections[-1].get_offsets()] == [20, 40, 60]


@pytest.mark.parametrize("same", [True, False])
def test_a_figure_is_beside_the_runs_of_its_own_settings_if_there_are_any(tmp_path, monkeypatch, same):
    figures = (figure_of("dessi-2019-02"),)
    monkeypatch.setattr("tfstudy.analysis.published.all_figures", lambda: figures)
    monkeypatch.setattr("tfstudy.analysis.published.differing", lambda _: set() if same else {"model.dim"})
    paper = runs("cnn", 0.4, 0.5, split="addprim_jump", preset="dessi-2019", experiment="paper")
    plot = plotted(write(tmp_path, *paper, *runs("cnn", 0.1, 0.2, split="addprim_jump", experiment="ours")), "split")
    assert [face for _, face in published(plot.figure.axes[0])] == (["black"] if same else ["white", "white"])
    assert ("with the same settings" in plot.alt) is same


def test_trivial_systems_are_lines_through_the_rows_of_their_test_set(tmp_path):
    made = [result(seed, task="translation", split="embedded") for seed in range(3)]
    for one in made:
        one["splits"]["test"]["metrics"] |= {"bleu": 0.17}
        one["splits"]["test"]["baselines"] = {"copy": {"bleu": 0.01}, "word by word": {"bleu": 0.125, "chrf": 0.4}}
    figure = drawn(write(tmp_path, *made), "split")
    [axes] = figure.axes
    assert [x for hue, x, _ in intervals(axes) if hue == to_hex(TRIVIAL_COLOUR)] == [1.0, 12.5]
    assert {"trivial system: copy", "trivial system: word by word"} <= {*texts(figure)}
    assert axes.get_xlim() == pytest.approx((-0.6, 20.6)), "BLEU rarely comes near 100"


# differences

CLOSE = {  # of four networks, some of which differ
    "cnn": (0.1, 0.13, 0.2, 0.16, 0.12),
    "gru": (0.17, 0.21, 0.3, 0.24, 0.18),
    "lstm": (0.26, 0.2, 0.33, 0.3, 0.24),
    "transformer": (0.6, 0.55, 0.62, 0.58, 0.64),
}


def drawn_differences(figure):
    """Return the ends of each interval and whether its mark is filled, from top to bottom."""
    marks = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "o"]
    ends = [(low, high) for axes in figure.axes for _, low, high in intervals(axes)]
    return [(*own, line.get_markerfacecolor() != "white") for own, line in zip(ends, marks, strict=True)]


def test_significant_comparisons_of_the_whole_study_are_filled_and_their_intervals_exclude_0(tmp_path):
    splits = {"copying": "copy", "scan": "length"}
    made = [one for t, s in splits.items() for a, x in CLOSE.items() for one in runs(a, *x, task=t, split=s)]
    study = write(tmp_path, *made)
    every = drawn_differences(drawn(study, "differences"))
    assert [filled for *_, filled in every] == [pair.significant for pair in compared(study)]
    assert {filled for *_, filled in every} == {True, False}
    assert all(low > 0 or high < 0 for low, high, filled in every if filled)
    figure = drawn(study, "differences", tasks="scan")
    assert drawn_differences(figure) == every[6:], "q is adjusted for all comparisons, whichever are shown"
    assert {"significant (q < .05)", "open"} <= {*texts(figure)}
    better = [hue for axes in figure.axes for hue, *_ in intervals(axes)]
    assert better.count(COLOURS["transformer"]) == 3, "the colour is that of the condition with the higher mean"
    assert any("adjusted for 12 comparisons" in text for text in texts(figure))


# length


def test_length_has_bands_over_seeds_and_shades_what_was_trained_on(tmp_path):
    validation = PART | {"role": "validation", "slices": {"length": {"1": PART, "2": PART}}}

    def with_lengths(made, *shares):
        few = {str(len(shares) + 1): {"n": 3, "exact_match": 0.5}}
        curve = {str(length): {"n": 50, "exact_match": x} for length, x in enumerate(shares, 1)} | few
        lengths = {"L90": 2, "L50": 2, "longest_tested": 3, "exact_match": curve}
        return made | {"lengths": lengths, "splits": made["splits"] | {"validation": validation}}

    first, second = runs("lstm", 0.5, 0.5)
    made = [with_lengths(first, 1.0, 0.9, 0.3), with_lengths(second, 1.0, 0.7, 0.1)]
    [axes] = drawn(write(tmp_path, *made, with_lengths(runs("cnn", 0.5)[0], 1.0)), "length").axes
    assert (LSTM, 1.4, [1, 2, 3], [100, 80, 20]) in curves(axes), "length 4 has too few examples"
    assert (CNN, 1.4, [1], [100]) in curves(axes)
    [shade] = axes.patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (0.5, 2.5)
    [band] = axes.collections
    limits = band.get_datalim(axes.transData)
    assert (to_hex(band.get_facecolor()[0]).upper(), limits.y0, limits.y1) == (LSTM, 0, 100), "one seed has no interval"


def test_length_uses_the_tag_length_where_a_task_records_no_accuracy_by_length(tmp_path):
    tests = {"test": {"1": 1.0, "2": 1.0}, "test_long": {"2": 0.5, "10": 0.0}}
    study = write(tmp_path, tagged(result(0), tests))
    plot = plotted(study, "length")
    assert [one[2:] for one in curves(plot.figure.axes[0])] == [([1, 2, 10], [100, 75, 0])], "both test sets together"
    assert "length: lstm 2" in plot.alt
    assert [one.name for one in all_plots(read_study(study))] == ["split", "length"], "instead of slices by length"


# learning


def test_learning_curves_are_a_line_for_each_seed_and_one_for_the_geometric_mean(tmp_path):
    made = [*runs("lstm", 0.5, 0.6), *runs("cnn", 0.5)]
    study = write(tmp_path, *made)
    for one, losses in zip(made, ([1.0, 0.01], [1.0, 0.0001], [math.nan, 0.5]), strict=True):
        lines = [f"{50 * step},train_loss,{x}" for step, x in enumerate(losses, 1)]
        put(folder(study, one), "metrics.csv", "\n".join(["step,metric,value", "50,gradient_norm,3", *lines]) + "\n")
    [axes] = drawn(study, "learning").axes
    assert axes.get_yscale() == "log"
    assert [(hue, own) for hue, width, _, own in curves(axes) if width < 1] == [(LSTM, [1, 0.01]), (LSTM, [1, 0.0001])]
    assert [(hue, own) for hue, width, _, own in curves(axes) if width > 1] == [(LSTM, [1, 0.001]), (CNN, [0.5])]
    assert [one.get_marker() for one in axes.lines][-1] == ".", "a line of one point would not be seen"


# errors, slices


def test_kinds_of_errors_are_mean_shares_with_what_is_correct_of_each_seed(tmp_path):
    made = runs("lstm", 0.5, 0.5)
    study = write(tmp_path, *made, *runs("cnn", 0.5))
    predict(study, made[0], *[("x", "a b", "a b")] * 3, ("y", "a b", "a"))  # 4 predictions
    predict(study, made[1], ("x", "a b", "a b"), ("y", "a b", "a b c"))  # 2 predictions
    one = plotted(study, "errors")
    [axes] = one.figure.axes
    assert [bar.get_width() for bar in axes.patches] == [62.5, 12.5, 25], "correct, stops early, runs on"
    assert [bar.get_x() for bar in axes.patches] == [0, 62.5, 75]
    assert [x for x, _ in axes.collections[0].get_offsets()] == [75, 50]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["lstm"], "the CNN's predictions are not kept"
    assert "lstm 62.5 % correct (seeds 50.0 to 75.0), runs on 25.0 %" in one.alt


@pytest.mark.parametrize("values", [("10", "2"), ("near", "far")])
def test_slices_are_means_with_intervals_by_value_and_condition(tmp_path, values):
    lstm, cnn = ({"test": dict(zip(values, shares, strict=True))} for shares in ((0.1, 0.2), (0.3, 0.4)))
    study = write(tmp_path, tagged(runs("lstm", 0.5)[0], lstm, "tag"), tagged(runs("cnn", 0.5)[0], cnn, "tag"))
    [axes] = drawn(study, "slices", tag="tag").axes
    points = {(hue, round(x), round(level, 6)) for hue, _, [x], [level] in curves(axes)}
    assert {(hue, x) for hue, x, _ in points} == {(LSTM, 10), (LSTM, 20), (CNN, 30), (CNN, 40)}
    second, first = axes.get_yticks()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [values[1], values[0]]
    assert all(abs(level - (first if x in (10, 30) else second)) < 0.05 for _, x, level in points)


# data, settings


def configured(study, **configs):
    """Writes the config of each experiment."""
    for path in study.glob("*/*/*/config.yaml"):
        tree = json.loads(path.read_text())
        put(path.parent, path.name, json.dumps({"seed": tree["seed"]} | configs[tree["model"]["dim"]]))
    return study


def test_more_data_are_fitted_on_a_logarithmic_axis(tmp_path):
    made = [
        one for n in (1, 2, 3) for one in runs("lstm", n / 10, n / 10, experiment=f"e{n}", train_examples=10 ** (n + 1))
    ]
    study = write(tmp_path, *made, *runs("cnn", 0.9, experiment="e4"))
    one = plotted(configured(study, **{f"e{n}": {"data": {"train_pairs": n}} for n in (1, 2, 3, 4)}), "data")
    assert "lstm +10.0 [+10.0, +10.0]" in one.alt
    [axes] = one.figure.axes
    assert axes.get_xscale() == "log"
    points, means = (own[2:] for own in curves(axes) if own[0] == LSTM)
    assert sorted(points[1]) == [10, 10, 20, 20, 30, 30]
    assert means == ([100, 1000, 10_000], [10, 20, 30])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100", "1k", "10k"]


def test_a_setting_that_does_not_follow_from_the_size_separates_series(tmp_path):
    sizes = {1: 1000, 2: 10_000, 3: 10_000}
    made = [one for n in sizes for one in runs("lstm", n / 10, experiment=f"e{n}", train_examples=sizes[n])]
    found = {"e1": (64, 0.1), "e2": (128, 0.3), "e3": (128, 0.1)}
    study = write(tmp_path, *made)
    configured(study, **{e: {"data": {"train_pairs": n, "noise": x}} for e, (n, x) in found.items()})
    for path in study.glob("*/*/s*"):  # so that a setting is known not to be its preset's
        set_environments(path, {"settings": json.loads((path / "config.yaml").read_text())})
    alt = plotted(study, "data").alt
    assert "lstm noise=0.1 +20.0" in alt
    assert "noise=0.3" not in alt, "it has one size"


def test_settings_are_a_heat_map_of_the_means_over_seeds_by_test_set(tmp_path):
    parts = {name: result(0, share)["splits"]["test"] for name, share in {"test": 1.0, "test_long": 0.25}.items()}
    made = [one | {"splits": parts} for one in runs("lstm", 0.5, 0.5, experiment="a")]
    study = write(tmp_path, *made, *runs("lstm", 0.5, experiment="b"))
    one = plotted(configured(study, a={"model": {"dim": 128}}, b={"model": {"dim": 64}}), "settings")
    [axes] = one.figure.axes
    assert axes.collections[0].get_array().filled(-1).tolist() == [[50, -1], [100, 25]]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["dim=64", "dim=128"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["length", "length long"]
    assert sorted(text.get_text() for text in axes.texts) == ["100", "25", "50"]
    assert "dim=128: length 100.0, length long 25.0" in one.alt


@pytest.mark.parametrize("archs", [["lstm"], ["lstm", "cnn"]])
def test_many_test_sets_are_in_one_heat_map_without_other_settings_too(tmp_path, archs):
    parts = {f"test_{n}": result(0, n / 10)["splits"]["test"] for n in range(9)}
    study = write(tmp_path, *(one | {"splits": parts} for arch in archs for one in runs(arch, 0.5)))
    [axes] = drawn(study, "settings").axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == archs
    assert axes.collections[0].get_array().tolist() == [pytest.approx([*range(0, 90, 10)])] * len(archs)

"""Kinds of plots: the numbers that they draw."""

import json
import math
from itertools import groupby

import msgspec
import pytest
from matplotlib.colors import to_hex

from tests.example_plots import PART, colour, drawn, folder, legend, predict, runs, tagged, texts
from tests.example_records import put, result, set_environments, write
from tests.example_tables import compared, rows
from tfstudy.analysis.frame import read_study
from tfstudy.analysis.published import figure_of
from tfstudy.report.plots import all_plots, make_plot
from tfstudy.report.plots.series import COLOURS
from tfstudy.report.plots.split import TRIVIAL_COLOUR, quotations, spread

VALIDATION = PART | {"role": "validation", "slices": {"length": {"1": PART, "2": PART}}}

# split


def black_marks(axes):
    """Return the position and the face of each published figure that is drawn."""
    lines = [line for line in axes.lines if line.get_marker() not in ("", "None", None) and colour(line) == "#000000"]
    return [(line.get_xdata()[0], line.get_markerfacecolor()) for line in lines]


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
    figures = [figure_of("dessi-2019-02")]
    monkeypatch.setattr("tfstudy.analysis.published.published", lambda *_: figures)
    monkeypatch.setattr("tfstudy.analysis.published.differing", lambda _: set() if same else {"model.dim"})
    paper = runs("cnn", 0.4, 0.5, split="addprim_jump", preset="dessi-2019", experiment="paper")
    ours = runs("cnn", 0.1, 0.2, split="addprim_jump", experiment="ours")
    study = write(tmp_path, *paper, *ours)
    shown = rows(study)
    beside = quotations(shown)
    assert {c.preset: len(beside[c.key]) for c in shown} == {"dessi-2019": 1, "default": int(not same)}
    faces = [face for _, face in black_marks(drawn(study, "split").axes[0])]
    assert faces == (["black"] if same else ["white", "white"])


@pytest.mark.parametrize(
    ("columns", "ends"),
    [
        ({"value": 50.0, "spread": 10.0}, (40, 60)),
        ({"value": 5.0, "spread": 10.0}, (0, 15)),
        ({"value": 50.0, "spread": None, "spread_low": 1.0, "spread_high": 70.0}, (1, 70)),
        ({"value": 50.0, "spread": None, "spread_low": None, "spread_high": None}, None),
    ],
)
def test_the_bar_of_a_published_figure_is_its_spread(columns, ends):
    assert spread(msgspec.structs.replace(figure_of("dessi-2019-02"), **columns)) == ends


def test_trivial_systems_are_lines_through_the_rows_of_their_test_set(tmp_path):
    made = [result(seed, task="translation", split="embedded") for seed in range(3)]
    for one in made:
        one["splits"]["test"]["metrics"] |= {"bleu": 0.17}
        one["splits"]["test"]["baselines"] = {"copy": {"bleu": 0.01}, "word by word": {"bleu": 0.125, "chrf": 0.4}}
    figure = drawn(write(tmp_path, *made), "split")
    [axes] = figure.axes
    lines = [one for one in axes.collections if to_hex(one.get_edgecolor()[0]) == to_hex(TRIVIAL_COLOUR)]
    assert [one.get_segments()[0][0][0] for one in lines] == [1.0, 12.5]
    assert lines[0].get_linestyle() != lines[1].get_linestyle()
    assert {"trivial system: copy", "trivial system: word by word"} <= {*legend(figure)}
    assert axes.get_xlim() == pytest.approx((-0.6, 20.6))


# differences

CLOSE = {  # of four networks, some of which differ
    "cnn": (0.1, 0.13, 0.2, 0.16, 0.12),
    "gru": (0.17, 0.21, 0.3, 0.24, 0.18),
    "lstm": (0.26, 0.2, 0.33, 0.3, 0.24),
    "transformer": (0.6, 0.55, 0.62, 0.58, 0.64),
}


def drawn_intervals(figure):
    """Return the ends of each interval and whether its mark is filled, from top to bottom."""
    found = []
    for axes in figure.axes:
        intervals, marks = axes.collections
        filled = [to_hex(face) != "#ffffff" for face in marks.get_facecolors()]
        ends = [(low, high) for (low, _), (high, _) in intervals.get_segments()]
        found += [(*own, one) for own, one in zip(ends, filled, strict=True)]
    return found


def test_significant_comparisons_of_the_whole_study_are_filled_and_their_intervals_exclude_0(tmp_path):
    made = [one for split in ("length", "simple") for a, x in CLOSE.items() for one in runs(a, *x, split=split)]
    study = write(tmp_path, *made)
    every = drawn_intervals(drawn(study, "differences"))
    assert [filled for *_, filled in every] == [pair.row.significant for pair in compared(study)]
    assert {filled for *_, filled in every} == {True, False}
    assert all(low > 0 or high < 0 for low, high, filled in every if filled)
    figure = drawn(study, "differences", split="simple")
    assert drawn_intervals(figure) == every[6:], "q is adjusted for all comparisons, whichever are shown"
    assert any("adjusted for 12 comparisons" in text for text in texts(figure))


# length


def with_lengths(made, **curve):
    lengths = {"L90": 2, "L50": 2, "longest_tested": 3, "exact_match": curve}
    return made | {"lengths": lengths, "splits": made["splits"] | {"validation": VALIDATION}}


def test_length_has_bands_over_seeds_and_shades_what_was_trained_on(tmp_path):
    shares = [(1.0, 0.9, 0.3), (1.0, 0.7, 0.1)]
    made = [
        with_lengths(one, **{str(n): {"n": 50 if n < 4 else 3, "exact_match": x} for n, x in enumerate((*own, 0.5), 1)})
        for one, own in zip(runs("lstm", 0.5, 0.5), shares, strict=True)
    ]
    single = with_lengths(runs("cnn", 0.5)[0], **{"1": {"n": 50, "exact_match": 1.0}})
    [axes] = drawn(write(tmp_path, *made, single), "length").axes
    curves = {colour(line): (list(line.get_xdata()), [round(y, 6) for y in line.get_ydata()]) for line in axes.lines}
    assert curves[COLOURS["lstm"]] == ([1, 2, 3], [100, 80, 20])  # length 4 has too few examples
    assert curves[COLOURS["cnn"]] == ([1], [100])
    [shade] = axes.patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (0.5, 2.5)
    bands = {
        to_hex(band.get_facecolor()[0]).upper(): band.get_datalim(axes.transData)
        for band in axes.collections
        if len(band.get_paths()) and len(band.get_paths()[0].vertices) > 4
    }
    assert bands.keys() == {COLOURS["lstm"]}
    assert (bands[COLOURS["lstm"]].y0, bands[COLOURS["lstm"]].y1) == (0, 100)


def test_length_uses_the_tag_length_where_a_task_records_no_accuracy_by_length(tmp_path):
    tests = {"test": {"1": 1.0, "2": 1.0}, "test_long": {"2": 0.5, "10": 0.0}}
    study = read_study(write(tmp_path, tagged(result(0), tests)))
    plot = make_plot(study, "length")
    [curve] = plot.figure.axes[0].lines
    assert (list(curve.get_xdata()), list(curve.get_ydata())) == ([1, 2, 10], [100, 75, 0])  # both test sets together
    assert "length: lstm 2" in plot.alt
    assert [one.name for one in all_plots(study)] == ["split", "length"]  # instead of slices by length


# learning


def with_metrics(tmp_path, made, *columns):
    """Write the runs, each with the values of one or several metrics at steps 50, 100, ..."""
    study = write(tmp_path, *made)
    for one, values in zip(made, columns, strict=True):
        lines = [f"{50 * (n + 1)},{metric},{x}" for metric, own in values.items() for n, x in enumerate(own)]
        put(folder(study, one), "metrics.csv", "\n".join(["step,metric,value", *lines]) + "\n")
    return study


def test_learning_curves_are_a_line_for_each_seed_and_one_for_the_geometric_mean(tmp_path):
    made = [*runs("lstm", 0.5, 0.6), *runs("cnn", 0.5)]
    losses = [{"train_loss": own, "gradient_norm": [3.0]} for own in ([1.0, 0.01], [1.0, 0.0001], [math.nan, 0.5])]
    [axes] = drawn(with_metrics(tmp_path, made, *losses), "learning").axes
    curves = [
        (colour(line), line.get_linewidth() > 1, [round(y, 6) for y in line.get_ydata()]) for line in axes.get_lines()
    ]
    assert axes.get_yscale() == "log"
    assert [own for _, thick, own in curves if not thick] == [[1, 0.01], [1, 0.0001]]  # one seed needs no second line
    assert [(hue, own) for hue, thick, own in curves if thick] == [
        (COLOURS["lstm"], [1, 0.001]),
        (COLOURS["cnn"], [0.5]),  # what is not finite is left out
    ]


# errors, slices


def test_kinds_of_errors_are_mean_shares_with_a_thin_bar_for_each_seed(tmp_path):
    made = runs("lstm", 0.5, 0.5)
    study = write(tmp_path, *made, *runs("cnn", 0.5))
    predict(study, made[0], *[("x", "a b", "a b", {})] * 3, ("y", "a b", "a", {}))  # 4 predictions
    predict(study, made[1], ("x", "a b", "a b", {}), ("y", "a b", "a b c", {}))  # 2 predictions
    one = make_plot(read_study(study), "errors")
    [axes] = one.figure.axes
    bars = sorted(
        (bar for bar in axes.patches if bar.get_width()),
        key=lambda bar: (round(bar.get_y() + bar.get_height() / 2, 6), bar.get_x()),
    )
    mean, *seeds = [[bar.get_width() for bar in own] for _, own in groupby(bars, lambda bar: round(bar.get_y(), 6))]
    assert mean == [62.5, 12.5, 25]  # correct, stops early, runs on
    assert seeds == [[75, 25], [50, 50]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["lstm"]  # the CNN's predictions are not kept
    assert "lstm 62.5 % correct (seeds 50.0 to 75.0), runs on 25.0 %" in one.alt
    assert any("each seed" in text for text in texts(one.figure))


@pytest.mark.parametrize("values", [("10", "2"), ("near", "far")])
def test_slices_are_bars_by_value_and_condition(tmp_path, values):
    lstm, cnn = ({"test": dict(zip(values, shares, strict=True))} for shares in ((0.1, 0.2), (0.3, 0.4)))
    study = write(tmp_path, tagged(runs("lstm", 0.5)[0], lstm, "tag"), tagged(runs("cnn", 0.5)[0], cnn, "tag"))
    [axes] = drawn(study, "slices", tag="tag").axes
    bars = {(to_hex(bar.get_facecolor()).upper(), round(bar.get_width())) for bar in axes.patches}
    assert bars == {(COLOURS["lstm"], 10), (COLOURS["lstm"], 20), (COLOURS["cnn"], 30), (COLOURS["cnn"], 40)}
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [values[1], values[0]]


# data


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
    configured(study, **{f"e{n}": {"data": {"train_pairs": n}} for n in (1, 2, 3, 4)})
    one = make_plot(read_study(study), "data")
    assert "lstm +10.0 [+10.0, +10.0]" in one.alt
    [axes] = one.figure.axes
    assert axes.get_xscale() == "log"
    points, means = (line for line in axes.lines if colour(line) == COLOURS["lstm"])
    assert sorted(points.get_ydata()) == pytest.approx([10, 10, 20, 20, 30, 30])
    assert list(means.get_xdata()) == [100, 1000, 10_000]
    assert [round(y, 6) for y in means.get_ydata()] == [10, 20, 30]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100", "1k", "10k"]


def test_a_setting_that_does_not_follow_from_the_size_separates_series(tmp_path):
    sizes = {1: 1000, 2: 10_000, 3: 10_000}
    made = [one for n in sizes for one in runs("lstm", n / 10, experiment=f"e{n}", train_examples=sizes[n])]
    found = {"e1": (64, 0.1), "e2": (128, 0.3), "e3": (128, 0.1)}
    study = write(tmp_path, *made)
    configured(study, **{e: {"data": {"train_pairs": n, "noise": x}} for e, (n, x) in found.items()})
    for path in study.glob("*/*/s*"):  # so that a setting is known not to be its preset's
        set_environments(path, {"settings": json.loads((path / "config.yaml").read_text())})
    alt = make_plot(read_study(study), "data").alt
    assert "lstm noise=0.1 +20.0" in alt
    assert "noise=0.3" not in alt  # it has one size


# settings


def test_settings_are_a_heat_map_of_the_means_over_seeds_by_test_set(tmp_path):
    tests = {"test": 1.0, "test_long": 0.25}
    parts = {name: result(0, share)["splits"]["test"] for name, share in tests.items()}
    made = [one | {"splits": parts} for one in runs("lstm", 0.5, 0.5, experiment="a")]
    study = configured(
        write(tmp_path, *made, *runs("lstm", 0.5, experiment="b")), a={"model": {"dim": 128}}, b={"model": {"dim": 64}}
    )
    one = make_plot(read_study(study), "settings")
    [axes] = one.figure.axes
    assert axes.collections[0].get_array().filled(-1).tolist() == [[50, -1], [100, 25]]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["dim=64", "dim=128"]
    assert [tick.get_text().endswith("long") for tick in axes.get_xticklabels()] == [False, True]
    assert sorted(text.get_text() for text in axes.texts) == ["100", "25", "50"]
    assert "dim=128: length 100.0, length long 25.0" in one.alt

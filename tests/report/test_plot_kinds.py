"""Kinds of plots: the numbers that they draw."""

import json
import math
from itertools import groupby

import pytest
from matplotlib.colors import to_hex

from tests.example_plots import PART, colour, drawn, folder, legend, predict, runs, tagged, texts
from tests.example_records import put, result, write
from tfstudy.analysis.frame import read_study
from tfstudy.report.plots import all_plots, make_plot
from tfstudy.report.plots.series import COLOURS

VALIDATION = PART | {"role": "validation", "slices": {"length": {"1": PART, "2": PART}}}

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


@pytest.mark.parametrize(("values", "way"), [(("10", "2"), "get_height"), (("near", "far"), "get_width")])
def test_slices_are_bars_by_value_and_condition(tmp_path, values, way):
    lstm, cnn = ({"test": dict(zip(values, shares, strict=True))} for shares in ((0.1, 0.2), (0.3, 0.4)))
    study = write(tmp_path, tagged(runs("lstm", 0.5)[0], lstm, "tag"), tagged(runs("cnn", 0.5)[0], cnn, "tag"))
    [axes] = drawn(study, "slices", tag="tag").axes
    bars = {(to_hex(bar.get_facecolor()).upper(), round(getattr(bar, way)())) for bar in axes.patches}
    assert bars == {(COLOURS["lstm"], 10), (COLOURS["lstm"], 20), (COLOURS["cnn"], 30), (COLOURS["cnn"], 40)}
    ticks = axes.get_xticklabels() if way == "get_height" else axes.get_yticklabels()
    assert [tick.get_text() for tick in ticks] == (["2", "10"] if way == "get_height" else ["far", "near"])


# data, scaling


def configured(study, **configs):
    """Writes the config of each experiment."""
    for path in study.glob("*/*/*/config.yaml"):
        tree = json.loads(path.read_text())
        put(path.parent, path.name, json.dumps({"seed": tree["seed"]} | configs[tree["model"]["dim"]]))
    return study


@pytest.mark.parametrize(
    ("kind", "key", "field"), [("data", "data.train_pairs", "train_examples"), ("scaling", "model.dim", "parameters")]
)
def test_more_data_and_more_parameters_are_fitted_on_a_logarithmic_axis(tmp_path, kind, key, field):
    section, name = key.split(".")
    sizes = {n: {field: 10 ** (n + 1)} for n in (1, 2, 3)}
    made = [one for n in sizes for one in runs("lstm", n / 10, n / 10, experiment=f"e{n}", **sizes[n])]
    study = write(tmp_path, *made, *runs("cnn", 0.9, experiment="e4"))
    configured(study, **{f"e{n}": {section: {name: n}} for n in (1, 2, 3, 4)})
    one = make_plot(read_study(study), kind)
    assert "lstm +10.0 [+10.0, +10.0]" in one.alt
    figure = one.figure
    [axes] = figure.axes
    assert axes.get_xscale() == "log"
    points, means = (line for line in axes.lines if colour(line) == COLOURS["lstm"])
    assert sorted(points.get_ydata()) == pytest.approx([10, 10, 20, 20, 30, 30])
    assert list(means.get_xdata()) == [100, 1000, 10_000]
    assert [round(y, 6) for y in means.get_ydata()] == [10, 20, 30]
    assert [text for text in legend(figure) if text == "lstm"] == ["lstm"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100", "1k", "10k"]


def test_a_setting_that_does_not_follow_from_the_size_separates_series(tmp_path):
    sizes = {1: 1000, 2: 10_000, 3: 10_000}
    made = [one for n in sizes for one in runs("lstm", n / 10, experiment=f"e{n}", parameters=sizes[n])]
    models = {"e1": (64, 0.1), "e2": (128, 0.3), "e3": (128, 0.1)}
    study = write(tmp_path, *made)
    configured(study, **{name: {"model": {"dim": dim, "dropout": x}} for name, (dim, x) in models.items()})
    assert "lstm dropout=0.1 +20.0" in make_plot(read_study(study), "scaling").alt
    assert "dropout=0.3" not in make_plot(read_study(study), "scaling").alt  # it has one size


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

"""Learning curves, and curves that coincide."""

import math

import pytest

from tests.example_plots import colour, drawn, folder, runs, tagged, texts
from tests.example_records import result, write
from tfstudy.errors import UserError
from tfstudy.report.plots.curves import Stretch, coincide, stretches
from tfstudy.report.plots.series_style import COLOURS


def with_metrics(tmp_path, made, *columns):
    """Write the runs, each with the values of one or several metrics at steps 50, 100, ..."""
    study = write(tmp_path, *made)
    for one, values in zip(made, columns, strict=True):
        lines = [f"{50 * (n + 1)},{metric},{x}" for metric, own in values.items() for n, x in enumerate(own)]
        (folder(study, one) / "metrics.csv").write_text("\n".join(["step,metric,value", *lines]) + "\n")
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


@pytest.mark.parametrize("recorded", [True, False])
def test_exact_match_on_validation_is_shown_if_it_was_recorded_and_else_the_loss(tmp_path, recorded):
    values = {"train_loss": [1.0, 0.5], "validation_loss": [2.0, 1.0]}
    values |= {"validation_exact_match": [0.25, 0.75]} if recorded else {}
    figure = drawn(with_metrics(tmp_path, [result(0)], values), "learning")
    _, validation = figure.axes
    assert list(validation.get_lines()[0].get_ydata()) == ([25, 75] if recorded else [2, 1])
    assert validation.get_title() == ("validation exact match (%)" if recorded else "validation loss (log)")
    assert any("not recorded" in text for text in texts(figure)) is not recorded


@pytest.mark.parametrize("content", [b"step,metric,value\n50,train_loss,high\n", bytes(range(256)), b""])
def test_runs_without_any_readable_row_of_metrics_are_a_user_error(tmp_path, content):
    study = write(tmp_path, result(0))
    (folder(study, result(0)) / "metrics.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"metrics\.csv"):
        drawn(study, "learning")


def test_a_curve_is_divided_where_others_begin_to_coincide_with_it():
    curves = [{1: 100, 2: 100, 3: 50, 4: 0}, {1: 100, 2: 100, 3: 0, 4: 0}, {1: 60, 2: 70, 3: 80, 4: 90}]
    assert stretches(curves, 0) == [Stretch([1, 2], (0, 1)), Stretch([2, 3, 4], (0,))]
    assert stretches(curves, 2) == [Stretch([1, 2, 3, 4], (2,))]
    assert coincide([{x: [y] for x, y in curve.items()} for curve in curves])
    assert not coincide([{1: [100], 2: [50]}, {1: [100], 2: [0]}])  # they only meet


def test_where_curves_of_length_coincide_their_colours_alternate(tmp_path):
    equal = [tagged(one, {"test": {"1": 1.0, "2": 1.0}}) for arch in ("cnn", "lstm") for one in runs(arch, 0.5)]
    figure = drawn(write(tmp_path / "equal", *equal), "length")
    dashed = {colour(line): line for line in figure.axes[0].get_lines() if line.is_dashed()}
    assert dashed.keys() == {COLOURS["cnn"], COLOURS["lstm"]}
    assert any("colours alternate" in text for text in texts(figure))
    assert any("One seed per condition" in text and "One seed gives no interval" in text for text in texts(figure))
    other = [tagged(runs(arch, 0.5)[0], {"test": {"1": x, "2": x}}) for arch, x in (("cnn", 0.2), ("lstm", 0.7))]
    apart = drawn(write(tmp_path / "apart", *other), "length")
    assert not any(line.is_dashed() for line in apart.axes[0].get_lines())
    assert not any("alternate" in text for text in texts(apart))

"""Lines of trivial systems in a plot of test sets, and its axis."""

import pytest

from tests.example_plots import drawn, legend
from tests.example_records import result, write
from tfstudy.report.plots.layout import PERCENT, percent_limits
from tfstudy.report.plots.trivial_systems import COLOUR

WITH = {"copy": {"bleu": 0.01}, "word by word": {"bleu": 0.125, "chrf": 0.4}}


def translation(seed, bleu, baselines):
    """A run of the translation task, with these trivial systems."""
    one = result(seed, task="translation", split="embedded")
    test = one["splits"]["test"]
    test["metrics"] |= {"bleu": bleu}
    return one | {"splits": {"test": test | {"baselines": baselines}}}


def lines(axes):
    """Return the place and the style of each vertical line."""
    return [(line.get_xdata()[0], line.get_linestyle()) for line in axes.lines if line.get_color() == COLOUR]


def test_trivial_systems_are_lines_through_the_rows_of_their_test_set(tmp_path):
    figure = drawn(write(tmp_path, *(translation(seed, 0.17, WITH) for seed in range(3))), "split")
    [axes] = figure.axes
    assert lines(axes) == [(1.0, ":"), (12.5, "--")]
    assert {"trivial system: copy", "trivial system: word by word"} <= set(legend(figure))
    assert axes.get_xlim() == pytest.approx((-0.6, 20.6))


def test_without_trivial_systems_there_is_no_line(tmp_path):
    figure = drawn(write(tmp_path, *(translation(seed, 0.17, {}) for seed in range(3))), "split")
    assert lines(figure.axes[0]) == []
    assert not any("trivial" in text for text in legend(figure))


@pytest.mark.parametrize(
    ("metrics", "largest", "top"),
    [(["bleu"], 21.8, 30), (["bleu"], 0, 10), (["chrf", "bleu"], 30, 30), (["bleu"], 99.9, 100), (["bleu"], 101, 100)],
)
def test_bleu_has_an_axis_up_to_the_next_ten(metrics, largest, top):
    low, high = percent_limits(metrics, largest)
    assert (low, high) == pytest.approx((-0.03 * top, 1.03 * top))


def test_shares_of_examples_have_one_axis(tmp_path):
    assert percent_limits(["exact_match", "bleu"], 5) == percent_limits(["exact_match"], 5) == PERCENT

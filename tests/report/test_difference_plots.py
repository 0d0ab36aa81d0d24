"""Plots of differences: the intervals agree with the tests."""

from pathlib import Path

from matplotlib.colors import to_hex

from tests.example_plots import drawn, runs, texts
from tests.example_records import write
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.comparisons import compare_conditions
from tfstudy.analysis.conditions import conditions, main_metrics
from tfstudy.report.plots import make_plot
from tfstudy.report.plots.series_style import COLOURS

FAR, NEAR = (0.9, 0.91, 0.92, 0.93, 0.94), (0.2, 0.22, 0.21, 0.22, 0.2)
CLOSE = {  # of four networks: several differences would be significant if each was tested alone
    "cnn": (0.1, 0.13, 0.2, 0.16, 0.12),
    "gru": (0.17, 0.21, 0.3, 0.24, 0.18),
    "lstm": (0.26, 0.2, 0.33, 0.3, 0.24),
    "transformer": (0.6, 0.55, 0.62, 0.58, 0.64),
}


def drawn_intervals(axes):
    """Return the ends of each interval and whether its mark is filled, from top to bottom."""
    intervals = sorted(
        (line for line in axes.lines if line.get_linewidth() == 1.5), key=lambda line: line.get_ydata()[0]
    )
    marks = sorted((line for line in axes.lines if line.get_marker() == "o"), key=lambda line: line.get_ydata()[0])
    filled = [to_hex(mark.get_markerfacecolor()) != "#ffffff" for mark in marks]
    return [(*line.get_xdata(), is_filled) for line, is_filled in zip(intervals, filled, strict=True)]


def test_an_interval_excludes_0_if_and_only_if_its_comparison_is_significant(tmp_path):
    study = read_study(write(tmp_path, *(one for arch, shares in CLOSE.items() for one in runs(arch, *shares))))
    shown = conditions(study.runs)
    comparisons = compare_conditions(shown, main_metrics(shown))
    figure = make_plot(study, "differences").figure
    intervals = drawn_intervals(figure.axes[0])
    assert [is_filled for *_, is_filled in intervals] == [comparison.significant for comparison in comparisons]
    assert {is_filled for *_, is_filled in intervals} == {True, False}
    assert all((low > 0 or high < 0) == is_filled for low, high, is_filled in intervals)
    assert any(one.difference.p < 0.05 and not one.significant for one in comparisons)  # alone it would be
    assert any("simultaneous 95 % intervals over 6 comparisons" in text.lower() for text in texts(figure))


def test_in_the_committed_study_what_excludes_0_is_significant():
    study = read_study(Path(__file__).parents[2] / "results" / "scan")
    shown = conditions(study.runs)
    significant = [one.significant for one in compare_conditions(shown, main_metrics(shown)) if one.tested]
    intervals = drawn_intervals(make_plot(study, "differences").figure.axes[0])
    assert [low > 0 or high < 0 for low, high, _ in intervals] == significant
    assert [is_filled for *_, is_filled in intervals] == significant


def test_the_intervals_of_some_split_schemes_are_those_of_the_whole_study(tmp_path):
    made = [one for split in ("length", "simple") for a, x in CLOSE.items() for one in runs(a, *x, split=split)]
    study = write(tmp_path, *made)
    every = drawn_intervals(drawn(study, "differences").axes[0])
    figure = drawn(study, "differences", split="simple")
    assert drawn_intervals(figure.axes[0]) == every[6:]
    assert any("over 12 comparisons" in text for text in texts(figure))


def test_of_many_differences_those_with_the_smallest_p_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr("tfstudy.report.plots.differences.MAX_COMPARISONS", 2)
    equal = [one for arch in ("cnn", "gru", "lstm") for one in runs(arch, 0.2, 0.21, 0.22)]
    plot = make_plot(read_study(write(tmp_path, *equal, *runs("transformer", 0.9, 0.91, 0.92))), "differences")
    [axes] = plot.figure.axes
    assert all("transformer" in label.get_text() for label in axes.get_yticklabels())
    assert "the 2 with the smallest p of 6" in " ".join(plot.figure.get_suptitle().split())
    assert plot.alt.startswith("Differences between conditions, the 2 with the smallest p of 6: ")


def test_a_difference_that_needs_more_seeds_than_are_proposed_says_so(tmp_path):
    wide = (0.1, 0.9, 0.2, 0.8, 0.5)
    slightly_higher = [x + 0.001 for x in wide]
    figure = drawn(write(tmp_path, *runs("cnn", *wide), *runs("lstm", *slightly_higher)), "differences")
    assert any(text.endswith(" (>1,000)") for text in texts(figure))


def test_what_two_architectures_share_stands_once_in_brackets(tmp_path):
    for preset, shift in (("default", 0), ("small", 0.3)):
        shares = [x / 2 + shift for x in NEAR]
        write(tmp_path, *(r for a in ("cnn", "lstm") for r in runs(a, *shares, experiment=preset + a, preset=preset)))
    [axes] = drawn(tmp_path, "differences").axes
    names = [label.get_text().replace("\N{MINUS SIGN}", "-") for label in axes.get_yticklabels()]
    assert {"cnn - lstm", "cnn - lstm (small)", "cnn - cnn small", "cnn - lstm small"} <= set(names)


def test_differences_are_filled_where_they_are_significant(tmp_path):
    like = [x + 0.001 * (-1) ** number for number, x in enumerate(NEAR)]
    made = [*runs("lstm", *FAR), *runs("cnn", *NEAR), *runs("transformer", *like)]
    figure = drawn(write(tmp_path, *made, *runs("other", 0.5)), "differences")
    [axes] = figure.axes
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
    faces = [to_hex(line.get_markerfacecolor()).upper() for line in marks]
    names = [label.get_text().replace("\N{MINUS SIGN}", "-") for label in axes.get_yticklabels()]
    assert names == ["cnn - lstm", "cnn - transformer", "lstm - transformer"]
    assert faces == [COLOURS["lstm"], "#FFFFFF", COLOURS["lstm"]]
    assert round(marks[0].get_xdata()[0]) == -71
    assert sum("p < .001" in text for text in texts(figure)) == 2
    assert any("3 pairs with a single seed are not tested" in text for text in texts(figure))

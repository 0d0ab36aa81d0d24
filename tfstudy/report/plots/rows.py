"""Plots with a labelled row for each condition (beside published results), setting, comparison or value of a tag."""

from itertools import takewhile
from statistics import mean
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tfstudy.analysis.published import Figure, papers, quotations
from tfstudy.analysis.summary import A_TEST_NEEDS, Condition, pairs, rows_of
from tfstudy.errors import UserError
from tfstudy.evaluation.breakdown import CORRECT
from tfstudy.report.markup import MINUS, number, plural, q_equals
from tfstudy.report.notes import whole_scores
from tfstudy.report.plots import layout

# Test sets

BELOW, ABOVE = 0.065, -0.06  # inches from the mean of a row to its seeds and to the published figures
TRIVIAL_LINES, TRIVIAL_COLOUR = (":", "--", "-."), "0.45"
PUBLISHED: dict[str, Any] = {"color": "black", "marker": "D", "ms": 3.4, "mew": 0.8, "mec": "black"}
FACES = {True: "black", False: "white"}  # whether a published figure has the settings of these runs


def split(conditions: pd.DataFrame) -> layout.Plot:
    """Return the main metric of each condition on each test set: mean, 95 % interval, seeds and published figures.

    Lines show the trivial systems that were evaluated on the same test sets.
    """
    frame = layout.in_panels(conditions)
    if frame.empty:
        raise UserError("no finished run was evaluated on a test set")
    metric, styles, rows = layout.metric_label(conditions), layout.styles_of(frame), rows_of(frame)
    frame["quoted"] = pd.Series(quotations(rows), frame.index)
    frame["trivial"] = pd.Series([trivial_results(row) for row in rows], frame.index)
    figures = [one.figure for own in frame["quoted"] for one in own]
    numbers = {paper: n for n, paper in enumerate(dict.fromkeys(figure.paper for figure in figures), 1)}
    lines: dict[str, dict[str, Any]] = {
        name: {"color": TRIVIAL_COLOUR, "ls": TRIVIAL_LINES[number % len(TRIVIAL_LINES)], "lw": 1.1}
        for number, name in enumerate(dict.fromkeys(name for own in frame["trivial"] for name in own))
    }
    panels, frame = layout.in_rows("Generalisation to each test set", frame)
    for row in rows_of(frame):
        axes, style = row.axes, styles[row.label]
        for name, value in row.trivial.items():
            axes.vlines(value, row.level - 0.1, row.level + 0.1, zorder=2, **lines[name])
        layout.draw_mean(axes, row, row.level, style)
        layout.draw_seeds(axes, [*row.each_seed.values()], row.level + BELOW, style["color"])
        for figure, same in row.quoted:
            axes.plot(figure.value, row.level + ABOVE, mfc=FACES[same], zorder=2.5, clip_on=False, **PUBLISHED)
        texts = [f"{_text(figure)} [{numbers[figure.paper]}]" for figure, _ in row.quoted]
        layout.write_beside(axes, row.level, "  ".join(texts))
    for axes in frame["axes"][frame["quoted"].map(bool)].unique():
        layout.write_beside(axes, -0.1, "published")
    furthest = max(axes.dataLim.x1 for axes in panels.axes)
    panels.axes[0].set_xlim(layout.percent_limits(frame, furthest))
    panels.label(metric, "")

    def described(row: Condition) -> str:
        same = ", ".join(f"{_text(one.figure)} with the same settings" for one in row.quoted if one.same_settings)
        return f"{row.mean:.1f}" + f" (published: {same})" * bool(same)

    sources = {}
    for figure in figures:
        quoted_by = f", quoted by {papers()[figure.quoted_from].short}" if figure.quoted_from in papers() else ""
        sources[figure.paper] = f"[{numbers[figure.paper]}]\N{NO-BREAK SPACE}{figure.citation}{quoted_by}"
    notes = [layout.run_caption(frame), *[f"Published: {'; '.join(sources.values())}"] * bool(sources)]
    legend = [*_legend(frame), *(Line2D([], [], label=f"trivial system: {n}", **look) for n, look in lines.items())]
    return panels.plot("split", f"Mean {metric} on each test set: {layout.describe(frame, described)}.", legend, notes)


def _legend(frame: pd.DataFrame) -> list[Any]:
    """Return handles for the marks of our runs and of published figures."""
    seeds, quoted = frame["each_seed"].map(len), [one for own in frame["quoted"] for one in own]
    within = "\n(one seed: within its run)" if seeds.min() == 1 else ""
    handles = [Line2D([], [], lw=1.6, ms=5, color="0.4", marker="o", label=f"mean and 95 % interval{within}")]
    handles += [layout.seeds_handle()] * bool(seeds.max() > 1)
    for same, words in ((True, "the settings of these runs"), (False, "other settings")):
        if any(one.same_settings is same for one in quoted):
            handles.append(Line2D([], [], lw=0, mfc=FACES[same], label=f"published, {words}", **PUBLISHED))
    return handles


def trivial_results(condition: Condition) -> dict[str, float]:
    """Return the metric of each trivial system, such as copying the source, in percent, the mean over runs."""
    every = [one.baselines for one in whole_scores(condition)]
    names = dict.fromkeys(name for own in every for name, metrics in own.items() if condition.metric in metrics)
    return {name: 100 * mean(own[name][condition.metric] for own in every if name in own) for name in names}


def _text(figure: Figure) -> str:
    return f"{figure.text}{' (one run)' if figure.value_kind == 'single' else ''}"


# Slices


def slices(conditions: pd.DataFrame) -> layout.Plot:
    """Return the mean with its 95 % interval for each value of a tag; each condition is restricted to one value."""
    frame = layout.in_panels(conditions)
    if frame.empty:
        raise UserError("no run was evaluated by this tag")
    tag, metric, step = frame["tag"].iloc[0], layout.metric_label(frame), 0.085  # inches between conditions
    styles, words, drawn = layout.styles_of(frame), tag.replace("_", " "), bool((frame["low"] < frame["high"]).any())
    values = frame.sort_index().drop_duplicates(["panel", "value"])  # in the order of the table
    title = f"Results by {words}{', with 95 % intervals' * drawn}"
    extra = max(0.03, step * len(styles) - layout.LINE + 0.05)
    panels, values = layout.in_rows(title, values, "value", extra)
    labels = {panel: [x for x in styles if x in set(own["label"])] for panel, own in frame.groupby("panel")}
    for row in rows_of(frame.merge(values[["panel", "value", "axes", "level"]], on=["panel", "value"])):
        number = labels[row.panel].index(row.label) - (len(labels[row.panel]) - 1) / 2
        layout.draw_mean(row.axes, row, row.level + step * number, styles[row.label], 4)
    panels.axes[0].set_xlim(layout.percent_limits(frame, frame[["mean", "high"]].max().max()))
    panels.label(metric, words)
    parts = []
    for (panel, label), own in frame.groupby(["panel", "label"], sort=False):
        ends = own if len(own) <= 4 else own.iloc[[0, -1]]
        parts.append(f"{panel} {label}: {', '.join(f'{row.value} {row.mean:.0f}' for row in rows_of(ends))}")
    single = drawn and bool((frame["runs"].map(len) == 1).any())
    notes = [layout.run_caption(frame), *["The interval of one seed is within its run."] * single]
    alt = f"Mean {metric} by {words}: {layout.join(parts)}."
    return panels.plot(f"slices-{tag}", alt, layout.legend_handles(styles), notes)


# Settings

MANY = 8  # test sets, above which one picture of all is clearer than a panel for each


def settings(conditions: pd.DataFrame) -> layout.Plot:
    """Return a heat map of the mean over seeds by condition and test set; empty where one was not evaluated.

    `UserError` if no architecture has two settings and there are at most `MANY` test sets.
    """
    shown = layout.in_panels(conditions)
    if shown["label"].nunique() == shown["arch"].nunique() and shown["panel"].nunique() <= MANY:
        raise UserError(f"a plot of settings needs two settings of an architecture, or more than {MANY} test sets")
    metric, labels = layout.metric_label(conditions), [*layout.styles_of(shown)]
    grid = shown.pivot_table("mean", "label", "panel", aggfunc="last").reindex(labels, columns=shown["panel"].unique())
    words = [label.split() for label in labels]
    columns = zip(*words, strict=False) if len(words) > 1 else ()
    shared = len([*takewhile(lambda column: len(set(column)) == 1, columns)])
    grid.index = pd.Index([" ".join(own[shared:]) or "(default)" for own in words])
    letters = int((layout.WIDTH - 0.4 * grid.shape[1]) / layout.LETTER)  # what the cells leave
    texts = layout.in_lines(map(str, grid.index), letters)
    height = max(0.21, 0.04 + layout.LINE * max(text.count("\n") + 1 for text in texts))
    panels = layout.uneven_panels("Mean of each condition on each test set", [height * len(grid)])
    axes, look = panels.axes[0], {"cmap": "Blues", "annot": True, "annot_kws": {"size": layout.POINTS}}
    layout.heat_map(axes, grid, vmin=0, vmax=100, fmt=".0f", **look)
    levels, places = ([0.5 + at for at in range(count)] for count in grid.shape)  # all are named
    axes.set_yticks(levels, texts)
    axes.set_xticks(places, [*map(str, grid)], rotation=40, ha="right", rotation_mode="anchor")
    cells = [(name, row.dropna().items()) for name, row in grid.iterrows()]
    said = [f"{name}: {', '.join(f'{column} {value:.1f}' for column, value in row)}" for name, row in cells]
    notes = [f"{metric}, mean over seeds.", layout.run_caption(shown)]
    return panels.plot("settings", f"Mean {metric} of each condition: {layout.join(said)}.", notes=notes)


# Differences

MAX_COMPARISONS = 60  # in one plot


def differences(conditions: pd.DataFrame, family: pd.DataFrame) -> layout.Plot:
    """Return the difference of every two conditions on the same examples, with its 95 % interval and its q.

    `family` has all conditions of the study, whose comparisons are one family of tests; `conditions` are shown.
    """
    every = pairs(family)
    own = every[every["first"].isin(conditions.index)]
    tested = own[own["tested"]]
    if tested.empty:
        raise UserError(
            f"no two conditions are tested: {A_TEST_NEEDS}, on the same test set with as much training data"
        )
    named = layout.in_panels(conditions)[["panel", "label", "arch"]]
    tested = tested.join(named, on="first").join(named.add_suffix("_2"), on="second")
    better = tested["arch"].where(tested["mean"] > 0, tested["arch_2"])
    tested["colour"] = better.map(layout.architecture_colours(conditions["arch"]))
    said = [
        f"{row.panel}: {row.label} {number(row.mean, '+')} points to {row.label_2} ({q_equals(row.q)})"
        for row in rows_of(tested[tested["significant"]])
    ]
    lines = (tested["label"] + tested["label_2"]).str.len().le(layout.LETTERS).map({True: " ", False: "\n"})
    tested["label"] += f" {MINUS}" + lines + tested["label_2"]
    smallest = tested.nsmallest(MAX_COMPARISONS, "p").sort_index()
    few = f", the {len(smallest)} with the smallest q of {len(tested):,}" if len(smallest) < len(tested) else ""
    title = f"Differences between conditions{few}"
    panels, shown = layout.in_rows(title, smallest, extra=0.06, columns=1)
    for row in rows_of(shown):
        row.axes.axvline(0, color="0.3", lw=1)
        row.axes.hlines(row.level, max(row.low, -200), min(row.high, 200), row.colour, lw=1.5)
        face = row.colour if row.significant else "white"
        row.axes.plot(row.mean, row.level, "o", ms=3.5, color=row.colour, mfc=face, mew=1.3, zorder=3)
        layout.write_beside(row.axes, row.level, q_equals(row.q))
    limit = min(104.0, max(2.0, 1.06 * shown[["low", "high", "mean"]].abs().max().max()))
    panels.axes[0].set_xlim(-limit, limit)
    compared = conditions.loc[[*dict.fromkeys([*shown["first"], *shown["second"]])]]
    panels.label(f"difference in {layout.metric_label(compared).replace('(%)', '(points)')}", "")
    marks: dict[str, Any] = {"marker": "o", "lw": 1.5, "color": "0.3"}
    legend = [Line2D([], [], label="significant (q < .05)", **marks)] * bool(shown["significant"].any())
    legend += [Line2D([], [], label="open", mfc="white", **marks)] * (not shown["significant"].all())
    tests, summary = every["tested"].sum(), f"{len(said)} of {len(tested)} are significant"
    summary = ", ".join(filter(None, [summary, layout.join(said)]))
    q = f"q: p adjusted for {tests} comparisons" if tests > 1 else "q: p, of one comparison"
    intervals = f"95 % intervals; {q}, below .05 where a difference is significant."
    notes = [layout.run_caption(compared), intervals, "Colour: the condition with the higher mean."]
    notes += [f"{plural(n, 'pair')} not tested: {A_TEST_NEEDS}"] if (n := len(own) - len(tested)) else []
    return panels.plot("differences", f"{title}: {summary}. {intervals}", legend, notes)


# Errors

# Colour and hatch. Too short is blue, too long is orange, of the right length green or purple (after Okabe & Ito 2008).
BARS: dict[str, dict[str, Any]] = {
    kind: {"facecolor": colour, "hatch": "//" * kind.startswith("other"), "edgecolor": "white", "linewidth": 0.4}
    for kind, colour in {
        CORRECT: "#E8E8E8", "empty": "#222222",
        "stops early": "#0072B2", "omitted part": "#56B4E9", "other, too short": "#BFE0F5",
        "runs on": "#D55E00", "repeated part": "#E69F00", "other, too long": "#F8DFA6",
        "swapped parts": "#CC79A7", "one token replaced": "#009E73", "other, correct length": "#A8DCCB",
    }.items()
}  # fmt: skip
DARK = ("empty", "stops early", "runs on", "one token replaced")  # whose numbers are white
MIN_LABELLED = 9.0  # percent; smaller shares are drawn without their number
MIN_VISIBLE = 0.3  # percent; the legend leaves out kinds that are never more frequent


def errors(conditions: pd.DataFrame) -> layout.Plot:
    """Return the kinds of all predictions as stacked shares, means over seeds, with what is correct of each seed.

    Runs without a summary of their predictions are left out; `UserError` if that leaves none.
    """
    frame = layout.in_panels(conditions)
    frame["shares"] = pd.Series([shares_by_seed(row) for row in rows_of(frame)], frame.index, dtype=object)
    frame = frame[frame["shares"].map(len) > 0]
    if frame.empty:
        raise UserError("no run has a summary of its predictions on a test set")
    panels, frame = layout.in_rows("Kinds of errors", frame, extra=0.14)
    means = pd.DataFrame([own.mean() for own in frame["shares"]], frame.index)
    left, height = means.cumsum(axis=1) - means, layout.LINE
    for _, own in frame.groupby("panel", sort=False):
        axes: Any = own["axes"].iloc[0]
        for kind in BARS:
            share = means.loc[own.index, kind]
            if share.any():
                bars = axes.barh(own["level"], share, height, left.loc[own.index, kind], **BARS[kind])
                texts = [f"{one:.0f}" if one >= MIN_LABELLED else "" for one in share]
                axes.bar_label(bars, texts, label_type="center", fontsize=7, color="w" if kind in DARK else "k")
        for row in rows_of(own):
            layout.draw_seeds(axes, row.shares[CORRECT].tolist(), row.level + height / 2 + 0.045, "0.1")
        axes.set_xlim(-0.5, 100.5)
        axes.grid(visible=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
    panels.label("share of all predictions (%)", "")
    largest, several = pd.concat([*frame["shares"]]).max(), bool(frame["shares"].map(len).max() > 1)
    legend: list[Any] = [Patch(label=kind, **BARS[kind]) for kind in BARS if largest[kind] >= MIN_VISIBLE]
    legend += [layout.seeds_handle("correct, each seed", "0.1")] * several
    alt = layout.describe(frame, lambda row: describe_shares(row.shares))
    alt = f"Kinds of errors, as mean shares of all predictions: {alt}."
    return panels.plot("errors", alt, legend, [layout.run_caption(frame)])


def shares_by_seed(condition: Condition) -> pd.DataFrame:
    """Return the share of each kind (columns) among the predictions of each seed (rows) in percent."""
    found = []
    for run in condition.runs:
        scores = run.result.splits.get(condition.test)
        if scores and (kinds := scores.errors):
            n = sum(kind.n for kind in kinds.values())
            found.append({kind: 100 * one.n / n for kind, one in kinds.items()})
    return pd.DataFrame(found, columns=[*BARS], dtype=float).fillna(0.0)


def describe_shares(shares: pd.DataFrame) -> str:
    """Return the share that is correct, with its range over seeds, and the most frequent kind of error."""
    correct, wrong = shares[CORRECT], shares.drop(columns=CORRECT).mean()
    spread = f" (seeds {correct.min():.1f} to {correct.max():.1f})" if len(shares) > 1 else ""
    kind = f", {wrong.idxmax()} {wrong.max():.1f} %" if wrong.any() else ""
    return f"{correct.mean():.1f} % correct{spread}{kind}"

"""Pictures of a study's records."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.base import UserError, one_of
from tfstudy.evaluation import ENOUGH
from tfstudy.records import some
from tfstudy.rows import Row, of_same_kind, rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"transformer": "#0072B2", "lstm": "#D55E00", "cnn": "#009E73"}  # Okabe & Ito 2008, safe for the colour-blind


def by_split(study: Path, out: Path) -> None:
    """Exact match on test by split and architecture: a point a seed, published figures as short dark lines."""
    one_of("--out's ending", out.suffix, (".png", ".svg", ".pdf"))
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    import pandas as pd
    import seaborn as sns

    table = rows(some(study).runs)
    points = pd.DataFrame(
        [
            {"split": place(row, table), "architecture": label(row.arch, row.name), "exact match": value}
            for row in table
            for value in row.values("exact_match")
        ]
    )
    if points.empty:
        raise UserError(f"no finished run under {study} has a test split")
    splits = list(dict.fromkeys(points["split"]))
    order = [*COLOURS, *sorted({row.arch for row in table} - COLOURS.keys())]
    names = sorted(set(points["architecture"]), key=lambda name: (order.index(name.split()[0]), name))
    sns.set_theme(style="whitegrid", context="paper")
    grid, axes = plt.subplots(figsize=(8, 0.9 * len(splits) + 1.2), layout="constrained")
    palette = {name: COLOURS.get(name.split()[0], "#555555") for name in names}
    markers = ["o", "D", "s", "^", "v"]
    step = 0.8 / len(names)
    for number, name in enumerate(names):
        own = points[points["architecture"] == name]
        height = [splits.index(s) + (number - (len(names) - 1) / 2) * step for s in own["split"]]
        style = markers[sum(n.split()[0] == name.split()[0] for n in names[:number]) % len(markers)]
        axes.scatter(
            own["exact match"], height, color=palette[name], marker=style, label=name, s=28, zorder=3, alpha=0.85
        )
        for row in table:
            level = splits.index(place(row, table)) + (number - (len(names) - 1) / 2) * step
            for value in quoted(row) if label(row.arch, row.name) == name else ():
                axes.plot([value, value], [level - step / 3, level + step / 3], color="black", lw=1.3, zorder=2)
    axes.plot([], [], color="black", lw=1.3, label="published (same kind)")
    axes.set(xlabel="exact match on test (%)", ylabel="", xlim=(-3, 103), yticks=range(len(splits)), yticklabels=splits)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    for border in range(1, len(splits)):
        axes.axhline(border - 0.5, color="0.85", lw=0.8)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    save(grid, out)


def by_length(study: Path, out: Path) -> None:
    """Exact match at every length, a curve an architecture (mean of its seeds), one panel an experiment.

    The lengths that were trained on are shaded; a length with fewer than 10 examples is left out.
    """
    one_of("--out's ending", out.suffix, (".png", ".svg", ".pdf"))
    import matplotlib as mpl

    mpl.use("agg")
    import pandas as pd
    import seaborn as sns

    found = [row for row in rows(some(study).runs) if row.test == "test"]
    points = pd.DataFrame(
        [
            {"experiment": f"{row.task} {row.split}", "architecture": label(row.arch, row.name), "seed": result.seed,
             "length": int(length), "exact match": 100 * part["exact_match"]}
            for row in found
            for result in (run.result for run in row.runs)
            for length, part in result.lengths.get("exact_match", {}).items()
            if part["n"] >= min(ENOUGH, max(p["n"] for p in result.lengths["exact_match"].values()))
        ]
    )  # fmt: skip
    if points.empty:
        raise UserError(f"no run under {study} says its accuracy by length")
    experiments = list(dict.fromkeys(points["experiment"]))
    names = sorted(set(points["architecture"]))
    columns = 2 if len(experiments) == 4 else min(3, len(experiments))
    sns.set_theme(style="whitegrid", context="paper")
    grid = sns.relplot(
        points, x="length", y="exact match", hue="architecture", style="architecture", kind="line", col="experiment",
        col_order=experiments, col_wrap=columns, height=2.4, aspect=1.35, errorbar=None, markers=True, dashes=False,
        hue_order=names, style_order=names, palette={n: COLOURS.get(n.split()[0], "#555555") for n in names},
        facet_kws={"sharex": False, "legend_out": True},
    )  # fmt: skip
    trained = {f"{row.task} {row.split}": longest_trained(row) for row in found}
    for experiment, axes in grid.axes_dict.items():
        if (last := trained[experiment]) is not None:
            axes.axvspan(0, last + 0.5, color="0.92", zorder=0)
        axes.set(ylim=(-3, 103), xlim=(0, None))
    grid.set_titles("{col_name}").set_axis_labels("length (trained on: shaded)", "exact match (%)")
    save(grid.figure, out)


def longest_trained(row: Row) -> int | None:
    """The longest length of the validation split, which is in distribution; None if there is none."""
    parts = [run.result.splits["validation"] for run in row.runs if "validation" in run.result.splits]
    lengths = [int(value) for part in parts for value in part.by.get("length", {})]
    return max(lengths, default=None)


def save(figure: "Figure", out: Path) -> None:
    """Writes the picture; `UserError` if it can't be written."""
    import matplotlib.pyplot as plt

    try:
        figure.savefig(out, dpi=160)
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror}") from None
    finally:
        plt.close(figure)


def label(arch: str, name: str) -> str:
    """The name in the legend."""
    return arch if name == "default" else f"{arch} {name}"


def place(row: Row, table: Sequence[Row]) -> str:
    """The row's experiment and test split, with its task if the study has several."""
    return f"{row.task} {row.place}" if len({other.task for other in table}) > 1 else row.place


def quoted(row: Row) -> list[float]:
    """Published exact match of this kind of architecture, those that are plain numbers."""
    values = [figure["value"] for figure in of_same_kind(row, "exact match")]
    return [float(value) for value in values if value.replace(".", "", 1).isdigit()]

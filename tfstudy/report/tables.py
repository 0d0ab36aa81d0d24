"""Tables of studies: a frame of numbers with a row for each condition and test set, then texts, then one `render`.

Printed are tables as in a paper (`wide`), or with `columns` a row for each condition and test set.

To add a column: its number in `_numbers` (if it is not in `summary.conditions`), its text in `all_texts`, its head in
`HEADS`, and its name in `FIELDS` if JSON and CSV should have it.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.analysis import labels
from tfstudy.analysis.frame import Study, read_finished_runs
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.published import Quotation, beside, papers
from tfstudy.analysis.summary import OVER_LENGTHS, conditions, letters, mean_of, pairs, rows_of, swapped
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.report.markup import (
    csv_text,
    json_text,
    number,
    p_value,
    plural,
    with_interval,
)
from tfstudy.report.notes import Note, first_note, first_notes, sign_notes, table_notes
from tfstudy.report.render import Cells, render, show, text_width
from tfstudy.report.wide import aligned, quoted_texts, run_count, wide
from tfstudy.runs.find import study_folder
from tfstudy.runs.schema import metric_name

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

ORACLE = "oracle_length_exact_match"
MEASURED = {"oracle_length": ORACLE, "over_lengths": OVER_LENGTHS, "chrf": "chrf"}  # metrics beside the main one
ORACLE_HEAD = "oracle length, EOS forbidden"  # not: outputs stopped at the length of the target
MAX_LABEL = 300  # characters of a label in a message: it must be possible to copy it
FORMATS = ("text", "md", "csv", "tex", "html", "json", "bib")
FIELDS = (  # of JSON and CSV
    "task", "split", "corpus", "test", "tag", "value", "arch", "preset", "settings", "metric", "n", "experiment",
    "examples", "diverged", "mean", "low", "high", "interval", "group", "best_group", "baseline", "difference",
    "difference_low", "difference_high", "p", "q", "test_of_p", "oracle_length", "chrf", "over_lengths", "L90", "L50",
    "parameters", "train_seconds", "each_seed", "published", "published_oracle_length", "published_over_lengths",
    "runs",
)  # fmt: skip
FIGURE_KEYS = (
    "id", "paper", "arch", "value", "value_kind", "spread", "spread_kind", "n", "settings", "preset", "source", "place",
)  # fmt: skip
HEADS = {  # of the columns that may be asked for; `result` is called as the metric
    "task": "task", "split": "split", "value": "by {tag}", "arch": "architecture", "preset": "preset", "n": "n",
    "metric": "metric", "result": "{result}", "published": "published", "difference": "vs {baseline}", "q": "q",
    "group": "group", "seeds": "{result} by seed", "chrf": "chrF", "oracle_length": ORACLE_HEAD,
    "published_oracle_length": f"published, {ORACLE_HEAD}", "over_lengths": "token accuracy over lengths",
    "published_over_lengths": "published, over lengths", "L90": "L90", "L50": "L50", "parameters": "parameters",
    "seconds": "seconds",
}  # fmt: skip
QUOTED = ("published", "published_oracle_length", "published_over_lengths")
PLACES = {"task": "task", "split": "split_label", "value": "value"}  # columns of `summary.conditions`
LEFT = frozenset(("task", "split", "arch", "preset", "metric", "group", "seeds", *QUOTED))


class Table(NamedTuple):
    """The table of a study: a row for each condition, the comparisons behind them, and notes on the numbers."""

    rows: "pd.DataFrame"  # see `summary.conditions`, and below
    pairs: "pd.DataFrame"  # see `summary.pairs`
    baseline: str
    columns: Sequence[str] = ()  # the keys of those that were asked for
    notes: Sequence[Note] = ()


def read_table(study: Path, by: str = "", metric: str = "", baseline: str = "", columns: str = "") -> Table:
    """Return the table of a study, or of all studies under a folder.

    With a tag such as `length` as `by` there is a row for each of its values. `baseline`, with which the others are
    compared, is an architecture or a label (`lstm train.steps=600`). `columns` are the keys of the columns to show,
    separated by commas. `UserError` if there is no finished run, for unknown names, or if several conditions are called
    `baseline`.
    """
    finished = read_finished_runs(study)
    if by:
        scores = [one for run in finished.runs for one in run.result.splits.values() if one.role == "test"]
        one_of("tag", by, sorted({tag for one in scores for tag in one.slices}), "--by")
    keys = [one_of("column", name.strip(), HEADS, "--columns") for name in columns.split(",")] if columns else []
    if {"difference", "q"} & {*keys} and not baseline:
        raise UserError("--columns: differences and their q need --baseline")
    return build_table(finished, conditions(finished.runs, by, metric), baseline, list(dict.fromkeys(keys)))


def build_table(study: Study, found: "pd.DataFrame", baseline: str = "", columns: Sequence[str] = ()) -> Table:
    """Return the table of these conditions of a study."""
    if columns:  # what tells test sets apart is never left out
        needed = [key for key, name in PLACES.items() if key not in columns and found[name].nunique() > 1]
        columns = [*needed, *columns]
    compared = pairs(found)
    rows, other = rows_of(found), baseline_conditions(found, baseline) if baseline else {}
    # each condition's comparison with the baseline of its family
    both = [one for pair in rows_of(compared) for one in (pair, swapped(pair))]
    against = {one.first: one for one in both if other.get(rows[one.second].family) == one.second}
    groups = letters(found, compared)
    more = _numbers(rows, groups, [against.get(row.Index) for row in rows])
    table = Table(found.assign(group=groups, **more), compared, baseline, columns)
    explained = [*columns, *["difference"] * bool(baseline)]
    notes = table_notes(study, found, compared, explained, quotations(table))
    if other and (uncompared := sum(family not in other for family in found["family"])):
        text = f"no difference in {uncompared} of {plural(len(found), 'row')}: {baseline} has no run with their test "
        notes.append(Note("baseline", f"{text}examples and amount of training data"))
    return table._replace(notes=notes)


def _numbers(rows: Sequence[Condition], groups: Sequence[str], against: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of a table besides those of its conditions."""
    # letters are shown, and the best group marked, only where another group is significantly worse
    several = {row.family for row, group in zip(rows, groups, strict=True) if group and "a" not in group}
    shown = [group if row.family in several else "" for row, group in zip(rows, groups, strict=True)]
    fields = {"difference": "mean", "difference_low": "low", "difference_high": "high", "p": "p", "q": "q"}
    return {
        "letters": shown,
        "best_group": ["a" in group for group in shown],
        "baseline": [rows[one.second].label if one else "" for one in against],
        "test_of_p": [one.method if one else "" for one in against],
        **{name: [getattr(one, field) if one else math.nan for one in against] for name, field in fields.items()},
        **{name: [mean_of(row, metric) for row in rows] for name, metric in MEASURED.items()},
        "published": [beside(row, row.metric) for row in rows],
        "published_oracle_length": [beside(row, ORACLE) for row in rows],
        "published_over_lengths": [beside(row, OVER_LENGTHS) for row in rows],
    }


def baseline_conditions(found: "pd.DataFrame", name: str) -> dict[tuple[str, ...], int]:
    """Return, by family, the index of the condition with this label, or else of this architecture.

    `UserError` for an unknown name, or if it is that of several conditions of the same family.
    """
    one_of("baseline", name, sorted({*found["label"], *found["arch"]}))
    labelled = found[found["label"] == name].groupby("family").groups
    members: dict[Any, Any] = found[found["arch"] == name].groupby("family").groups | labelled
    names = dict.fromkeys(found["label"][index] for own in members.values() if len(own) > 1 for index in own)
    if names:
        listed = ", ".join(quoted(label, MAX_LABEL) for label in names)
        raise UserError(f"--baseline {name} names {len(names)} conditions: {listed}; name one of them")
    return {family: own[0] for family, own in members.items()}


def quotations(table: Table) -> list[Quotation]:
    """Return the published results that are shown."""
    keys = [key for key in table.columns if key in QUOTED] if table.columns else ["published"]
    return [one for key in keys for own in table.rows[key] for one in own]


# With a row for each condition and test set


def all_texts(table: Table, format: str = "md") -> "pd.DataFrame":
    """Return every column that may be asked for as texts."""
    import pandas as pd

    rows = rows_of(table.rows)
    texts = {
        "task": table.rows["task"],
        "split": table.rows["split_label"],
        "value": table.rows["value"],
        "arch": table.rows["arch"],
        "preset": table.rows["preset_label"],
        "n": map(run_count, rows),
        "metric": table.rows["metric"].map(metric_name),
        "result": [with_interval(r.mean, r.low, r.high) for r in rows],
        "difference": [
            with_interval(r.difference, r.difference_low, r.difference_high, "+") if r.baseline else "" for r in rows
        ],
        "q": [p_value(r.q) if r.baseline else "" for r in rows],
        "group": table.rows["letters"],
        "seeds": [", ".join(f"{seed}: {number(value)}" for seed, value in r.each_seed.items()) for r in rows],
        **{key: table.rows[key].map(number) for key in MEASURED},
        **{key: [quoted_texts(own, format) for own in table.rows[key]] for key in QUOTED},
        **{key: table.rows[key] for key in ("L90", "L50")},
        "parameters": [f"{r.parameters:,}" if r.parameters else "" for r in rows],
        "seconds": [f"{r.seconds:,.0f}" if r.seconds == r.seconds else "" for r in rows],
    }
    return pd.DataFrame({key: list(texts[key]) for key in HEADS})


def long(table: Table, format: str = "md") -> Cells:
    """Return the texts of the columns that were asked for, with a row for each condition and test set."""
    texts, left = all_texts(table, format), LEFT
    if format == "text":
        for key in ("result", "difference"):  # a number and its interval, each aligned
            texts[key] = aligned(list(texts[key]))
        left |= {"result", "difference"}
    several, family = table.rows["metric"].nunique() > 1, table.rows["family"]
    result = "value" if several else metric_name(table.rows["metric"].iloc[0])
    said = {"result": result, "tag": table.rows["tag"].iloc[0], "baseline": table.baseline}
    return Cells(
        {key: list(texts[key]) for key in table.columns},
        {key: head.format(**said) for key, head in HEADS.items()},
        left=left,
        bold={"result": list(table.rows["best_group"])},
        breaks=frozenset(i for i in range(1, len(family)) if family.iloc[i] != family.iloc[i - 1]),
        folded=frozenset(("preset", "seeds", *QUOTED)),
        names=max(1, next((i for i, key in enumerate(table.columns) if key not in LEFT), 1)),
    )


# All formats


def layout(table: Table, format: str, width: int = 0) -> list[Cells]:
    """Return the tables to print; on a terminal with intervals in lines of their own if they are wider than it."""
    if table.columns:
        return [long(table, format)]
    found = wide(table.rows, table.baseline, format)
    narrow = format == "text" and any(cells.width > width for cells in found)
    return wide(table.rows, table.baseline, format, narrow) if narrow else found


def values(table: Table) -> list[dict[str, Any]]:
    """Return each row as plain numbers and texts, with the folders of its runs; None or nan where nothing is known."""
    out = []
    rows: list[Any] = table.rows.to_dict("records")
    for row in rows:
        plain = row | {key: row[key] or None for key in ("baseline", "test_of_p")} | {
            key: {"": None, "none": 0}.get(row[key], int(row[key]) if row[key].isdigit() else row[key])  # or `>=15`
            for key in ("L90", "L50")
        } | {
            "settings": labels.text(row["settings"], short=False), "n": len(row["runs"]),
            "examples": row["count"], "diverged": len(row["diverged"]), "train_seconds": row["seconds"],
            "each_seed": {str(seed): value for seed, value in row["each_seed"].items()},
            "runs": [str(run.path) for run in row["runs"]],
        } | {key: [_figure(one) for one in row[key]] for key in QUOTED}  # fmt: skip
        out.append({key: plain[key] for key in FIELDS})
    return out


def _figure(one: Quotation) -> dict[str, Any]:
    return {key: getattr(one.figure, key) for key in FIGURE_KEYS} | {"same_settings": one.same_settings}


def to_json(table: Table) -> str:
    """Return all values, the folder of each run, and the notes."""
    tree = {"baseline": table.baseline or None, "rows": values(table), "notes": [note.text for note in table.notes]}
    return json_text(tree)


def to_csv(table: Table) -> str:
    """Return a line for each row; items of lists are separated by spaces or semicolons."""
    import pandas as pd

    frame = pd.DataFrame(values(table), columns=FIELDS, dtype=object)
    for key in QUOTED:
        frame[key] = ["; ".join(map(str, own)) for own in table.rows[key]]
    frame["each_seed"] = [" ".join(f"{s}:{value:.6g}" for s, value in own.items()) for own in table.rows["each_seed"]]
    frame["runs"] = frame["runs"].map(" ".join)
    return csv_text(frame)


def bibliography(table: Table) -> str:
    """Return the BibTeX entries of the papers whose figures are in the table."""
    keys = sorted({one.figure.paper for one in quotations(table)})
    return "\n\n".join(papers()[key].entry for key in keys) + "\n" if keys else ""


def to_text(table: Table, format: str, caption: str = "", label: str = "", notes: bool = False) -> str:
    """Return the table in one of `FORMATS`, with all notes or those that a reader needs first.

    `UserError` for an unknown format.
    """
    one_of("format", format, FORMATS)
    if writer := {"json": to_json, "csv": to_csv, "bib": bibliography}.get(format):
        return writer(table)
    found = layout(table, format, text_width())
    return render(found, shown_notes(table, notes), format, caption, label, about(table))


def print_table(table: Table, console: "Console", notes: bool = False) -> None:
    """Print the table as wide as the console."""
    show(layout(table, "text", console.width), shown_notes(table, notes), console)


def about(table: Table) -> str:
    """Return what the numbers of a table are, and what its letters mean if it shows them."""
    return first_note(table.rows, not table.columns or "group" in table.columns)


def shown_notes(table: Table, all_of_them: bool) -> list[str]:
    """Return the notes of a table as texts: all, or those that a reader needs first."""
    published = quotations(table)
    if not all_of_them:
        return first_notes(about(table), table.notes, published)
    return [*sign_notes(published), *(note.text for note in table.notes)]


class StudyTable:
    """The table of a study: text in a terminal, HTML in a notebook, pandas by `frame`, other formats by `render`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def frame(self) -> "pd.DataFrame":
        """The table as a pandas frame: a row for each condition and test set, with unrounded values in percent.

        Columns: `task`, `split`, `test`, `arch`, `preset`, `settings`, `metric`, `n` (seeds), `mean`, `low` and
        `high` (95 % interval), `q`, `each_seed`, `published`, `runs` (their folders) and those of `--format json`.
        """
        import pandas as pd

        return pd.DataFrame(values(self._table))

    @property
    def notes(self) -> list[str]:
        """What the table says below its rows: how means, intervals and tests were computed, and what was left out."""
        return [note.text for note in self._table.notes]

    def render(self, format: str = "text", caption: str = "", label: str = "", notes: bool = False) -> str:
        """Return the table as text.

        Args:
            format: `text` for a terminal, `md`, `html`, `csv`, `json`, `tex`, or `bib` for the papers it quotes.
            caption: Caption of the LaTeX table, in plain text.
            label: Label of the LaTeX table, such as `tab:scan`.
            notes: Whether to print all notes under it, not only those that a reader needs first.

        Raises:
            UserError: For an unknown format.
        """
        return to_text(self._table, format, caption, label, notes)

    def __len__(self) -> int:
        return len(self._table.rows)

    def __repr__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")


def table(
    study: str | Path = "",
    *,
    by: str = "",
    metric: str = "",
    baseline: str = "",
    columns: str | Sequence[str] = (),
    results: str | Path = "results",
) -> StudyTable:
    """Return the table of a study, as `tfstudy table` prints it: a row for each condition.

    Args:
        study: Name of a study, such as `"scan"`, or its folder; the folder of results for all studies. It may be left
            out if there is only one.
        by: Tag of the examples such as `"length"`, of which each value has a row.
        metric: Metric, such as `"token_accuracy"`; by default exact match, or BLEU for translation.
        baseline: Architecture or condition with which the others are compared.
        columns: Columns such as `["arch", "n", "result"]`, with a row for each condition and test set.
        results: The folder of all results.

    Raises:
        UserError: If there is no finished run, or for an unknown name.

    Examples:
        >>> table = tfstudy.table("scan", baseline="lstm")
        >>> table.frame[["split", "arch", "mean", "low", "high"]]
    """
    names = columns if isinstance(columns, str) else ",".join(columns)
    return StudyTable(read_table(study_folder(study, results), by, metric, baseline, names))

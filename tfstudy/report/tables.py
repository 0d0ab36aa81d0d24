"""Tables of studies: a frame of numbers with a row for each condition, then a frame of texts, then one `render`.

To add a column: its number in `_numbers` (if it is not in `summary.conditions`), its text in `cells`, its head in
`HEADS`, and its name in `FIELDS` if JSON and CSV should have it.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.analysis import labels, summary
from tfstudy.analysis.frame import Study, read_finished_runs
from tfstudy.analysis.labels import Condition
from tfstudy.analysis.published import SIGN_NOTE, Quotation, beside, papers
from tfstudy.analysis.summary import OVER_LENGTHS, conditions, letters, mean_of, pairs, rows_of, sort_key, swapped
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.report.markup import csv_text, json_text, number, p_value, plural, with_interval
from tfstudy.report.notes import Note, contrast_note, first_note, first_notes, table_notes
from tfstudy.report.render import Cells, Written, fits, render, show, text_width
from tfstudy.report.wide import aligned, cited, wide
from tfstudy.runs.display import metric_name
from tfstudy.runs.find import study_folder
from tfstudy.runs.status import read_plan

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

ORACLE = "oracle_length_exact_match"
MEASURED = {"oracle_length": ORACLE, "over_lengths": OVER_LENGTHS, "chrf": "chrf"}  # metrics beside the main one
ORACLE_HEAD = "oracle length, EOS forbidden"  # not: outputs stopped at the length of the target
MAX_LABEL = 300  # characters of a label in a message: it must be possible to copy it
ORDER_KEYS = ("task", "split", "arch", "preset")  # what `--by` may name besides a tag
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
HEADS = {  # of the columns, in their order; `result` is called as the metric
    "task": "task", "split": "split", "tag": "", "arch": "architecture", "preset": "preset", "n": "n",
    "metric": "metric", "result": "", "published": "published", "difference": "vs {baseline}", "q": "q",
    "group": "group", "seeds": "{result} by seed", "chrf": "chrF", "oracle_length": ORACLE_HEAD,
    "published_oracle_length": f"published, {ORACLE_HEAD}", "over_lengths": "token accuracy over lengths",
    "published_over_lengths": "published, over lengths", "L90": "L90", "L50": "L50", "parameters": "parameters",
    "seconds": "seconds",
}  # fmt: skip
QUOTED = ("published", "published_oracle_length", "published_over_lengths")
LEFT = frozenset(("task", "split", "arch", "preset", "metric", "group", "seeds", *QUOTED))
ON_REQUEST = ("seconds", "seeds")  # not shown by default
COMPARED = ("difference", "q")  # need a baseline
# on a terminal: what is left out, and what stands last
TOO_WIDE = (
    "parameters", "L50", "published_over_lengths", "over_lengths", "chrf", "published_oracle_length", "oracle_length",
    "L90", "preset",
)  # fmt: skip
LAST = ("difference", "q", "group", "seeds", "published", "metric", "result")


class Table(NamedTuple):
    """The table of a study: a row for each condition, the comparisons behind them, and notes on the numbers."""

    rows: "pd.DataFrame"  # see `summary.conditions`, and below
    pairs: "pd.DataFrame"  # see `summary.pairs`
    baseline: str
    shown: Sequence[str] = ()  # the keys of the columns
    fixed: bool = False  # whether they were asked for
    notes: Sequence[Note] = ()
    contrasts: Sequence[dict[str, Any]] = ()  # see `summary.contrasts`


def read_table(
    study: Path, by: str = "", metric: str = "", baseline: str = "", columns: str = "", seeds: bool = False
) -> Table:
    """Return the table of a study, or of all studies under a folder.

    `by` sets the order, such as `split,arch`; a tag such as `length` in it makes a row for each of its values.
    `baseline`, with which the others are compared, is an architecture or a label (`lstm train.steps=600`).
    `columns` are the keys of the columns to show, separated by commas; `seeds` adds the result of each seed.
    `UserError` if there is no finished run, for unknown names, or if several conditions are called `baseline`.
    """
    finished = read_finished_runs(study)
    keys, shown = _names(by, "--by"), _names(columns, "--columns")
    tags = [key for key in keys if key not in ORDER_KEYS]
    if tags:
        # of test examples, from one run of each experiment
        results = {run.result.experiment: run.result for run in finished.runs[::-1]}.values()
        scores = [one for result in results for one in result.splits.values() if one.role == "test"]
        known = sorted({tag for one in scores for tag in one.slices})
        for tag in tags:
            one_of("tag or split", tag, (*ORDER_KEYS, *known))
    if len(tags) > 1:
        raise UserError(f"--by takes at most one tag, got {' and '.join(tags)}")
    found = conditions(finished.runs, "".join(tags), metric)
    return build_table(finished, _ordered(found, keys), baseline, shown, seeds)


def _names(text: str, option: str) -> list[str]:
    """Return the names in the text of an option; `UserError` for an empty one between commas."""
    names = [name.strip() for name in text.split(",")] if text else []
    if not all(names):
        raise UserError(f"{option} must be names separated by commas, but is {quoted(text)}")
    return list(dict.fromkeys(names))


def _ordered(found: "pd.DataFrame", keys: Sequence[str]) -> "pd.DataFrame":
    """Return the conditions, ordered by these keys first."""

    def key(row: Any) -> tuple[Any, ...]:
        usual, settings = sort_key(row), labels.text(row["settings"], short=False)
        own = {"task": usual[:1], "split": usual[1:5], "arch": (row["arch"],), "preset": (row["preset"], settings)}
        return tuple(own.get(name, usual[5:6]) for name in keys)

    rows = [key(row) for row in found.to_dict("records")]
    return found.loc[sorted(range(len(rows)), key=rows.__getitem__)].reset_index(drop=True) if keys else found


def build_table(
    study: Study, found: "pd.DataFrame", baseline: str = "", columns: Sequence[str] = (), seeds: bool = False
) -> Table:
    """Return the table of these conditions of a study."""
    compared = pairs(found)
    rows, other = rows_of(found), baseline_conditions(found, baseline) if baseline else {}
    # each condition's comparison with the baseline of its family
    both = [one for pair in rows_of(compared) for one in (pair, swapped(pair))]
    against = {one.first: one for one in both if other.get(rows[one.second].family) == one.second}
    groups = letters(found, compared)
    more = _numbers(rows, groups, [against.get(row.Index) for row in rows])
    table = Table(found.assign(group=groups, **more), compared, baseline)
    table = table._replace(shown=shown_columns(table, columns, seeds), fixed=bool(columns))
    notes = table_notes(study, found, compared, table.shown, quotations(table))
    if other and (uncompared := sum(family not in other for family in found["family"])):
        text = f"no difference in {uncompared} of {plural(len(found), 'row')}: {baseline} has no run with their test "
        notes.append(Note("baseline", f"{text}examples and amount of training data"))
    return table._replace(notes=notes, contrasts=summary.contrasts(found, compared, read_plan(study.root).contrasts))


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


# Texts


def quotations(table: Table) -> list[Quotation]:
    """Return the published figures in the columns that are shown."""
    return [one for key in table.shown if key in QUOTED for own in table.rows[key] for one in own]


def all_texts(table: Table, format: str = "md") -> "pd.DataFrame":
    """Return every column that a table can have as texts, in their order."""
    import pandas as pd

    rows, join = rows_of(table.rows), "\n" if format == "text" else "; "
    quote, kind = (cited, Written) if format == "tex" else (str, str)
    texts = {
        "task": table.rows["task"],
        "split": table.rows["split_label"],
        "tag": table.rows["value"],
        "arch": table.rows["arch"],
        "preset": table.rows["preset_label"],
        "n": [f"{len(r.runs)}" + (f", {len(r.diverged)} diverged" if r.diverged else "") for r in rows],
        "metric": table.rows["metric"].map(metric_name),
        "result": [with_interval(r.mean, r.low, r.high) for r in rows],
        "difference": [
            with_interval(r.difference, r.difference_low, r.difference_high, "+") if r.baseline else "" for r in rows
        ],
        "q": [p_value(r.q) if r.baseline else "" for r in rows],
        "group": table.rows["letters"],
        "seeds": [", ".join(f"{seed}: {number(value)}" for seed, value in r.each_seed.items()) for r in rows],
        **{key: table.rows[key].map(number) for key in MEASURED},
        **{key: [kind(join.join(map(quote, own))) for own in table.rows[key]] for key in QUOTED},
        **{key: table.rows[key] for key in ("L90", "L50")},
        "parameters": [f"{r.parameters:,}" if r.parameters else "" for r in rows],
        "seconds": [f"{r.seconds:,.0f}" if r.seconds == r.seconds else "" for r in rows],
    }
    return pd.DataFrame({key: texts[key] for key in HEADS if key != "tag" or table.rows["tag"].any()})


def heads(table: Table) -> dict[str, str]:
    """Return the heads of columns by key; no two are the same."""
    several = table.rows["metric"].nunique() > 1
    result, tag = "value" if several else metric_name(table.rows["metric"].iloc[0]), table.rows["tag"].iloc[0]
    out = {key: head.format(baseline=table.baseline, result=result) for key, head in HEADS.items()} | {"result": result}
    return out | {"tag": f"tag {tag}" if tag in {*out.values()} else tag}


def shown_columns(table: Table, columns: Sequence[str], seeds: bool) -> list[str]:
    """Return the keys of the requested columns of a table; by default, of those that say something.

    `UserError` for unknown names, and for a difference without a baseline.
    """
    texts, tag = all_texts(table), table.rows["tag"].iloc[0]
    names = {str(tag if key == "tag" else key): str(key) for key in texts}
    if columns:
        for name in columns:
            one_of("column", name, names, "--columns")
            if name in COMPARED and not table.baseline:
                raise UserError(f"--columns: column '{name}' needs --baseline")
        keys = [names[name] for name in columns]
    else:
        needless = {key for key in ("task", "metric") if table.rows[key].nunique() < 2} | {*ON_REQUEST}
        needless |= set() if any(table.rows["published_over_lengths"]) else {"over_lengths"}
        keys = [str(key) for key in texts if key not in needless and any(texts[key])]
    return keys + ["seeds"] * (seeds and "seeds" not in keys)


def cells(table: Table, format: str = "md") -> Cells:
    """Return the texts of the shown columns for `render`, with a row for each condition and test set."""
    keys, texts, left = list(table.shown), all_texts(table, format), LEFT
    if format == "text":
        keys = keys if table.fixed else sorted(keys, key=lambda key: LAST.index(key) if key in LAST else -1)
        for key in ("result", "difference"):  # a number and its interval, each aligned
            texts[key] = aligned(list(texts[key]))
        left |= {"result", "difference"}
    family = table.rows["family"]
    too_wide = [key for key in TOO_WIDE if key != "preset" or texts["preset"].nunique() < 2]
    return Cells(
        {key: list(texts[key]) for key in keys},
        heads(table),
        left=left,
        bold={"result": list(table.rows["best_group"])},
        breaks=frozenset(i for i in range(1, len(family)) if family.iloc[i] != family.iloc[i - 1]),
        folded=frozenset(("preset", "seeds", *QUOTED)),
        left_out=too_wide,
        left_out_last=(("group",), ("published",), COMPARED),
    )


def layout(table: Table, format: str, width: int = 0) -> list[Cells]:
    """Return the tables to print: as in a paper, a column for each test set; long if columns were asked for.

    On a terminal it is long too where the other one is wider than it, and with a baseline, whose differences then stand
    beside the results.
    """
    long = table.fixed or "seeds" in table.shown
    if long or (format == "text" and table.baseline):
        return [cells(table, format)]
    if format != "text":
        return wide(table, format)
    ways = (wide(table, format, narrow) for narrow in (False, True))
    return next((found for found in ways if fits(found, width)), [cells(table, format)])


# All formats


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
    return json_text(tree | ({"contrasts": table.contrasts} if table.contrasts else {}))


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
    """Return the table in one of `FORMATS`, with all notes or the three that a reader needs first.

    `UserError` for an unknown format.
    """
    one_of("format", format, FORMATS)
    if writer := {"json": to_json, "csv": to_csv, "bib": bibliography}.get(format):
        return writer(table)
    found = layout(table, format, text_width())
    return render(found, shown_notes(table, found, notes), format, caption, label, first_note(table.rows))


def print_table(table: Table, console: "Console", notes: bool = False) -> None:
    """Print the table as wide as the console."""
    found = layout(table, "text", console.width)
    show(found, shown_notes(table, found, notes), console, fixed=table.fixed)


def shown_notes(table: Table, printed: Sequence[Cells], all_of_them: bool) -> list[str]:
    """Return the notes of a table as texts: all, or those that a reader needs first."""
    long = any(key in cells.heads for cells in printed for key in QUOTED[1:])  # else it quotes only the main metric
    quoted = quotations(table) if long else [one for own in table.rows["published"] for one in own]
    named = map(contrast_note, table.contrasts)
    if not all_of_them:
        return [*first_notes(table.rows, table.notes, quoted), *named]
    return [*named, *[SIGN_NOTE] * any(not one.same_settings for one in quoted), *(note.text for note in table.notes)]


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
    by: str | Sequence[str] = (),
    metric: str = "",
    baseline: str = "",
    columns: str | Sequence[str] = (),
    seeds: bool = False,
    results: str | Path = "results",
) -> StudyTable:
    """Return the table of a study, as `tfstudy table` prints it: a row for each condition.

    Args:
        study: Name of a study, such as `"scan"`, or its folder; the folder of results for all studies. It may be left
            out if there is only one.
        by: Names that give the order of the rows: task, split, arch, preset, or a tag of the examples such as
            length, which makes a row for each of its values.
        metric: Metric, such as `"token_accuracy"`; by default exact match, or BLEU for translation.
        baseline: Architecture or condition with which the others are compared.
        columns: Columns to show, such as `["arch", "n", "result"]`; by default all that have values.
        seeds: Whether to show the result of each seed.
        results: The folder of all results.

    Raises:
        UserError: If there is no finished run, or for an unknown name.

    Examples:
        >>> table = tfstudy.table("scan", baseline="lstm")
        >>> table.frame[["split", "arch", "mean", "low", "high"]]
    """
    by, columns = (names if isinstance(names, str) else ",".join(names) for names in (by, columns))
    return StudyTable(read_table(study_folder(study, results), by, metric, baseline, columns, seeds))

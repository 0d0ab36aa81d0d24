"""The table of a study: a frame of numbers with a row for each condition and test set, then texts, then one `render`.

The texts are laid out as in a paper, in a table for each task, with a row for each condition and a column for each test
set. A cell has the mean, its interval and its letters; published results stand in rows of their own below. With a
baseline a second table has the differences from it. Where there are more test sets than conditions, and more than
`MANY`, rows and columns change places.

To add a number: compute it in `_numbers` (if it is not in `summary.conditions`), and name it in `FIELDS` for JSON, CSV
and `frame`. What a cell shows is in `_of_task`.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfstudy.analysis import labels
from tfstudy.analysis.frame import DEFAULT, Study, read_finished_runs
from tfstudy.analysis.labels import OUTDATED, Condition
from tfstudy.analysis.published import Quotation, papers, quotations
from tfstudy.analysis.summary import OVER_LENGTHS, conditions, letters, mean_of, pairs, rows_of, swapped
from tfstudy.config.trees import short_key
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.report import markup
from tfstudy.report.markup import csv_text, ends, escape_latex, number, p_value, plural, short_number
from tfstudy.report.notes import Note, shown_notes, table_notes
from tfstudy.report.render import Cells, Listing, Written, render
from tfstudy.runs.find import study_folder
from tfstudy.runs.schema import metric_name

if TYPE_CHECKING:
    import pandas as pd

ORACLE = "oracle_length_exact_match"
MEASURED = {"oracle_length": ORACLE, "over_lengths": OVER_LENGTHS, "chrf": "chrf"}  # metrics beside the main one
FORMATS = (*markup.FORMATS, "bib")
FIELDS = (  # of JSON and CSV
    "task", "split", "corpus", "test", "tag", "value", "arch", "preset", "settings", "metric", "n", "experiment",
    "examples", "diverged", "mean", "low", "high", "interval", "group", "best_group", "baseline", "difference",
    "difference_low", "difference_high", "p", "q", "test_of_p", "oracle_length", "chrf", "over_lengths", "L90", "L50",
    "parameters", "train_seconds", "each_seed", "published", "published_oracle_length", "published_over_lengths",
    "runs",
)  # fmt: skip
QUOTED = {"published": "", "published_oracle_length": ORACLE, "published_over_lengths": OVER_LENGTHS}
FIGURE_KEYS = (
    "id", "paper", "arch", "value", "value_kind", "spread", "spread_kind", "n", "settings", "preset", "source", "place",
)  # fmt: skip
MAX_LABEL = 300  # characters of a label in a message: it must be possible to copy it
MANY = 6  # test sets in columns, where there are fewer conditions
LABELS = ("architecture", "preset")  # heads whose texts say what they are
SIZE = "parameters"
Place = tuple[str, ...]
Names = tuple[str, ...]  # what tells a row from the others: a text for each head
Lines = Mapping[Names, Mapping[Place, Condition]]  # of each row the same condition on several test sets


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """The table of a study: text in a terminal, HTML in a notebook, pandas by `frame`, other formats by `render`."""

    rows: "pd.DataFrame"  # see `summary.conditions` and `_numbers`
    pairs: "pd.DataFrame"  # the comparisons behind it, see `summary.pairs`
    baseline: str
    notes: Sequence[Note]  # how means, intervals and tests were computed, and what was left out

    @property
    def frame(self) -> "pd.DataFrame":
        """The table as a pandas frame: a row for each condition and test set, with unrounded values in percent.

        Columns: `task`, `split`, `test`, `arch`, `preset`, `settings`, `metric`, `n` (seeds), `mean`, `low` and
        `high` (95 % interval), `q`, `each_seed`, `published`, `runs` (their folders) and those of `--format json`.
        """
        import pandas as pd

        return pd.DataFrame(values(self))

    def render(self, format: str = "text", notes: bool = False) -> str:
        """Return the table as text.

        Args:
            format: `text` for a terminal, `md`, `html`, `csv`, `json`, `tex`, or `bib` for the papers it quotes.
            notes: Whether to print all notes under it, not only those that a reader needs first.

        Raises:
            UserError: For an unknown format.
        """
        one_of("format", format, FORMATS)
        if writer := {"csv": to_csv, "bib": bibliography}.get(format):
            return writer(self)
        found = self.listing(format, notes)
        return render(found.parts, found.notes, format, found.values)

    def listing(self, format: str, notes: bool = False) -> Listing:
        """Return the texts for a format, and all notes or those that a reader needs first; all values for JSON."""
        plain: dict[str, Any] = {"baseline": self.baseline or None, "rows": values(self)}
        plain["notes"] = [own.text for own in self.notes]
        return Listing(wide(self.rows, self.baseline, format), shown_notes(self.rows, self.notes, notes), plain)

    def __repr__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")


def table(
    study: str | Path = "", *, by: str = "", metric: str = "", baseline: str = "", results: str | Path = "results"
) -> Table:
    """Return the table of a study, as `tfstudy table` prints it: a row for each condition.

    Args:
        study: Name of a study, such as `"scan"`, or its folder; the folder of results for all studies. It may be left
            out if there is only one.
        by: Tag of the examples such as `"length"`, of which each value has a row.
        metric: Metric, such as `"token_accuracy"`; by default BLEU, or the first of the task.
        baseline: Architecture or condition (`"lstm train.steps=600"`) with which the others are compared.
        results: The folder of all results.

    Raises:
        UserError: If there is no finished run, for an unknown name, or if several conditions are called `baseline`.

    Examples:
        >>> table = tfstudy.table("scan", baseline="lstm")
        >>> table.frame[["split", "arch", "mean", "low", "high"]]
    """
    finished = read_finished_runs(study_folder(study, results))
    if by:
        scores = [one for run in finished.runs for one in run.result.splits.values() if one.role == "test"]
        one_of("tag", by, sorted({tag for one in scores for tag in one.slices}), "--by")
    return build_table(finished, conditions(finished.runs, by, metric), baseline)


# Numbers


def build_table(study: Study, found: "pd.DataFrame", baseline: str = "") -> Table:
    """Return the table of these conditions of a study."""
    compared = pairs(found)
    rows, other = rows_of(found), baseline_conditions(found, baseline) if baseline else {}
    # each condition's comparison with the baseline of its family
    both = [one for pair in rows_of(compared) for one in (pair, swapped(pair))]
    against = {one.first: one for one in both if other.get(rows[one.second].family) == one.second}
    found = found.assign(**_numbers(rows, letters(found, compared), [against.get(row.Index) for row in rows]))
    notes = table_notes(study, found, compared, bool(baseline))
    if other and (uncompared := sum(family not in other for family in found["family"])):
        text = f"no difference in {uncompared} of {plural(len(found), 'row')}: {baseline} has no run with their test "
        notes.append(Note("", f"{text}examples and amount of training data"))
    return Table(found, compared, baseline, notes)


def _numbers(rows: Sequence[Condition], groups: list[str], against: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of a table besides those of its conditions."""
    # letters are shown, and the best group marked, only where another group is significantly worse
    several = {row.family for row, group in zip(rows, groups, strict=True) if group and "a" not in group}
    shown = [group if row.family in several else "" for row, group in zip(rows, groups, strict=True)]
    fields = {"difference": "mean", "difference_low": "low", "difference_high": "high", "p": "p", "q": "q"}
    return {
        "group": groups,
        "letters": shown,
        "best_group": ["a" in group for group in shown],
        "baseline": [rows[one.second].label if one else "" for one in against],
        "decided": [bool(one and one.significant) for one in against],
        "test_of_p": [one.method if one else "" for one in against],
        **{name: [getattr(one, field) if one else nan for one in against] for name, field in fields.items()},
        **{name: [mean_of(row, metric) for row in rows] for name, metric in MEASURED.items()},
        **{name: quotations(rows, metric) for name, metric in QUOTED.items()},
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
        }  # fmt: skip
        for key in QUOTED:
            plain[key] = [
                {name: getattr(figure, name) for name in FIGURE_KEYS} | {"same_settings": same}
                for figure, same in row[key]
            ]
        out.append({key: plain[key] for key in FIELDS})
    return out


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
    keys = sorted({one.figure.paper for own in table.rows["published"] for one in own})
    return "\n\n".join(papers()[key].entry for key in keys) + "\n" if keys else ""


# Texts


def wide(rows: "pd.DataFrame", baseline: str = "", format: str = "md") -> list[Cells]:
    """Return the tables of `tables.Table.rows`, of each task its results and then, with a baseline, the differences."""
    tasks = rows.groupby("task", sort=False)
    return [cells for _, own in tasks for cells in _of_task(rows_of(own), baseline, format)]


def _of_task(rows: Sequence[Condition], baseline: str, format: str) -> list[Cells]:
    heads, lines = _lines(rows)
    common, places = _places(rows)
    published = _published(rows, format)
    usual = Counter(len(row.runs) for row in rows).most_common(1)[0][0]

    def result(row: Condition) -> str:
        span, lost = ends(row.low, row.high), f", {len(row.diverged)} diverged" * bool(row.diverged)
        count = f"(n = {len(row.runs)}{lost})" if lost or len(row.runs) != usual else ""
        parts = [number(row.mean), span, row.letters, count]
        if format == "text":
            parts = [number(row.mean), row.letters, count, span and f"\n{span}"]
        return " ".join(filter(None, parts)).replace(" \n", "\n")

    def difference(row: Condition) -> str:
        return f"{number(row.difference, '+')} ({p_value(row.q)})" if row.baseline and row.q == row.q else ""

    def cells(title: str, lines: Lines, text: Callable[[Condition], str], bold: Callable[[Condition], Any]) -> Cells:
        """Return a table with a text for each of these conditions, and published results below results."""
        below = published if text is result else {}
        names = {head: [line[i] for line in lines] for i, head in enumerate(heads) if head not in shared}
        frame = {head: [*own, *(below if head == heads[0] else [""] * len(below))] for head, own in names.items()}
        strong = {}
        for place, name in places.items():
            on = [line.get(place) for line in lines.values()]
            frame[name] = [text(row) if row else "" for row in on] + [one.get(place, "") for one in below.values()]
            strong[name] = [bool(row and bold(row)) for row in on] + [False] * len(below)
        if text is result and SIZE not in shared:
            frame[SIZE] = [*sizes, *[""] * len(below)]
        found = Cells(frame, title=title, left={*names, *places.values()}, bold=strong, names=len(names))
        return turned(found) if turn else found

    # settings and sizes that all rows share stand in the title, but no architecture with published results below
    sizes = []
    for on in lines.values():
        own = sorted({row.parameters for row in on.values()} - {0})
        sizes.append(" to ".join(dict.fromkeys(map(short_number, own[:1] + own[-1:]))))
    columns = [*(zip(*lines, strict=True)), sizes]
    shared = {
        head: texts[0]
        for head, texts in zip((*heads, SIZE), columns, strict=True)
        if len(lines) > 1 and len({*texts}) == 1 and not (published and head == heads[0])
    }
    turn = len(places) > max(MANY, len(lines))
    by = f" by {rows[0].tag}" * bool(rows[0].tag)
    same = ", ".join(f"{head} {text}" for head, text in shared.items() if text)
    title = f"{metric_name(rows[0].metric)} on {rows[0].task} {common}".rstrip() + by
    tables = [cells(title + f"; the same in each row: {same}" * bool(same), lines, result, lambda row: row.best_group)]
    if compared := {line: on for line, on in lines.items() if any(map(difference, on.values()))}:
        of_baseline = f"difference from {baseline} in points (q)"
        tables.append(cells(of_baseline, compared, difference, lambda row: row.decided))
    return tables


def _lines(rows: Sequence[Condition]) -> tuple[list[str], Lines]:
    """Return the heads of what tells conditions apart, and each condition with its test sets.

    These are the architecture, the preset unless all have the default, and the settings in which conditions of the same
    architecture and preset differ, of settings that tell the same conditions apart the first. Conditions with less
    training data come first.
    """
    keys = dict.fromkeys(key for row in rows for key in row.settings if key != OUTDATED)
    own = [{key: row.settings.get(key, row.config.get(key, "")) for key in keys} for row in rows]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row, settings in zip(rows, own, strict=True):
        groups.setdefault((row.arch, row.preset), []).append(settings)
    varying = {key for members in groups.values() for key in labels.varying(members, fewest=False)}
    texts = {key: [str(settings[key]) for settings in own] for key in reversed(keys) if key in varying}
    groupings = {tuple(map(column.index, column)): key for key, column in texts.items()}
    shown = [key for key in keys if key in groupings.values()]
    presets = [f"{row.preset}{f' {OUTDATED}' * bool(row.settings.get(OUTDATED))}" for row in rows]
    with_preset = {*presets} != {DEFAULT}
    heads = [LABELS[0], *[LABELS[1]] * with_preset, *map(short_key, shown)]
    names: list[Names] = [
        (row.arch, *[preset] * with_preset, *(str(settings[key]) for key in shown))
        for row, preset, settings in zip(rows, presets, own, strict=True)
    ]
    if len({(one, row.place) for one, row in zip(names, rows, strict=True)}) < len(rows):
        heads, names = [*LABELS], [(row.arch, row.preset_label) for row in rows]
    lines: dict[Names, dict[Place, Condition]] = {}
    for one, row in zip(names, rows, strict=True):
        lines.setdefault(one, {})[row.place] = row

    def order(line: Names) -> tuple[Any, ...]:  # numbers in names by their size
        words = [[int(w) if n % 2 else w for n, w in enumerate(re.split(r"(\d+)", name))] for name in line]
        return next(iter(lines[line].values())).amount, words

    return heads, {line: lines[line] for line in sorted(lines, key=order)}


def _places(rows: Sequence[Condition]) -> tuple[str, dict[Place, str]]:
    """Return the words that all names of test sets begin with, or nothing, and the rest of each."""
    names = {row.place: " ".join(filter(None, [row.split_label, row.value])) for row in rows}
    twice = Counter(names.values())
    digests = {row.place: f" ({row.examples[:8] or 'others'})" * (twice[names[row.place]] > 1) for row in rows}
    words = zip(*(name.split() for name in {*names.values()}), strict=False)
    shared = [first for first, *_ in takewhile(lambda same: len({*same}) == 1, words)]
    common = " ".join(shared) if len({*names.values()}) > 1 else ""
    return common, {
        place: (name.removeprefix(common).strip() or "test") + digests[place] for place, name in names.items()
    }


def _published(rows: Sequence[Condition], format: str) -> dict[str, dict[Place, str]]:
    """Return the texts of published results by the name of a row, and test set: those of each kind of network."""
    found: dict[str, dict[Place, dict[str, Quotation]]] = {}
    compared = Counter((row.arch, row.place) for row in rows)
    for row in rows:
        if row.published:
            own = found.setdefault(f"{row.arch},{chr(10) if format == 'text' else ' '}published", {})
            whose = f" as {labels.text(row.settings) or row.preset}" * (compared[row.arch, row.place] > 1)
            texts = {f"{one}{whose * one.same_settings}": one for one in row.published}
            own.setdefault(row.place, {}).update(texts)
    return {name: {place: _quoted(one, format) for place, one in on.items()} for name, on in found.items()}


def _quoted(published: Mapping[str, Quotation], format: str) -> str:
    """Return published results in one cell: below each other on a terminal and in LaTeX."""
    if format == "tex":
        keyed = [(escape_latex(text), one.figure.paper) for text, one in published.items()]
        stacked = r"\\".join(text.replace(f" [{paper}]", rf"~\cite{{{paper}}}") for text, paper in keyed)
        return Written(rf"\shortstack[l]{{{stacked}}}" if len(published) > 1 else stacked)
    if format == "text":
        return "\n".join(text.replace(" [", "\n[") for text in published)
    return "; ".join(published)


def turned(cells: Cells) -> Cells:
    """Return a table whose rows and columns have changed places."""
    keys = list(cells.frame)
    names, rest = {head: cells.frame[head] for head in keys[: cells.names]}, keys[cells.names :]
    named = [[text if head in LABELS or not text else f"{head}={text}" for text in own] for head, own in names.items()]
    columns = [" ".join(filter(None, one)) for one in zip(*named, strict=True)]
    frame = {"test set": rest} | {name: [cells.frame[head][i] for head in rest] for i, name in enumerate(columns)}
    bold = {name: [head in cells.bold and cells.bold[head][i] for head in rest] for i, name in enumerate(columns)}
    return Cells(frame, title=cells.title, left={*frame}, bold=bold)

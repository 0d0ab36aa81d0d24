"""A paper's figures beside ours, as Markdown or JSON."""

import json
import math
from collections.abc import Callable, Sequence
from textwrap import shorten
from typing import Any

from tfstudy.analysis.reproduction import Compared
from tfstudy.analysis.statistics import Interval
from tfstudy.report.claims import Notes, folders
from tfstudy.report.markup import MINUS

PROTOCOL = (
    "difference: ours minus theirs, with its 95 % interval: Welch's with a published ±, which is taken for a standard "
    "deviation over the paper's seeds (the list of figures does not say of what kind each is); else of our seeds alone",
    "agrees: the whole interval lies within {tolerance:g} points; differs: all of it lies outside; "
    "underpowered: neither, or fewer than 3 seeds (5 on splits of large variance). The best of k seeds has no "
    "interval: our best of as many is within {tolerance:g} points, or is not",
    "unlike: ours differ from the paper's network or settings as told beside them, so that it is no replication",
    "checked: primary figures were read in the paper or its released files, secondary ones in a later paper",
)


def markdown(found: Sequence[Compared], tolerance: float, command: str, notes: Notes = ()) -> str:
    """A line a figure, then the folders of our runs."""
    heads = (
        "split", "network", "setting", "metric", "published", "checked", "ours", "n", "which", "difference", "verdict",
        "why",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in _cells(one))} |" for one in found]
    runs = dict.fromkeys(folders(one.rows) for one in found if one.rows)
    told = [line.format(tolerance=tolerance) for line in PROTOCOL]
    made = [f"the runs beside these figures are made by `{command}`"] if command else []
    return (
        "\n".join([*lines, "", *(f"- {note}" for note in (*told, *made, *notes, *(f"runs: {r}" for r in runs)))]) + "\n"
    )


def _cells(one: Compared) -> tuple[str, ...]:
    figure = one.published
    which = ", ".join(row.label for row in one.rows)
    return (
        figure["split"], figure["arch"], shorten(figure["setting"], 60, placeholder=" ..."), figure["metric"],
        _published(figure), figure["checked"], _ended(one.ours), f"{one.ours.n}" if one.ours else "",
        f"{which} ({one.unlike})" if one.unlike else which, _ended(one.difference, "+"),
        f"{one.verdict}, unlike" if one.unlike else one.verdict, one.why,
    )  # fmt: skip


def _published(figure: dict[str, str]) -> str:
    plain = figure["spread"].replace(".", "", 1).isdigit()
    told = [] if plain or not figure["spread"] else [figure["spread"]]
    told += [f"n = {figure['seeds']}" if figure["seeds"].isdigit() else figure["seeds"]] if figure["seeds"] else []
    spread = f" ± {figure['spread']}" if plain else ""
    return f"{figure['value']}{spread}" + (f" ({', '.join(told)})" if told else "")


def _ended(found: Interval | None, sign: str = "") -> str:
    if found is None or math.isnan(found.mean):
        return ""
    text = f"{found.mean:{sign}.1f}" + (
        "" if math.isnan(found.low) else f" [{found.low:{sign}.1f}, {found.high:{sign}.1f}]"
    )
    kinds = {"Wilson": " within a run", "best": " the best"}
    return text.replace("-", MINUS) + (kinds.get(found.method, "") if not sign else "")


def as_json(found: Sequence[Compared], tolerance: float, command: str, notes: Notes = ()) -> str:
    """All of it as plain values; null where nothing is known."""
    told = [line.format(tolerance=tolerance) for line in PROTOCOL]
    tree = {"tolerance": tolerance, "command": command, "figures": [_tree(one) for one in found]}
    return json.dumps(tree | {"notes": [*told, *notes]}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _tree(one: Compared) -> dict[str, Any]:
    told: dict[str, Any] = {"published": one.published, "verdict": one.verdict, "why": one.why, "unlike": one.unlike}
    for name, found in (("ours", one.ours), ("difference", one.difference)):
        values = found._asdict() if found else None
        told[name] = values and {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}
    return told | {
        "rows": [row.label for row in one.rows],
        "runs": [str(run.path) for row in one.rows for run in (*row.runs, *row.diverged)],
    }


FORMATS: dict[str, Callable[[Sequence[Compared], float, str, Notes], str]] = {"md": markdown, "json": as_json}

"""The colour, marker and line of every series: an architecture looks the same in all pictures."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from zlib import crc32

from tfstudy.analysis.conditions import Condition

COLOURS = {"transformer": "#0072B2", "lstm": "#D55E00", "cnn": "#009E73"}  # Okabe & Ito 2008, safe for the colour-blind
FURTHER = ("#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F")  # of other architectures
MARKERS = ("o", "D", "s", "^", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo")


class Look(NamedTuple):
    """How a series is drawn."""

    colour: str
    marker: str
    line: Any  # a line style of matplotlib
    hatch: str  # of a bar


def looks(archs: Mapping[str, str]) -> dict[str, Look]:
    """Each label's look, given its architecture, in the order of a legend.

    An architecture has one colour, and its labels are told apart by marker and line, up to 28 of them.
    """
    colours = colours_of(archs.values())
    order = list(colours)
    seen = dict.fromkeys(colours, 0)
    out: dict[str, Look] = {}
    for label in sorted(archs, key=lambda label: (order.index(archs[label]), _natural(label))):
        number = seen[archs[label]]
        marker, hatch = MARKERS[number % len(MARKERS)], HATCHES[number % len(HATCHES)]
        out[label] = Look(colours[archs[label]], marker, LINES[number % len(LINES)], hatch)
        seen[archs[label]] += 1
    return out


def _natural(label: str) -> list[Any]:
    """Puts `dim=64` before `dim=128`, and `dropout=0.15` before `dropout=0.3`."""
    return [float(part) if number % 2 else part for number, part in enumerate(re.split(r"(\d+(?:\.\d+)?)", label))]


def looks_of(rows: Iterable[Condition]) -> dict[str, Look]:
    """The looks of these rows by their labels."""
    return looks({row.label: row.arch for row in rows})


def colours_of(archs: Iterable[str]) -> dict[str, str]:
    """Each architecture's colour: a fixed one, or one that its name decides, or the next that is free."""
    names = set(archs)
    out = {name: colour for name, colour in COLOURS.items() if name in names}
    for name in sorted(names - out.keys()):
        first = crc32(name.encode()) % len(FURTHER)
        turned = (*FURTHER[first:], *FURTHER[:first])
        out[name] = next((colour for colour in turned if colour not in out.values()), turned[0])
    return out

"""The colour, marker, line and hatch of every series: an architecture has the same colour in all plots."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from zlib import crc32

from tfstudy.analysis.conditions import Condition

COLOURS = {"transformer": "#0072B2", "lstm": "#D55E00", "cnn": "#009E73"}  # Okabe & Ito 2008, safe for the colour-blind
OTHER_COLOURS = ("#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F")  # for other architectures
MARKERS = ("o", "D", "s", "^", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo")


class SeriesStyle(NamedTuple):
    """How a series is drawn."""

    colour: str
    marker: str
    line: Any  # a line style of matplotlib
    hatch: str  # of its bars

    @property
    def bar(self) -> dict[str, Any]:
        """Matplotlib's options for a bar."""
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0.4}


Styles = Mapping[str, SeriesStyle]  # by label


def series_styles(architectures: Mapping[str, str]) -> dict[str, SeriesStyle]:
    """Return the style of each label, given the architecture of each label, in the order of the legend.

    Labels of one architecture share its colour and differ in marker and line; up to 28 of them are distinct.
    """
    colours = architecture_colours(architectures.values())
    order = list(colours)
    counts = dict.fromkeys(colours, 0)
    styles: dict[str, SeriesStyle] = {}
    for label in sorted(architectures, key=lambda label: (order.index(architectures[label]), _natural_key(label))):
        arch = architectures[label]
        marker, line, hatch = (options[counts[arch] % len(options)] for options in (MARKERS, LINES, HATCHES))
        styles[label] = SeriesStyle(colours[arch], marker, line, hatch)
        counts[arch] += 1
    return styles


def condition_styles(conditions: Iterable[Condition]) -> dict[str, SeriesStyle]:
    """Return the style of each condition by its label."""
    return series_styles({condition.label: condition.arch for condition in conditions})


def architecture_colours(architectures: Iterable[str]) -> dict[str, str]:
    """Return the colour of each architecture: a fixed one, or one chosen by its name, or the next unused one."""
    names = set(architectures)
    colours = {name: colour for name, colour in COLOURS.items() if name in names}
    for name in sorted(names - colours.keys()):
        start = crc32(name.encode()) % len(OTHER_COLOURS)
        candidates = (*OTHER_COLOURS[start:], *OTHER_COLOURS[:start])
        colours[name] = next((colour for colour in candidates if colour not in colours.values()), candidates[0])
    return colours


def _natural_key(label: str) -> list[Any]:
    """Sort `dim=64` before `dim=128`, and `dropout=0.15` before `dropout=0.3`."""
    return [float(part) if number % 2 else part for number, part in enumerate(re.split(r"(\d+(?:\.\d+)?)", label))]

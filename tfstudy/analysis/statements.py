"""Claims about what models learn: what is claimed, by whom, and the statements that would show it."""

import math
import re
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import msgspec

from tfstudy.analysis.condition_settings import AMOUNT
from tfstudy.analysis.published import figure_of
from tfstudy.runs.metrics import METRIC_NAMES

OVER_LENGTHS, DIVERGED = "token_accuracy_over_lengths", "diverged"
METRICS = {**METRIC_NAMES, OVER_LENGTHS: "token accuracy, mean over lengths", DIVERGED: "share of runs that diverged"}
TABLE_METRICS = ("exact_match", "bleu")  # by which studies compare conditions
CONDITION_KEYS = {  # keys that select conditions, besides settings: the field of a `Condition`
    "task": "task",
    "split": "split",
    "corpus": "corpus",
    "test": "test_set",
    "arch": "arch",
    "preset": "preset",
    "tag": "tag",
    "value": "tag_value",
}
SELECTOR_DEFAULTS = {"corpus": "", "test": "test", "preset": "default", "tag": "", "value": ""}
SECTIONS = ("data", "model", "train", "decode", "eval")
# split schemes on which published results vary most with the seed
HIGH_VARIANCE = ("addprim_jump", "addprim_turn_left", "template_around_right", "mcd1")
ROWS = "rows."  # of a selector: what follows is a column of an instrument, or TAKE
TAKE = "rows.take"
TAKES: dict[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "max": max, "min": min}
ID = re.compile(r"[LP]\d+")
Selector = dict[str, Any]


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds between which a mean, or a difference of two means, is claimed to lie; or a published figure."""

    of: Selector = {}
    minus: Selector = {}
    over: Selector = {}  # of a ratio of measurements of `tfstudy bench`
    metric: str = "exact_match"
    is_: float | None = msgspec.field(default=None, name="is")
    within: float | None = None
    above: float | None = None
    below: float | None = None
    published: str = ""  # the id of a figure; then nothing else is given

    @property
    def metric_label(self) -> str:
        """The metric in words."""
        return METRICS.get(self.metric) or f"measured by {self.metric}"

    @property
    def instrument(self) -> str:
        """The name of the instrument that measures it; empty for a metric of test sets."""
        return "" if self.metric in METRICS else self.metric

    @property
    def compares(self) -> bool:
        """Whether it says which of two conditions is higher, as the table of their study does."""
        shared = ("task", "split", "corpus", "test", *AMOUNT)
        comparable = all(self.of.get(key) == self.minus.get(key) for key in shared)
        in_a_table = comparable and not self.of.get("tag") and self.metric in TABLE_METRICS
        return bool(self.minus) and in_a_table and 0.0 in (self.above, self.below)

    @property
    def bounds(self) -> tuple[float, float]:
        """The claimed bounds; infinite where there is none."""
        if self.is_ is not None and self.within is not None:
            return self.is_ - self.within, self.is_ + self.within
        return -math.inf if self.above is None else self.above, math.inf if self.below is None else self.below

    @property
    def claimed(self) -> str:
        """What is claimed as text: `90.3 ± 5`, `above 0`, `69.2 ± 8.2`."""
        if self.published:
            return figure_of(self.published).text
        if self.is_ is not None:
            text = f"{self.is_:g} ± {self.within:g}"
        else:
            text = f"above {self.above:g}" if self.above is not None else f"below {self.below:g}"
        return text.replace("-", "\N{MINUS SIGN}")


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A claim: one entry of a file."""

    id: str
    claim: str
    source: str
    literature: str = ""
    note: str = ""
    where: Selector = {}
    metric: str = "exact_match"
    seeds: int = 0
    statements: list[Statement] = []
    grid: str = ""
    run: str = ""
    tested_by: str = ""
    shown_as: str = "theorem"
    untested: str = ""

    @property
    def command(self) -> str:
        """The command that runs its experiments or its measurement; empty if there is none."""
        return f"tfstudy grid {self.grid}" if self.grid else self.run

    @property
    def minimum_seeds(self) -> int:
        """The number of seeds below which nothing is decided."""
        splits = {str(selector.get("split")) for one in self.statements for selector in (one.of, one.minus)}
        return self.seeds or max(map(minimum_seeds, splits), default=0)


def minimum_seeds(split: str) -> int:
    """Return the number of seeds below which nothing is decided on this split scheme."""
    return 5 if split in HIGH_VARIANCE else 3


def without_rows(selector: Selector) -> Selector:
    """Return what selects a condition, without what selects rows of an instrument's table."""
    return {key: value for key, value in selector.items() if not key.startswith(ROWS)}

"""Claims about what models learn, read from `configs/claims/*.yaml`: what is claimed, by whom, and what would show it.

    claims:
      - id: L2
        claim: On add-jump an LSTM gets 90.3 % right and a Transformer 35.2
        source: where it is claimed
        literature: what papers report
        note: what a reader must know
        where: {task: scan, split: addprim_jump}       of all statements; defaults: test set `test`, preset `default`
        metric: exact_match                            of all statements
        seeds: 5                                       minimum; default: 5 on split schemes with high variance, else 3
        statements:                                    each is one of
          - {of: {arch: lstm}, is: 90.3, within: 5}              a mean over seeds, in percent, or
          - {of: {arch: transformer}, below: 50}                 `above` or `below` a bound; both forms also for
          - {of: {arch: lstm}, minus: {arch: transformer}, above: 0}      a difference of two conditions
          - {published: lake-2018-09}                            a figure of `configs/published.csv`, under its settings
          - {of: {variant: default}, over: {variant: uncached}, above: 5}   a ratio of measurements of `tfstudy bench`
          - {metric: head_roles, of: {rows.role: previous, rows.take: max}, above: 0.5}     what an instrument measured
        grid: scan                                     runs its experiments; or `run`, a command
        untested: which part of it no record decides

Conditions are selected by task, split (with `corpus`, the name of its folder, for `split: corpus`), test, arch, preset,
settings such as `model.positions`, and by `tag` and `value` for examples of one length, say; those of a ratio by the
keys of `BENCH_KEYS`. The metric may be an instrument of `tfstudy measure`: then `rows.COLUMN` selects rows of
its table, and their mean counts, or with `rows.take: max` the largest. A claim without statements names the test in
this repository that shows it: `tested_by`, with `shown_as`.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from tfstudy import instruments, tasks
from tfstudy.analysis.published import figure_of, minimum_seeds
from tfstudy.analysis.summary import AMOUNT, DIVERGED, OVER_LENGTHS
from tfstudy.config.trees import configs, read_yaml
from tfstudy.errors import UserError, one_of
from tfstudy.performance.record import VARIANTS, WORKS
from tfstudy.runs.display import METRIC_NAMES

METRICS = {**METRIC_NAMES, OVER_LENGTHS: "token accuracy, mean over lengths", DIVERGED: "share of runs that diverged"}
TABLE_METRICS = ("exact_match", "bleu")  # by which studies compare conditions
CONDITION_KEYS = ("task", "split", "corpus", "test", "arch", "preset", "tag", "value")  # select, besides settings
SELECTOR_DEFAULTS = {"corpus": "", "test": "test", "preset": "default", "tag": "", "value": ""}
SECTIONS = ("data", "model", "train", "decode", "eval")
ROWS = "rows."  # of a selector: what follows is a column of an instrument, or TAKE
TAKE = "rows.take"
TAKES: dict[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "max": max, "min": min}
ID = re.compile(r"[LP]\d+")
VALUE = (str, int, float, bool)  # what a selector may ask of a setting
# of a ratio: what `tfstudy bench` measured
TIME = "tokens_per_second"
QUANTITIES = {
    TIME: "target tokens per second",
    "memory": "peak memory",
    "step_memory": "peak memory of a step",
    "flops": "FLOPs",
    "attention_flops": "FLOPs of attention",
    "feedforward_flops": "FLOPs of feed-forward layers",
}
SIZES = ("length", "width", "batch")
BENCH_DEFAULTS: dict[str, Any] = {"variant": "default", "accelerator": "cpu", "quantity": TIME}
CHOICES = {"work": WORKS, "variant": VARIANTS, "accelerator": ("cpu", "cuda"), "quantity": QUANTITIES}
BENCH_SETTINGS = ("model.", "train.")  # what the names of settings begin with
BENCH_KEYS = ("arch", *SIZES, *CHOICES)  # of a selector, besides settings such as `model.heads`
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
    def timed(self) -> bool:
        """Whether it is about a ratio of speeds."""
        return bool(self.over) and TIME in (self.of["quantity"], self.over["quantity"])

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


def without_rows(selector: Selector) -> Selector:
    """Return what selects a condition, without what selects rows of an instrument's table."""
    return {key: value for key, value in selector.items() if not key.startswith(ROWS)}


# Files


def read_claims(folder: Path | None = None) -> dict[str, Claim]:
    """Return all claims of a folder (default: `configs/claims/`) by id, L1 first; `UserError` if one is invalid."""
    claims: list[Claim] = []
    for path in sorted((folder or configs() / "claims").glob("*.yaml")):
        tree = read_yaml(path, aliases=True)
        for key in tree:
            one_of("key", str(key), ("claims",), path.name)
        if not isinstance(tree.get("claims"), list):
            raise UserError(f"{path.name}: expected a list 'claims'")
        claims += [parse_claim(entry, f"{path.name}, entry {number}") for number, entry in enumerate(tree["claims"], 1)]
    if duplicates := [name for name, count in Counter(claim.id for claim in claims).items() if count > 1]:
        raise UserError(f"ids of claims must be unique; several claims have the id {', '.join(duplicates)}")
    return {claim.id: claim for claim in sorted(claims, key=lambda claim: (claim.id[0], int(claim.id[1:])))}


def select_claims(claims: Mapping[str, Claim], ids: Iterable[str]) -> list[Claim]:
    """Return the claims with these ids, or all if there are none; `UserError` for an unknown id."""
    names = dict.fromkeys(name.upper() if name.upper() in claims else name for name in ids)
    return [claims[one_of("claim", name, claims)] for name in names] or list(claims.values())


def parse_claim(tree: Any, where: str) -> Claim:
    """Return the claim of an entry; `UserError`, which begins with `where`, if it is invalid."""
    if not isinstance(tree, dict):
        raise UserError(f"{where}: expected keys and values, got '{tree}'")
    where = f"{where} ({tree.get('id', 'without an id')})"
    try:
        _check_keys(tree, Claim, where)
        claim = msgspec.convert(tree | {"statements": _with_defaults(tree, where)}, Claim)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {error}") from None
    if not ID.fullmatch(claim.id):
        raise UserError(f"{where}: an id must be L or P followed by a number, such as L2")
    if claim.seeds and claim.seeds < 2:
        raise UserError(f"{where}: seeds must be at least 2, got {claim.seeds}")
    for number, statement in enumerate(claim.statements, 1):
        _check_statement(statement, f"{where}, statement {number}")
    if claim.statements and not claim.command:
        raise UserError(f"{where}: a claim with statements needs 'grid' or 'run', which run its experiments")
    if not claim.statements and not claim.tested_by:
        raise UserError(f"{where}: expected 'statements' or 'tested_by'")
    return claim


def _with_defaults(tree: Mapping[str, Any], where: str) -> Any:
    """Return the statements of an entry, each completed by what the claim says of all of them."""
    statements = tree.get("statements", [])
    if not isinstance(statements, list) or not all(isinstance(statement, dict) for statement in statements):
        raise UserError(f"{where}: 'statements' must be a list of keys and values")
    where_all = tree["where"] if isinstance(tree.get("where"), dict) else {}
    out = []
    for number, statement in enumerate(statements, 1):
        _check_keys(statement, Statement, f"{where}, statement {number}")
        if "published" in statement:
            out.append(_published(statement, f"{where}, statement {number}"))
            continue
        whole = (BENCH_DEFAULTS if "over" in statement else SELECTOR_DEFAULTS) | where_all
        selectors = {k: whole | statement[k] for k in ("of", "minus", "over") if isinstance(statement.get(k), dict)}
        out.append({"metric": tree.get("metric", "exact_match")} | statement | selectors)
    return out


def _published(statement: Mapping[str, Any], where: str) -> Any:
    """Return a statement about a published figure, completed by the names in its columns."""
    for key in statement.keys() - {"published"}:
        raise UserError(f"{where}: a statement with 'published' has no other key, got '{key}'")
    figure = figure_of(str(statement["published"]), where)
    if not figure.preset:
        raise UserError(f"{where}: no preset has the settings of the published figure {figure.id}")
    names = {"task": figure.task, "split": figure.split, "test": figure.test, "arch": figure.family}
    return {**statement, "metric": figure.metric, "of": SELECTOR_DEFAULTS | names | {"preset": figure.preset}}


def _check_keys(tree: Mapping[str, Any], kind: type[msgspec.Struct], where: str) -> None:
    for key in tree:
        one_of("key", str(key), kind.__struct_encode_fields__, where)


def _check_statement(statement: Statement, where: str) -> None:
    one_of("metric", statement.metric, (*METRICS, *instruments.names()), where)
    if statement.published:
        return
    if not statement.of:
        raise UserError(f"{where}: expected 'of', which selects a condition, or 'published'")
    operators = [name for name in ("is_", "above", "below") if getattr(statement, name) is not None]
    if len(operators) != 1 or (statement.is_ is None) != (statement.within is None):
        raise UserError(f"{where}: expected exactly one of 'is' with 'within', 'above', and 'below'")
    numbers = (statement.is_, statement.within, statement.above, statement.below)
    if not all(math.isfinite(number) for number in numbers if number is not None):
        raise UserError(f"{where}: bounds must be finite, got {statement.claimed}")
    if statement.within is not None and statement.within <= 0:
        raise UserError(f"{where}: 'within' must be above 0, got {statement.within:g}")
    if statement.over and statement.minus:
        raise UserError(f"{where}: expected 'minus' or 'over', not both")
    for selector in filter(None, (statement.of, statement.minus, statement.over)):
        (_check_measurement if statement.over else _check_selector)(statement, selector, where)
    if statement.timed and statement.of["quantity"] != statement.over["quantity"]:
        names = " over ".join(side["quantity"] for side in (statement.of, statement.over))
        raise UserError(f"{where}: a speed has a ratio only to another speed, got {names}")


def _check_selector(statement: Statement, selector: Selector, where: str) -> None:
    for key, value in selector.items():
        if key.startswith(ROWS):
            if not statement.instrument:
                raise UserError(f"{where}: '{key}' needs an instrument as the metric, got '{statement.metric}'")
        elif key.partition(".")[0] not in SECTIONS or "." not in key:
            one_of("key of a condition", key, CONDITION_KEYS, where)
        kind = str if key in CONDITION_KEYS else VALUE
        if not isinstance(value, kind):
            raise UserError(f"{where}: '{key}' must be a {'name' if kind is str else 'single value'}, got '{value}'")
    one_of(TAKE, str(selector.get(TAKE, "mean")), TAKES, where)
    for key in ("task", "split", "arch"):
        if key not in selector:
            raise UserError(f"{where}: a condition needs its {key}")
    task, split, corpus = selector["task"], selector["split"], selector.get("corpus", "")
    known = tasks.find(one_of("task", task, tasks.names(), where)).split_schemes()
    if not any(re.fullmatch(re.sub(r"<\w+>", r"\\d+", name), split) for name in known):
        one_of("split scheme", split, known, where)
    if (split == "corpus") != bool(corpus):
        both = f"got split '{split}' and corpus '{corpus}'"
        raise UserError(f"{where}: 'split: corpus' and the name of a corpus go together, {both}")


def _check_measurement(_: Statement, selector: Selector, where: str) -> None:
    """Raise `UserError` unless a selector, completed by `BENCH_DEFAULTS`, names one measurement."""
    for key in selector:
        if not key.startswith(BENCH_SETTINGS):
            one_of("key of a measurement", key, BENCH_KEYS, where)
    for key in BENCH_KEYS:
        if key not in selector:
            raise UserError(f"{where}: a measurement needs its {key}")
    for key in SIZES:
        if type(selector[key]) is not int or selector[key] < 1:
            raise UserError(f"{where}: '{key}' must be a whole number from 1, got '{selector[key]}'")
    for key, known in CHOICES.items():
        one_of(key, str(selector[key]), known, where)

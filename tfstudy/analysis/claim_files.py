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
            (`study: NAME` beside it: by this study only, where several have its settings)
          - {of: {variant: default}, over: {variant: uncached}, above: 5}   a ratio of measurements of `tfstudy bench`
          - {metric: head_roles, of: {rows.role: previous}, above: 0.5}     what an instrument measured
        grid: scan                                     runs its experiments; or `run`, a command
        untested: which part of it no record decides

Conditions are selected by task, split (with `corpus`, the name of its folder, for `split: corpus`), test, arch, preset,
settings such as `model.positions`, and by `tag` and `value` for examples of one length, say; those of a ratio by
`BENCH_KEYS`. The metric may be an instrument of `tfstudy measure`: then `rows.COLUMN` selects rows of its table, of
which the largest number counts. A claim without statements names the test in this repository that shows it:
`tested_by`, with `shown_as`.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tfstudy import instruments
from tfstudy.analysis.published import figure_of, minimum_seeds
from tfstudy.analysis.summary import AMOUNT, DIVERGED, OVER_LENGTHS
from tfstudy.config.trees import configs, read_yaml
from tfstudy.errors import UserError, one_of
from tfstudy.plugins import command
from tfstudy.runs.schema import METRIC_NAMES

METRICS = {**METRIC_NAMES, OVER_LENGTHS: "token accuracy, mean over lengths", DIVERGED: "share of runs that diverged"}
SELECTOR_DEFAULTS = {"corpus": "", "test": "test", "preset": "default", "tag": "", "value": ""}
CONDITION_KEYS = ("task", "split", "arch", *SELECTOR_DEFAULTS)  # select, besides settings
SECTIONS = ("data.", "model.", "train.", "decode.", "eval.")
ROWS = "rows."  # of a selector: what follows is a column of an instrument
# of a ratio: what `tfstudy bench` measured
TIME = "tokens_per_second"
QUANTITIES = {
    TIME: "target tokens per second",
    "memory": "peak memory",
    "step_memory": "peak memory of a step",
    "attention_flops": "FLOPs of attention",
    "feedforward_flops": "FLOPs of feed-forward layers",
}
SIZES = ("length", "width", "batch")
BENCH_DEFAULTS: dict[str, Any] = {"variant": "default", "accelerator": "cpu", "quantity": TIME}
BENCH_KEYS = ("arch", "work", *SIZES, *BENCH_DEFAULTS)
Selector = dict[str, Any]
Bounds = tuple[float, float]


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds between which a mean, a difference of two means or a ratio is claimed to lie; or a published figure."""

    of: Selector = {}
    minus: Selector = {}
    over: Selector = {}
    metric: str = ""  # that of the claim
    is_: float | None = msgspec.field(default=None, name="is")
    within: Annotated[float, msgspec.Meta(gt=0)] | None = None
    above: float | None = None
    below: float | None = None
    published: str = ""  # the id of a figure; then only `study` may be given too
    study: str = ""  # the only one whose runs are judged (default: any)

    @property
    def instrument(self) -> str:
        """The name of the instrument that measures it; empty for a metric of test sets."""
        return "" if self.metric in METRICS else self.metric

    @property
    def compares(self) -> bool:
        """Whether it says which of two conditions is higher, as the table of their study does."""
        shared = ("task", "split", "corpus", "test", *AMOUNT)
        comparable = self.minus and all(self.of.get(key) == self.minus.get(key) for key in shared)
        return bool(comparable) and self.metric in ("exact_match", "bleu") and 0.0 in (self.above, self.below)

    @property
    def bounds(self) -> Bounds:
        """The claimed bounds; infinite where there is none."""
        if self.is_ is not None and self.within is not None:
            return self.is_ - self.within, self.is_ + self.within
        return -math.inf if self.above is None else self.above, math.inf if self.below is None else self.below

    @property
    def claimed(self) -> str:
        """What is claimed as text: `90.3 ± 5`, `above 0`, `69.2 ± 8.2`."""
        if self.published:
            return figure_of(self.published).text
        low, high = self.bounds
        text = f"above {low:g}" if math.isinf(high) else f"below {high:g}"
        return (text if self.is_ is None else f"{self.is_:g} ± {self.within:g}").replace("-", "\N{MINUS SIGN}")


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A claim: one entry of a file."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[LP]\d+$")]  # such as L2
    claim: str
    source: str
    literature: str = ""
    note: str = ""
    where: Selector = {}
    metric: str = "exact_match"
    seeds: Annotated[int, msgspec.Meta(ge=2)] = 0
    statements: list[Statement] = []
    grid: str = ""
    run: str = ""
    tested_by: str = ""
    shown_as: str = "theorem"
    untested: str = ""

    @property
    def command(self) -> str:
        """The command that runs its experiments or its measurement; empty if there is none."""
        return command("grid", self.grid) if self.grid else self.run

    @property
    def minimum_seeds(self) -> int:
        """The number of seeds below which nothing is decided."""
        splits = {str(selector.get("split")) for one in self.statements for selector in (one.of, one.minus)}
        return self.seeds or max(map(minimum_seeds, splits), default=0)


def read_claims(folder: Path | None = None) -> dict[str, Claim]:
    """Return all claims of a folder (default: `configs/claims/`) by id, L1 first; `UserError` if one is invalid."""
    found: dict[str, Claim] = {}
    for path in sorted((folder or configs() / "claims").glob("*.yaml")):
        for number, entry in enumerate(read_yaml(path, aliases=True).get("claims", []), 1):
            claim = parse_claim(entry, f"{path.name}, entry {number}")
            if claim.id in found:
                raise UserError(f"{path.name}: several claims have the id {claim.id}")
            found[claim.id] = claim
    return {id_: found[id_] for id_ in sorted(found, key=lambda id_: (id_[0], int(id_[1:])))}


def parse_claim(tree: Any, where: str) -> Claim:
    """Return the claim of an entry; `UserError`, which begins with `where`, if it is invalid.

    Its statements are completed by what it says of all of them, or by the names in the columns of a published figure.
    """
    try:
        claim = msgspec.convert(tree, Claim)
        if not (claim.command if claim.statements else claim.tested_by):
            raise UserError("expected 'statements' with 'grid' or 'run', which run their experiments, or 'tested_by'")
        given = zip(claim.statements, tree.get("statements", []), strict=True)
        return msgspec.structs.replace(claim, statements=[_completed(claim, *pair) for pair in given])
    except (msgspec.ValidationError, UserError) as error:
        raise UserError(f"{where}: {error}") from None


def _completed(claim: Claim, one: Statement, given: Mapping[str, Any]) -> Statement:
    if one.published:
        figure = figure_of(one.published)
        if not figure.preset or one != Statement(published=one.published, study=one.study):
            raise UserError("expected a published figure whose settings a preset has, and nothing else but 'study'")
        names = {"task": figure.task, "split": figure.split, "test": figure.test, "arch": figure.family}
        selector = SELECTOR_DEFAULTS | names | {"preset": figure.preset}
        return msgspec.structs.replace(one, metric=figure.metric, of=selector)
    if one.study:
        raise UserError("expected 'study' only beside 'published'")
    bounds = [bound for bound in (one.is_, one.above, one.below) if bound is not None]
    sides = [name for name in ("of", "minus", "over") if name in given]
    known = sides in (["of"], ["of", "minus"], ["of", "over"])
    if not known or len(bounds) != 1 or (one.is_ is None) != (one.within is None):
        raise UserError("expected 'of', and exactly one of 'is' with 'within', 'above', and 'below'")
    metric = one_of("metric", one.metric or claim.metric, (*METRICS, *instruments.names()))
    ratio = "over" in given
    sections = () if ratio else (*SECTIONS, *[ROWS] * (metric not in METRICS))
    selectors = {name: (BENCH_DEFAULTS if ratio else SELECTOR_DEFAULTS) | claim.where | given[name] for name in sides}
    kind, keys = ("measurement", BENCH_KEYS) if ratio else ("condition", CONDITION_KEYS)
    for selector in selectors.values():
        for key in selector:
            if not key.startswith(sections):
                one_of(f"key of a {kind}", key, keys)
        if missing := [key for key in keys if key not in selector]:
            raise UserError(f"a {kind} needs its {missing[0]}")
    return msgspec.structs.replace(one, metric=metric, **selectors)

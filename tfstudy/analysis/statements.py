"""Claims about what networks learn, as files of `configs/claims/`: what is said, by whom, and what would show it.

    claims:
      - id: L2
        claim: On add-jump an LSTM gets 90.3 % right and a Transformer 35.2
        source: where it is claimed
        literature: what papers say of it
        note: what a reader must know
        where: {task: scan, split: addprim_jump}       of all parts; `test` is the test split test, `preset` is default
        metric: exact_match                            of all parts
        seeds: 5                                       at least; else 5 on splits of large variance and 3 on others
        parts:                                         all must hold; each is one of
          - {of: {arch: lstm}, is: 90.3, within: 5}              a mean over seeds, in per cent, or
          - {of: {arch: transformer}, below: 50}                 `above`, or `below`; all likewise for
          - {of: {arch: lstm}, minus: {arch: transformer}, above: 0}      a difference of two rows
        grid: scan                                     makes its runs; or `run`, a command
        untested: what part of it no record decides

Rows are told by task, split, test, arch, preset, settings such as `model.positions`, and `tag` and `value` for examples
of one length, say. A claim without parts says who shows it: `tested_by` (a test of this repository, with `shown_as`),
or what it `needs`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

import tasks
from tasks.errors import UserError, one_of
from tfstudy.analysis.metrics import NAMES
from tfstudy.config.files import configs, read_yaml

OVER_LENGTHS, DIVERGED = "token_accuracy_over_lengths", "diverged"
METRICS = {**NAMES, OVER_LENGTHS: "token accuracy, mean over lengths", DIVERGED: "share of runs that diverged"}
NAMED = ("task", "split", "test", "arch", "preset", "tag", "value")  # what rows are told by, beside settings
SECTIONS = ("data", "model", "train", "decode", "eval")
VARIABLE = ("addprim_jump", "template_around_right", "mcd1")  # seeds differ by tens of points: 5 at least
ID = re.compile(r"[LP]\d+")
Selector = dict[str, Any]


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a mean, or a difference of means, is said to lie."""

    of: Selector
    minus: Selector = {}
    metric: str = "exact_match"
    is_: float | None = msgspec.field(default=None, name="is")
    within: float | None = None
    above: float | None = None
    below: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Between these it is said to lie; infinite where it is not bounded."""
        if self.is_ is not None and self.within is not None:
            return self.is_ - self.within, self.is_ + self.within
        return -math.inf if self.above is None else self.above, math.inf if self.below is None else self.below

    @property
    def said(self) -> str:
        """What is said, without of what: `90.3 ± 5`, `above 0`."""
        if self.is_ is not None:
            return f"{self.is_:g} ± {self.within:g}"
        return f"above {self.above:g}" if self.above is not None else f"below {self.below:g}"


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of a file."""

    id: str
    claim: str
    source: str
    literature: str = ""
    note: str = ""
    where: Selector = {}
    metric: str = "exact_match"
    seeds: int = 0
    parts: list[dict[str, Any]] = []
    grid: str = ""
    run: str = ""
    tested_by: str = ""
    shown_as: str = "theorem"
    needs: str = ""
    untested: str = ""

    @property
    def command(self) -> str:
        """What makes the runs, or the measurement, that it needs; empty if there is nothing yet."""
        return f"tfstudy grid {self.grid}" if self.grid else self.run

    @property
    def statements(self) -> list[Statement]:
        """Its parts, each with what the claim says of all of them."""
        whole = {"test": "test", "preset": "default", "tag": "", "value": ""} | self.where
        out = []
        for part in self.parts:
            rows = {key: whole | part[key] for key in ("of", "minus") if isinstance(part.get(key), dict)}
            out.append(msgspec.convert({"metric": self.metric} | part | rows, Statement))
        return out

    @property
    def least(self) -> int:
        """Seeds below which nothing is decided."""
        return self.seeds or max((least_seeds(str(one.of.get("split"))) for one in self.statements), default=0)


def least_seeds(split: str) -> int:
    """Seeds below which nothing is decided on this split."""
    return 5 if split in VARIABLE else 3


def read(folder: Path | None = None) -> dict[str, Claim]:
    """Every claim of a folder's files, by default of `configs/claims/`, by id, L1 first; `UserError` if one is bad."""
    found: list[Claim] = []
    for path in sorted((folder or configs() / "claims").glob("*.yaml")):
        tree = read_yaml(path)
        for key in tree:
            one_of(f"a key of {path.name}", str(key), ("claims",))
        if not isinstance(tree.get("claims"), list):
            raise UserError(f"{path.name} must hold a list 'claims'")
        found += [_checked(one, f"{path.name}, entry {number}") for number, one in enumerate(tree["claims"], 1)]
    if twice := [name for name, count in Counter(claim.id for claim in found).items() if count > 1]:
        raise UserError(f"every claim must have an id of its own, but {', '.join(twice)} is there twice")
    return {claim.id: claim for claim in sorted(found, key=lambda claim: (claim.id[0], int(claim.id[1:])))}


def chosen(claims: Mapping[str, Claim], ids: Iterable[str]) -> list[Claim]:
    """The claims with these ids, all without any; `UserError` for one that is not there."""
    return [claims[one_of("claim", name, claims)] for name in dict.fromkeys(ids)] or list(claims.values())


def _checked(tree: Any, where: str) -> Claim:
    if not isinstance(tree, dict):
        raise UserError(f"{where}: a claim must be keys with values, but is '{tree}'")
    where = f"{where} ({tree.get('id', 'without an id')})"
    try:
        _keys(tree, Claim, where)
        claim = msgspec.convert(tree, Claim)
        for number, part in enumerate(claim.parts, 1):
            _keys(part, Statement, f"{where}, part {number}")
        statements = claim.statements
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {error}") from None
    if not ID.fullmatch(claim.id):
        raise UserError(f"{where}: an id must be L or P and a number, such as L2")
    if claim.seeds and claim.seeds < 2:
        raise UserError(f"{where}: seeds must be at least 2, but is {claim.seeds}")
    for number, statement in enumerate(statements, 1):
        _sound(statement, f"{where}, part {number}")
    if statements and not claim.command:
        raise UserError(f"{where}: what has parts must say what makes its runs: 'grid' or 'run'")
    if not statements and not (claim.tested_by or claim.needs):
        raise UserError(f"{where}: it must have parts, or 'tested_by', or what it 'needs'")
    return claim


def _keys(tree: Mapping[str, Any], kind: type[msgspec.Struct], where: str) -> None:
    for key in tree:
        one_of(f"{where}: a key", str(key), kind.__struct_encode_fields__)


def _sound(statement: Statement, where: str) -> None:
    one_of(f"{where}: metric", statement.metric, METRICS)
    operators = [name for name in ("is_", "above", "below") if getattr(statement, name) is not None]
    if len(operators) != 1 or (statement.is_ is None) != (statement.within is None):
        raise UserError(f"{where}: it must say one of 'is' with 'within', 'above', and 'below'")
    told = (statement.is_, statement.within, statement.above, statement.below)
    if not all(math.isfinite(figure) for figure in told if figure is not None):
        raise UserError(f"{where}: what is said must be finite, but is {statement.said}")
    if statement.within is not None and statement.within <= 0:
        raise UserError(f"{where}: 'within' must be above 0, but is {statement.within:g}")
    for selector in filter(None, (statement.of, statement.minus)):
        for key in selector:
            if key.partition(".")[0] not in SECTIONS or "." not in key:
                one_of(f"{where}: what rows are told by", key, NAMED)
        for key in ("task", "split", "arch"):
            if key not in selector:
                raise UserError(f"{where}: rows must be told by their {key}")
        for key, value in selector.items():
            if not isinstance(value, str if key in NAMED else (str, int, float, bool)):
                raise UserError(f"{where}: '{key}' must be {'a name' if key in NAMED else 'a value'}, but is '{value}'")
        _experiment(selector["task"], selector["split"], where)


def _experiment(task: str, split: str, where: str) -> None:
    known = tasks.find(one_of(f"{where}: task", task, tasks.names())).experiments()
    if not any(re.fullmatch(re.sub(r"<\w+>", r"\\d+", name), split) for name in known):
        one_of(f"{where}: split", split, known)

"""SCAN: map commands in simple English to sequences of actions (Lake & Baroni 2018, arXiv 1711.00350).

    jump twice and walk left  ->  I_JUMP I_JUMP I_TURN_LEFT I_WALK

The grammar generates all 20,910 pairs, so nothing is downloaded. Split schemes defined by rules (`length`, `addprim_*`,
`template_*`, `filler_*`) contain exactly the official examples; `simple` is a seeded random split with the official
sizes. The official random splits (`simple` itself, `mcd1`, few-shot, ...) are read from a copy of the official
repository (`data.root`).
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import product
from typing import Any, ClassVar

from pydantic import Field

from tfstudy.errors import UserError, one_of, path_of, quoted
from tfstudy.tasks.base import Example, Splits, Tag, Task, TaskConfig, Tokens, checksum, hold_out, stable_hash
from tfstudy.tasks.reading import read_files

ACTION = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURN = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
REPEAT = {"": 1, "twice": 2, "thrice": 3}
SHARES = (1, 2, 4, 8, 16, 32, 64)  # percent of all pairs in the train split of `simple_p<share>`
CUTOFFS = (22, 24, 25, 26, 27, 28, 30, 32, 33, 36, 40)  # Newman et al. 2020; `length` is 22


def _verbs() -> Iterator[tuple[str, Tokens]]:
    """Yield the 34 verb phrases with their actions: `jump`, `turn left`, `walk around right`, ..."""
    for word, action in ACTION.items():
        yield word, (action,)
    for (word, action), (side, turn) in product([*ACTION.items(), ("turn", "")], TURN.items()):
        act = (action,) if action else ()
        yield f"{word} {side}", (turn, *act)
        yield f"{word} opposite {side}", (turn, turn, *act)
        yield f"{word} around {side}", (turn, *act) * 4


@cache
def all_pairs() -> dict[str, Tokens]:
    """Return all commands with their actions, in the order of the grammar."""
    phrases = {f"{verb} {word}".strip(): actions * n for verb, actions in _verbs() for word, n in REPEAT.items()}
    pairs = dict(phrases)
    for (first, a), (second, b) in product(phrases.items(), repeat=2):
        pairs[f"{first} and {second}"] = a + b
        pairs[f"{first} after {second}"] = b + a
    return pairs


def _has(command: str, phrase: str) -> bool:
    """Return whether the command contains `phrase` as contiguous whole words."""
    return f" {phrase} " in f" {command} "


Sides = tuple[list[str], list[str]]  # the commands of train (some repeated) and of test


def _length(cutoff: int) -> Sides:
    pairs = all_pairs().items()
    return [c for c, actions in pairs if len(actions) <= cutoff], [c for c, actions in pairs if len(actions) > cutoff]


def _primitive(primitive: str) -> Sides:
    """Train on the bare primitive, repeated to 10 % of the train split; test on all commands that contain it."""
    test = [c for c in all_pairs() if _has(c, primitive) and c != primitive]
    others = [c for c in all_pairs() if not _has(c, primitive)]
    return others + [primitive] * (len(others) // 9), test


def _template(pattern: str) -> Sides:
    """Test on a verb with the pattern. Commands with `turn` and the pattern are in neither split."""
    pairs = [c for c in all_pairs() if not _has(c, f"turn {pattern}")]
    tested = {c for c in pairs if any(_has(c, f"{verb} {pattern}") for verb in ACTION)}
    return [c for c in pairs if c not in tested], [c for c in pairs if c in tested]


def _filler(verbs: Sequence[str]) -> Sides:
    """Test on `jump around right`; train on commands whose verbs before `around right` are all in `verbs`."""
    pairs = [c for c in all_pairs() if not _has(c, "turn around right")]
    test = [c for c in pairs if _has(c, "jump around right")]
    others = [verb for verb in ACTION if verb not in verbs]
    return [c for c in pairs if not any(_has(c, f"{verb} around right") for verb in others)], test


def _simple(share: int, seed: int) -> Sides:
    """Train on the first `share` percent of a random order; 80 is `simple`, smaller shares are prefixes of it."""
    order = sorted(all_pairs(), key=lambda c: stable_hash("simple", seed, tuple(c.split())))
    cut = len(order) * share // 100
    return order[:cut], order[cut:]


RULES: dict[str, tuple[str, Callable[[int], Sides]]] = {
    "simple": ("random 80/20 split", lambda seed: _simple(80, seed)),
    **{f"simple_p{share}": (f"train on {share} % of all pairs, a subset of those of simple",
                            lambda seed, share=share: _simple(share, seed)) for share in SHARES},  # type: ignore[misc]
    "length": ("train on at most 22 actions, test on 24 to 48", lambda _: _length(22)),
    **{f"length_{cutoff}": (f"train on at most {cutoff} actions, test on more",
                            lambda _, cutoff=cutoff: _length(cutoff)) for cutoff in CUTOFFS},  # type: ignore[misc]
    "addprim_jump": ("train on `jump` alone, test on commands with it", lambda _: _primitive("jump")),
    "addprim_turn_left": ("train on `turn left` alone, test on commands with it", lambda _: _primitive("turn left")),
    "template_around_right": ("test on a verb with `around right`", lambda _: _template("around right")),
    "template_opposite_right": ("test on a verb with `opposite right`", lambda _: _template("opposite right")),
    "template_right": ("test on a verb with `right`", lambda _: _template("right")),
    "template_jump_around_right": ("test on `jump around right`", lambda _: _filler(("look", "walk", "run"))),
    "filler_num0": ("test on `jump around right`; no verb has `around right` in training", lambda _: _filler(())),
    "filler_num1": ("the same, but `look` has it", lambda _: _filler(("look",))),
    "filler_num2": ("the same, but `look` and `walk` have it", lambda _: _filler(("look", "walk"))),
    "filler_num3": ("the same, but `look`, `walk` and `run` have it", lambda _: _filler(("look", "walk", "run"))),
}  # fmt: skip
SHOTS = {"fewshot": "filler_num0", "addprim_complex": "addprim_jump"}  # N examples are added to train of these rules
LOADED = {
    **{f"mcd{n}": "maximum compound divergence (Keysers et al. 2020); needs data.root" for n in (1, 2, 3)},
    "fewshot_num<N>_rep<R>": "filler_num0 with N examples of filler_num1; needs data.root",
    "addprim_complex_jump_num<N>_rep<R>": "addprim_jump with N composed commands; needs data.root",
}


@cache
def _example(command: str, actions: Tokens) -> Example:
    """Return a pair with its tags: number of actions and of words, direction patterns, connective."""
    source = tuple(command.split())
    patterns = re.findall(r"(?:opposite |around )?(?:left|right)", command) or ["plain"]
    tags: dict[str, Tag] = {
        "length": len(actions),
        "command_length": len(source),
        "template": " + ".join(sorted(set(patterns))),
        "connective": next((word for word in ("and", "after") if word in source), "none"),
    }
    return Example(source, actions, tags)


@cache
def official() -> dict[str, Any]:
    """Return the path of each official split in its repository (`files`), the checksums of both sides, the source."""
    checksums: dict[str, Any] = json.loads((resources.files("tfstudy.tasks") / "scan_checksums.json").read_text())
    return checksums


class Scan(Task):
    """Map a command to its actions; an example is at the top of this file."""

    schemes: ClassVar = {name: text for name, (text, _) in RULES.items()} | LOADED

    class Config(TaskConfig):
        split: str = "simple"
        validation_fraction: float = Field(
            0.05, ge=0, le=0.5, description="fraction of train held out for validation, by hash; 0: no validation split"
        )
        root: str = Field("", description="folder laid out as github.com/brendenlake/SCAN to read the split from")

    def __init__(self, config: Config) -> None:
        self.check_config(config)
        if config.root:
            train, test = (_from_folder(config.root, config.split, side) for side in ("train", "test"))
        else:
            sides = RULES[config.split][1](config.seed)
            train, test = ([_example(command, all_pairs()[command]) for command in side] for side in sides)
        self._split, self._shots = config.split, list[Tokens]()
        if rule := _rule_of_shots(config.split):
            others = {*RULES[rule][1](0)[0]}
            self._shots = [*dict.fromkeys(e.source for e in train if " ".join(e.source) not in others)]
        train, validation = hold_out(train, config.validation_fraction, config.seed, {*self._shots})
        self._examples = {"train": train, "validation": validation, "test": test}

    @classmethod
    def check_config(cls, config: TaskConfig) -> None:
        assert isinstance(config, cls.Config)  # noqa: S101 - always true; for the type checker
        files, source = official()["files"], official()["_source"]
        if not (config.root or config.split in RULES) and config.split in files:
            raise UserError(f"split scheme '{config.split}' is read from files: set data.root to a copy of {source}")
        one_of("split scheme", config.split, files if config.root else RULES)

    def splits(self) -> Splits:
        return Splits("train", "validation" if self._examples["validation"] else None, ("test",))

    def by_length(self) -> tuple[str, ...]:
        return self.splits().held_out if self._split.startswith(("simple", "length")) else ()

    def examples(self, split: str) -> Sequence[Example]:
        return self._examples[one_of("split", split, self.splits().all)]

    def remarks(self) -> Sequence[str]:
        if not self._shots:
            return ()
        added = f"train has {len(self._shots):,} commands that are not in train of {_rule_of_shots(self._split)}"
        return [f"{added}, such as {quoted(' '.join(self._shots[0]))}; none of them is held out for validation"]


def _rule_of_shots(split: str) -> str:
    """Return the split scheme that a few-shot split adds examples to; empty for any other split."""
    return next((rule for name, rule in SHOTS.items() if split.startswith(f"{name}_")), "")


def _from_folder(root: str, split: str, side: str) -> list[Example]:
    """Return one side of a split; `UserError` for other data than the official."""
    path = path_of(root) / official()["files"][split].format(side=side)
    examples = [_example(row[0], tuple(row[-1].split())) for row in read_files([path]).rows]
    if checksum(examples) != official()[side][split]:
        raise UserError(
            f"{path} ({len(examples):,} lines) is not the official data, by their SHA-256; the task `pairs` reads any "
            "pairs: tfstudy run pairs --set data.root=FOLDER"
        )
    return examples

"""SCAN: commands in simple English to sequences of actions (Lake & Baroni 2018, arXiv 1711.00350).

    jump twice and walk left  ->  I_JUMP I_JUMP I_TURN_LEFT I_WALK

All 20,910 pairs come from the grammar, so that nothing is downloaded. The experiments that are rules over these pairs
(`length`, `addprim_*`, `template_*`, `filler_*`) hold exactly the official examples; `simple` is a seeded random split
of the official sizes. The official random splits (`simple` itself, `mcd1`, few-shot, ...) are read from a copy of the
official repository (`data.root`) or from the hub (`data.hub`).
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path

from pydantic import Field

from tasks.base import Example, Splits, Task, TaskConfig, Tokens, checksum, hold_out, stable_hash
from tasks.errors import UserError, one_of

ACTION = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURN = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
REPEAT = {"": 1, "twice": 2, "thrice": 3}
SHARES = (1, 2, 4, 8, 16, 32, 64)  # per cent of all pairs that `simple_p<share>` trains on
CUTOFFS = (22, 24, 25, 26, 27, 28, 30, 32, 33, 36, 40)  # Newman et al. 2020; `length` is 22


def _verbs() -> Iterator[tuple[str, Tokens]]:
    """The 34 verb phrases with their actions: `jump`, `turn left`, `walk around right`, ..."""
    for word, action in ACTION.items():
        yield word, (action,)
    for (word, action), (side, turn) in product([*ACTION.items(), ("turn", "")], TURN.items()):
        act = (action,) if action else ()
        yield f"{word} {side}", (turn, *act)
        yield f"{word} opposite {side}", (turn, turn, *act)
        yield f"{word} around {side}", (turn, *act) * 4


@cache
def all_pairs() -> dict[str, Tokens]:
    """Every command of the grammar with its actions, in the grammar's order."""
    phrases = {f"{verb} {word}".strip(): actions * n for verb, actions in _verbs() for word, n in REPEAT.items()}
    pairs = dict(phrases)
    for (first, a), (second, b) in product(phrases.items(), repeat=2):
        pairs[f"{first} and {second}"] = a + b
        pairs[f"{first} after {second}"] = b + a
    return pairs


def _has(command: str, phrase: str) -> bool:
    """Whether `phrase` occurs in the command as contiguous whole words."""
    return f" {phrase} " in f" {command} "


Sides = tuple[list[str], list[str]]  # the commands of train and of test; train repeats some


def _length(cutoff: int) -> Sides:
    pairs = all_pairs()
    return [c for c in pairs if len(pairs[c]) <= cutoff], [c for c in pairs if len(pairs[c]) > cutoff]


def _primitive(primitive: str) -> Sides:
    """Only the bare primitive is trained on, as a tenth of all lines; every command that contains it is tested."""
    test = [c for c in all_pairs() if _has(c, primitive) and c != primitive]
    others = [c for c in all_pairs() if not _has(c, primitive)]
    return others + [primitive] * (len(others) // 9), test


def _template(pattern: str) -> Sides:
    """Test: a verb with the pattern. Commands that have `turn` with it are on neither side."""
    pairs = [c for c in all_pairs() if not _has(c, f"turn {pattern}")]
    tested = {c for c in pairs if any(_has(c, f"{verb} {pattern}") for verb in ACTION)}
    return [c for c in pairs if c not in tested], [c for c in pairs if c in tested]


def _filler(verbs: Sequence[str]) -> Sides:
    """Test: `jump around right`. Train: every verb before `around right` is one of `verbs`."""
    pairs = [c for c in all_pairs() if not _has(c, "turn around right")]
    test = [c for c in pairs if _has(c, "jump around right")]
    others = [verb for verb in ACTION if verb not in verbs]
    return [c for c in pairs if not any(_has(c, f"{verb} around right") for verb in others)], test


def _simple(share: int, seed: int) -> Sides:
    """The first `share` per cent of a random order; 80 is `simple`, and smaller shares are prefixes of it."""
    order = sorted(all_pairs(), key=lambda c: stable_hash("simple", seed, tuple(c.split())))
    cut = len(order) * share // 100
    return order[:cut], order[cut:]


RULES: dict[str, tuple[str, Callable[[int], Sides]]] = {
    "simple": ("random 80/20 split", lambda seed: _simple(80, seed)),
    **{
        f"simple_p{share}": (f"train on {share} % of all pairs, a prefix of simple's; test on all others",
                             lambda seed, share=share: _simple(share, seed))  # type: ignore[misc]
        for share in SHARES
    },
    "length": ("train on at most 22 actions, test on 24 to 48", lambda _: _length(22)),
    **{
        f"length_{cutoff}": (f"train on at most {cutoff} actions, test on more",
                             lambda _, cutoff=cutoff: _length(cutoff))  # type: ignore[misc]
        for cutoff in CUTOFFS
    },
    "addprim_jump": ("train on `jump` alone, test on all with it", lambda _: _primitive("jump")),
    "addprim_turn_left": ("train on `turn left` alone, test on all with it", lambda _: _primitive("turn left")),
    "template_around_right": ("test on a verb with `around right`", lambda _: _template("around right")),
    "template_opposite_right": ("test on a verb with `opposite right`", lambda _: _template("opposite right")),
    "template_right": ("test on a verb with `right`", lambda _: _template("right")),
    "template_jump_around_right": ("test on `jump around right`", lambda _: _filler(("look", "walk", "run"))),
    "filler_num0": ("test on `jump around right`, no verb trained with it", lambda _: _filler(())),
    "filler_num1": ("the same, `look` trained with it", lambda _: _filler(("look",))),
    "filler_num2": ("the same, `look` and `walk` trained with it", lambda _: _filler(("look", "walk"))),
    "filler_num3": ("the same, `look`, `walk` and `run` trained with it", lambda _: _filler(("look", "walk", "run"))),
}  # fmt: skip
LOADED = {
    **{f"mcd{n}": "maximum compound divergence (Keysers et al. 2020); needs data.root" for n in (1, 2, 3)},
    "fewshot_num<N>_rep<R>": "filler_num0 with N examples of filler_num1; needs data.root",
    "addprim_complex_jump_num<N>_rep<R>": "addprim_jump with N composed commands; needs data.root",
}


def tags(source: Tokens, target: Tokens) -> dict[str, str | int]:
    """What tables slice by: number of actions and of words, direction patterns, connective."""
    command = " ".join(source)
    connective = next((word for word in ("and", "after") if word in source), "none")
    patterns = re.findall(r"(?:opposite |around )?(?:left|right)", command) or ["plain"]
    return {
        "length": len(target),
        "command_length": len(source),
        "template": " + ".join(sorted(set(patterns))),
        "connective": connective,
    }


@cache
def _example(command: str, actions: Tokens) -> Example:
    source = tuple(command.split())
    return Example(source, actions, tags(source, actions))


@cache
def official() -> dict[str, dict[str, str]]:
    """Of every official split: its file in the official repository (`files`) and its sums (`train`, `test`)."""
    sums: dict[str, dict[str, str]] = json.loads((resources.files("tasks") / "scan_checksums.json").read_text())
    return sums


class Scan(Task):
    """SCAN on one of its splits; see the module's text for an example."""

    version = 1

    class Config(TaskConfig):
        split: str = Field("simple", description="which of SCAN's splits; `tfstudy list splits scan` names them")
        validation_fraction: float = Field(
            0.05, ge=0, le=0.5, description="share of train held out, by hash, to validate on; 0 trains on all of it"
        )
        root: str = Field("", description="folder laid out as github.com/brendenlake/SCAN to read the split from")
        hub: str = Field("", description="id of a data set on the Hugging Face hub to read the split from")

    def __init__(self, config: Config) -> None:
        if config.root and config.hub:
            raise UserError("data.root and data.hub must not both be set")
        if not config.root and not config.hub and config.split in official()["files"] and config.split not in RULES:
            raise UserError(
                f"data.split '{config.split}' is no rule over the grammar: it is read from files, set data.root"
            )
        one_of(
            "split scheme",
            config.split,
            list(official()["files"]) if config.root else RULES if not config.hub else [config.split],
        )
        sides = self._read(config) if config.root or config.hub else self._generate(config)
        stays, validation = hold_out(sides["train"], config.validation_fraction, config.seed)
        self._split = config.split
        self._examples = {"train": stays, "validation": validation, "test": sides["test"]}

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return {name: text for name, (text, _) in RULES.items()} | LOADED

    def splits(self) -> Splits:
        return Splits("train", "validation" if self._examples["validation"] else None, ("test",))

    def by_length(self) -> tuple[str, ...]:
        return self.splits().held_out if self._split.startswith(("simple", "length")) else ()

    def examples(self, split: str) -> Sequence[Example]:
        return self._examples[one_of("split", split, self.splits().all)]

    @staticmethod
    def _generate(config: Config) -> dict[str, list[Example]]:
        train, test = RULES[config.split][1](config.seed)
        every = {command: _example(command, actions) for command, actions in all_pairs().items()}
        return {"train": [every[c] for c in train], "test": [every[c] for c in test]}

    @staticmethod
    def _read(config: Config) -> dict[str, list[Example]]:
        read = _from_folder if config.root else _from_hub
        sides = {side: read(config.root or config.hub, config.split, side) for side in ("train", "test")}
        for side, examples in sides.items():
            known = official()[side].get(config.split)
            if known and checksum(examples) != known:
                raise UserError(
                    f"{config.root or config.hub}: the {side} side of '{config.split}' has {len(examples)} lines, "
                    f"but is not the official data (sha256 {checksum(examples)[:12]}..., official {known[:12]}...)"
                )
        return sides


def _from_folder(root: str, split: str, side: str) -> list[Example]:
    path = Path(root).expanduser() / official()["files"][split].format(side=side)
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise UserError(f"data.root: can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8") from None
    examples = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        line = line.removesuffix("\r")
        found = re.fullmatch(r"IN: (\S+(?: \S+)*) OUT: (\S+(?: \S+)*)", line)
        if not found:
            raise UserError(f"{path}:{number}: a line must be 'IN: <command> OUT: <actions>', but is '{line[:60]}'")
        command, actions = found[1], tuple(found[2].split())
        if all_pairs().get(command) != actions:
            raise UserError(f"{path}:{number}: '{command}' -> '{found[2][:60]}' is no pair of the SCAN grammar")
        examples.append(_example(command, actions))
    return examples


def _from_hub(hub: str, split: str, side: str) -> list[Example]:
    from datasets import load_dataset

    try:
        # The hub's `scan` is a script, which `datasets` no longer runs: its parquet copy is on this branch.
        rows = load_dataset(hub, split, split=side, revision="refs/convert/parquet")
        pairs = [(row["commands"], tuple(row["actions"].split())) for row in rows]
    except Exception as error:  # the hub's many ways to fail share no base class
        reason = str(error).strip().split("\n")[0][:160] or type(error).__name__
        raise UserError(f"data.hub: can't load '{hub}' ({split}, {side}): {reason}. Offline, use data.root") from None
    for command, actions in pairs:
        if all_pairs().get(command) != actions:
            raise UserError(f"data.hub: '{hub}' holds '{command}', which is no pair of the SCAN grammar")
    return [_example(command, actions) for command, actions in pairs]

"""Select the conditions that a statement of a claim is about: by name and settings, never by their results."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.condition_settings import NOT_SETTINGS
from tfstudy.analysis.conditions import BATCH_ORDER, Condition, conditions
from tfstudy.analysis.statements import CONDITION_KEYS, Claim, Selector, Statement, without_rows
from tfstudy.config.presets import preset
from tfstudy.config.trees import flatten, merge
from tfstudy.errors import UserError
from tfstudy.experiment.code_versions import last_environment

Item = TypeVar("Item")
UNRECORDED = "settings.unrecorded"
IMPLIED = {*NOT_SETTINGS, "data.split", "data.hub"}  # settings that name neither a condition nor its preset


def candidate_conditions(
    claims: Iterable[Claim], runs: Sequence[RunRecord], whole: Sequence[Condition]
) -> list[Condition]:
    """Return the conditions of a study that claims may be about: on `whole` test sets, and by the tags they name."""
    by_tag: dict[str, set[tuple[str, str]]] = {"": set()}  # the tasks and split schemes that are named with each tag
    for statement in (statement for claim in claims for statement in claim.statements if not statement.over):
        for selector in filter(None, (statement.of, statement.minus)):
            by_tag.setdefault(selector.get("tag", ""), set()).add((selector["task"], selector["split"]))
    out = [condition for condition in whole if (condition.task, condition.split) in by_tag[""]]
    for tag in sorted(by_tag.keys() - {""}):
        out += conditions([run for run in runs if (run.result.task, run.result.split) in by_tag[tag]], tag)
    return out


def select_conditions(
    statement: Statement, known: Sequence[Condition], minimum_seeds: int = 1
) -> tuple[tuple[Condition, ...], int]:
    """Return the condition that a statement selects, or the two, and the number of others that it selects too.

    Conditions of fewer seeds are selected only if there are no others: a run of today must not hide a study that
    decides. Of several it is the one that is closest to its preset, then the one with most seeds.
    """
    everything, unused = _select(statement, known)
    enough = [condition for condition in known if has_seeds(condition, minimum_seeds)]
    pair = _select(statement, enough)[0] or everything
    return pair, len(everything) + unused - len(pair)


def _select(statement: Statement, known: Sequence[Condition]) -> tuple[tuple[Condition, ...], int]:
    """Return what a statement selects of these conditions (two share `_shared_settings`), and the number of others."""
    firsts = matching(known, statement.of)
    if not statement.minus:
        best = (closest(firsts, lambda one: preset_distance(one, statement.of)),) if firsts else ()
        return best, max(0, len(firsts) - 1)
    seconds = matching(known, statement.minus)
    buckets: dict[Hashable, tuple[list[Condition], list[Condition]]] = {}
    for side, members in enumerate((firsts, seconds)):
        for condition in members:
            buckets.setdefault(_shared_settings(condition, statement), ([], []))[side].append(condition)
    pairs = [bucket for bucket in buckets.values() if all(bucket)]
    if not pairs:
        return (), len(firsts) + len(seconds) if firsts and seconds else 0
    pair = _closest_pair(pairs, statement)
    others = {id(one) for bucket in pairs for side in bucket for one in side} - {id(one) for one in pair}
    return pair, len(others)


def _closest_pair(
    buckets: Sequence[tuple[list[Condition], list[Condition]]], statement: Statement
) -> tuple[Condition, Condition]:
    def distance(side: int) -> Callable[[Condition], tuple[Any, ...]]:
        return lambda condition: preset_distance(condition, (statement.of, statement.minus)[side])

    def joint_distance(pair: tuple[Condition, Condition]) -> tuple[Any, ...]:
        both = [distance(side)(condition) for side, condition in enumerate(pair)]
        return sum(one[0] for one in both), max(one[1] for one in both), [one[2:] for one in both]

    return closest([(closest(a, distance(0)), closest(b, distance(1))) for a, b in buckets], joint_distance)


def has_seeds(condition: Condition, minimum: int) -> bool:
    """Whether a condition has at least this many seeds, those that diverged included."""
    return len(condition.runs) + len(condition.diverged) >= minimum


def matching(known: Sequence[Condition], selector: Selector) -> list[Condition]:
    """Return the conditions that have these names and settings."""
    wanted = without_rows(selector)
    return [condition for condition in known if all(_value(condition, key) == wanted[key] for key in wanted)]


def _value(condition: Condition, key: str) -> object:
    return getattr(condition, CONDITION_KEYS[key]) if key in CONDITION_KEYS else condition.config.get(key)


def closest(items: Sequence[Item], key: Callable[[Item], tuple[Any, ...]]) -> Item:
    """Return the item with the smallest key, which is not computed for a single item."""
    return items[0] if len(items) == 1 else min(items, key=key)


def preset_distance(condition: Condition, selector: Selector) -> tuple[Any, ...]:
    """Return a key that is smallest for the condition closest to its preset, then current, then with most seeds."""
    c = condition
    differing = differing_settings(c) - selector.keys()
    outdated = any(run.outdated() for run in [*c.runs, *c.diverged][:1])  # the runs of a condition share their versions
    return len(differing), outdated, -len(c.runs) - len(c.diverged), c.label


def differing_settings(condition: Condition) -> set[str]:
    """Return the settings of a condition that differ from those of its preset, except those of `IMPLIED`.

    A run records its settings that are not defaults. Of one that does not, only the settings that the preset names can
    be compared; `UNRECORDED` stands for the others.
    """
    c = condition
    try:
        tree = preset(c.task, c.arch, c.preset)
    except UserError:
        return set()
    expected = flatten(merge(tree, {"data": {"split": c.split}}))
    entry = next((last_environment(run.path) for run in [*c.runs, *c.diverged]), None)
    recorded = flatten(entry.settings) if entry and entry.settings else {UNRECORDED: None}
    others = {key for key in recorded if "." in key and key not in expected}
    differing = {key for key, value in expected.items() if "." in key and c.config.get(key) != value}
    return (others | differing) - IMPLIED


def _shared_settings(condition: Condition, statement: Statement) -> Hashable:
    """Return what two conditions must share to be compared.

    All data, decoding and evaluation settings, except those that the statement names; under presets of the same name
    also how batches are made, and for the same architecture all settings.
    """
    first, second = statement.of, statement.minus
    same_preset = first["preset"] == second["preset"]
    free = {*first, *second, *NOT_SETTINGS, "data.split", "data.hub"}  # the split scheme is selected by name
    if not same_preset:  # the share of training data held out for validation is part of a preset
        free.add("data.validation_fraction")
    if same_preset and first["arch"] == second["arch"]:
        sections: tuple[str, ...] = ("",)
    else:
        sections = ("data.", "decode.", "eval.", *(BATCH_ORDER if same_preset else ()))
    changed = condition.changed_settings().items()
    settings = frozenset((key, value) for key, value in changed if key.startswith(sections) and key not in free)
    # a study compares its own conditions
    return settings, condition.study if statement.compares else ""

"""How runs differ: the settings that explain it, as values; `text` writes them. Imports no pandas.

Runs are compared with others of the same task, split scheme and architecture (`varying`, `of_runs`), with all
experiments of a study that have the same names (`distinguishing`), or with their preset (`differing`).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tfstudy import models
from tfstudy.analysis.frame import DEFAULT, RunRecord
from tfstudy.config import presets
from tfstudy.config.trees import flat_yaml, flatten, merge, short_key
from tfstudy.errors import UserError, some
from tfstudy.runs.store import Run

NAMES = ("task", "data.split", "arch", "seed", "smoke")  # what is no setting
IMPLIED = {"seed", "data.root", "data.split", "data.hub"}  # settings that name neither a condition nor its preset
LANGUAGE = {"data.target_language"}  # known by the name of a corpus
OUTDATED = "outdated"  # stands behind the settings of conditions that only this distinguishes
MISSING = "default"  # the value of a setting that a run does not record
MAX_LISTED = 4  # settings in a text
Settings = dict[str, Any]  # by dotted key
Condition = Any  # a row of `summary.conditions`


def text(settings: Mapping[str, Any], separator: str = " ", short: bool = True, most: int = 1000) -> str:
    """Return `norm=post heads=2`, or with full keys unless `short`; at most so many settings, the others counted."""
    parts = [
        key if key == OUTDATED else f"{short_key(key) if short else key}={value}" for key, value in settings.items()
    ]
    return some(parts, most, separator)


def name(arch: str, preset: str, settings: Mapping[str, Any]) -> str:
    """Return the label of a condition: the architecture, the preset unless it is the default, and the settings."""
    return " ".join(filter(None, [arch, preset * (preset != DEFAULT), text(settings)]))


def varying(configs: Sequence[Mapping[str, Any]], fewest: bool = True) -> list[str]:
    """Return the keys whose values differ between configs; a key that one of them lacks has its default there.

    With `fewest` only those that explain all others: keys with most values first, of these the ones with names for
    values, and no key that follows from those before it. Otherwise all, in the order of the configs.
    """
    keys = dict.fromkeys(key for config in configs for key in config if key not in NAMES)
    texts = {key: [str(config.get(key, MISSING)) for config in configs] for key in keys}
    differing = [key for key in keys if len(set(texts[key])) > 1]
    if not fewest:
        return differing
    chosen: list[str] = []
    distinguished = 1
    for key in sorted(differing, key=lambda key: (-len(set(texts[key])), not isinstance(configs[0].get(key), str))):
        more = len(set(zip(*(texts[other] for other in (*chosen, key)), strict=True)))
        if more > distinguished:
            chosen, distinguished = [*chosen, key], more
    return chosen


def of_configs(configs: Sequence[Mapping[str, Any]], studies: Sequence[object] = ()) -> list[str]:
    """Return how each config differs from others of its task, split scheme and architecture: `dim=64, steps=100`.

    With the study of each, from those of the same study. Empty without others, or where only the seed differs.
    """
    flat = [flatten(config) for config in configs]
    groups: dict[str, list[int]] = defaultdict(list)
    for number, config in enumerate(flat):
        groups[str([studies[number : number + 1], *map(config.get, ("task", "data.split", "arch"))])].append(number)
    texts = [""] * len(flat)
    for members in groups.values():
        own = [flat[number] for number in members]
        # what a run of older code lacks has its default there: it says something where it differs among the others
        keys = [key for key in varying(own) if len({str(one[key]) for one in own if key in one}) > 1]
        for number, one in zip(members, own, strict=True):
            texts[number] = text({key: one.get(key, MISSING) for key in keys}, ", ", most=MAX_LISTED)
    return texts


def of_runs(runs: Sequence[Run]) -> list[str]:
    """Return the same for runs; empty for a config that can't be read."""
    return of_configs([flat_yaml(run.config) for run in runs], [run.path.parts[:-3] for run in runs])


def distinguishing(experiments: Mapping[str, RunRecord]) -> dict[str, Settings]:
    """Return, of each experiment, the settings that distinguish it, or else that it is outdated, or its hash.

    Each is given by one of its runs. What is off by default (0 or empty) is named only where it is on.
    """
    changed = [{key: value for key, value in run.changed.items() if key != "data.root"} for run in experiments.values()]
    # in the order of the configs, which have all keys
    order = dict.fromkeys(key for run in experiments.values() for key in run.settings)
    differing = set(varying(changed, fewest=False))
    out = {
        hash_: {key: run.settings[key] for key in order if key in differing and (key in own or run.settings.get(key))}
        for (hash_, run), own in zip(experiments.items(), changed, strict=True)
    }
    for key in (OUTDATED, "experiment"):
        counts = Counter(map(str, out.values()))
        same = [hash_ for hash_, one in out.items() if counts[str(one)] > 1]
        more = {h: bool(experiments[h].outdated()) if key == OUTDATED else h[:8] for h in same}
        if len({*more.values()}) > 1:
            out |= {hash_: out[hash_] | ({key: value} if value else {}) for hash_, value in more.items()}
    return out


# Against the preset


def differing(condition: Condition) -> set[str]:
    """Return the settings of a condition that differ from those of its preset, except those of `IMPLIED`.

    For an architecture without a preset, from those it starts with. Where only widths of its network differ, and no
    label names them, they were chosen to reach the reference's size.
    """
    c = condition
    try:
        start = presets.starting_point(c.task, c.arch, c.preset)
        widths = () if presets.has_size(start) else models.declared(c.arch, "widths", ("dim",))
    except UserError:  # a preset that is gone
        return set()
    expected = flatten(merge(start, {"data": {"split": c.split}}))
    chosen = {f"model.{key}" for key in widths}
    keys = [key for key, value in expected.items() if c.config.get(key) != value]
    found = {key for key in (*keys, *(c.changed.keys() - expected)) if "." in key}
    network = {key for key in found if key.startswith("model.")} - {*c.settings}
    return found - IMPLIED - (network if network <= chosen else set())


def distance(condition: Condition) -> tuple[Any, ...]:
    """Return a key that is smallest for the condition closest to its preset, then current, then with most seeds."""
    runs = [*condition.runs, *condition.diverged]
    outdated = any(run.outdated() for run in runs[:1])  # the runs of a condition share their versions
    return len(differing(condition)), outdated, -len(runs), condition.label


def preset_text(condition: Condition) -> str:
    """Return the preset with the settings that differ from it and are not in the condition's label."""
    keys = differing(condition) - {*condition.settings} - (LANGUAGE if condition.corpus else set())
    # a setting that the config lacks is newer than the run, which had its default
    shown = text({key: condition.config.get(key, MISSING) for key in sorted(keys)}, ", ")
    return f"preset {condition.preset}" + (f" with {shown}" if shown else "")

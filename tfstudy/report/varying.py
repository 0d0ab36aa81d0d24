"""What differs between runs, in a few words beside their names: `learning_rate=0.001`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy.config.trees import Tree, flatten, short_key
from tfstudy.errors import UserError
from tfstudy.experiment.code_versions import last_environment
from tfstudy.runs.reader import read_config

NAMED = ("task", "data.split", "arch", "seed", "smoke")  # in the name of a run
MAX_SHOWN = 4  # settings of a run
MISSING = object()


def varying_settings(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, for each config, the settings in which it differs from others of its task, split scheme and architecture.

    Empty where there are no others, or where only the seed differs. Settings with most values come first. A setting
    that follows from those before it is left out. Keys are shortened to their last word.
    """
    flat = [flatten(dict(config)) for config in configs]
    return _texts(flat, flat)


def varying_runs(paths: Sequence[Path]) -> list[str]:
    """Return the same for the runs of each study; empty for a config that can't be read."""
    texts: dict[Path, str] = {}
    studies: dict[tuple[str, ...], list[Path]] = {}
    for path in paths:
        studies.setdefault(path.parts[:-3], []).append(path)
    for members in studies.values():
        configs = [_config(path) for path in members]
        texts |= zip(members, _texts(configs, _comparable(configs, members)), strict=True)
    return [texts[path] for path in paths]


def _config(path: Path) -> Tree:
    try:
        return flatten(read_config(path))
    except UserError:
        return {"task": f"unreadable {path}"}


def _comparable(configs: Sequence[Tree], paths: Sequence[Path]) -> list[Tree]:
    """Return the configs, without the settings that equal their default where older runs lack some of the keys."""
    comparable = [*configs]
    for members in _groups(configs).values():
        if len({frozenset(configs[number]) for number in members}) > 1:
            for number in members:
                entry = last_environment(paths[number])
                changed = flatten(entry.settings) if entry and entry.settings else configs[number]
                comparable[number] = {key: value for key, value in configs[number].items() if key in changed}
    return comparable


def _texts(configs: Sequence[Tree], comparable: Sequence[Tree]) -> list[str]:
    """Return the settings of each config that vary in its group, as the comparable configs have them."""
    texts = [""] * len(configs)
    for members in _groups(configs).values():
        keys = _differing([comparable[number] for number in members])
        for number in members:
            texts[number] = _text({short_key(key): configs[number].get(key, "default") for key in keys})
    return texts


def _groups(configs: Sequence[Tree]) -> dict[tuple[str, ...], list[int]]:
    """Return the numbers of the configs of each task, split scheme and architecture."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, config in enumerate(configs):
        groups.setdefault(tuple(str(config.get(key)) for key in ("task", "data.split", "arch")), []).append(number)
    return groups


def _differing(configs: Sequence[Tree]) -> list[str]:
    """Return the fewest keys, taken in order, whose values determine those of all others.

    Keys with most values come first, and among them those with names for values. A key may be missing in some configs.
    """
    values = {
        key: [config.get(key, MISSING) for config in configs]
        for key in dict.fromkeys(key for config in configs for key in config if key not in NAMED)
    }
    patterns = {key: [*map(own.index, own)] for key, own in values.items()}  # equal for keys that vary together
    chosen: list[str] = []
    distinguished = {()}
    for key in sorted(patterns, key=lambda key: (-len({*patterns[key]}), not isinstance(values[key][0], str))):
        more = {*zip(*(patterns[other] for other in (*chosen, key)), strict=True)}
        if len(more) > len(distinguished):
            chosen, distinguished = [*chosen, key], more
    return chosen


def _text(settings: Mapping[str, Any]) -> str:
    parts = [f"{key}={value}" for key, value in settings.items()]
    more = [f"and {len(parts) - MAX_SHOWN} more"] if len(parts) > MAX_SHOWN else []
    return ", ".join([*parts[:MAX_SHOWN], *more])

"""What differs between runs, in a few words beside their names: `learning_rate=0.001`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy.config.trees import flatten, short_key
from tfstudy.runs.reader import read_config
from tfstudy.tasks.errors import UserError

NAMED = ("task", "data.split", "arch", "seed", "smoke")  # in the name of a run
MAX_SHOWN = 4  # settings of a run
MISSING = object()


def varying_settings(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, for each config, the settings in which it differs from others of its task, split scheme and architecture.

    Empty where there are no others, or where only the seed differs. Keys are shortened to their last word.
    """
    flat = [flatten(dict(config)) for config in configs]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for config in flat:
        groups.setdefault(_group(config), []).append(config)
    keys = {group: _differing(members) for group, members in groups.items()}
    return [_text({short_key(key): config.get(key, "default") for key in keys[_group(config)]}) for config in flat]


def varying_runs(paths: Sequence[Path]) -> list[str]:
    """Return the same for the configs in run folders; empty for a config that can't be read."""
    configs: list[Mapping[str, Any]] = []
    for path in paths:
        try:
            configs.append(read_config(path))
        except UserError:
            configs.append({"task": f"unreadable {path}"})
    return varying_settings(configs)


def _group(config: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(str(config.get(key)) for key in ("task", "data.split", "arch"))


def _differing(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys that have several values, in the order of the configs; newer keys may be missing in some."""
    keys = dict.fromkeys(key for config in configs for key in config if key not in NAMED)
    return [key for key in keys if any(config.get(key, MISSING) != configs[0].get(key, MISSING) for config in configs)]


def _text(settings: Mapping[str, Any]) -> str:
    parts = [f"{key}={value}" for key, value in settings.items()]
    more = [f"and {len(parts) - MAX_SHOWN} more"] if len(parts) > MAX_SHOWN else []
    return ", ".join([*parts[:MAX_SHOWN], *more])

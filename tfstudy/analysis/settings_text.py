"""The settings of a condition in words: sizes, positions, steps and preset, and what differs from the preset."""

from collections.abc import Sequence

from tfstudy.analysis.condition_selection import UNRECORDED, differing_settings
from tfstudy.analysis.condition_settings import SETTING
from tfstudy.analysis.conditions import Condition
from tfstudy.config.trees import short_key

MAX_LISTED = 4  # settings that differ from the preset
LANGUAGES = ("data.source_language", "data.target_language")


def settings_text(condition: Condition) -> str:
    """Return the settings: `preset default, 667,786 parameters, sinusoidal positions, 3,000 steps`."""
    runs, config = [*condition.runs, *condition.diverged], condition.config
    parameters = runs[0].result.parameters if runs else 0
    positions = str(config.get("model.positions", ""))
    steps = trained_steps(condition)
    parts = [
        preset_text(condition),
        f"{parameters:,} parameters" if parameters else "",
        {"": "", "none": "no positions"}.get(positions, f"{positions} positions"),
        f"{steps:,} steps" if steps else "",
        "data from files" if condition.config.get("data.root") else "",
    ]
    return ", ".join(filter(None, parts))


def trained_steps(condition: Condition) -> int:
    """Return the steps of training, 0 if unknown: a result has the step of the weights that were evaluated."""
    return int(condition.config.get("train.steps", 0))


def preset_text(condition: Condition) -> str:
    """Return the preset with the settings that differ from it: `preset default with dropout=0.1`."""
    keys = _differing(condition)
    more = f" and {len(keys) - MAX_LISTED} more" if len(keys) > MAX_LISTED else ""
    return _with_settings(condition, keys[:MAX_LISTED]) + more


def preset_beside_label(condition: Condition) -> str:
    """Return the preset with all settings that differ from it, except those in the condition's label."""
    named = SETTING.findall(condition.settings)
    return _with_settings(condition, [key for key in _differing(condition) if key not in named])


def _differing(condition: Condition) -> list[str]:
    """Return the settings that differ from the preset; the languages of a corpus are known by its name."""
    keys = differing_settings(condition)
    return sorted(keys - {*LANGUAGES} if condition.corpus else keys)


def _with_settings(condition: Condition, keys: Sequence[str]) -> str:
    # a setting that the config lacks is newer than the run, which had its default
    texts = [
        "unrecorded settings" if key == UNRECORDED else f"{short_key(key)}={condition.config.get(key, 'default')}"
        for key in keys
    ]
    return f"preset {condition.preset}" + (f" with {', '.join(texts)}" if texts else "")

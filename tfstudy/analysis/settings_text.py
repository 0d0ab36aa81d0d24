"""The settings of a condition in words: sizes, positions, steps and preset, and what differs from the preset."""

from tfstudy.analysis.condition_selection import UNRECORDED, differing_settings
from tfstudy.analysis.conditions import Condition
from tfstudy.config.trees import short_key

MAX_LISTED = 4  # settings that differ from the preset


def settings_text(condition: Condition) -> str:
    """Return such as `preset default, 667,786 parameters, sinusoidal positions, 3,000 steps`."""
    runs, config = [*condition.runs, *condition.diverged], condition.config
    parameters = runs[0].result.parameters if runs else 0
    positions = str(config.get("model.positions", ""))
    steps = int(config.get("train.steps", 0))
    parts = [
        preset_text(condition),
        f"{parameters:,} parameters" if parameters else "",
        {"": "", "none": "no positions"}.get(positions, f"{positions} positions"),
        f"{steps:,} steps" if steps else "",
        "data from files" if condition.config.get("data.root") else "",
    ]
    return ", ".join(filter(None, parts))


def preset_text(condition: Condition) -> str:
    """Return the preset with the settings that differ from it: `preset default with dropout=0.1`."""
    differing = sorted(differing_settings(condition))
    # a setting that the config lacks is newer than the run, which had its default
    texts = [
        "unrecorded settings" if key == UNRECORDED else f"{short_key(key)}={condition.config.get(key, 'default')}"
        for key in differing[:MAX_LISTED]
    ]
    listed = ", ".join(texts)
    more = f" and {len(differing) - MAX_LISTED} more" if len(differing) > MAX_LISTED else ""
    return f"preset {condition.preset}{f' with {listed}' if listed else ''}{more}"

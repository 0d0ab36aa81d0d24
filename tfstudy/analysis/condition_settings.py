"""The settings of a condition: those that differ from their default, and those that distinguish it from others."""

import re
from collections import Counter
from typing import Any

from tfstudy.analysis.collection import RunRecord
from tfstudy.config.trees import flatten, short_key
from tfstudy.experiment.code_versions import last_environment

NOT_SETTINGS = ("seed", "data.root")  # of a config: what does not distinguish conditions
AMOUNT = ("data.train_examples", "data.train_pairs")  # of a config: the amount of training data
DEFAULT = "default"  # the preset of a task and architecture; the value of a setting that a run does not record
OUTDATED = "outdated"  # stands behind the settings of conditions that only this distinguishes
SETTING = re.compile(r"(?:^|(?<= ))([\w.]+)(?==)")  # the key in "model.dim=64"


def short_settings(settings: str) -> str:
    """Return `dim=64 dropout=0.1` for `model.dim=64 model.dropout=0.1`."""
    return SETTING.sub(lambda found: short_key(found[0]), settings)


def distinguishing_settings(configs: dict[str, dict[str, Any]], first_runs: dict[str, RunRecord]) -> dict[str, str]:
    """Return, for each experiment, the settings that distinguish it, or else that it is outdated, its data or hash.

    What is off by default (0 or empty) is named only where it is on.
    """
    if len(configs) == 1:
        return dict.fromkeys(configs, "")
    keys = list(dict.fromkeys(key for config in configs.values() for key in config if key not in NOT_SETTINGS))
    values = {hash_: changed_settings(config, first_runs[hash_]) for hash_, config in configs.items()}
    differ = [key for key in keys if len({one.get(key, DEFAULT) for one in values.values()}) > 1]
    texts = {
        hash_: " ".join(f"{k}={config[k]}" for k in differ if k in values[hash_] or config.get(k))
        for hash_, config in configs.items()
    }
    for describe in (_outdated, _data, lambda run: f"experiment={run.result.experiment[:8]}"):
        counts = Counter(texts.values())
        same = {hash_: describe(first_runs[hash_]) for hash_, text in texts.items() if counts[text] > 1}
        if len(set(same.values())) > 1:
            texts |= {hash_: f"{texts[hash_]} {text}".strip() for hash_, text in same.items()}
    return texts


def changed_settings(config: dict[str, Any], run: RunRecord | None) -> dict[str, str]:
    """Return the settings that differ from their default, as texts: a config that is older than a key lacks it."""
    entry = last_environment(run.path) if run else None
    recorded = flatten(entry.settings) if entry and entry.settings else config
    return {key: str(value) for key, value in config.items() if key in recorded}


def _outdated(run: RunRecord) -> str:
    return OUTDATED if run.outdated() else ""


def _data(run: RunRecord) -> str:
    entry = last_environment(run.path)
    return f"data={entry.data[:8]}" if entry else ""

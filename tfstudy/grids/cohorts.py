"""Cohorts: which runs of a grid can train in one process, and how many at a time. Imports no torch."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tfstudy.config.trees import flatten
from tfstudy.errors import UserError, quoted

T = TypeVar("T")
MAX_SIZE = 64  # members of a cohort
AUTO = "auto"


def check_cohort(text: str, launcher: str = "local", devices: int = 1) -> None:
    """Raise `UserError` if `--cohort` is given and neither a size nor auto, or does not go with the other options."""
    if not text:
        return
    if text != AUTO and not (re.fullmatch("[0-9]{1,2}", text) and 1 <= int(text) <= MAX_SIZE):
        raise UserError(f"--cohort must be auto or a number from 1 to {MAX_SIZE}, but is {quoted(text)}")
    if launcher != "local":
        raise UserError(f"--cohort needs --launcher local, but is used with {launcher}, whose jobs are one run each")
    if devices > 1:
        raise UserError(f"--cohort needs --devices 1, but is used with {devices}: a run on several has its processes")


def cohort_key(config: Mapping[str, Any]) -> str:
    """Return what the configs of one cohort share: everything but seed, learning rate and dropout.

    Empty for a run that trains alone: torch.compile counts its attempts per process.
    """
    if config["train"]["compile"]:
        return ""
    return json.dumps({key: value for key, value in flatten(config).items() if not _may_differ(key)}, sort_keys=True)


def _may_differ(key: str) -> bool:
    return key in ("seed", "train.learning_rate") or (key.startswith("model.") and key.endswith("dropout"))


def grouped(items: Sequence[T], keys: Sequence[str]) -> list[list[T]]:
    """Return the items in groups that have the same key, in the order of the first of each; alone without a key."""
    groups: dict[str, list[T]] = {}
    for number, (item, key) in enumerate(zip(items, keys, strict=True)):
        groups.setdefault(key or f"alone {number}", []).append(item)
    return list(groups.values())


def describe_groups(sizes: Sequence[int]) -> str:
    """Return one line on groups of these sizes: `cohorts from 3 groups of 6 runs, 1 group of 4; 2 runs alone`."""
    counts = Counter(sizes)
    alone = counts.pop(1, 0)
    groups = [f"{count} group{'s' * (count > 1)} of {size}" for size, count in sorted(counts.items(), reverse=True)]
    cohorts = f"cohorts from {', '.join([groups[0] + ' runs', *groups[1:]])}" if groups else "no cohorts"
    return f"{cohorts}; {alone} run{'s' * (alone > 1)} alone" if alone else cohorts

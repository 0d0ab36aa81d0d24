"""Trees of settings: nested dictionaries, merged, flattened to dotted keys and back."""

import math
from collections.abc import Mapping
from typing import Any

Tree = dict[str, Any]
AMBIGUOUS = ("batch_size", "seed")  # the last words of keys of several sections


def merge(*trees: Tree) -> Tree:
    """Return one tree of all; later trees win, key by key within sections."""
    merged: Tree = {}
    for tree in trees:
        for key, value in tree.items():
            both = isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = merge(merged[key], value) if both else value
    return merged


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Tree:
    """Return `{"model": {"dim": 64}}` as `{"model.dim": 64}`; an empty section stays a value."""
    flat: Tree = {}
    for key, value in tree.items():
        section = isinstance(value, dict) and value
        flat |= flatten(value, f"{prefix}{key}.") if section else {f"{prefix}{key}": value}
    return flat


def unflatten(flat: Mapping[str, Any]) -> Tree:
    """Return `{"model.dim": 64}` as `{"model": {"dim": 64}}`; the inverse of `flatten`."""
    return merge(*(nested(key, value) for key, value in flat.items()))


def as_number(value: Any) -> Any:
    """Return the number that a text is: YAML reads 1e-3 as text. Return any other value as it is."""
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return value
    return number if math.isfinite(number) else value


def short_key(key: str) -> str:
    """Return `norm` for `model.norm`, as tables name a setting; the whole key if its last word is ambiguous."""
    word = key.rpartition(".")[2]
    return key if word in AMBIGUOUS else word


def nested(key: str, value: Any) -> Tree:
    """Return the tree with one value, at a dotted key."""
    for part in reversed(key.split(".")):
        value = {part: value}
    tree: Tree = value
    return tree

"""All properties that an architecture has in each of its variants, by name."""

from collections.abc import Callable
from inspect import getmembers, isfunction

from tfstudy.testing import architecture_logits, architecture_training
from tfstudy.testing.architecture_variant import Variant, variants

__all__ = ["PROPERTIES", "Variant", "variants"]

PROPERTIES: dict[str, Callable[[Variant], None]] = {
    name.replace("_", " "): check
    for module in (architecture_logits, architecture_training)
    for name, check in getmembers(module, isfunction)
    if check.__module__ == module.__name__
}

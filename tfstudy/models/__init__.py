"""The architectures, each in a file of its own and found by name. To add one, add a file with a subclass of `Model`,
or install or name a plug-in (`tfstudy.plugins`).

Importing this package does not import torch; `find` does. The functions are those of `tfstudy.registry.Registry`.
"""

from typing import TYPE_CHECKING, cast

from tfstudy.registry import Registry

if TYPE_CHECKING:
    from tfstudy.models.base import Model

__all__ = ["built_in", "declared", "find", "known", "names", "plugin"]

SHARED = {
    "attention", "base", "checkpointing", "config", "copying", "decoder_only", "dropout", "layers", "positions",
    "recurrent", "recurrent_model", "residual", "source_attention", "tokens",
}  # fmt: skip
# All other modules of this folder are architectures.
REGISTRY = Registry("architecture", __name__, "tfstudy/models", SHARED)
names, built_in, known = REGISTRY.names, REGISTRY.built_in, REGISTRY.known
plugin, declared = REGISTRY.plugin, REGISTRY.declared


def find(name: str) -> "type[Model]":
    """Return the class of an architecture, from `tfstudy/models/<name>.py` or a plug-in; `UserError` without one."""
    return cast("type[Model]", REGISTRY.find(name))

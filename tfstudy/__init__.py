"""tfstudy: experiments on inductive bias and generalisation in sequence models."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfstudy.analysis.collection import results

__all__ = ["results"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`tfstudy.results` is imported when it is asked for, so that `import tfstudy` costs nothing."""
    if name == "results":
        from tfstudy.analysis.collection import results

        return results
    raise AttributeError(f"module 'tfstudy' has no attribute '{name}'")

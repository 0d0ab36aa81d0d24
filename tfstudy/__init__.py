"""tfstudy: experiments on inductive bias and generalisation in sequence models.

`run` trains and evaluates a model, `load` returns a finished run with its weights, and `results` returns the results of
a study as a pandas frame. They are imported on first use, so `import tfstudy` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfstudy.analysis.results_frame import results
    from tfstudy.experiment.api import run
    from tfstudy.experiment.finished import load

__all__ = ["load", "results", "run"]
__version__ = "0.1.0"

MODULES = {"load": "experiment.finished", "results": "analysis.results_frame", "run": "experiment.api"}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'tfstudy' has no attribute '{name}'")
    return getattr(import_module(f"tfstudy.{MODULES[name]}"), name)

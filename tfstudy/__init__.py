"""tfstudy: experiments on inductive bias and generalisation in sequence models.

`run` trains and evaluates a model, `load` returns a finished run with its weights, `table` is the table of a study, and
`results` returns its runs as a pandas frame. They are imported on first use, so `import tfstudy` is quick.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfstudy.analysis.frame import results
    from tfstudy.errors import UserError
    from tfstudy.experiment.api import RunOptions, run
    from tfstudy.experiment.finished import load
    from tfstudy.report.tables import table

__all__ = ["RunOptions", "UserError", "load", "results", "run", "table"]
__version__ = "0.1.0"
RESULTS = Path("results")  # the default folder of all results

MODULES = {
    "RunOptions": "experiment.api",
    "UserError": "errors",
    "load": "experiment.finished",
    "results": "analysis.frame",
    "run": "experiment.api",
    "table": "report.tables",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'tfstudy' has no attribute '{name}'")
    return getattr(import_module(f"tfstudy.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

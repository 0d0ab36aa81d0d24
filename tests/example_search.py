"""A search that takes seconds, run in this process."""

from pathlib import Path

from tfstudy.experiment import run as experiment
from tfstudy.experiment.api import RunOptions
from tfstudy.tuning.search import Search, SearchRequest, TrialScore, run_search

ROOT = Path("results/tuning")
SMALL = (
    "train.validation_interval=10",
    "train.log_interval=5",
    "train.batch_size=8",
    "model.dim=16",
    "eval.max_examples=24",
)
WIDTHS = {"lstm": "lstm.model.hidden=16", "cnn": "cnn.model.channels=16"}


def request(*searches, **more) -> SearchRequest:
    """A search that takes seconds."""
    given = {"archs": ("lstm", "cnn"), "trials": 2, "budget": 20} | more
    small = (*SMALL, *(WIDTHS[arch] for arch in given["archs"]))
    return SearchRequest("reverse", searches=searches, assignments=small, **given)


def trials(plan: Search, root: Path = ROOT) -> list[TrialScore]:
    """The trials of a search, run in this process."""

    def executed(planned) -> bool:
        options = RunOptions(accelerator="cpu", tuning=True)
        for run in planned:
            experiment.run(run.config, root, "reverse", options, report=lambda _: None)
        return True

    return run_search(plan, root, "reverse", executed)

"""`tfstudy.results`: the finished runs of studies as a pandas frame."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfstudy.analysis.collection import RunRecord, experiment_settings, read_finished_runs

if TYPE_CHECKING:
    import pandas as pd


def results(study: str | Path = "results") -> "pd.DataFrame":
    """Return the finished runs under a folder as a pandas frame: a row for each run and split it was evaluated on.

    Columns: `study`, `run` (its folder), `task`, `split` (the split scheme), `scored_on` and `role`, `arch`, `preset`,
    `seed`, `n` (examples), each metric (between 0 and 1), `low` and `high` (Wilson's 95 % interval of exact match
    within the run), `parameters`, `train_seconds`, `checkpoint`, `device`, and every setting of its config
    (`model.dim`, ...). Runs that can't be trusted are left out; `frame.attrs["left_out"]` has each with the reason.
    `UserError` if there is no finished run.
    """
    import pandas as pd

    found = read_finished_runs(Path(study))
    configs = experiment_settings(found.runs)
    frame = pd.DataFrame([row for run in found.runs for row in _rows(run, configs[run.result.experiment])])
    frame.attrs["left_out"] = {str(path): reason for path, reason in found.left_out}
    return frame


def _rows(run: RunRecord, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    r = run.result
    for name, split in r.splits.items():
        if split.n:
            low, high = split.exact_match_interval or (None, None)
            yield {
                "study": run.path.parts[-4] if len(run.path.parts) > 3 else "", "run": str(run.path),
                "task": r.task, "split": r.split, "scored_on": name, "role": split.role,
                "arch": r.arch, "preset": r.preset, "seed": r.seed,
                "n": split.n, **split.metrics, "low": low, "high": high,
                "parameters": r.parameters, "train_seconds": r.train_seconds,
                "checkpoint": r.checkpoint, "device": r.device,
                **{key: value for key, value in config.items() if "." in key},
            }  # fmt: skip

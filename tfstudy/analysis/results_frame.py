"""`tfstudy.results`: the finished runs of studies as a pandas frame."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfstudy.analysis.collection import RunRecord, experiment_settings, read_finished_runs
from tfstudy.errors import one_of
from tfstudy.runs.find import study_folder

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("test", "validation")


def results(
    study: str | Path = "", roles: Collection[str] = ("test",), *, results: str | Path = "results"
) -> "pd.DataFrame":
    """Return the finished runs of a study as a pandas frame: a row for each run and test set.

    Runs that can't be trusted are left out; `frame.attrs["left_out"]` has each of them with the reason.

    Args:
        study: Name of a study, such as `"scan"`, or any folder with runs; by default all studies.
        roles: `"test"`, `"validation"` or both; with both, group by the column `role`.
        results: The folder of all results.

    Returns:
        A frame with these columns: `study`, `run` (its folder), `task`, `split` (the split scheme), `corpus`,
        `scored_on` and `role`, `arch`, `preset`, `seed`, `n` (examples), each metric (between 0 and 1), `low` and
        `high` (Wilson's 95 % interval of exact match within the run), `parameters`, `train_seconds`, `checkpoint`,
        `device`, and every setting of the config (`model.dim`, ...).

    Raises:
        UserError: If there is no finished run, or for an unknown study or role.

    Examples:
        >>> frame = tfstudy.results("scan")
        >>> frame.groupby(["split", "arch"])["exact_match"].agg(["mean", "std", "count"])
    """
    import pandas as pd

    for role in roles:
        one_of("role", role, ROLES)
    finished = read_finished_runs(study_folder(study, results))
    configs = experiment_settings(finished.runs)
    rows = [row for run in finished.runs for row in _rows(run, configs[run.result.experiment])]
    frame = pd.DataFrame(rows)
    frame = frame[frame["role"].isin(list(roles))].reset_index(drop=True)
    frame.attrs["left_out"] = {str(path): reason for path, reason in finished.left_out}
    return frame


def _rows(run: RunRecord, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    r = run.result
    for name, split in r.splits.items():
        if split.n:
            low, high = split.exact_match_interval or (None, None)
            yield {
                "study": run.path.parts[-4] if len(run.path.parts) > 3 else "", "run": str(run.path),
                "task": r.task, "split": r.split, "corpus": r.corpus, "scored_on": name, "role": split.role,
                "arch": r.arch, "preset": r.preset, "seed": r.seed,
                "n": split.n, **split.metrics, "low": low, "high": high,
                "parameters": r.parameters, "train_seconds": r.train_seconds,
                "checkpoint": r.checkpoint, "device": r.device,
                **{key: value for key, value in config.items() if "." in key},
            }  # fmt: skip

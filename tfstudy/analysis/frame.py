"""Read the finished runs of studies, as records and as one pandas frame.

Conditions are groups of records (`tfstudy.analysis.summary`); comparisons, tables, claims and plots follow from them.

A run is left out, and reported with the reason, if it is not finished, a smoke run, a tuning trial, broken (unreadable,
in another format, or with impossible values), mixed up (its folder, config and result belong to different runs), or
contradictory (another record of the same run has different results). Imports no torch.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.config.trees import flat_yaml, flatten
from tfstudy.errors import UserError, one_of, some
from tfstudy.experiment.code_versions import missing_plugin, outdated_because
from tfstudy.runs.find import check_results_folder, find_runs, study_folder
from tfstudy.runs.schema import Result, Slice, SplitScores
from tfstudy.runs.store import Run, open_run

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("test", "validation")
UNFINISHED, SMOKE, TRIAL = "not finished", "smoke run", "tuning trial"
CONTRADICTORY = "several records of this run, with different results"
DEFAULT = "default"  # the preset of a task and architecture
cached_settings = lru_cache(maxsize=1 << 14)(flat_yaml)
LeftOut = tuple[Path, str]  # a run's folder and the reason


class RunRecord(Run):
    """A run with a result."""

    result: Result

    @property
    def finished(self) -> bool:
        """Whether it measured anything: a run that diverged did not."""
        return self.result.status == "finished"

    @property
    def settings(self) -> dict[str, Any]:
        """Its config with dotted keys such as `model.dim`; empty if it is unreadable."""
        return cached_settings(self.config)

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from their default; of a run that does not record which do, all of them.

        A config that is older than a key lacks it, so that only these settings can be compared with newer runs.
        """
        recorded = flatten(self.environments[-1].settings) if self.environments else {}
        return {key: value for key, value in self.settings.items() if not recorded or key in recorded}

    @property
    def study(self) -> str:
        """The folder of its study, which may be the folder of results itself."""
        path = self.path if len(self.path.parents) > 2 else self.path.absolute()
        return str(path.parents[2])

    def outdated(self) -> list[str]:
        """Return why the run is outdated, such as `training version 1, now 2`; empty if it is not."""
        return outdated_because(self.environments, self.result.task, self.result.arch)

    def missing_plugin(self) -> str:
        """Return which plug-in is missing to know whether the run is outdated; empty if none is."""
        return missing_plugin(self.environments, self.result.task, self.result.arch)


class Study(NamedTuple):
    """The runs under a folder, and those that are left out."""

    root: Path
    runs: list[RunRecord]
    left_out: list[LeftOut]

    def left_out_notes(self, max_names: int = 3) -> list[str]:
        """Return a line for each reason, with the number of runs and the names of some."""
        lines = []
        for reason in dict.fromkeys(reason for _, reason in self.left_out):
            paths = [path for path, other in self.left_out if other == reason]
            names = [str(path.relative_to(self.root)) if path != self.root else path.name for path in paths]
            count = f"{len(paths)} runs: " if len(paths) > 1 else ""
            lines.append(f"left out ({reason}): {count}{some(names, max_names)}")
        return lines


def read_study(root: Path) -> Study:
    """Return every trusted run under `root`, ordered by folder; `UserError` if there is no such folder."""
    if not root.is_dir():
        raise UserError(f"no study {root}; `tfstudy status` lists the studies")
    left_out: list[LeftOut] = []
    by_seed: dict[tuple[str, int], list[RunRecord]] = {}
    for path in find_runs(root):
        run = open_run(path)
        if run.broken or not run.result:
            left_out.append((path, str(run.broken or UNFINISHED)))
        elif run.result.smoke or run.result.tuning:
            left_out.append((path, SMOKE if run.result.smoke else TRIAL))
        elif not (record := RunRecord(*run)).settings:
            left_out.append((path, "config.yaml is unreadable"))
        else:
            by_seed.setdefault((run.result.experiment, run.result.seed), []).append(record)
    runs = []
    for first, *others in by_seed.values():
        same = all(_measurements(other.result) == _measurements(first.result) for other in others)
        runs += [first] if same else []
        left_out += [(other.path, "copy of another run") if same else (other.path, CONTRADICTORY) for other in others]
        left_out += [] if same else [(first.path, CONTRADICTORY)]
    return Study(root, runs, left_out)


def _measurements(result: Result) -> object:
    splits = {name: (scores.n, scores.metrics) for name, scores in result.splits.items()}
    return result.run, result.status, result.step, splits


def read_studies(root: Path) -> list[Study]:
    """Return each study under a folder of results, or the one study that the folder is; see `read_study`."""
    check_results_folder(root)
    # a run is in STUDY/TASK-SPLIT/ARCH; a folder within a study counts as one
    folders = {path.parents[2] if len(path.relative_to(root).parts) > 3 else root for path in find_runs(root)}
    return [read_study(folder) for folder in sorted(folders)]


def read_finished_runs(root: Path) -> Study:
    """Return the same as `read_study`; `UserError` if no run is finished."""
    study = read_study(root)
    if not any(run.finished for run in study.runs):
        diverged = [f"{len(study.runs)} diverged"] if study.runs else []
        raise UserError("; ".join([f"no finished run under {root}", *diverged, *study.left_out_notes(1)]))
    return study


# As a frame


def as_frame(rows: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return rows as a frame, with texts as Python's: pandas' own can't hold the name of a folder in any encoding."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), dtype=object)
    others = frame.columns[[not any(isinstance(value, str) for value in frame[name]) for name in frame]]
    frame[others] = frame[others].infer_objects()
    return frame


def metrics_of(scores: Slice) -> dict[str, float]:
    """Return what was measured, between 0 and 1, with means over lengths; nothing without examples."""
    over_lengths = scores.mean_over_lengths if isinstance(scores, SplitScores) else {}
    return dict(scores.metrics if scores.n else {}) | {f"{name}_over_lengths": v for name, v in over_lengths.items()}


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
        `scored_on` and `role`, `arch`, `preset`, `seed`, `experiment` (runs that differ in their seed only share it),
        `n` (examples), each metric (between 0 and 1), `low` and `high` (Wilson's 95 % interval of exact match within
        the run), `parameters`, `train_seconds`, `checkpoint`, `device`, and every setting of the config (`model.dim`,
        ...).

    Raises:
        UserError: If there is no finished run, or for an unknown study or role.

    Examples:
        >>> frame = tfstudy.results("scan")
        >>> frame.groupby(["split", "arch"])["exact_match"].agg(["mean", "std", "count"])
    """
    import pandas as pd

    for role in roles:
        one_of("role", role, ROLES)
    found = read_finished_runs(study_folder(study, results, several=True))
    rows, settings = [], []
    for run in (run for run in found.runs if run.finished):
        r = run.result
        for test, scores in r.splits.items():
            if scores.role not in roles or not scores.n:
                continue
            low, high = scores.exact_match_interval or (math.nan, math.nan)
            rows.append({
                "study": run.path.parts[-4] if len(run.path.parts) > 3 else "", "run": str(run.path),
                "task": r.task, "split": r.split, "corpus": r.corpus, "scored_on": test, "role": scores.role,
                "arch": r.arch, "preset": r.preset or DEFAULT, "seed": r.seed, "experiment": r.experiment,
                "n": scores.n, **metrics_of(scores), "low": low, "high": high, "parameters": r.parameters,
                "train_seconds": r.train_seconds, "checkpoint": r.checkpoint, "device": r.device,
            })  # fmt: skip
            settings.append({key: value for key, value in run.settings.items() if "." in key})
    frame = pd.concat([as_frame(rows), as_frame(settings)], axis=1)
    frame.attrs["left_out"] = {str(path): reason for path, reason in found.left_out}
    return frame

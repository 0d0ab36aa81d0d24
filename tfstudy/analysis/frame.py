"""Read the finished runs of studies, as records and as one pandas frame.

`tidy(runs)` has a row for each run and test set, with metrics in columns. Conditions are a groupby of it
(`tfstudy.analysis.summary`); comparisons, tables, claims and plots follow from these.

A run is left out, and reported with the reason, if it is not finished, a smoke run, a tuning trial, broken (unreadable,
in another format, or with impossible values), mixed up (its folder, config and result belong to different runs), or
contradictory (another record of the same run has different results). Imports no torch.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy.config.trees import flat_yaml, flatten
from tfstudy.errors import UserError, one_of
from tfstudy.experiment.code_versions import last_environment, missing_plugin, outdated_because
from tfstudy.runs.find import check_results_folder, find_runs, study_folder
from tfstudy.runs.schema import Result
from tfstudy.runs.store import open_run, read_test_reads
from tfstudy.runs.studyfile import packed_runs

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("test", "validation")
UNFINISHED, SMOKE, TRIAL = "not finished", "smoke run", "tuning trial"
DEFAULT = "default"  # the preset of a task and architecture
LeftOut = tuple[Path, str]  # a run's folder and the reason


class RunRecord(NamedTuple):
    """A run with a result, and its folder."""

    path: Path
    result: Result

    @property
    def finished(self) -> bool:
        """Whether it measured anything: a run that diverged did not."""
        return self.result.status == "finished"

    @property
    def config(self) -> dict[str, Any]:
        """Its config with dotted keys such as `model.dim`; empty if it is unreadable."""
        return _config(self.path)

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from their default; of a run that does not record which do, all of them.

        A config that is older than a key lacks it, so that only these settings can be compared with newer runs.
        """
        recorded = self.recorded
        return self.config if recorded is None else {k: v for k, v in self.config.items() if k in recorded}

    @property
    def recorded(self) -> dict[str, Any] | None:
        """The settings that its record says differ from their default; None if it does not say."""
        entry = last_environment(self.path)
        return flatten(entry.settings) if entry and entry.settings else None

    @property
    def study(self) -> str:
        """The folder of its study, which may be the folder of results itself."""
        path = self.path if len(self.path.parents) > 2 else self.path.absolute()
        return str(path.parents[2])

    def test_reads(self) -> dict[str, int]:
        """Return how often each test set was evaluated with this run's weights."""
        return read_test_reads(self.path)

    def outdated(self) -> list[str]:
        """Return why the run is outdated, such as `training version 1, now 2`; empty if it is not."""
        return outdated_because(self.path, self.result.task, self.result.arch)

    def missing_plugin(self) -> str:
        """Return which plug-in is missing to know whether the run is outdated; empty if none is."""
        return missing_plugin(self.path, self.result.task, self.result.arch)


class Study(NamedTuple):
    """The runs under a folder, and those that are left out."""

    root: Path
    runs: list[RunRecord]
    left_out: list[LeftOut]

    def left_out_notes(self, max_names: int = 3) -> list[str]:
        """Return a line for each reason, with the number of runs and the names of some."""
        lines = []
        for reason in dict.fromkeys(reason for _, reason in self.left_out):
            paths = [path for path, own in self.left_out if own == reason]
            names = [str(path.relative_to(self.root)) if path != self.root else path.name for path in paths[:max_names]]
            more = f" and {len(paths) - max_names} more" if len(paths) > max_names else ""
            count = f"{len(paths)} runs: " if len(paths) > 1 else ""
            lines.append(f"left out ({reason}): {count}{', '.join(names)}{more}")
        return lines


def read_study(root: Path) -> Study:
    """Return every trusted run under `root`, ordered by folder; `UserError` if there is no such folder."""
    if not root.is_dir() and not packed_runs(root):
        raise UserError(f"no study {root}; `tfstudy status` lists the studies")
    records: list[RunRecord] = []
    left_out: list[LeftOut] = []
    for path in find_runs(root):
        record = read_record(path)
        if isinstance(record, RunRecord):
            records.append(record)
        else:
            left_out.append((path, record))
    unique, duplicates = _without_duplicates(records)
    readable = {run.result.experiment for run in unique if run.config}
    unreadable = [(run.path, "config.yaml is unreadable") for run in unique if run.result.experiment not in readable]
    return Study(root, [run for run in unique if run.result.experiment in readable], left_out + duplicates + unreadable)


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


def read_record(path: Path) -> RunRecord | str:
    """Return the run of this folder, or the reason why it is left out."""
    run = open_run(path)
    if run.broken or not run.result:
        return str(run.broken or UNFINISHED)
    if run.result.smoke or run.result.tuning:
        return SMOKE if run.result.smoke else TRIAL
    return RunRecord(path, run.result)


def _without_duplicates(runs: Iterable[RunRecord]) -> tuple[list[RunRecord], list[LeftOut]]:
    """Return the first record of each run, or none if its records contradict each other, and all others."""
    by_seed: dict[tuple[str, int], list[RunRecord]] = {}
    for run in runs:
        by_seed.setdefault((run.result.experiment, run.result.seed), []).append(run)
    unique: list[RunRecord] = []
    left_out: list[LeftOut] = []
    for first, *others in by_seed.values():
        if all(_measurements(other.result) == _measurements(first.result) for other in others):
            unique.append(first)
            left_out += [(run.path, "copy of another run") for run in others]
        else:
            reason = "several records of this run, with different results"
            left_out += [(run.path, reason) for run in (first, *others)]
    return unique, left_out


def _measurements(result: Result) -> object:
    splits = {name: (scores.n, scores.metrics) for name, scores in result.splits.items()}
    return result.run, result.status, result.step, splits


@lru_cache(maxsize=1 << 14)
def _config(path: Path) -> dict[str, Any]:
    """Return a run's config with dotted keys; empty if it is unreadable."""
    return flat_yaml(open_run(path).config)


# As a frame


def tidy(runs: Iterable[RunRecord], by: str = "") -> "pd.DataFrame":
    """Return a row for each run, test set and value of the tag `by` that any run of its experiment was evaluated on.

    Runs that diverged, or that lack a test set that others of their experiment have, have rows with `n` 0: nothing is
    averaged without saying so. The column `record` has the `RunRecord`.
    """
    experiments: dict[str, list[RunRecord]] = {}
    evaluated: dict[tuple[str, str, str], list[RunRecord]] = {}  # finished runs by task, split scheme and corpus
    for run in runs:
        r = run.result
        experiments.setdefault(r.experiment, []).append(run)
        if run.finished:
            evaluated.setdefault((r.task, r.split, r.corpus), []).append(run)
    rows: list[dict[str, Any]] = []
    for members in experiments.values():
        r = members[0].result
        finished = sorted((run for run in members if run.finished), key=lambda run: run.result.seed)
        # an experiment whose runs all diverged has the test sets that other runs of its split scheme have
        places = _places(finished or evaluated.get((r.task, r.split, r.corpus), []), by)
        ordered = [*finished, *(run for run in members if not run.finished)]
        rows += [_row(run, place, by) for place in places for run in ordered]
    return as_frame(rows)


def as_frame(rows: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return rows as a frame, with texts as Python's: pandas' own can't hold the name of a folder in any encoding."""
    import pandas as pd

    columns = {}
    for name in dict.fromkeys(key for row in rows for key in row):
        values = [row.get(name, math.nan) for row in rows]
        columns[name] = pd.Series(values, dtype=object if any(isinstance(value, str) for value in values) else None)
    return pd.DataFrame(columns)


def _places(runs: Iterable[RunRecord], by: str) -> list[tuple[str, str, str]]:
    """Return role, name and value of the tag of each set of examples that any of these runs was evaluated on."""
    found: dict[tuple[str, str, str], None] = {}
    for run in runs:
        for name, scores in run.result.splits.items():
            found |= {(scores.role, name, value): None for value in (scores.slices.get(by, {}) if by else [""])}
    tested = any(role == "test" for role, *_ in found)
    return [*found, *([] if by or tested else [("test", "test", "")])]


def _row(run: RunRecord, place: tuple[str, str, str], by: str) -> dict[str, Any]:
    r, (role, test, value) = run.result, place
    whole = r.splits.get(test) if run.finished else None
    scores = whole.slices.get(by, {}).get(value) if whole and by else whole
    low, high = (scores and scores.exact_match_interval) or (math.nan, math.nan)
    over_lengths = {f"{name}_over_lengths": share for name, share in whole.mean_over_lengths.items()} if whole else {}
    return {
        "study": run.path.parts[-4] if len(run.path.parts) > 3 else "", "run": str(run.path),
        "task": r.task, "split": r.split, "corpus": r.corpus, "scored_on": test, "role": role,
        **({"tag": by, "value": value} if by else {}),
        "arch": r.arch, "preset": r.preset or DEFAULT, "seed": r.seed, "experiment": r.experiment,
        "n": scores.n if scores else 0, **(scores.metrics if scores and scores.n else {}),
        **(over_lengths if not by else {}), "low": low, "high": high,
        "parameters": r.parameters, "train_seconds": r.train_seconds, "checkpoint": r.checkpoint, "device": r.device,
        "record": run,
    }  # fmt: skip


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
    frame = tidy(run for run in found.runs if run.finished)
    frame = frame[frame["role"].isin(list(roles)) & (frame["n"] > 0)].drop(columns=["record"])
    configs = {run.result.experiment: run.config for run in found.runs if run.config}
    own = [configs[experiment] for experiment in frame["experiment"]]
    keys = dict.fromkeys(key for config in configs.values() for key in config if "." in key)
    settings = pd.DataFrame({key: [config.get(key) for config in own] for key in keys}, index=frame.index)
    frame = pd.concat([frame, settings], axis=1).reset_index(drop=True)
    frame.attrs["left_out"] = {str(path): reason for path, reason in found.left_out}
    return frame

"""Estimated times of runs, from finished runs with nearly the same settings."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tfstudy.config.trees import flatten
from tfstudy.errors import UserError
from tfstudy.launchers.job import Job
from tfstudy.runs.find import studies
from tfstudy.runs.reader import read_config, read_result
from tfstudy.runs.studyfile import exists, names_in

READ = 200  # finished runs that are read for an estimate
SAMPLE = 5  # of these, the runs whose settings are nearest


class RunTime(NamedTuple):
    """What a finished run took, in seconds, and its settings by dotted key."""

    settings: Mapping[str, Any]
    per_step: float
    evaluation: float


def estimates(jobs: Sequence[Job]) -> dict[str, float]:
    """Return the estimated seconds of jobs by path, from the finished runs that differ in the fewest settings.

    Only runs of the same architecture count: those on the same split, or else those of the same task. A job without
    either is left out.
    """
    found: dict[tuple[str, str], list[RunTime]] = {}
    seconds = {}
    for job in jobs:
        experiment, arch = Path(job.path).parts[-3:-1]
        for pattern in (experiment, f"{job.config['task']}-*"):
            if (pattern, arch) not in found:
                found[pattern, arch] = _finished(job.study.parent, pattern, arch)
            if runs := found[pattern, arch]:
                seconds[job.path] = _estimate(job.config, runs)
                break
    return seconds


def _estimate(config: Mapping[str, Any], runs: Sequence[RunTime]) -> float:
    """Seconds of a run with this config: medians over the `SAMPLE` runs that differ in the fewest settings."""
    settings = _settings(config)
    nearest = sorted(runs, key=lambda run: len(settings.items() ^ run.settings.items()))[:SAMPLE]
    steps: int = config["train"]["steps"]
    return steps * median(run.per_step for run in nearest) + median(run.evaluation for run in nearest)


def _settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Settings that can change the time of a step or of an evaluation; values as text, since some are lists."""
    return {key: str(value) for key, value in flatten(config).items() if key not in ("seed", "train.steps")}


def _finished(root: Path, experiment: str, arch: str) -> list[RunTime]:
    """The times of up to `READ` finished runs in the studies of a folder."""
    return list(islice(_times(root, experiment, arch), READ))


def _runs(root: Path, experiment: str, arch: str) -> Iterator[Path]:
    """The runs of an architecture in all studies; the name of the experiment may end with `*`."""
    for study in (root / name for name in studies(root)):
        for folder in (study / name / arch for name in names_in(study) if fnmatchcase(name, experiment)):
            yield from (folder / name for name in names_in(folder) if exists(folder / name / "result.json"))


def _times(root: Path, experiment: str, arch: str) -> Iterator[RunTime]:
    for path in _runs(root, experiment, arch):
        try:
            result, config = read_result(path), read_config(path)
            steps = int(config["train"]["steps"])  # the result has the step of the weights that were evaluated
        except (UserError, KeyError, TypeError, ValueError):  # a damaged run, or one of another version
            continue
        if result.status == "finished" and steps > 0:
            yield RunTime(_settings(config), result.train_seconds / steps, result.evaluate_seconds)

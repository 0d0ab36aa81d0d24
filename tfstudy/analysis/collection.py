"""The finished runs of studies, read and checked: all tables, figures and verdicts are made of these alone.

A run is left out, and named with the reason, if it is not finished, a smoke run, a trial of tuning, broken (not to be
read, of another format, figures that no run can have), foreign (its folder, config and result are not of one run), or
contradictory (the same run elsewhere with other figures). Loads no torch.
"""

import csv
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import yaml

from tasks.errors import UserError
from tfstudy.runs.files import content
from tfstudy.runs.reader import RESULT, find_runs
from tfstudy.runs.schema import FORMAT, Result

if TYPE_CHECKING:
    import pandas as pd

NAME = re.compile(r"s(?P<seed>\d+)-(?P<hash>\w+)")
HEAD = b"# tfstudy run "  # a config.yaml begins with it
UNFINISHED, SMOKE, TRIAL = "not finished", "a smoke run", "a trial of tuning"


class RunRecord(NamedTuple):
    """A run that has ended, and its folder."""

    path: Path
    result: Result

    @property
    def finished(self) -> bool:
        """Whether it measured anything: a run that diverged did not."""
        return self.result.status == "finished"

    def test_reads(self) -> dict[str, int]:
        """How often each test split was scored with this run's weights."""
        lines = content(f"{self.path}/test_reads.csv").decode(errors="replace").splitlines()
        return dict(Counter(row[0] for row in csv.reader(lines) if row))


class Study(NamedTuple):
    """The runs of a folder, and those that are left out, each with the reason."""

    root: Path
    runs: list[RunRecord]
    left_out: list[tuple[Path, str]]

    def told(self, most: int = 3) -> list[str]:
        """A line for each reason with the runs that it holds for, some of them by name."""
        reasons: dict[str, list[Path]] = {}
        for path, reason in self.left_out:
            reasons.setdefault(reason, []).append(path)
        lines = []
        for reason, paths in reasons.items():
            names = [str(path.relative_to(self.root)) if path != self.root else path.name for path in paths[:most]]
            more = f" and {len(paths) - most} more" if len(paths) > most else ""
            count = f"{len(paths)} runs: " if len(paths) > 1 else ""
            lines.append(f"left out, {reason}: {count}{', '.join(names)}{more}")
        return lines


def read(root: Path) -> Study:
    """Every run under `root` that can be believed, in the order of their folders; `UserError` if there is no folder."""
    if not root.is_dir():
        raise UserError(f"there is no study {root}; `tfstudy status` lists those that are there")
    runs: list[RunRecord] = []
    left_out: list[tuple[Path, str]] = []
    for path in find_runs(root):
        found = read_one(path)
        if isinstance(found, str):
            left_out.append((path, found))
        else:
            runs.append(found)
    kept, left_out = _agreeing(runs, left_out)
    known = settings(kept)
    left_out += [(run.path, "its config.yaml can't be read") for run in kept if run.result.experiment not in known]
    return Study(root, [run for run in kept if run.result.experiment in known], left_out)


def read_finished(root: Path) -> Study:
    """`read`, and `UserError` if no run is finished."""
    study = read(root)
    if not any(run.finished for run in study.runs):
        lost = [f"{len(study.runs)} diverged"] if study.runs else []
        raise UserError("; ".join([f"no finished run under {root}", *lost, *study.told(1)]))
    return study


def read_one(path: Path) -> RunRecord | str:
    """The run of this folder, or why it can't enter a table."""
    file = f"{path}/result.json"
    if not os.path.exists(file):
        return UNFINISHED
    try:
        result = RESULT.decode(content(file))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"its result is broken ({error})"
    if result.format != FORMAT:
        return f"its result has format {result.format}, but this version reads {FORMAT}"
    if result.smoke:
        return SMOKE
    if result.tuning:
        return TRIAL
    for name, part in result.splits.items():
        msgspec.structs.force_setattr(part, "home", (file, name))
    return _impossible(result) or _foreign(path, result) or RunRecord(path, result)


def _impossible(result: Result) -> str:
    for name, part in result.splits.items():
        share, ends = part.metrics.get("exact_match"), part.exact_match_interval
        if share is not None and ends and not ends[0] - 1e-9 <= share <= ends[1] + 1e-9:
            return f"its result is broken (exact match on {name} lies outside of its interval)"
        if not part.n and part.metrics:
            return f"its result is broken (metrics on {name} without an example)"
    if result.status not in ("finished", "diverged"):
        return f"its result is broken (status '{result.status}')"
    if result.status == "finished" and not any(part.metrics for part in result.splits.values()):
        return "its result is broken (finished, but nothing is measured)"
    return ""


def _foreign(path: Path, result: Result) -> str:
    told = NAME.fullmatch(path.name)
    if told and (int(told["seed"]) != result.seed or not result.run.startswith(told["hash"])):
        return f"its result is of another run (s{result.seed}-{result.run[:8]})"
    head = content(f"{path}/config.yaml", len(HEAD) + 65).partition(b"\n")[0]
    if not head:
        return "it has no config.yaml that can be read"
    if head.startswith(HEAD) and head[len(HEAD) :].strip().decode(errors="replace") != result.run:
        return "its config.yaml is of another run than its result"
    return ""


def _agreeing(
    runs: Sequence[RunRecord], left_out: list[tuple[Path, str]]
) -> tuple[list[RunRecord], list[tuple[Path, str]]]:
    """Of runs that are there several times, the first if all have the same figures, else none."""
    same: dict[tuple[str, int], list[RunRecord]] = {}
    for run in runs:
        same.setdefault((run.result.experiment, run.result.seed), []).append(run)
    kept = []
    for first, *others in same.values():
        figures = [_figures(run.result) for run in (first, *others)]
        if all(other == figures[0] for other in figures):
            kept.append(first)
            left_out += [(run.path, "a copy of a run that is there already") for run in others]
        else:
            reason = "the same experiment and seed is there several times, with other figures"
            left_out += [(run.path, reason) for run in (first, *others)]
    return kept, left_out


def _figures(result: Result) -> object:
    parts = {name: (part.n, part.metrics) for name, part in result.splits.items()}
    return result.run, result.status, result.step, parts


def settings(runs: Iterable[RunRecord]) -> dict[str, dict[str, Any]]:
    """Each experiment's config as one level of keys such as `model.dim`: the first of its runs' that can be read."""
    out: dict[str, dict[str, Any]] = {}
    for run in runs:
        if run.result.experiment not in out and (config := _config(run.path)):
            out[run.result.experiment] = config
    return out


@lru_cache(maxsize=1 << 14)
def _config(path: Path) -> dict[str, Any]:
    """A run's config as one level of keys; empty if it can't be read.

    Its sections are read one by one, since most of them are those of other runs too.
    """
    try:
        text = (path / "config.yaml").read_text(encoding="utf-8")
        sections = [_section(part) for part in re.split(r"^(?=\w)", text, flags=re.MULTILINE)]
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return {key: value for section in sections for key, value in section.items()}


@lru_cache(maxsize=4096)
def _section(text: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it
    tree = yaml.load(text, loader) or {}
    if not isinstance(tree, dict):
        raise ValueError("no section")
    return flat(tree)


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Sections as one level of keys such as `model.dim`."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return out


def results(study: str | Path = "results") -> "pd.DataFrame":
    """The finished runs under a folder as a pandas frame: a row for each run and split it was scored on.

    Columns: `study`, `run` (its folder), `task`, `split` (the experiment), `scored_on` and `role`, `arch`, `preset`,
    `seed`, `n` (examples), each metric (a share of 1), `low` and `high` (Wilson's 95 % interval of exact match within
    the run), `parameters`, `train_seconds`, `checkpoint`, `device`, and every setting of its config
    (`model.dim`, ...). Runs that can't be believed are left out, and named in `frame.attrs["left_out"]`.
    `UserError` if there is no finished run.
    """
    import pandas as pd

    found = read_finished(Path(study))
    configs = settings(found.runs)
    frame = pd.DataFrame([row for run in found.runs for row in _frame_rows(run, configs[run.result.experiment])])
    frame.attrs["left_out"] = {str(path): reason for path, reason in found.left_out}
    return frame


def _frame_rows(run: RunRecord, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    result = run.result
    for name, part in result.splits.items():
        if part.n:
            low, high = part.exact_match_interval or (None, None)
            yield {
                "study": run.path.parts[-4] if len(run.path.parts) > 3 else "",
                "run": str(run.path),
                "task": result.task,
                "split": result.split,
                "scored_on": name,
                "role": part.role,
                "arch": result.arch,
                "preset": result.preset,
                "seed": result.seed,
                "n": part.n,
                **part.metrics,
                "low": low,
                "high": high,
                "parameters": result.parameters,
                "train_seconds": result.train_seconds,
                "checkpoint": result.checkpoint,
                "device": result.device,
                **{key: value for key, value in config.items() if "." in key},
            }

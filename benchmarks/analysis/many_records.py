"""The cost of run folders as a study grows: synthetic records shaped like results/scan, read in every way.

Folders are created in a temporary directory (TMPDIR) and removed. Everything is read once before it is measured, so
that times are those of a warm cache on a local disk; each is the median of three.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.timing import now, seconds
from tfstudy import tasks
from tfstudy.config.resolve import resolve
from tfstudy.evaluation.error_kinds import summarize_errors
from tfstudy.experiment.code_versions import declared_versions
from tfstudy.experiment.reuse import KEY, find_reusable, index_weights
from tfstudy.grids.expand import expand
from tfstudy.grids.plan import plan
from tfstudy.launchers.job import Job
from tfstudy.launchers.job_list import save_plan
from tfstudy.launchers.run_time import estimates
from tfstudy.report.lists import runs_list
from tfstudy.report.status import status
from tfstudy.report.table_formats import markdown
from tfstudy.report.tables import table
from tfstudy.runs.files import is_locked
from tfstudy.runs.find import find_runs
from tfstudy.runs.identity import identify
from tfstudy.runs.reader import read_config, read_predictions
from tfstudy.runs.status import study_runs
from tfstudy.runs.writer import RunFolder
from tfstudy.tasks.base import fingerprint

TEMPLATES = Path(__file__).parents[2] / "results" / "scan"
FILES = ("config.yaml", "env.json", "metrics.csv", "test_reads.csv", "result.json")
SPLITS = ("validation", "test")
SEEDS = 5  # of an experiment
UNFINISHED = 25  # one run in so many failed, and as many were interrupted
CHILD = """
import resource, subprocess, sys
code = subprocess.call([sys.executable, "-m", "tfstudy", *sys.argv[1:]], stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""  # runs a command and prints its exit code, CPU seconds and peak memory in KiB
PLANNED = 60  # runs whose planning is timed: the cost of one does not depend on their number


def create(
    study: Path, count: int, seeds: int = SEEDS, predictions: bool = False, summaries: bool = False
) -> list[Job]:
    """Create a study with this number of runs; return their jobs and those of one in 10 more that did not start.

    With `predictions`, each run has the predictions of its template (as hard links); with `summaries`, also their
    summary in the result.
    """
    templates = [
        (path.parent.relative_to(TEMPLATES), {name: (path.parent / name).read_text() for name in FILES})
        for path in sorted(TEMPLATES.glob("*/*/*/result.json"))
    ]
    if predictions:
        copy_predictions(study.parent / "predictions")
    if summaries:
        for folder, files in templates:
            files["result.json"] = with_summaries(files["result.json"], TEMPLATES / folder)
    jobs = []
    for number in range(count + count // 10):
        experiment, seed = divmod(number, seeds)
        copy, template = divmod(experiment, len(templates))
        folder, files = templates[template]
        folder = Path(f"{folder.parts[0]}_{copy}", *folder.parts[1:])  # its own split: rows are compared within one
        path = study / folder.parent / f"s{seed}-{number:08x}"
        if number < count:
            write(path, files, number, seed, f"{experiment:064x}", f"{f'{number:08x}':0<64}")
            for file in (study.parent / "predictions").glob(f"{template}/*.gz"):
                (path / "predictions").mkdir(exist_ok=True)
                os.link(file, path / "predictions" / file.name)
        config = {"task": folder.parts[0].split("-")[0], "train": {"steps": 3000}, "folder": str(folder)}
        jobs.append(Job(str(path), config))
    save_plan(jobs)
    return jobs


def copy_predictions(target: Path) -> None:
    """Copy the predictions of each template to a folder with its number."""
    for number, path in enumerate(sorted(TEMPLATES.glob("*/*/*/result.json"))):
        shutil.copytree(path.parent / "predictions", target / str(number))


def with_summaries(text: str, path: Path) -> str:
    """Return the result of a run with its predictions summarised, as they are when a run finishes."""
    result = json.loads(text)
    for split in SPLITS:
        result["splits"][split]["errors"] = msgspec.to_builtins(summarize_errors(read_predictions(path, split)))
    return json.dumps(result)


def write(path: Path, files: dict[str, str], number: int, seed: int, experiment: str, run: str) -> None:
    """Write a run folder like the template, with this identity and its own results."""
    path.mkdir(parents=True)
    result = with_noise(json.loads(files["result.json"]), number)
    result |= {"seed": seed, "experiment": experiment, "run": run, "split": path.parts[-3].partition("-")[2]}
    config = re.sub(r"^seed: \d+", f"seed: {seed}", files["config.yaml"], flags=re.MULTILINE)
    config = re.sub(r"^# tfstudy run \w+", f"# tfstudy run {run}", config)
    unfinished = number % UNFINISHED in (0, 1)
    for name, text in {
        **files,
        "result.json": json.dumps(result, indent=1),
        "config.yaml": config,
        ".lock": "",
    }.items():
        if name != "result.json" or not unfinished:
            (path / name).write_text(text)
    if number % UNFINISHED == 0:
        (path / "failed.json").write_text(json.dumps({"reason": "out of memory", "attempts": 2, "log": []}))


def with_noise(result: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the result with values that differ from seed to seed."""
    draw = random.Random(number)
    for scores in result["splits"].values():
        if scores["n"]:
            share = min(1.0, max(0.0, scores["metrics"]["exact_match"] + draw.gauss(0, 0.05)))
            scores["metrics"]["exact_match"] = share
            scores["exact_match_interval"] = [max(0.0, share - 0.01), min(1.0, share + 0.01)]
    return result


def methods(root: Path, study: Path, jobs: Sequence[Job]) -> dict[str, Callable[[], object]]:
    """Return what is done with all records of a study."""
    folders = list(find_runs(study))
    return {
        "find the folders": lambda: list(find_runs(study)),
        "status of the study": lambda: status(root, study.name),
        "status of all studies": lambda: status(root),
        "list runs": lambda: runs_list(study),
        "check every lock": lambda: [is_locked(path) for path in folders],
        "grid: finished runs": lambda: [job.finished for job in jobs],
        "grid: estimates": lambda: estimates(jobs),
        "grid: save the plan": lambda: save_plan(jobs),
        "table": lambda: markdown(table(study)),
    }


def planning() -> dict[str, float]:
    """Return seconds per run of expanding a grid, and of planning it once its data are built."""
    rates = {"train.learning_rate": {"from": 1e-4, "to": 1e-2, "count": PLANNED, "scale": "log"}}
    base = {"base": {"task": "scan", "data": {"split": "simple"}}}
    out = {}
    for name, more in {"settings": {"axes": rates}, "seeds": {"seeds": f"0-{PLANNED - 1}"}}.items():
        runs = expand({**base, **more})
        out[f"grid: expand, {name}"] = seconds(partial(expand, {**base, **more})) / PLANNED
        one = seconds(partial(plan, runs[:1], Path("nowhere"), "study"))
        out[f"grid: plan, {name}"] = (seconds(partial(plan, runs, Path("nowhere"), "study")) - one) / PLANNED
    return out


def search_for_reusable(study: Path) -> tuple[int, float, float]:
    """Return the number of runs with the same seed in the fullest folder, and how long a new run searches them.

    The first time is without the index (records of older code), the second with it.
    """
    fullest = max(study.glob("[!.]*/*"), key=lambda path: len(os.listdir(path)))
    path = next(find_runs(fullest))
    config = resolve(read_config(path))
    versions = declared_versions(config.task, config.arch)
    identity = identify(config, fingerprint(tasks.find(config.task)(config.data)), versions)
    same_seed = len(list(fullest.glob(f"s{config.seed}-*")))
    search = partial(find_reusable, RunFolder(path, ""), config, identity, "cpu", 1)
    unindexed = seconds(search)
    for number, run in enumerate(find_runs(fullest)):
        index_weights(run, f"{number:0{KEY}x}")
    return same_seed, unindexed, seconds(search)


def measure(count: int) -> None:
    """Print the cost of a study with this number of runs."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        start = now()
        jobs = create(root / "study", count)
        duration = now() - start
        sizes = [path.stat().st_size for path in root.rglob("*") if path.is_file()]
        pending = len(study_runs(root / "study")) - count
        print(f"\n{count:,} runs ({pending:,} more only planned), created in {duration:.1f} s")
        print(f"  {len(sizes) / count:.1f} files and {sum(sizes) / count / 1024:.1f} KiB per run, without predictions")
        for name, work in methods(root, root / "study", jobs).items():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            work()
            median = statistics.median(seconds(work) for _ in range(3))
            growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            memory = f", {growth:,.0f} MiB of memory" if growth > 50 else ""
            print(f"  {name:24}{median:9.3f} s{1e6 * median / count:10.1f} us per run{memory}", flush=True)
        same_seed, *times = search_for_reusable(root / "study")
        for name, duration in zip(("without index", "with index"), times, strict=True):
            print(f"  {f'find weights, {name}':24}{duration:9.3f} s, {same_seed} runs with the same seed")


def measure_commands(count: int, seeds: int, summaries: bool) -> None:
    """Print CPU time and peak memory of commands that read a study with predictions, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder, "results", "study")
        create(study, count, seeds, predictions=True, summaries=summaries)
        print(f"\n{count:,} runs, {seeds} seeds each, with{'' if summaries else 'out'} summaries of predictions")
        words = ["--results", str(study.parent)]
        for name in (["list", "runs"], ["status", "study"], ["table", "study"], ["report", "study", "--out", folder]):
            # a small process in between: the peak memory of a child includes that of the process that started it
            small = [sys.executable, "-c", CHILD, *name, *words]
            code, cpu, memory = map(float, subprocess.check_output(small).split())
            print(f"  {name[0]:24}{cpu:9.2f} s of CPU{memory / 1024:9.0f} MiB{'  FAILED' * bool(code)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", default="1000,10000", help="sizes of the study, separated by commas")
    parser.add_argument("--quick", action="store_true", help="a small study: quick end-to-end check")
    parser.add_argument("--commands", action="store_true", help="whole commands, on studies with predictions")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each experiment, with --commands")
    parser.add_argument("--old", action="store_true", help="records without summaries of predictions, with --commands")
    chosen = parser.parse_args()
    if chosen.commands:
        for count in map(int, chosen.runs.split(",")):
            measure_commands(count, chosen.seeds, not chosen.old)
        return
    for count in [100] if chosen.quick else map(int, chosen.runs.split(",")):
        measure(count)
    print("\nplanning, for any size of the study")
    for name, duration in planning().items():
        print(f"  {name:24}{1e3 * duration:9.2f} ms per run", flush=True)


if __name__ == "__main__":
    main()

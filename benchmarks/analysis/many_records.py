"""What run folders cost as a study grows: made-up records of the shape of results/scan-first, read in every way.

Folders are made in a temporary place (TMPDIR) and removed. All is read once before it is measured: times are those of
a warm cache on a local disk, the median of three.
"""

import argparse
import json
import os
import random
import re
import resource
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tasks
from benchmarks.timing import now, seconds
from tasks.base import fingerprint
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.experiment.versions import declared_versions
from tfstudy.experiment.reuse import find_reusable
from tfstudy.grids import expand
from tfstudy.launchers import job_list
from tfstudy.launchers.job import Job
from tfstudy.report.status import status
from tfstudy.report.table_formats import markdown
from tfstudy.report.tables import table
from tfstudy.runs.files import is_locked
from tfstudy.runs.identity import identify
from tfstudy.runs.progress import study_runs
from tfstudy.runs.describe import describe_run
from tfstudy.runs.find import find_runs
from tfstudy.runs.reader import read_config
from tfstudy.runs.writer import RunFolder

TEMPLATES = Path(__file__).parent.parent / "results" / "scan-first"
KEPT = ("config.yaml", "env.json", "metrics.csv", "test_reads.csv", "result.json")
SEEDS = 5  # of an experiment
UNFINISHED = 25  # every so many-th run is given up, and as many are interrupted
PLANNED = 60  # runs whose planning is timed: the costs of one don't depend on how many there are


def make(study: Path, count: int) -> list[Job]:
    """A study of so many runs, and their jobs; 1 in 10 more is planned and not begun."""
    templates = [
        (path.parent.relative_to(TEMPLATES), {name: (path.parent / name).read_text() for name in KEPT})
        for path in sorted(TEMPLATES.glob("*/*/*/result.json"))
    ]
    jobs = []
    for number in range(count + count // 10):
        cell, seed = divmod(number, SEEDS)
        again, template = divmod(cell, len(templates))
        place, files = templates[template]
        place = Path(f"{place.parts[0]}_{again}", *place.parts[1:])  # a split of its own: rows are compared within one
        digest = f"{number:08x}"
        path = study / place.parent / f"s{seed}-{digest}"
        if number < count:
            _write(path, files, number, seed, f"{cell:064x}", f"{digest:0<64}")
        jobs.append(Job(str(path), _config(place), str(study.parent), study.name))
    job_list.keep_plan(jobs)
    return jobs


def _write(path: Path, files: dict[str, str], number: int, seed: int, cell: str, run: str) -> None:
    path.mkdir(parents=True)
    split = path.parts[-3].partition("-")[2]
    left_out = {0: ("result.json",), 1: ("result.json",)}.get(number % UNFINISHED, ())  # given up, interrupted
    result = json.dumps(_other(json.loads(files["result.json"]), number, seed, cell, run) | {"split": split}, indent=1)
    config = re.sub(r"^seed: \d+", f"seed: {seed}", files["config.yaml"], flags=re.MULTILINE)
    config = re.sub(r"^# tfstudy run \w+", f"# tfstudy run {run}", config)
    for name, text in {**files, "result.json": result, "config.yaml": config, ".lock": ""}.items():
        if name not in left_out:
            (path / name).write_text(text)
    if number % UNFINISHED == 0:
        (path / "failed.json").write_text(json.dumps({"reason": "out of memory", "attempts": 2, "log": []}))


def _other(result: dict[str, Any], number: int, seed: int, cell: str, run: str) -> dict[str, Any]:
    """The result with this identity, and figures that differ from seed to seed."""
    draw = random.Random(number)
    for part in result["splits"].values():
        if part["n"]:
            share = min(1.0, max(0.0, part["metrics"]["exact_match"] + draw.gauss(0, 0.05)))
            part["metrics"]["exact_match"] = share
            part["exact_match_interval"] = [max(0.0, share - 0.01), min(1.0, share + 0.01)]
    return result | {"seed": seed, "experiment": cell, "run": run}


def _config(place: Path) -> dict[str, Any]:
    return {"task": place.parts[0].split("-")[0], "train": {"steps": 3000}, "place": str(place)}


def ways(root: Path, study: Path, jobs: Sequence[Job]) -> dict[str, Callable[[], object]]:
    """What is done with all records of a study."""
    folders = list(find_runs(study))
    return {
        "find the folders": lambda: list(find_runs(study)),
        "status of the study": lambda: status(root, study.name),
        "status of all studies": lambda: status(root),
        "list runs": lambda: [describe_run(path) for path in folders],
        "look at every lock": lambda: [is_locked(path) for path in folders],
        "grid: what is done": lambda: job_list.divide(jobs),
        "grid: estimates": lambda: job_list.estimates(jobs, root),
        "grid: keep the plan": lambda: job_list.keep_plan(jobs),
        "table": lambda: markdown(table(study)),
    }


def planning() -> dict[str, float]:
    """Seconds a run of expanding a grid, and of its plan once the data are made: with other settings, and seeds."""
    rates = {"train.learning_rate": {"from": 1e-4, "to": 1e-2, "count": PLANNED, "scale": "log"}}
    told = {"base": {"task": "scan", "data": {"split": "simple"}}}
    out = {}
    for name, more in {"settings": {"axes": rates}, "seeds": {"seeds": f"0-{PLANNED - 1}"}}.items():
        out[f"grid: expand, {name}"] = seconds(lambda more=more: expand.expand({**told, **more})) / PLANNED
        cells = expand.expand({**told, **more})
        one = seconds(lambda cells=cells: expand.plan(cells[:1], Path("nowhere"), "study"))
        out[f"grid: plan, {name}"] = (seconds(lambda c=cells: expand.plan(c, Path("nowhere"), "study")) - one) / PLANNED
    return out


def neighbours(study: Path) -> tuple[int, float]:
    """How many runs of its seed lie in the fullest folder, and how long one that begins there looks for a twin."""
    fullest = max(study.glob("[!.]*/*"), key=lambda path: len(os.listdir(path)))
    path = next(find_runs(fullest))
    config: RunConfig = resolve(read_config(path))
    identity = identify(config, fingerprint(tasks.find(config.task)(config.data)), declared_versions(config.task, config.arch))
    alike = len(list(fullest.glob(f"s{config.seed}-*")))
    return alike, seconds(partial(find_reusable, RunFolder(path, ""), config, identity, "cpu", 1))


def measure(count: int) -> None:
    """Prints what so many runs cost."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        began = now()
        jobs = make(root / "study", count)
        took = now() - began
        sizes = [path.stat().st_size for path in root.rglob("*") if path.is_file()]
        print(f"\n{count:,} runs ({len(study_runs(root / 'study')) - count:,} more only planned), made in {took:.1f} s")
        print(f"  {len(sizes) / count:.1f} files and {sum(sizes) / count / 1024:.1f} KiB a run, without predictions")
        for name, work in ways(root, root / "study", jobs).items():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            work()
            figure = statistics.median(seconds(work) for _ in range(3))
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            more = f", {grown:,.0f} MiB of memory" if grown > 50 else ""
            print(f"  {name:24}{figure:9.3f} s{1e6 * figure / count:10.1f} us a run{more}", flush=True)
        there, figure = neighbours(root / "study")
        print(f"  {'a run looks for a twin':24}{figure:9.3f} s{1e6 * figure / there:10.1f} us for each of {there}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", default="1000,10000", help="sizes of the study, set apart by commas")
    parser.add_argument("--quick", action="store_true", help="a small study: shows that it works")
    chosen = parser.parse_args()
    for count in [100] if chosen.quick else map(int, chosen.runs.split(",")):
        measure(count)
    print("\nplanning, whatever is there")
    for name, figure in planning().items():
        print(f"  {name:24}{1e3 * figure:9.2f} ms a run", flush=True)


if __name__ == "__main__":
    main()

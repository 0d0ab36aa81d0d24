"""Folders of runs in every state, written down and not trained."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.example_records import seal
from tfstudy.experiment.api import RunOptions
from tfstudy.grids.expand import expand, plan
from tfstudy.launchers.batch import jobs_of, save_plan
from tfstudy.launchers.job import Job
from tfstudy.runs.files import RUN, utc_now
from tfstudy.runs.schema import FORMAT, Environment, Event
from tfstudy.runs.store import add_events, write_failure

CONFIG: dict[str, Any] = {
    "task": "copying",
    "arch": "lstm",
    "data": {"train_examples": 60, "eval_examples": 10},
    "train": {"steps": 400},
}
SCORES = {"role": "test", "n": 10, "metrics": {"exact_match": 0.5}}


def planned(seeds: str = "0", preset: str = "default", **more: Any) -> list[Job]:
    """Jobs of real configs, whose folders are where a grid would put them."""
    runs = plan(expand({"base": {**CONFIG, **more}, "seeds": seeds}), Path("results"), "study")
    return [job._replace(options=RunOptions(preset, accelerator="cpu")) for job in jobs_of(runs, RunOptions())]


def start_run(
    job: Job, step: int = 0, preset: str = "default", tuning: bool = False, seconds_per_step: float = 1.0
) -> Path:
    """The folder of a run whose process was killed just after it logged the metrics of this step."""
    path = Path(job.path)
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(yaml.safe_dump(job.config, sort_keys=False))
    (path / ".lock").touch()
    start = datetime.fromtimestamp(time.time() - step * seconds_per_step, UTC).isoformat()
    add_events(path, Event(event="started", environment=Environment(), preset=preset, tuning=tuning, time=start))
    if step:
        (path / "metrics.csv").write_text(f"step,metric,value\n{step},train_loss,1.0\n")
    return path


def finish_run(path: Path, status: str = "finished", **more: Any) -> Path:
    """The folder of a finished run."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.yaml").touch()
    if not (path / "events.jsonl").exists():
        add_events(path, Event(event="test read", split="test", reason="run"))
    result = {"format": FORMAT, "run": path.name[-8:], "experiment": "e", "task": "copying", "split": "copy"}
    name = RUN.fullmatch(path.name)
    result |= {"arch": "lstm", "seed": int(name["seed"]) if name else 0, "smoke": False, "status": status}
    result |= {"finished": utc_now()}
    result |= {"splits": {"test": SCORES} if status == "finished" else {}}
    seal(path, result | more)
    return path


@contextmanager
def running_elsewhere(path: Path) -> Iterator[None]:
    """Another process works on the run."""
    code = (
        "import fcntl, sys\nlock = open(sys.argv[1], 'a')\nfcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\ninput()"
    )
    command = [sys.executable, "-c", code, str(path / ".lock")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout
        assert process.stdout.readline() == "locked\n"
        try:
            yield
        finally:
            process.kill()


def runs_in_every_state() -> list[Job]:
    """Seven planned runs: finished, diverged, failed, interrupted, and three that did not start."""
    jobs = planned("0-6")
    finish_run(Path(jobs[0].path))
    finish_run(Path(jobs[1].path), "diverged", reason="the loss is nan")
    write_failure(start_run(jobs[2]), "out of memory", 2)
    start_run(jobs[3], 150)
    save_plan(jobs)
    return jobs

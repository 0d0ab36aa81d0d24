"""The commands that make many runs."""

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfstudy.cli.options import RESULTS, LoggerNames, Results, app, plain, root_of

if TYPE_CHECKING:
    from tfstudy.launchers import Executor, Job

GridName = Annotated[str | None, typer.Argument(metavar="[GRID]", help="One of configs/grids/, or a YAML file.")]
Values = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE,...", help="An axis, or one value.")]


@app.command()
def grid(
    name: GridName = None,
    task: Annotated[str | None, typer.Option(help="Tasks, set apart by commas; likewise below.")] = None,
    split: Annotated[str | None, typer.Option(help="What is held out: data.split.")] = None,
    arch: Annotated[str | None, typer.Option(help="Architectures.")] = None,
    preset: Annotated[str | None, typer.Option(help="Settings by name.")] = None,
    seed: Annotated[str | None, typer.Option(help="Such as 0-4 or 0,3.")] = None,
    set_: Values = None,
    tier: Annotated[str, typer.Option(help="A size of the grid that its file tells: smoke, quick, full.")] = "",
    smoke: Annotated[bool, typer.Option("--smoke", help="Every part in seconds; kept out of the results.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell the runs, which are done, and how long.")
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast/--keep-going", help="End all when a run has failed for good.")
    ] = False,
    per_device: Annotated[str, typer.Option(help="Runs at once on a device, or auto.")] = "auto",
    timeout: Annotated[float, typer.Option(min=0, help="Seconds after which a run counts as hung; 0: none.")] = 0.0,
    devices: Annotated[int, typer.Option(min=1, help="Processors that one run trains on.")] = 1,
    accelerator: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    shard: Annotated[str, typer.Option(metavar="I/N", help="Only every N-th run, from the I-th (1 to N).")] = "",
    logger: LoggerNames = "",
    study: Annotated[str, typer.Option(help="The folder within the results; else the grid's name.")] = "",
    launcher: Annotated[str, typer.Option(help="Where runs are made: local, ray or slurm.")] = "local",
    ray_address: Annotated[
        str, typer.Option("--ray.address", envvar="RAY_ADDRESS", help="A Ray cluster's; else one is started here.")
    ] = "",
    slurm_partition: Annotated[str, typer.Option("--slurm.partition", help="Where Slurm queues the jobs.")] = "",
    slurm_time: Annotated[int, typer.Option("--slurm.time", min=1, help="Minutes that a job may take.")] = 240,
    slurm_gres: Annotated[str, typer.Option("--slurm.gres", help="What a job gets, such as gpu:1 or shard:1.")] = "",
    slurm_cpus: Annotated[int, typer.Option("--slurm.cpus", min=0, help="A job's; 0: one for each device.")] = 0,
    slurm_at_once: Annotated[int, typer.Option("--slurm.at-once", min=1, help="Jobs at the same time.")] = 50,
    results: Results = RESULTS,
) -> None:
    """Make every run of a grid that is not done. Stopped and started again, it goes on."""
    from tasks.errors import UserError
    from tfstudy.grids import expand as grids
    from tfstudy.launchers import ExecutorSettings, Request, job_list
    from tfstudy.launchers import executor as engine_of
    from tfstudy.launchers.job import Job
    from tfstudy.report.grid_progress import foretell
    from tfstudy.training import loggers

    kept = loggers.chosen(logger)
    request = Request(slurm_partition, slurm_time, slurm_gres, slurm_cpus, slurm_at_once)
    if request != Request() and launcher != "slurm":
        raise UserError(f"options of Slurm go with --launcher slurm, but --launcher is '{launcher}'")
    told = grids.tier(grids.read(name) if name else {}, tier)
    flags = {"task": task, "data.split": split, "arch": arch, "preset": preset}
    axes = {key: [word.strip() for word in text.split(",")] for key, text in flags.items() if text}
    axes |= grids.assigned(set_ or [])
    set_seeds = axes.pop("seed", None)
    told = grids.put_over(told, axes, set_seeds if seed is None else seed)
    smoke = smoke or bool(told.get("smoke"))
    root, study = root_of(results, smoke), plain(study or (Path(name).stem if name else "runs"))
    settings = ExecutorSettings(per_device, devices, accelerator, timeout, ray_address, request)
    # a dry run starts no cluster: it reckons with this machine
    engine, threads = engine_of("local" if dry_run and launcher == "ray" else launcher, settings)
    with ended(engine):
        common = Job("", {}, "", "", devices=devices, accelerator=accelerator, threads=threads, loggers=kept)
        planned = grids.plan(grids.expand(told, smoke), root, study)
        jobs = job_list.sharded(job_list.jobs(planned, root, study, common), shard)
        done, todo = job_list.divide(jobs)
        seconds = job_list.estimates(jobs, root)
        if dry_run:
            for line in foretell(jobs, done, seconds, engine.at_once):
                print(line)
            return
        job_list.keep_plan(jobs)
        if taken := job_list.take_over(todo):
            print(f"{len(taken)} runs taken over from other studies of {root}", flush=True)
            done, todo = job_list.divide(jobs)
        raise typer.Exit(make(job_list.longest_first(todo, seconds), done, seconds, engine, fail_fast))


@contextlib.contextmanager
def ended(engine: "Executor") -> Iterator[None]:
    """Gives back what the engine holds, also when a mistake or SIGTERM ends the command."""
    told = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        engine.stop()
        signal.signal(signal.SIGTERM, told)


def make(
    todo: "Sequence[Job]", done: "Sequence[Job]", seconds: dict[str, float], engine: "Executor", fail_fast: bool
) -> int:
    """Makes the jobs and tells how it went; the command's exit code."""
    from tfstudy.launchers.supervisor import supervise
    from tfstudy.report.grid_progress import Progress

    jobs = [*todo, *done]
    where = f" in {Path(jobs[0].root) / jobs[0].study}" if jobs else ""
    print(f"{len(todo)} runs to make, {len(done)} done already{where}; {engine.describe()}", flush=True)
    try:
        with Progress(todo, seconds, engine) as progress:
            summary = supervise(todo, engine, progress, fail_fast)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        return 130
    for path, reason in summary.failed.items():
        print(f"failed: {path}: {reason}", file=sys.stderr)
    if summary.left:
        print(f"not made, since a run failed: {len(summary.left)}", file=sys.stderr)
    return 1 if summary.failed else 0

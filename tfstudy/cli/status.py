"""The commands by which runs are watched, explained, compared and made again."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import RESULTS, Results, Run, StudyName, app


@app.command()
def status(
    study: StudyName = "",
    watch: Annotated[bool, typer.Option("--watch", help="Every 2 seconds anew, until Ctrl-C; on a terminal.")] = False,
    results: Results = RESULTS,
) -> None:
    """Tell how far a study's runs are; without STUDY a line on each study."""
    from tfstudy.report import status as report

    if watch and sys.stdout.isatty():
        report.watch(lambda: report.status(results, study))
        return
    for line in report.status(results, study):
        print(line)


@app.command()
def logs(
    run: Run,
    lines: Annotated[int, typer.Option(min=1, help="How many of its last lines.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", help="What comes, too, until the run's process ends.")] = False,
    results: Results = RESULTS,
) -> None:
    """Print the end of a run's log, and why it was given up if it was."""
    from tfstudy.runs.progress import failure
    from tfstudy.runs.reader import find_run
    from tfstudy.runs.train_log import followed, last_lines

    path = find_run(results, run)
    log = path / "train.log"
    if not log.exists():
        print(f"{path} has no log")
    size = log.stat().st_size if log.exists() else 0
    for line in last_lines(path, lines):
        print(line)
    try:
        for text in followed(path, size) if follow else ():
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        return
    if not (path / "result.json").exists() and (reason := failure(path)):
        print(f"given up: {reason}")


@app.command()
def retry(
    study: StudyName = "runs",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be made again.")] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="End all when a run has failed for good.")] = False,
    per_device: Annotated[str, typer.Option(help="Runs at once on a device, or auto.")] = "auto",
    timeout: Annotated[float, typer.Option(min=0, help="Seconds after which a run counts as hung; 0: none.")] = 0.0,
    devices: Annotated[int, typer.Option(min=1, help="Processors that one run trains on.")] = 1,
    accelerator: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    results: Results = RESULTS,
) -> None:
    """Make a study's failed and interrupted runs again, on this machine, by the configs in their folders."""
    from tfstudy.runs.progress import FAILED, INTERRUPTED, find_study, runs_of

    folder = find_study(results, study)
    broken = [run for run in runs_of(folder) if run.state in (FAILED, INTERRUPTED)]
    if not broken:
        print(f"{folder}: no run has failed or was interrupted")
        return
    from tfstudy.cli.grids import ended, make
    from tfstudy.launchers import ExecutorSettings, executor, job_list
    from tfstudy.launchers.job import Job
    from tfstudy.launchers.retry import again

    jobs, skipped = again(broken, results, folder.name, Job("", {}, "", "", devices=devices, accelerator=accelerator))
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}")
    for run in broken:
        if run.path in {Path(job.path) for job in jobs}:
            print(f"again:   {run.name}: {run.reason or f'interrupted after step {run.step} of {run.steps}'}")
    if dry_run or not jobs:
        raise typer.Exit(bool(skipped))
    machine, threads = executor("local", ExecutorSettings(per_device, devices, accelerator, timeout))
    with ended(machine):
        jobs = [job._replace(threads=threads) for job in jobs]
        seconds = job_list.estimates(jobs, results)
        code = make(job_list.longest_first(jobs, seconds), [], seconds, machine, fail_fast)
    raise typer.Exit(code or bool(skipped))


@app.command()
def why(run: Run, results: Results = RESULTS) -> None:
    """Tell whether a run is what its command would give now, and if not, what has changed."""
    from tfstudy.runs.reader import find_run

    path = find_run(results, run)
    from tfstudy.report.outdated import explain

    for line in explain(path):
        print(line)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A run's folder, or the start of its hash.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another run.")],
    results: Results = RESULTS,
) -> None:
    """Tell what two runs differ in, and set their metrics side by side."""
    from tfstudy.report.run_diff import compare
    from tfstudy.runs.reader import find_run

    for line in compare(find_run(results, a), find_run(results, b)):
        print(line)

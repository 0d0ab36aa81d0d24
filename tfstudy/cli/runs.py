"""The commands for one run: train it, and show its config."""

from typing import Annotated

import typer

from tfstudy.cli.options import (
    RESULTS,
    RUN,
    Accelerator,
    Arch,
    ConfigFile,
    Devices,
    LoggerNames,
    Preset,
    Results,
    Seed,
    Set,
    Smoke,
    Split,
    TaskName,
    announce,
    app,
    config_of,
    results_of,
    study_name,
)


@app.command(rich_help_panel=RUN)
def run(
    task: TaskName,
    arch: Arch = None,
    split: Split = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Set = None,
    seed: Seed = None,
    smoke: Smoke = False,
    restart: Annotated[bool, typer.Option("--restart", help="Archive the existing run and restart.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Only resume; fail if there is no unfinished run.")] = False,
    devices: Devices = 1,
    accelerator: Accelerator = "auto",
    logger: LoggerNames = "",
    study: Annotated[str, typer.Option(help="Study: a folder within the results.")] = "runs",
    results: Results = RESULTS,
) -> None:
    """Train and evaluate one model.

    The same command resumes an interrupted run; a finished run is not rerun.
    """
    from tfstudy.experiment.options import RunOptions, process_rank
    from tfstudy.training.logger_choice import parse_loggers

    resolved = config_of(task, arch, preset, config, set_, split, seed, smoke)
    folder, study = results_of(results, resolved.smoke), study_name(study)
    options = RunOptions(preset, restart, resume, devices, accelerator, parse_loggers(logger))
    announce(f"{resolved.task} {resolved.data.split}, {resolved.arch}: loading PyTorch Lightning ...")
    from tfstudy.experiment.run import run as run_experiment
    from tfstudy.report.run_summary import show

    if outcome := run_experiment(resolved, folder, study, options, rank=process_rank()):
        show(outcome.result)
        print(outcome.path)
        raise typer.Exit(int(outcome.result.status != "finished"))


@app.command("config", rich_help_panel=RUN)
def config_(
    task: TaskName,
    arch: Arch = None,
    split: Split = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Set = None,
    seed: Seed = None,
    smoke: Smoke = False,
) -> None:
    """Show the resolved config, with every key explained."""
    from tfstudy import tasks
    from tfstudy.config.display import annotated

    resolved = config_of(task, arch, preset, config, set_, split, seed, smoke)
    tasks.find(task)(resolved.data)  # checks the data section
    print(annotated(resolved), end="")

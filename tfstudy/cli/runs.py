"""The commands for one run: train it, and show its config."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from tfstudy.cli.execution_options import OneRun
from tfstudy.cli.option_groups import Group
from tfstudy.cli.options import (
    RESULTS,
    RUN,
    Arch,
    ConfigFile,
    Online,
    OptionalTask,
    Preset,
    Results,
    Seed,
    Set,
    Smoke,
    Split,
    app,
    study_name,
)
from tfstudy.cli.output import Quiet, announce, is_json, print_json, progress_on_stderr

if TYPE_CHECKING:
    from tfstudy.cli.run_config import Request


def _request(
    task: OptionalTask = None,
    arch: Arch = None,
    split: Split = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Set = None,
    seed: Seed = None,
    smoke: Smoke = False,
) -> "Request":
    """Return which run the options ask for."""
    from tfstudy.cli.run_config import requested

    return requested(task, arch, preset=preset, file=config, assignments=set_, split=split, seed=seed, smoke=smoke)


Requested = Annotated["Request", Group(_request)]


@app.command(rich_help_panel=RUN)
def run(
    *,
    request: Requested,
    restart: Annotated[bool, typer.Option("--restart", help="Archive the existing run and restart.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Only resume; fail if there is no unfinished run.")] = False,
    options: OneRun,
    study: Annotated[str, typer.Option(help="Study: a folder within the results.")] = "runs",
    online: Online = False,
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Train and evaluate one model.

    The same command resumes an interrupted run; a finished run is not rerun. `--config RUN/config.yaml` runs the config
    of another run.
    """
    from tfstudy.errors import UserError
    from tfstudy.runs.smoke_folder import results_folder

    study = study_name(study)
    if restart and resume:
        raise UserError("--restart and --resume exclude each other")
    announce(f"{request.task}, {request.arch}: loading PyTorch ...", quiet)
    resolved = request.resolve(online)
    folder = results_folder(results, resolved.smoke)
    from tfstudy.experiment.options import process_rank
    from tfstudy.experiment.run import run as run_experiment
    from tfstudy.report.run_summary import show

    options = options._replace(preset=request.used_preset, restart=restart, resume=resume)
    with progress_on_stderr(quiet):
        outcome = run_experiment(resolved, folder, study, options, rank=process_rank())
        if outcome:
            print()
    if outcome:
        show(outcome.result, path=outcome.path)
        print(f"\n{outcome.path}")
        failed = outcome.result.status != "finished"
        if not (quiet or failed):
            print(f"next: tfstudy predict {shlex.quote(str(outcome.path))}")
        raise typer.Exit(int(failed))


@app.command("config", rich_help_panel=RUN)
def config_(
    *,
    request: Requested,
    format_: Annotated[str, typer.Option("--format", help="yaml or json.")] = "yaml",
) -> None:
    """Show the resolved config, with every key explained."""
    from tfstudy import tasks
    from tfstudy.config.display import annotated

    as_json = is_json(format_, "yaml")
    resolved = request.resolve()
    tasks.find(resolved.task)(resolved.data)  # checks the data section
    if as_json:
        print_json(resolved.model_dump(mode="json"))
    else:
        print(annotated(resolved), end="")

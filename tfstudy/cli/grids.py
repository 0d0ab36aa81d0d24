"""The commands that run many runs: a grid, and what failed of a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfstudy.cli.command_line import app
from tfstudy.cli.options import (
    RESULTS,
    Accelerator,
    Devices,
    Execution,
    ExistingResults,
    FailFast,
    LoggerNames,
    MeasureNames,
    Online,
    PerDevice,
    Results,
    Smoke,
    StudyName,
    Timeout,
    complete_arch,
    complete_grid,
    complete_preset,
    complete_split,
    complete_task,
    run_options,
    study_name,
)
from tfstudy.cli.output import Format, Quiet, announce, is_json, print_json, without_progress
from tfstudy.errors import UserError, one_of

if TYPE_CHECKING:
    from tfstudy.launchers import ExecutorSettings

GridName = Annotated[
    str | None,
    typer.Argument(metavar="GRID", help="Grid of configs/grids/, or a YAML file.", autocompletion=complete_grid),
]
Tasks = Annotated[str | None, typer.Option(help="Tasks, separated by commas.", autocompletion=complete_task)]
Splits = Annotated[str | None, typer.Option(help="Split schemes, separated by commas.", autocompletion=complete_split)]
Archs = Annotated[str | None, typer.Option(help="Architectures, separated by commas.", autocompletion=complete_arch)]
Presets = Annotated[str | None, typer.Option(help="Presets, separated by commas.", autocompletion=complete_preset)]
Axes = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE,...", help="Values of a setting.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the runs and the estimated time; run nothing.")]
RayAddress = Annotated[
    str, typer.Option("--ray.address", envvar="RAY_ADDRESS", help="Ray cluster (default: start one here).")
]
SlurmOptions = Annotated[
    list[str] | None,
    typer.Option("--slurm", metavar="KEY=VALUE", help="Option of sbatch, such as partition=gpu; repeatable."),
]


@app.command()
def grid(
    name: GridName = None,
    *,
    task: Tasks = None,
    split: Splits = None,
    arch: Archs = None,
    preset: Presets = None,
    seed: Annotated[str | None, typer.Option(help="Seeds, such as 0-4 or 0,3.")] = None,
    set_: Axes = None,
    tier: Annotated[str, typer.Option(help="Named size of the grid: smoke, quick or full.")] = "",
    smoke: Smoke = False,
    dry_run: DryRun = False,
    fail_fast: FailFast = False,
    per_device: PerDevice = "auto",
    timeout: Timeout = 0.0,
    devices: Devices = 1,
    accelerator: Accelerator = "auto",
    execution: Execution = "eager",
    logger: LoggerNames = "",
    measure: MeasureNames = "",
    shard: Annotated[str, typer.Option(metavar="I/N", help="Only every N-th run from the I-th, such as 1/4.")] = "",
    study: Annotated[str, typer.Option(help="Study: a folder within the results (default: the grid).")] = "",
    launcher: Annotated[str, typer.Option(help="Where to run: local, ray or slurm.")] = "local",
    ray_address: RayAddress = "",
    slurm: SlurmOptions = None,
    format_: Format = "text",
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Run all combinations of a grid that are not finished.

    The same command resumes an interrupted grid. On Slurm the runs are submitted, and the command ends.
    """
    from tfstudy.grids.spec import load_grid
    from tfstudy.launchers import ExecutorSettings
    from tfstudy.runs.files import results_folder

    as_json = is_json(format_)
    if as_json and not dry_run:
        raise UserError("--format json needs --dry-run; `tfstudy table STUDY --format json` has the results")
    options = run_options(devices, accelerator, execution, logger, measure)
    settings = ExecutorSettings(
        per_device, timeout, options=options, ray_address=ray_address, slurm=tuple(slurm or ()), launcher=launcher
    )
    check_launcher(settings, fail_fast)
    axes = {"task": task, "data.split": split, "arch": arch, "preset": preset, "seed": seed}
    spec = load_grid(name, tier, axes, set_ or [])
    smoke = smoke or bool(spec.get("smoke"))
    folder = results_folder(results, smoke) / study_name(study or (Path(name).stem if name else "runs"))
    announce(f"{folder}: preparing the runs ...", quiet)
    from tfstudy.cli.batches import preview_grid, run_grid, submit_grid
    from tfstudy.report.grids import forecast_lines
    from tfstudy.report.status import end_line
    from tfstudy.report.terminal import show_lines

    if dry_run:
        found = preview_grid(spec, folder, settings, smoke, shard)
        if as_json:
            print_json(found.tree())
        else:
            show_lines(forecast_lines(found))
        return
    with without_progress(quiet):
        if launcher == "slurm":
            submit_grid(spec, folder, settings, smoke, shard)
            return
        code = run_grid(spec, folder, settings, smoke, shard, fail_fast)
    print(end_line(folder))
    raise typer.Exit(code)


def check_launcher(settings: "ExecutorSettings", fail_fast: bool) -> None:
    """`UserError` for options that do not belong to the launcher."""
    from tfstudy.launchers import LAUNCHERS

    if one_of("launcher", settings.launcher, LAUNCHERS) != "slurm":
        if settings.slurm:
            raise UserError(f"--slurm needs --launcher slurm, but --launcher is '{settings.launcher}'")
        return
    from tfstudy.launchers.slurm import parameters

    if fail_fast:
        raise UserError("--fail-fast can't be used with --launcher slurm, which does not wait for runs that fail")
    parameters(settings.slurm, settings.options)


@app.command()
def retry(
    study: StudyName = "runs",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs; run nothing.")] = False,
    fail_fast: FailFast = False,
    per_device: PerDevice = "auto",
    timeout: Timeout = 0.0,
    devices: Devices = 1,
    accelerator: Accelerator = "auto",
    execution: Execution = "eager",
    logger: LoggerNames = "",
    measure: MeasureNames = "",
    online: Online = False,
    quiet: Quiet = False,
    results: ExistingResults = RESULTS,
) -> None:
    """Retry the failed and interrupted runs of a study.

    They run on this machine, with the configs in their folders. To continue a grid as it was started, repeat its
    --execution, --logger and --measure.
    """
    from tfstudy.launchers import ExecutorSettings
    from tfstudy.runs.find import find_study

    options = run_options(devices, accelerator, execution, logger, measure)
    folder = find_study(results, study)
    announce(f"{folder}: preparing the runs ...", quiet)
    from tfstudy.cli.batches import retry_study
    from tfstudy.report.status import end_line

    with without_progress(quiet and not dry_run):
        code = retry_study(folder, ExecutorSettings(per_device, timeout, options=options), dry_run, fail_fast, online)
    if not dry_run:
        print(end_line(folder))
    raise typer.Exit(code)

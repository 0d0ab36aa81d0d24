"""The command that runs a grid."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli import completion
from tfstudy.cli.options import (
    RESULTS,
    RUN,
    Accelerator,
    Cohort,
    Devices,
    Execution,
    FailFast,
    LoggerNames,
    MeasureNames,
    PerDevice,
    Results,
    Smoke,
    Timeout,
    app,
    results_of,
    study_name,
)
from tfstudy.cli.output import Format, Quiet, announce, is_json, print_json, without_progress
from tfstudy.cli.slurm_options import (
    Account,
    ArraySize,
    AtOnce,
    Constraint,
    Cpus,
    Detach,
    Extra,
    Gres,
    Memory,
    Minutes,
    Partition,
    Qos,
    Setup,
    check_slurm_options,
)

GridName = Annotated[
    str | None,
    typer.Argument(metavar="GRID", help="Grid of configs/grids/, or a YAML file.", autocompletion=completion.grid),
]
Tasks = Annotated[
    str | None,
    typer.Option(help="Tasks, separated by commas.", autocompletion=completion.task),
]
Splits = Annotated[
    str | None,
    typer.Option(help="Split schemes, separated by commas.", autocompletion=completion.split),
]
Archs = Annotated[
    str | None,
    typer.Option(help="Architectures, separated by commas.", autocompletion=completion.architecture),
]
Presets = Annotated[
    str | None,
    typer.Option(help="Presets, separated by commas.", autocompletion=completion.preset),
]
Seeds = Annotated[str | None, typer.Option(help="Seeds, such as 0-4 or 0,3.")]
Axes = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE,...", help="Values of a setting.")]
Tier = Annotated[str, typer.Option(help="Named size of the grid: smoke, quick or full.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the runs and the estimated time; run nothing.")]
Shard = Annotated[str, typer.Option(metavar="I/N", help="Only every N-th run from the I-th, such as 1/4.")]
Study = Annotated[str, typer.Option(help="Study: a folder within the results (default: the grid).")]
Launcher = Annotated[str, typer.Option(help="Where to run: local, ray or slurm.")]
RayAddress = Annotated[
    str, typer.Option("--ray.address", envvar="RAY_ADDRESS", help="Ray cluster (default: start one here).")
]


@app.command(rich_help_panel=RUN)
def grid(
    name: GridName = None,
    task: Tasks = None,
    split: Splits = None,
    arch: Archs = None,
    preset: Presets = None,
    seed: Seeds = None,
    set_: Axes = None,
    tier: Tier = "",
    smoke: Smoke = False,
    dry_run: DryRun = False,
    fail_fast: FailFast = False,
    per_device: PerDevice = "auto",
    cohort: Cohort = "",
    timeout: Timeout = 0.0,
    devices: Devices = 1,
    accelerator: Accelerator = "auto",
    execution: Execution = "eager",
    shard: Shard = "",
    logger: LoggerNames = "",
    measure: MeasureNames = "",
    study: Study = "",
    launcher: Launcher = "local",
    ray_address: RayAddress = "",
    detach: Detach = False,
    slurm_partition: Partition = "",
    slurm_account: Account = "",
    slurm_qos: Qos = "",
    slurm_constraint: Constraint = "",
    slurm_time: Minutes = 240,
    slurm_gres: Gres = "",
    slurm_cpus: Cpus = 0,
    slurm_memory: Memory = "",
    slurm_at_once: AtOnce = 50,
    slurm_array_size: ArraySize = 1000,
    slurm_setup: Setup = None,
    slurm_extra: Extra = None,
    format_: Format = "text",
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Run all combinations of a grid that are not finished.

    The same command resumes an interrupted grid.
    """
    from tfstudy.experiment.options import RunOptions
    from tfstudy.grids.cohorts import check_cohort
    from tfstudy.grids.spec import load_grid
    from tfstudy.instruments import parse_in_training
    from tfstudy.launchers import ExecutorSettings, SlurmRequest
    from tfstudy.tasks.errors import UserError
    from tfstudy.training.logger_choice import parse_loggers

    slurm = SlurmRequest(
        partition=slurm_partition,
        account=slurm_account,
        qos=slurm_qos,
        constraint=slurm_constraint,
        minutes=slurm_time,
        gres=slurm_gres,
        cpus=slurm_cpus,
        memory=slurm_memory,
        max_parallel=slurm_at_once,
        array_size=slurm_array_size,
        setup=tuple(slurm_setup or ()),
        extra=tuple(slurm_extra or ()),
    )
    as_json = is_json(format_)
    if as_json and not dry_run:
        raise UserError("--format json needs --dry-run; `tfstudy table STUDY --format json` has the results")
    check_slurm_options(slurm, launcher, detach, fail_fast)
    if cohort:
        check_cohort(cohort, launcher, devices)
    measured = parse_in_training(measure)
    options = RunOptions(
        devices=devices,
        accelerator=accelerator,
        loggers=parse_loggers(logger),
        measure=measured,
        execution=execution,
    )
    settings = ExecutorSettings(per_device, timeout, ray_address, slurm, options, cohort)
    axes = {"task": task, "data.split": split, "arch": arch, "preset": preset, "seed": seed}
    spec = load_grid(name, tier, axes, set_ or [])
    smoke = smoke or bool(spec.get("smoke"))
    folder = results_of(results, smoke) / study_name(study or (Path(name).stem if name else "runs"))
    announce(f"{folder}: preparing the runs ...", quiet)
    from tfstudy.report.grid_console import preview_grid, run_grid
    from tfstudy.report.grid_forecast import forecast_lines
    from tfstudy.report.status import end_lines
    from tfstudy.report.terminal import show_lines

    if dry_run:
        found = preview_grid(spec, folder, settings, launcher, smoke, shard)
        if as_json:
            print_json(found.tree())
        else:
            show_lines(forecast_lines(found))
        return
    with without_progress(quiet):
        code = run_grid(spec, folder, settings, launcher, smoke, shard, fail_fast, detach)
    if not detach:
        show_lines(end_lines(folder, results_of(results, smoke)))
    raise typer.Exit(code)

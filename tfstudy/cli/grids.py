"""The commands that run many runs: a grid or what a study has left, and a search for hyperparameters."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli import options as opt
from tfstudy.cli.command_line import app
from tfstudy.cli.output import announce, listing_format, print_listing, without_progress
from tfstudy.errors import UserError, one_of

LIST = "NAME,..."
GridName = Annotated[str | None, opt.argument("GRID", "Grid of configs/grids/, or a YAML file.")]


@app.command()
def grid(
    name: GridName = None,
    *,
    task: Annotated[str | None, opt.option(metavar=LIST, help="Tasks.")] = None,
    split: Annotated[str | None, opt.option(metavar=LIST, help="Split schemes.")] = None,
    arch: Annotated[str | None, opt.option(metavar=LIST, help="Architectures.")] = None,
    preset: Annotated[str | None, opt.option(metavar=LIST, help="Presets.")] = None,
    seed: Annotated[str | None, opt.option(metavar="N,...", help="Seeds, such as 0-4 or 0,3.")] = None,
    set_: Annotated[list[str] | None, opt.option("--set", metavar="KEY=V,...", help="Values of a setting.")] = None,
    tier: Annotated[str, opt.option(metavar="NAME", help="Size of the grid: smoke, quick or full.")] = "",
    study: Annotated[str, opt.option(metavar="NAME", help="Folder of the results (the grid's name).")] = "",
    resume: Annotated[str, opt.option(metavar="STUDY", help="Run what this study has left; repeat --logger.")] = "",
    dry_run: Annotated[bool, opt.option("--dry-run", help="List the runs and the estimated time.")] = False,
    per_device: opt.PerDevice = "auto",
    accelerator: opt.Accelerator = "auto",
    execution: opt.Execution = "eager",
    logger: opt.LoggerNames = "",
    launcher: Annotated[str, opt.option(metavar="NAME", help="local, ray (at RAY_ADDRESS) or slurm.")] = "local",
    slurm: Annotated[
        list[str] | None, opt.option("--slurm", metavar="KEY=VALUE", help="Option of sbatch: partition=gpu.")
    ] = None,
    online: opt.Online = False,
    format_: opt.Format = "text",
    quiet: opt.Quiet = False,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Run what is not finished of a grid or, with --resume, of a study."""
    from tfstudy.launchers import LAUNCHERS, ExecutorSettings

    if listing_format(format_) != "text" and (resume or not dry_run):
        raise UserError("--format needs --dry-run and a grid; `tfstudy table STUDY --format json` has the results")
    options = opt.run_options(accelerator, execution, logger)
    if one_of("launcher", launcher, LAUNCHERS) != "slurm" and slurm:
        raise UserError(f"--slurm needs --launcher slurm, but --launcher is '{launcher}'")
    settings = ExecutorSettings(per_device, options, launcher, os.environ.get("RAY_ADDRESS", ""), tuple(slurm or ()))
    axes = {"task": task, "data.split": split, "arch": arch, "preset": preset, "seed": seed}
    if resume:
        others = {"GRID": name, "--tier": tier, "--study": study, "--set": set_, "--launcher": launcher != "local"}
        others |= {f"--{key.removeprefix('data.')}": value for key, value in axes.items()}
        if given := [option for option, value in others.items() if value]:
            raise UserError(f"--resume takes the runs of a study as they are, here; leave out {', '.join(given)}")
        from tfstudy.runs.find import find_study

        folder = find_study(results, resume)
    else:
        from tfstudy.grids.spec import load_grid
        from tfstudy.runs.files import results_folder

        spec = load_grid(name, tier, axes, set_ or [])
        smoke = bool(spec.get("smoke"))
        folder = results_folder(results, smoke) / opt.study_name(study or (Path(name).stem if name else "runs"))
    announce(f"{folder}: preparing the runs ...", quiet)
    from tfstudy.cli import batches
    from tfstudy.report.progress import summary
    from tfstudy.runs.find import study_runs

    if dry_run and not resume:
        print_listing(batches.preview_grid(spec, folder, settings, smoke), format_)
        return
    with without_progress(quiet and not dry_run):
        if resume:
            code = batches.resume_study(folder, settings, dry_run, online)
        elif launcher == "slurm":
            batches.submit_grid(spec, folder, settings, smoke)
            return
        else:
            code = batches.run_grid(spec, folder, settings, smoke)
    if not dry_run:
        print(*summary(folder, study_runs(folder)), sep="\n")
    raise typer.Exit(code)


Settings = Annotated[
    list[str] | None, opt.option("--set", metavar="KEY=VALUE", help="Setting of all trials, or of an ARCH.KEY.")
]
Searches = Annotated[
    list[str] | None,
    opt.option("--search", metavar="KEY=RANGE", help="Key to search: LOW..HIGH, LOW..HIGH:log, [A,B]."),
]


@app.command()
def tune(
    task: opt.TaskName,
    arch: Annotated[
        str, opt.option(metavar="NAME,...", help="Architectures (transformer,lstm,cnn).")
    ] = "transformer,lstm,cnn",
    split: opt.Split = None,
    preset: opt.Preset = "default",
    set_: Settings = None,
    search: Searches = None,
    trials: Annotated[int, opt.option(metavar="N", help="Trials of each architecture (20).")] = 20,
    budget: Annotated[int | None, opt.option(metavar="STEPS", help="Steps of a trial (those of the preset).")] = None,
    match_params: Annotated[int, opt.option(min=0, metavar="N", help="Parameters of each model, ±5 % (0: any).")] = 0,
    seed: Annotated[int, opt.option(min=0, metavar="N", help="Seed of the search and of every run (0).")] = 0,
    out: Annotated[Path | None, opt.path_option("Preset file (preset.yaml in the study).")] = None,
    per_device: opt.PerDevice = "auto",
    accelerator: opt.Accelerator = "auto",
    execution: opt.Execution = "eager",
    study: Annotated[str, opt.option(metavar="NAME", help="Folder of the trials (TASK-SPLIT).")] = "",
    quiet: opt.Quiet = False,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Search hyperparameters with equal budgets.

    Trials are judged on the validation split; no test set is evaluated. Without --search the learning
    rate, dropout and width (one factor for all widths) are searched. The same command resumes an interrupted search.
    """
    from tfstudy.launchers import ExecutorSettings
    from tfstudy.runs.find import TUNING

    archs = list(dict.fromkeys(name.strip() for name in arch.split(",")))
    study = opt.study_name(study) if study else ""
    options = opt.run_options(accelerator, execution)._replace(preset=preset, tuning=True)
    announce(f"{task}: preparing the search ...", quiet)
    from tfstudy.cli.searches import tune_architectures
    from tfstudy.tuning.search import SearchRequest

    request = SearchRequest(task, archs, split, preset, set_ or [], search or [], trials, budget, match_params, seed)
    settings = ExecutorSettings(per_device, options=options)
    raise typer.Exit(tune_architectures(request, results / TUNING, study, settings, out, quiet))

"""The commands for one run: train it, show its config, and list what there is to choose from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfstudy.cli import options as opt
from tfstudy.cli.command_line import app
from tfstudy.cli.output import announce, listing_format, print_json, print_listing, progress_on_stderr
from tfstudy.errors import UserError, one_of, quoted

if TYPE_CHECKING:
    from tfstudy.config.schema import RunConfig

WHOLE = {"task", "arch", "data", "model", "train", "decode", "eval"}  # keys of a file that is a complete config
TaskName = Annotated[str | None, opt.argument("TASK", "Task, such as scan; with --config, that of the file.")]
Arch = Annotated[str | None, opt.option(help="transformer (default), lstm, cnn, ...", metavar="NAME")]
ConfigFile = Annotated[Path | None, opt.path_option("YAML file with sections of the config.", "--config")]
Seed = Annotated[int | None, opt.option(min=0, metavar="N", help="Seed of weights, dropout, order (0).")]


@app.command()
def run(
    task: TaskName = None,
    arch: Arch = None,
    split: opt.Split = None,
    preset: opt.Preset = "default",
    config: ConfigFile = None,
    set_: opt.Set = None,
    seed: Seed = None,
    smoke: opt.Smoke = False,
    restart: Annotated[bool, opt.option("--restart", help="Archive the existing run and restart.")] = False,
    accelerator: opt.Accelerator = "auto",
    execution: opt.Execution = "eager",
    logger: opt.LoggerNames = "",
    study: Annotated[str, opt.option(help="Study: a folder within the results (runs).", metavar="NAME")] = "runs",
    online: opt.Online = False,
    quiet: opt.Quiet = False,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Train and evaluate one model; repeat the command to resume it."""
    from tfstudy.runs.files import results_folder

    options = opt.run_options(accelerator, execution, logger)
    study = opt.study_name(study)
    resolved, preset = requested(task, arch, preset, config, set_, split, seed, smoke, online, quiet, restart)
    folder = results_folder(results, resolved.smoke)
    from tfstudy.experiment.run import run as run_experiment
    from tfstudy.plugins import command
    from tfstudy.report.one_run import listing

    options = options._replace(preset=preset, restart=restart)
    with progress_on_stderr(quiet):
        outcome = run_experiment(resolved, folder, study, options)
        print()
    print_listing(listing(outcome.result, short=True), "text")
    print(f"\n{outcome.path}")
    failed = outcome.result.status != "finished"
    if not (quiet or failed):
        print(f"next: {command('result', outcome.path)}")
    raise typer.Exit(int(failed))


@app.command("config")
def config_(
    task: TaskName = None,
    arch: Arch = None,
    split: opt.Split = None,
    preset: opt.Preset = "default",
    config: ConfigFile = None,
    set_: opt.Set = None,
    seed: Seed = None,
    smoke: opt.Smoke = False,
    format_: Annotated[str, opt.option("--format", help="yaml or json.", metavar="NAME")] = "yaml",
) -> None:
    """Show the resolved config, with every key explained."""
    from tfstudy import tasks
    from tfstudy.config.schema import annotated

    one_of("format", format_, ("yaml", "json"))
    resolved, _ = requested(task, arch, preset, config, set_, split, seed, smoke)
    tasks.build(resolved.task, resolved.data)  # checks the data section
    if format_ == "json":
        print_json(resolved.model_dump(mode="json"))
    else:
        print(annotated(resolved), end="")


@app.command("list")
def list_(
    what: Annotated[str, opt.argument("KIND", "tasks, architectures, instruments, presets, grids or runs.")] = "",
    of: Annotated[str, opt.argument("OF", "Task (tasks, presets), grid (grids), study (runs).")] = "",
    format_: opt.Format = "text",
    results: opt.Results = opt.RESULTS,
) -> None:
    """List tasks, presets, grids, runs and more."""
    from tfstudy.report.lists import LISTS, listing
    from tfstudy.runs.find import study_folder

    format_ = listing_format(format_)
    if what:
        one_of("kind of list", what, LISTS)
    place: Any = of
    if what == "runs":
        place = study_folder(of, results, several=True)
    print_listing(listing(what, place), format_)


def requested(
    task: str | None,
    arch: str | None,
    preset: str = "default",
    file: Path | None = None,
    assignments: list[str] | None = None,
    split: str | None = None,
    seed: int | None = None,
    smoke: bool = False,
    online: bool = True,
    quiet: bool = True,
    restart: bool = False,
) -> tuple["RunConfig", str]:
    """Return the config that options ask for, and its preset for the record.

    Defaults < preset < file < --set < the other options; a file that is a complete config, such as that of a run, has
    the preset of its run. `UserError` for unknown names, which are found before anything slow is imported, and for
    options that contradict the file. Data of the hub that a file names, which may be somebody else's, need `online`.
    """
    from tfstudy import models, tasks
    from tfstudy.config.presets import presets
    from tfstudy.config.resolve import SMOKE, check_local, overrides, resolve
    from tfstudy.config.trees import merge, read_yaml
    from tfstudy.experiment.api import compose_config
    from tfstudy.runs.files import RUN
    from tfstudy.runs.store import open_run, read_config

    if arch is not None:
        one_of("architecture", arch, models.names())
    tree: dict[str, Any] = {}
    of_run = file is not None and file.name == "config.yaml" and RUN.fullmatch(file.absolute().parent.name)
    if file:
        tree = read_config(file.parent, restart) if of_run else read_yaml(file)  # that of a run may be packed
    assigned = overrides(assignments or [])
    if "smoke" in assigned:
        raise UserError("--set can't change 'smoke'; use --smoke")
    if not (task or "task" in tree):
        raise UserError(f"which task? Name one, such as scan; expected one of: {', '.join(tasks.names())}")
    whole = tree.keys() >= WHOLE
    chosen = {"task": task, "arch": arch or assigned.get("arch")}
    for key, given in chosen.items():
        if given and str(tree.get(key, given)) != given and (whole or key == "task"):
            own = f"{quoted(file, 300, '')} has {key}: {quoted(tree[key])}"
            raise UserError(f"{key} is {quoted(given)} on the command line, but {own}")
    task = str(task or tree["task"])
    arch = str(chosen["arch"] or tree.get("arch", "transformer"))
    tasks.find(task)
    one_of("architecture", arch, models.names())
    if whole and preset != "default":
        raise UserError(f"--preset {preset} does not apply to {file}, which has all settings; leave out one of the two")
    announce(f"{task}, {arch}: loading PyTorch ...", quiet)
    given = merge(tree, assigned)
    if whole:
        named: dict[str, Any] = {"data": {"split": split}} if split is not None else {}
        named |= {"seed": seed} if seed is not None else {}
        config = resolve(merge(tree, SMOKE if smoke else {}, assigned, named))
        config.decode.check_given(assigned.get("decode", {}))
    else:
        config = compose_config(task, arch, preset, given, split, seed, smoke)
    if tree and not online and "hub" not in assigned.get("data", {}):
        check_local(config)
    record = open_run(file.parent).last_start if file and of_run else None
    recorded = record.preset if record and record.preset in presets(task, [arch]) else "default"
    return config, recorded if whole else preset

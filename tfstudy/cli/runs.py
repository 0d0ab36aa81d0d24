"""The commands for one run: train it, show its config, and list what there is to choose from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tfstudy.cli.command_line import app
from tfstudy.cli.options import (
    RESULTS,
    Accelerator,
    Devices,
    Execution,
    Format,
    LoggerNames,
    MeasureNames,
    Online,
    Preset,
    Quiet,
    Results,
    Set,
    Smoke,
    Split,
    complete_arch,
    complete_task,
    existing_results,
    one_seed,
    option,
    path_option,
    run_options,
    study_name,
)
from tfstudy.cli.output import announce, is_json, listing_format, print_json, print_listing, progress_on_stderr
from tfstudy.errors import UserError, one_of, path_of, quoted

if TYPE_CHECKING:
    from tfstudy.config.schema import RunConfig

WHOLE = {"task", "arch", "data", "model", "train", "decode", "eval"}  # keys of a file that is a complete config
TaskName = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK", help="Task, such as scan; with --config, that of the file.", autocompletion=complete_task
    ),
]
Arch = Annotated[
    str | None, option(help="transformer (default), lstm, cnn, ...", metavar="NAME", autocompletion=complete_arch)
]
ConfigFile = Annotated[Path | None, path_option("YAML file with sections of the config.", "--config")]
Seed = Annotated[int | None, option(parser=one_seed, metavar="N", help="Seed of weights, dropout and order (0).")]


@app.command()
def run(
    task: TaskName = None,
    arch: Arch = None,
    split: Split = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Set = None,
    seed: Seed = None,
    smoke: Smoke = False,
    restart: Annotated[bool, option("--restart", help="Archive the existing run and restart.")] = False,
    devices: Devices = 1,
    accelerator: Accelerator = "auto",
    execution: Execution = "eager",
    logger: LoggerNames = "",
    measure: MeasureNames = "",
    study: Annotated[str, option(help="Study: a folder within the results (runs).", metavar="NAME")] = "runs",
    online: Online = False,
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Train and evaluate one model; repeat the command to resume it."""
    from tfstudy.runs.files import results_folder

    request = requested(task, arch, preset, config, set_, split, seed, smoke)
    options = run_options(devices, accelerator, execution, logger, measure)
    study = study_name(study)
    announce(f"{request.task}, {request.arch}: loading PyTorch ...", quiet)
    resolved = request.resolve(online)
    folder = results_folder(results, resolved.smoke)
    from tfstudy.experiment.api import process_rank
    from tfstudy.experiment.run import run as run_experiment
    from tfstudy.plugins import command
    from tfstudy.report.run_summary import listing

    options = options._replace(preset=request.used_preset, restart=restart)
    with progress_on_stderr(quiet):
        outcome = run_experiment(resolved, folder, study, options, rank=process_rank())
        if outcome:
            print()
    if outcome:
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
    split: Split = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Set = None,
    seed: Seed = None,
    smoke: Smoke = False,
    format_: Annotated[str, option("--format", help="yaml or json.", metavar="NAME")] = "yaml",
) -> None:
    """Show the resolved config, with every key explained."""
    from tfstudy import tasks
    from tfstudy.config.schema import annotated

    as_json = is_json(format_, "yaml")
    resolved = requested(task, arch, preset, config, set_, split, seed, smoke).resolve()
    tasks.build(resolved.task, resolved.data)  # checks the data section
    if as_json:
        print_json(resolved.model_dump(mode="json"))
    else:
        print(annotated(resolved), end="")


@app.command("list")
def list_(
    what: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="tasks, splits, architectures, instruments, presets, grids, runs or corpora."
        ),
    ] = "",
    of: Annotated[
        str, typer.Argument(metavar="OF", help="Task (tasks, splits, presets), study (runs), folder (corpora).")
    ] = "",
    format_: Format = "text",
    results: Results = RESULTS,
) -> None:
    """List tasks, presets, grids, runs and more."""
    from tfstudy.report.lists import LISTS, listing
    from tfstudy.runs.find import find_study

    format_ = listing_format(format_)
    if what:
        one_of("kind of list", what, LISTS)
    place: Any = of
    if what == "runs":
        root = existing_results(results)
        place = find_study(root, of) if of else root
    elif what == "corpora":
        place = path_of(of or ".", "corpora")
    print_listing(listing(what, place), format_)


class Request(NamedTuple):
    """The run that options ask for; the names of the task and the architecture are known to be valid."""

    task: str
    arch: str
    preset: str
    file: dict[str, Any]
    assigned: dict[str, Any]
    split: str | None
    seed: int | None
    smoke: bool
    path: Path | None = None  # of the file

    @property
    def used_preset(self) -> str:
        """The preset for the record: that of the run whose whole config the file is, or else the one asked for."""
        return recorded_preset(self.path, self.task) if self.is_whole else self.preset

    @property
    def is_whole(self) -> bool:
        """Whether the file is a complete config, such as that of a run, to which no preset adds anything."""
        return self.file.keys() >= WHOLE

    def resolve(self, online: bool = True) -> "RunConfig":
        """Return the config: defaults < preset < file < --set < the other options; a complete file has no preset.

        Data of the Hugging Face hub that the file names, which may be somebody else's, are only loaded with `online`.
        """
        from tfstudy.config.resolve import SMOKE, check_local, resolve
        from tfstudy.config.trees import merge
        from tfstudy.experiment.api import compose_config

        given = merge(self.file, self.assigned)
        if not self.is_whole:
            config = compose_config(self.task, self.arch, self.preset, given, self.split, self.seed, self.smoke)
        else:
            named: dict[str, Any] = {"data": {"split": self.split}} if self.split is not None else {}
            named |= {"seed": self.seed} if self.seed is not None else {}
            config = resolve(merge(self.file, SMOKE if self.smoke else {}, self.assigned, named))
        if self.file and not online and "hub" not in self.assigned.get("data", {}):
            check_local(config)
        return config


def requested(
    task: str | None,
    arch: str | None,
    preset: str = "default",
    file: Path | None = None,
    assignments: list[str] | None = None,
    split: str | None = None,
    seed: int | None = None,
    smoke: bool = False,
) -> Request:
    """Return what the options ask for; `UserError` for unknown names and for options that contradict the file.

    The names are checked before anything slow is imported.
    """
    from tfstudy import models, tasks
    from tfstudy.config.resolve import overrides
    from tfstudy.config.trees import read_yaml
    from tfstudy.runs.store import read_config

    if arch is not None:
        one_of("architecture", arch, models.names())
    tree: dict[str, Any] = {}
    if file:  # a config.yaml may be that of a packed run
        tree = read_config(file.parent) if file.name == "config.yaml" else read_yaml(file)
    assigned = overrides(assignments or [])
    if not (task or "task" in tree):
        names = ", ".join(tasks.names())
        raise UserError(f"which task? Name one, such as scan; expected one of: {names}")
    whole = tree.keys() >= WHOLE
    task = _agreed("task", "TASK is", task, tree, file)
    chosen = arch or assigned.get("arch")
    arch = _agreed("arch", "--arch is", chosen, tree, file) if whole else chosen or tree.get("arch", "transformer")
    tasks.find(task)
    one_of("architecture", str(arch), models.names())
    if whole and preset != "default":
        raise UserError(f"--preset {preset} does not apply to {file}, which has all settings; leave out one of the two")
    return Request(task, str(arch), preset, tree, assigned, split, seed, smoke, file)


def _agreed(key: str, option: str, given: str | None, tree: dict[str, Any], file: Path | None) -> str:
    """Return the name that an option and the file agree on, or that only one of them has."""
    named = tree.get(key)
    if given and named is not None and str(named) != given:
        raise UserError(f"{option} {quoted(given)}, but {quoted(file, 300, '')} has {key}: {quoted(named)}")
    return given or str(named)


def recorded_preset(file: Path | None, task: str) -> str:
    """Return the preset of the run whose config this file is, if it is one of the task's; otherwise `default`."""
    from tfstudy.config.presets import presets
    from tfstudy.runs.store import last_start

    record = last_start(file.parent) if file else None
    return record.preset if record and record.preset in presets(task) else "default"

"""The command `tfstudy`. Imports stand in the commands' bodies, so that `--help` answers at once."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tfstudy.config import RunConfig

app = typer.Typer(
    help="Experiments on inductive bias and generalisation in sequence models.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A task, such as scan.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, or the start of its hash.")]
Arch = Annotated[str | None, typer.Option(help="The architecture: transformer (default), lstm, cnn, ...")]
Split = Annotated[str | None, typer.Option(help="What is held out: data.split.")]
Preset = Annotated[str, typer.Option(help="Settings by name: default, or those of a paper.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A YAML file with sections of the config.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One value, e.g. model.dim=128.")]
Seed = Annotated[int | None, typer.Option(help="Decides initialisation, dropout and order.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="Every part in seconds; kept out of the results.")]
Results = Annotated[Path, typer.Option(help="The folder of all results.")]
By = Annotated[str, typer.Option(help="Also slice by this tag, e.g. length.")]
RESULTS = Path("results")


def config_of(
    task: str, arch: str | None, preset: str, file: Path | None, assignments: list[str] | None, flags: dict[str, Any]
) -> "RunConfig":
    """Defaults < preset < file < --set < named flags; `flags` holds `split`, `seed` and `smoke`."""
    import tasks
    from tfstudy import models
    from tfstudy.config import SMOKE, merge, overrides, read_yaml, resolve
    from tfstudy.config import preset as preset_of

    given = merge(read_yaml(file) if file else {}, overrides(assignments or []))
    arch = arch or str(given.get("arch", "transformer"))
    tasks.find(task), models.find(arch)
    named: dict[str, Any] = {"task": task, "arch": arch}
    if flags["split"] is not None:
        named["data"] = {"split": flags["split"]}
    if flags["seed"] is not None:
        named["seed"] = flags["seed"]
    return resolve(merge(preset_of(task, arch, preset), SMOKE if flags["smoke"] else {}, given, named))


@app.command()
def run(
    task: TaskName,
    arch: Arch = None,
    split: Split = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Set = None,
    seed: Seed = None,
    smoke: Smoke = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Set what is there aside and begin anew.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Only go on with a run that was begun.")] = False,
    devices: Annotated[int, typer.Option(min=1, help="Processors to train on (DDP if more than one).")] = 1,
    accelerator: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    study: Annotated[str, typer.Option(help="The folder within the results.")] = "runs",
    results: Results = RESULTS,
) -> None:
    """Train and evaluate one model. Goes on where it was stopped; does nothing if it is done."""
    from tfstudy import experiment
    from tfstudy.report.summary import show

    resolved = config_of(task, arch, preset, config, set_, {"split": split, "seed": seed, "smoke": smoke})
    root = results
    if resolved.smoke:
        root = (results if results.name else results.resolve()).with_name(f"{results.resolve().name}-smoke")
    options = experiment.Options(preset, fresh, resume, devices, accelerator)
    try:
        outcome = experiment.run(resolved, root, study, options)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        raise typer.Exit(130) from None
    except OSError as error:
        print(f"error: {reason(error)}; the same command goes on from the last checkpoint", file=sys.stderr)
        raise typer.Exit(1) from None
    if outcome:
        show(outcome.result)
        print(outcome.path)
        raise typer.Exit(outcome.result["status"] != "finished")


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="tasks, splits, architectures, presets or runs.")] = "tasks",
    task: Annotated[str, typer.Argument(metavar="[TASK]", help="For splits and presets: of which task.")] = "scan",
    results: Results = RESULTS,
) -> None:
    """List what there is."""
    from tasks import base

    base.one_of("what to list", what, LISTS)
    for line in LISTS[what](task, results):
        print(line)


def _tasks(_: str, __: Path) -> list[str]:
    import inspect
    import textwrap

    import tasks

    lines = []
    for name in tasks.names():
        text = (inspect.getdoc(sys.modules[tasks.find(name).__module__]) or "").split("\n\n")
        example = textwrap.dedent("".join(text[1:2])).splitlines()
        lines += [f"{name:14}{text[0]}", *(f"{'':14}{line}" for line in example)]
        lines.append(f"{'':14}splits: {', '.join(tasks.find(name).experiments())}")
    return lines


def _splits(task: str, _: Path) -> list[str]:
    import tasks

    return [f"{name:42}{text}" for name, text in tasks.find(task).experiments().items()]


def _architectures(_: str, __: Path) -> list[str]:
    from tfstudy import models

    return [f"{name:14}{(models.find(name).__doc__ or '').splitlines()[0]}" for name in models.names()]


def _presets(task: str, _: Path) -> list[str]:
    import tasks
    from tfstudy.config import presets

    tasks.find(task)
    return [
        f"{name:16}{arch:14}{tree.get('about', '')}"
        for name, archs in presets(task).items()
        for arch, tree in archs.items()
    ]


def _runs(_: str, results: Path) -> list[str]:
    from tfstudy.record import describe_run, find_runs

    return [describe_run(path) for path in find_runs(results)]


LISTS = {"tasks": _tasks, "splits": _splits, "architectures": _architectures, "presets": _presets, "runs": _runs}


@app.command()
def show(
    task: TaskName,
    arch: Arch = None,
    split: Split = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Set = None,
    seed: Seed = None,
    smoke: Smoke = False,
) -> None:
    """Print the resolved config, every key with its type, default and meaning."""
    import tasks
    from tfstudy.config import annotated

    resolved = config_of(task, arch, preset, config, set_, {"split": split, "seed": seed, "smoke": smoke})
    tasks.find(task)(resolved.data)  # refuses what no config could
    print(annotated(resolved), end="")


@app.command()
def result(run: Run, by: By = "", results: Results = RESULTS) -> None:
    """Print a finished run's numbers from its record, sliced by a tag if wanted."""
    from tfstudy.record import find_run, read_result
    from tfstudy.report.summary import show

    show(read_result(find_run(results, run)), by)


@app.command()
def predict(
    run: Run,
    source: Annotated[str, typer.Argument(help="A source, tokens set apart by blanks.")],
    results: Results = RESULTS,
) -> None:
    """Decode one source with a finished run."""
    from tfstudy import experiment
    from tfstudy.record import find_run

    print(experiment.predict(find_run(results, run), source))


@app.command()
def evaluate(
    run: Run,
    split: Annotated[list[str] | None, typer.Option(help="Only this split; may be given again.")] = None,
    extend: Annotated[
        bool, typer.Option("--extend", help="Fresh, ever longer examples until none is right, or --most.")
    ] = False,
    most: Annotated[int, typer.Option(min=1, max=10000, help="With --extend: the longest length to try.")] = 500,
    results: Results = RESULTS,
) -> None:
    """Decode and score a finished run's splits again; a test split's reading is counted."""
    from tfstudy import experiment
    from tfstudy.record import find_run
    from tfstudy.report.summary import reach, show

    if extend and split:
        raise typer.BadParameter("--extend draws fresh examples, so no --split goes with it")
    if extend:
        for line in reach(experiment.extend(find_run(results, run), most)):
            print(line)
        return
    show(experiment.evaluate_again(find_run(results, run), split or []))


@app.command()
def table(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study, a folder within the results.")] = "runs",
    results: Results = RESULTS,
) -> None:
    """Print a study's finished runs as a Markdown table, beside published figures."""
    from tfstudy.report.table import markdown

    print(markdown(results / study), end="")


@app.command()
def plot(
    out: Annotated[Path, typer.Option(help="The picture's file: .png, .svg or .pdf.")],
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study, a folder within the results.")] = "runs",
    by: Annotated[str, typer.Option(help="split: a point a seed, beside published figures; length: curves.")] = "split",
    results: Results = RESULTS,
) -> None:
    """Draw a study's exact match by split and architecture, or by length."""
    from tasks import base
    from tfstudy.report import plots

    draw = {"split": plots.by_split, "length": plots.by_length}[base.one_of("--by", by, ("split", "length"))]
    draw(results / study, out)
    print(out)


@app.command()
def export(
    task: TaskName,
    out: Annotated[Path, typer.Option(help="A folder that is not there yet.")],
    split: Split = None,
    set_: Set = None,
    form: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Write a task's splits as files that `datasets.load_dataset` reads."""
    from tasks.base import write_datasets
    from tfstudy.config import overrides, resolve_data

    chosen = overrides([*(set_ or []), *([f"data.split={split}"] if split else [])])
    for path in write_datasets(resolve_data(task, chosen), out, form):
        print(path)


def reason(error: OSError) -> str:
    """What went wrong, and with which file."""
    return (error.strerror or str(error)) + (f": {error.filename}" if error.filename else "")


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line. Exit code 2 for a user's mistake, 1 for a run that failed, 130 when interrupted."""
    from tasks.base import UserError

    try:
        app(arguments)
    except UserError as error:
        code, text = 2, f"error: {error}"
    except OSError as error:
        code, text = 1, f"error: {reason(error)}"
    print(text, file=sys.stderr)
    sys.exit(code)

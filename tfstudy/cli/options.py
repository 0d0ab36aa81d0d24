"""What the commands share: the app, and the options that several commands have."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType

from tfstudy import RESULTS as RESULTS
from tfstudy.cli import completion
from tfstudy.cli.command_group import INSPECT as INSPECT
from tfstudy.cli.command_group import RUN as RUN
from tfstudy.cli.command_group import SHARE as SHARE
from tfstudy.cli.command_group import STUDY as STUDY
from tfstudy.cli.command_group import Command, Commands
from tfstudy.cli.option_groups import with_groups
from tfstudy.cli.version import show_version

SEVERAL_SEEDS = re.compile(r"\d+([-,]\d+)+", re.ASCII)
MAX_FILE_NAME = 240  # bytes: file systems allow 255, and a file that is being written has a longer name
MAX_NAME = 200  # bytes of the name of a study: file systems allow 255


def some_path(text: str | Path) -> Path:
    """Return a path; `UserError` for an empty one, which would be the current folder, and for too long a name."""
    from tfstudy.errors import UserError, quoted

    if not str(text):
        raise UserError("the path of an option must not be empty")
    path = Path(text)
    for name in path.parts:
        if len(os.fsencode(name)) > MAX_FILE_NAME:
            raise UserError(f"the name of a file or folder must have at most {MAX_FILE_NAME} bytes, not {quoted(name)}")
    return path


def results_path(text: str | Path) -> Path:
    """Return a folder of results, which may not exist yet."""
    from tfstudy.errors import UserError, quoted

    path = some_path(text)
    if path.exists() and not path.is_dir():
        raise UserError(f"--results must be a folder, but {quoted(path)} is a file")
    return path


def existing_results(text: str | Path) -> Path:
    """Return a folder of results that exists."""
    from tfstudy.runs.find import check_results_folder

    path = results_path(text)
    check_results_folder(path)
    return path


def one_seed(text: str | int) -> int:
    """Return the seed of one run; `UserError` for anything but a whole number from 0."""
    from tfstudy.errors import UserError, quoted

    if str(text).isascii() and str(text).isdigit():
        return int(text)
    hint = f"; for several seeds: tfstudy grid --seed {text}" if SEVERAL_SEEDS.fullmatch(str(text)) else ""
    raise UserError(f"--seed must be one whole number from 0, but is {quoted(text)}{hint}")


def execution_name(text: str) -> str:
    """Return how steps are computed; `UserError` for an unknown name."""
    from tfstudy.errors import one_of
    from tfstudy.experiment.options import EXECUTIONS

    return one_of("execution", text, EXECUTIONS)


class App(typer.Typer):
    """The app, whose commands may have groups of options, and are of the class `Command` unless they have their own."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = Command, **more: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        add = super().command(name, cls=cls, **more)

        def added(function: CommandFunctionType) -> CommandFunctionType:
            return add(with_groups(function))

        return added


app = App(
    cls=Commands,
    help="Experiments on inductive bias and generalisation in sequence models.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Python file with a task, architecture or instrument; repeatable."),
    ] = None,
) -> None:
    """Take the options that come before a command."""
    if plugin:
        from tfstudy import plugins

        plugins.add(*plugin)


# What to run
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="Task, such as scan.", autocompletion=completion.task)]
OptionalTask = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK", help="Task, such as scan; with --config, that of the file.", autocompletion=completion.task
    ),
]
Arch = Annotated[
    str | None,
    typer.Option(help="Architecture: transformer (default), lstm, cnn, ...", autocompletion=completion.architecture),
]
Split = Annotated[
    str | None, typer.Option(help="Split scheme of the task (data.split).", autocompletion=completion.split)
]
Preset = Annotated[
    str, typer.Option(help="Preset: default, that of a paper, or FILE:NAME.", autocompletion=completion.preset)
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", parser=some_path, metavar="PATH", help="YAML file with sections of the config."),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting: model.dim=128; repeatable.")
]
Seed = Annotated[
    int | None, typer.Option(parser=one_seed, metavar="INTEGER", help="Seed of weights, dropout and order of examples.")
]
Smoke = Annotated[bool, typer.Option("--smoke", help="Quick end-to-end check, kept out of the results.")]

# How to run it
Devices = Annotated[int, typer.Option(min=1, help="Devices for each run (more than 1: DDP).")]
Accelerator = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Execution = Annotated[
    str,
    typer.Option(parser=execution_name, metavar="NAME", help="Training steps: eager or graphed (CUDA graphs)."),
]
PerDevice = Annotated[str, typer.Option(help="Runs in parallel on each device, or auto.")]
Timeout = Annotated[float, typer.Option(min=0, help="Seconds after which a run is killed (0: never).")]
FailFast = Annotated[bool, typer.Option("--fail-fast/--keep-going", help="Stop when a run fails twice.")]
LoggerNames = Annotated[
    str, typer.Option("--logger", metavar="NAME,...", help="Also log to tensorboard, wandb or mlflow.")
]
MeasureNames = Annotated[
    str, typer.Option("--measure", metavar="NAME,...", help="Measure in training, such as layer_gradients.")
]

# Results
Results = Annotated[Path, typer.Option(parser=results_path, metavar="PATH", help="Folder of all results.")]
ExistingResults = Annotated[Path, typer.Option(parser=existing_results, metavar="PATH", help="Folder of all results.")]
StudyName = Annotated[
    str,
    typer.Argument(metavar="STUDY", help="Study: a folder within the results.", autocompletion=completion.study),
]
OneStudy = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="Study: a folder within the results; the folder of results itself for all.",
        autocompletion=completion.study,
    ),
]
ONE_RUN = "Run: a folder, hash prefix or STUDY/ARCH/SEED."
Run = Annotated[str, typer.Argument(metavar="RUN", help=ONE_RUN)]
Online = Annotated[bool, typer.Option("--online", help="Load data of the Hugging Face hub, if the config names them.")]
Metric = Annotated[str, typer.Option(help="Metric, such as token_accuracy (default: exact_match or BLEU).")]
Baseline = Annotated[str, typer.Option(help="Architecture or condition to compare the others with.")]


def study_name(study: str) -> str:
    """Return the name of a study; `UserError` unless it is the name of one folder."""
    from tfstudy.errors import UserError, printable, quoted
    from tfstudy.runs.find import NO_STUDIES, TUNING

    if (
        not study
        or study.startswith((".", "-"))
        or "/" in study
        or "\\" in study
        or "\n" in study
        or (printable(study) != study or len(study.encode()) > MAX_NAME)
    ):
        raise UserError(
            f"--study must be the name of a folder within the results, such as scan, but is {quoted(study)}"
        )
    if study in NO_STUDIES:
        command = "tune" if study == TUNING else "bench"
        raise UserError(f"--study can't be '{study}', which is reserved for `tfstudy {command}`; choose another name")
    return study

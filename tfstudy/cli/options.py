"""The options that several commands have: their types, and what checks them."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfstudy import RESULTS as RESULTS
from tfstudy.errors import UserError, one_of, printable, quoted
from tfstudy.plugins import command

if TYPE_CHECKING:
    from tfstudy.experiment.api import RunOptions

SEVERAL_SEEDS = re.compile(r"\d+([-,]\d+)+", re.ASCII)
MAX_FILE_NAME = 240  # bytes: file systems allow 255, and a file that is being written has a longer name
MAX_NAME = 200  # bytes of the name of a study

# Values


def some_path(text: str | Path) -> Path:
    """Return a path; `UserError` for an empty one, which would be the current folder, and for too long a name."""
    if not str(text):
        raise UserError("the path of an option must not be empty")
    path = Path(text)
    for name in path.parts:
        if len(os.fsencode(name)) > MAX_FILE_NAME:
            raise UserError(f"the name of a file or folder must have at most {MAX_FILE_NAME} bytes, not {quoted(name)}")
    return path


def results_path(text: str | Path) -> Path:
    """Return a folder of results, which may not exist yet."""
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
    if str(text).isascii() and str(text).isdigit():
        return int(text)
    hint = f"; for several seeds: {command('grid', '--seed', str(text))}" if SEVERAL_SEEDS.fullmatch(str(text)) else ""
    raise UserError(f"--seed must be one whole number from 0, but is {quoted(text)}{hint}")


def study_name(study: str) -> str:
    """Return the name of a study; `UserError` unless it is the name of one folder."""
    from tfstudy.runs.find import NO_STUDIES, TUNING

    is_folder = bool(study) and not study.startswith((".", "-")) and not set(study) & set("/\\\n")
    if not is_folder or printable(study) != study or len(study.encode()) > MAX_NAME:
        raise UserError(f"--study must be the name of a folder within the results, such as scan, not {quoted(study)}")
    if study in NO_STUDIES:
        owner = "tune" if study == TUNING else "bench"
        raise UserError(f"--study can't be '{study}', which is reserved for `tfstudy {owner}`; choose another name")
    return study


# What to run


def option(*names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option whose help says what matters of its default."""
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, **more)


def argument(metavar: str, help: str) -> Any:
    """Return an argument."""
    return typer.Argument(metavar=metavar, help=help)


def path_option(help: str, *names: str, parser: Callable[[str], Path] = some_path, metavar: str = "PATH") -> Any:
    """Return an option that is a path."""
    return option(*names, help=help, metavar=metavar, parser=parser)


TaskName = Annotated[str, argument("TASK", "Task, such as scan.")]
Split = Annotated[str | None, option(help="Split scheme (data.split).", metavar="NAME")]
Preset = Annotated[str, option(help="default, that of a paper, or FILE:NAME.", metavar="NAME")]
Set = Annotated[list[str] | None, option("--set", help="A setting: model.dim=128; repeatable.", metavar="KEY=VALUE")]
Smoke = Annotated[bool, option("--smoke", help="Quick check, kept out of the results.")]

# How to run it

Accelerator = Annotated[str, option(help="auto, cpu or cuda.", metavar="NAME")]
Execution = Annotated[str, option(metavar="NAME", help="Steps: eager, or graphed (CUDA graphs).")]
PerDevice = Annotated[str, option(help="Runs at once on each device (auto).", metavar="N")]
LoggerNames = Annotated[str, option("--logger", metavar="NAME,...", help="tensorboard, wandb.")]
MeasureNames = Annotated[str, option("--measure", metavar="NAME,...", help="Instruments in training: layer_gradients.")]


def run_options(accelerator: str, execution: str, logger: str = "", measure: str = "") -> "RunOptions":
    """Return how each run is executed; `UserError` for an unknown name."""
    from tfstudy.experiment.api import EXECUTIONS, RunOptions, check_loggers
    from tfstudy.instruments import parse_in_training

    one_of("execution", execution, EXECUTIONS)
    loggers = tuple(dict.fromkeys(name.strip() for name in logger.split(",") if name.strip()))
    check_loggers(loggers)
    measured = parse_in_training(measure)
    return RunOptions(accelerator=accelerator, loggers=loggers, measure=measured, execution=execution)


# Results

Results = Annotated[Path, path_option("Folder of all results (results).", parser=results_path)]
ExistingResults = Annotated[Path, path_option("Folder of all results (results).", parser=existing_results)]
StudyName = Annotated[str, argument("STUDY", "Study: a folder within the results.")]
OneStudy = Annotated[
    str, argument("STUDY", "Study: a folder within the results; the folder of results itself for all.")
]
ONE_RUN = "Run: a folder, hash prefix or STUDY/ARCH/SEED."
Run = Annotated[str, argument("RUN", ONE_RUN)]
Online = Annotated[bool, option("--online", help="Load data that a config names on the hub.")]
Metric = Annotated[str, option(help="Metric (default: exact_match or BLEU).", metavar="NAME")]
Baseline = Annotated[str, option(help="Architecture or condition to compare with.", metavar="NAME")]

# Output

Format = Annotated[str, option("--format", help="text, md, csv, tex, html or json.", metavar="NAME")]
DocumentFormat = Annotated[
    str, option("--format", help="text (terminals), md (else), csv, tex, html or json.", metavar="NAME")
]
Quiet = Annotated[bool, option("--quiet", "-q", help="No progress: only the result, and errors.")]

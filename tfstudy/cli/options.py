"""The options that several commands have: their types, and what checks them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfstudy import RESULTS as RESULTS
from tfstudy.errors import UserError, one_of, quoted

if TYPE_CHECKING:
    from tfstudy.experiment.api import RunOptions

STUDY_NAME = re.compile(r"\w[\w.,+=@ -]{0,99}")

# Values


def results_path(text: str | Path) -> Path:
    """Return a folder of results, which may not exist yet."""
    path = Path(text)
    if not str(text) or (path.exists() and not path.is_dir()):
        raise UserError(f"--results must be a folder, but is {quoted(text)}")
    return path


def study_name(study: str) -> str:
    """Return the name of a study; `UserError` unless it is the name of one folder that nothing else uses."""
    from tfstudy.runs.find import NO_STUDIES

    if study in NO_STUDIES or not STUDY_NAME.fullmatch(study):
        reserved = ", ".join(NO_STUDIES)
        raise UserError(
            f"--study must be the name of a folder within the results, such as scan, and none of {reserved}, which "
            f"`tfstudy tune` and `tfstudy bench` use, but is {quoted(study)}"
        )
    return study


# What to run


def option(*names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option whose help says what matters of its default."""
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, **more)


def argument(metavar: str, help: str) -> Any:
    """Return an argument."""
    return typer.Argument(metavar=metavar, help=help)


def path_option(help: str, *names: str, parser: Callable[[str], Path] | None = None) -> Any:
    """Return an option that is a path."""
    return option(*names, help=help, metavar="PATH", parser=parser)


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


def run_options(accelerator: str, execution: str, logger: str = "") -> "RunOptions":
    """Return how each run is executed; `UserError` for an unknown name."""
    from tfstudy.experiment.api import EXECUTIONS, RunOptions, check_loggers

    one_of("execution", execution, EXECUTIONS)
    loggers = tuple(dict.fromkeys(name.strip() for name in logger.split(",") if name.strip()))
    check_loggers(loggers)
    return RunOptions(accelerator=accelerator, loggers=loggers, execution=execution)


# Results

Results = Annotated[Path, path_option("Folder of all results (results).", parser=results_path)]
StudyName = Annotated[str, argument("STUDY", "Study: a folder within the results.")]
OneStudy = Annotated[
    str, argument("STUDY", "Study: a folder within the results; the folder of results itself for all.")
]
ONE_RUN = "Run: a folder, hash prefix or STUDY/ARCH/SEED."
Run = Annotated[str, argument("RUN", ONE_RUN)]
Online = Annotated[bool, option("--online", help="Load data that a config names on the hub.")]
Metric = Annotated[str, option(help="Metric (default: BLEU, or the first of the task).", metavar="NAME")]
Baseline = Annotated[str, option(help="Architecture or condition to compare with.", metavar="NAME")]

# Output

Format = Annotated[str, option("--format", help="text, md, csv, tex, html or json.", metavar="NAME")]
DocumentFormat = Annotated[
    str, option("--format", help="text (terminals), md (else), csv, tex, html or json.", metavar="NAME")
]
Quiet = Annotated[bool, option("--quiet", "-q", help="No progress: only the result, and errors.")]

"""What the commands share: the app, their options, and how a user's words become a config."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tfstudy.config.schema import RunConfig

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
Preset = Annotated[str, typer.Option(help="Settings by name: default, a paper's, or FILE:NAME.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A YAML file with sections of the config.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One value, e.g. model.dim=128.")]
Seed = Annotated[int | None, typer.Option(help="Decides initialisation, dropout and order.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="Every part in seconds; kept out of the results.")]
LoggerNames = Annotated[
    str, typer.Option("--logger", metavar="NAME,...", help="Beside metrics.csv: tensorboard, wandb, mlflow.")
]
Results = Annotated[Path, typer.Option(help="The folder of all results.")]
StudyName = Annotated[str, typer.Argument(metavar="[STUDY]", help="A study, a folder within the results.")]
RESULTS = Path("results")


def config_of(
    task: str, arch: str | None, preset: str, file: Path | None, assignments: list[str] | None, flags: dict[str, Any]
) -> "RunConfig":
    """Defaults < preset < file < --set < named flags; `flags` holds `split`, `seed` and `smoke`."""
    import tasks
    from tfstudy import models
    from tfstudy.config.files import read_yaml
    from tfstudy.config.presets import preset as preset_of
    from tfstudy.config.resolve import SMOKE, merge, overrides, resolve

    given = merge(read_yaml(file) if file else {}, overrides(assignments or []))
    arch = arch or str(given.get("arch", "transformer"))
    tasks.find(task), models.find(arch)
    named: dict[str, Any] = {"task": task, "arch": arch}
    if flags["split"] is not None:
        named["data"] = {"split": flags["split"]}
    if flags["seed"] is not None:
        named["seed"] = flags["seed"]
    return resolve(merge(preset_of(task, arch, preset), SMOKE if flags["smoke"] else {}, given, named))


def plain(study: str) -> str:
    """A study's name, which is one folder within the results; `UserError` if it is not."""
    from tasks.errors import UserError

    if not study or study.startswith(".") or "/" in study or "\\" in study:
        raise UserError(f"--study must be one folder's name within the results, such as scan, but is '{study}'")
    return study


def root_of(results: Path, smoke: bool) -> Path:
    """The folder of all results; smoke runs have one of their own beside it."""
    return beside(results, "smoke") if smoke else results


def folder(results: Path, study: str) -> Path:
    """A study's folder, or that of all without a name; `UserError` if there is none of that name."""
    from tfstudy.runs.progress import find_study

    return find_study(results, study) if study else results


def beside(results: Path, kind: str) -> Path:
    """The folder of runs of this kind: `results-smoke` beside `results`."""
    return (results if results.name else results.resolve()).with_name(f"{results.resolve().name}-{kind}")


def reason(error: OSError) -> str:
    """What went wrong, and with which file."""
    return (error.strerror or str(error)) + (f": {error.filename}" if error.filename else "")

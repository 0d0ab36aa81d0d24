"""The command that searches hyperparameters."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.command_line import app
from tfstudy.cli.options import (
    RESULTS,
    Accelerator,
    Execution,
    PerDevice,
    Preset,
    Quiet,
    Results,
    Split,
    TaskName,
    complete_arch,
    option,
    path_option,
    study_name,
)
from tfstudy.cli.output import announce

Settings = Annotated[
    list[str] | None, option("--set", metavar="KEY=VALUE", help="Setting of all trials, or of an ARCH.KEY.")
]
Searches = Annotated[
    list[str] | None, option("--search", metavar="KEY=RANGE", help="Key to search: LOW..HIGH, LOW..HIGH:log or A,B.")
]


@app.command()
def tune(
    task: TaskName,
    arch: Annotated[
        str, option(metavar="NAME,...", help="Architectures (transformer,lstm,cnn).", autocompletion=complete_arch)
    ] = "transformer,lstm,cnn",
    split: Split = None,
    preset: Preset = "default",
    set_: Settings = None,
    search: Searches = None,
    trials: Annotated[int, option(metavar="N", help="Trials of each architecture (20).")] = 20,
    budget: Annotated[int | None, option(metavar="STEPS", help="Steps of a trial (those of the preset).")] = None,
    match_params: Annotated[int, option(min=0, metavar="N", help="Parameters of each model, ±5 % (0: any).")] = 0,
    seed: Annotated[int, option(min=0, metavar="N", help="Seed of the search and of every run (0).")] = 0,
    out: Annotated[Path | None, path_option("Preset file (preset.yaml in the study).")] = None,
    per_device: PerDevice = "auto",
    accelerator: Accelerator = "auto",
    execution: Execution = "eager",
    study: Annotated[str, option(metavar="NAME", help="Folder of the trials (TASK-SPLIT).")] = "",
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Search hyperparameters with equal budgets.

    Trials are judged on the validation split; no test set is evaluated. Without --search the learning
    rate, dropout and width (one factor for all widths) are searched. The same command resumes an interrupted search.
    """
    from tfstudy.experiment.api import RunOptions
    from tfstudy.launchers import ExecutorSettings
    from tfstudy.runs.find import TUNING

    archs = list(dict.fromkeys(name.strip() for name in arch.split(",")))
    study = study_name(study) if study else ""
    options = RunOptions(preset, accelerator=accelerator, tuning=True, execution=execution)
    announce(f"{task}: preparing the search ...", quiet)
    from tfstudy.cli.trials import tune_architectures
    from tfstudy.tuning.search import SearchRequest

    request = SearchRequest(task, archs, split, preset, set_ or [], search or [], trials, budget, match_params, seed)
    settings = ExecutorSettings(per_device, options=options)
    raise typer.Exit(tune_architectures(request, results / TUNING, study, settings, out, quiet))

"""The commands about one run."""

import sys
from typing import Annotated

import typer

from tfstudy.cli.options import (
    RESULTS,
    Arch,
    ConfigFile,
    LoggerNames,
    Preset,
    Results,
    Run,
    Seed,
    Set,
    Smoke,
    Split,
    TaskName,
    app,
    config_of,
    plain,
    reason,
    root_of,
)

By = Annotated[str, typer.Option(help="Also slice by this tag, e.g. length.")]


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
    restart: Annotated[bool, typer.Option("--restart", help="Archive the existing run and restart.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an unfinished run; fail if there is none.")
    ] = False,
    devices: Annotated[int, typer.Option(min=1, help="Processors to train on (DDP if more than one).")] = 1,
    accelerator: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    logger: LoggerNames = "",
    study: Annotated[str, typer.Option(help="The folder within the results.")] = "runs",
    results: Results = RESULTS,
) -> None:
    """Train and evaluate one model. Goes on where it was stopped; does nothing if it is done."""
    from tfstudy.experiment.options import RunOptions, process_rank
    from tfstudy.experiment.run import run as run_experiment
    from tfstudy.report.run_summary import show
    from tfstudy.training.logger_names import parse_loggers

    resolved = config_of(task, arch, preset, config, set_, {"split": split, "seed": seed, "smoke": smoke})
    root, study = root_of(results, resolved.smoke), plain(study)
    options = RunOptions(preset, restart, resume, devices, accelerator, loggers=parse_loggers(logger))
    try:
        outcome = run_experiment(resolved, root, study, options, rank=process_rank())
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        raise typer.Exit(130) from None
    except OSError as error:
        print(f"error: {reason(error)}; the same command goes on from the last checkpoint", file=sys.stderr)
        raise typer.Exit(1) from None
    if outcome:
        show(outcome.result)
        print(outcome.path)
        raise typer.Exit(int(outcome.result.status != "finished"))


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
    from tfstudy.config.display import annotated

    resolved = config_of(task, arch, preset, config, set_, {"split": split, "seed": seed, "smoke": smoke})
    tasks.find(task)(resolved.data)  # refuses what no config could
    print(annotated(resolved), end="")


@app.command()
def result(
    run: Run,
    by: By = "",
    results: Results = RESULTS,
) -> None:
    """Print a finished run's numbers from its record, sliced by a tag if wanted."""
    from tfstudy.report.run_summary import show
    from tfstudy.runs.find import find_run
    from tfstudy.runs.reader import read_result

    show(read_result(find_run(results, run)), by)


@app.command()
def predict(
    run: Run,
    source: Annotated[str, typer.Argument(help="A source, tokens set apart by blanks.")],
    results: Results = RESULTS,
) -> None:
    """Decode one source with a finished run."""
    from tfstudy.experiment.finished import load

    print(load(run, results).predict(source))


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
    from tfstudy.experiment.finished import load
    from tfstudy.report.run_summary import length_lines, show

    if extend and split:
        raise typer.BadParameter("--extend draws fresh examples, so no --split goes with it")
    if extend:
        for line in length_lines(load(run, results).evaluate_longer(most)):
            print(line)
        return
    show(load(run, results).evaluate(split or []))

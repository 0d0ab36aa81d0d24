"""The commands for one run: train it, and use it when it is finished."""

from typing import Annotated

import typer

from tfstudy.cli.options import (
    RESULTS,
    Accelerator,
    Arch,
    ConfigFile,
    Devices,
    LoggerNames,
    Online,
    Preset,
    Results,
    Run,
    Seed,
    Set,
    Smoke,
    Split,
    TaskName,
    announce,
    app,
    config_of,
    results_of,
    study_name,
)


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
    resume: Annotated[bool, typer.Option("--resume", help="Only resume; fail if there is no unfinished run.")] = False,
    devices: Devices = 1,
    accelerator: Accelerator = "auto",
    logger: LoggerNames = "",
    study: Annotated[str, typer.Option(help="Study: a folder within the results.")] = "runs",
    results: Results = RESULTS,
) -> None:
    """Train and evaluate one model.

    The same command resumes an interrupted run; a finished run is not rerun.
    """
    from tfstudy.experiment.options import RunOptions, process_rank
    from tfstudy.training.logger_choice import parse_loggers

    resolved = config_of(task, arch, preset, config, set_, split, seed, smoke)
    folder, study = results_of(results, resolved.smoke), study_name(study)
    options = RunOptions(preset, restart, resume, devices, accelerator, parse_loggers(logger))
    announce(f"{resolved.task} {resolved.data.split}, {resolved.arch}: loading PyTorch Lightning ...")
    from tfstudy.experiment.run import run as run_experiment
    from tfstudy.report.run_summary import show

    if outcome := run_experiment(resolved, folder, study, options, rank=process_rank()):
        show(outcome.result)
        print(outcome.path)
        raise typer.Exit(int(outcome.result.status != "finished"))


@app.command("config")
def config_(
    task: TaskName,
    arch: Arch = None,
    split: Split = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Set = None,
    seed: Seed = None,
    smoke: Smoke = False,
) -> None:
    """Show the resolved config, with every key explained."""
    from tfstudy import tasks
    from tfstudy.config.display import annotated

    resolved = config_of(task, arch, preset, config, set_, split, seed, smoke)
    tasks.find(task)(resolved.data)  # checks the data section
    print(annotated(resolved), end="")


@app.command()
def result(
    run: Run,
    by: Annotated[str, typer.Option(metavar="TAG", help="Also show each value of a tag, such as length.")] = "",
    results: Results = RESULTS,
) -> None:
    """Show the results of a finished run.

    These are the metrics of each test set and the published results.
    """
    from tfstudy.report.run_summary import show
    from tfstudy.runs.find import find_run
    from tfstudy.runs.reader import read_result

    show(read_result(find_run(results, run)), by)


@app.command()
def predict(
    run: Run,
    source: Annotated[str, typer.Argument(help="Source sequence, tokens separated by spaces.")],
    online: Online = False,
    results: Results = RESULTS,
) -> None:
    """Print the output of a finished run for one source."""
    from tfstudy.runs.find import find_run

    path = find_run(results, run)
    announce(f"{path}: loading PyTorch ...")
    from tfstudy.experiment.finished import load

    print(load(path, online=online).predict(source))


@app.command()
def evaluate(
    run: Run,
    test_set: Annotated[list[str] | None, typer.Option(help="Test set to evaluate; repeatable (default: all).")] = None,
    extend: Annotated[bool, typer.Option("--extend", help="Evaluate on new examples of increasing length.")] = False,
    max_length: Annotated[int, typer.Option(min=1, max=10000, help="With --extend: maximum length.")] = 500,
    online: Online = False,
    results: Results = RESULTS,
) -> None:
    """Decode and score a finished run again.

    Each evaluation of a test set is counted.
    """
    from tfstudy.runs.find import find_run
    from tfstudy.tasks.errors import UserError

    if extend and test_set:
        raise UserError("--extend generates new examples, so it can't be combined with --test-set")
    path = find_run(results, run)
    announce(f"{path}: loading PyTorch ...")
    from tfstudy.experiment.finished import load
    from tfstudy.report.run_summary import length_lines, show

    finished = load(path, online=online)
    if extend:
        print("\n".join(length_lines(finished.evaluate_longer(max_length))))
    else:
        show(finished.evaluate(test_set or []))

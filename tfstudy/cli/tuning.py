"""The command that searches for settings."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfstudy.cli.options import RESULTS, Preset, Results, Split, TaskName, app, beside

if TYPE_CHECKING:
    from tfstudy.grids.expand import Cell
    from tfstudy.launchers import ExecutorSettings
    from tfstudy.launchers.supervisor import Event
    from tfstudy.tuning.search import Score, Search

Values = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="[ARCH.]KEY=VALUE", help="One value that trials share, such as train.batch_size=32."),
]
Searches = Annotated[
    list[str] | None,
    typer.Option(
        "--search",
        metavar="[ARCH.]KEY=LOW..HIGH[:log]",
        help="A key to search, or KEY=[A,B,...]; else learning rate, dropout and width (a factor of all widths).",
    ),
]


@app.command()
def tune(
    task: TaskName,
    arch: Annotated[str, typer.Option(help="Architectures, set apart by commas.")] = "transformer,lstm,cnn",
    split: Split = None,
    preset: Preset = "default",
    set_: Values = None,
    search: Searches = None,
    trials: Annotated[int, typer.Option(help="Of each architecture.")] = 20,
    budget: Annotated[int | None, typer.Option(metavar="STEPS", help="Of each trial; else the preset's.")] = None,
    match_params: Annotated[
        int, typer.Option(min=0, help="Parameters of every model, within 5 %, instead of a search for widths.")
    ] = 0,
    method: Annotated[str, typer.Option(help="random, or optuna.")] = "random",
    seed: Annotated[int, typer.Option(min=0, help="Of the search, and of every run.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The preset's file; else printed, and kept by the trials.")] = None,
    per_device: Annotated[str, typer.Option(help="Runs at once on a device, or auto.")] = "auto",
    accelerator: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    study: Annotated[str, typer.Option(help="The folder of the trials; else TASK-SPLIT.")] = "",
    results: Results = RESULTS,
) -> None:
    """Search settings of every architecture with the same budget. Scores no test split; goes on where it was."""
    from tfstudy.launchers import ExecutorSettings
    from tfstudy.tuning import search as tuning

    archs = list(dict.fromkeys(part.strip() for part in arch.split(",") if part.strip()))
    search_ = search or []
    wanted = tuning.search_of(
        tuning.Words(task, archs, split, preset, set_ or [], search_, trials, budget, match_params, method, seed)
    )
    root = beside(results, "tuning")
    study = study or f"{task}-{wanted.split.replace('/', '_')}"
    settings = ExecutorSettings(per_device, 1, accelerator)
    try:
        scores = tuning.make(wanted, root, study, lambda planned: work(planned, root, study, settings))
    except tuning.UnequalError:
        print("some trials could not be made, so there is no best; the same command tries them again", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        raise typer.Exit(130) from None
    raise typer.Exit(tell(wanted, scores, out or root / study / "preset.yaml", not out))


def work(planned: "Sequence[tuple[Cell, Path]]", root: Path, study: str, settings: "ExecutorSettings") -> bool:
    """Makes the trials that are not done on this machine; whether all are done."""
    from tfstudy.launchers import executor, job_list
    from tfstudy.launchers.job import Job
    from tfstudy.launchers.supervisor import supervise

    local, threads = executor("local", settings)
    common = Job("", {}, "", "", accelerator=settings.accelerator, threads=threads, tuning=True)
    done, todo = job_list.divide(job_list.jobs(planned, root, study, common))
    print(f"{len(todo)} trials to make, {len(done)} done already; {local.describe()}", flush=True)
    summary = supervise(todo, local, Lines(len(todo)))
    for path, reason in summary.failed.items():
        print(f"failed: {path}: {reason}", file=sys.stderr)
    return not summary.failed


class Lines:
    """Prints a line for every trial that ends."""

    def __init__(self, trials: int) -> None:
        self._trials, self._ended = trials, 0

    def __call__(self, event: "Event | None") -> None:
        from tfstudy.launchers.supervisor import FINISHED, GIVEN_UP, RETRYING

        if event is None or event.state not in (FINISHED, GIVEN_UP, RETRYING):
            return
        self._ended += event.state != RETRYING
        text = outcome(Path(event.job.path)) if event.state == FINISHED else f"{event.state}: {event.reason}"
        print(f"[{self._ended}/{self._trials}] {event.job.name}: {text} in {event.seconds:.1f} s", flush=True)


def outcome(path: Path) -> str:
    """How a trial came out, in some words."""
    from tfstudy.runs.reader import read_result

    result = read_result(path)
    parts = [part for part in result.get("splits", {}).values() if part["role"] == "validation"]
    exact = f"exact match {100 * parts[0]['metrics']['exact_match']:.1f} % on validation" if parts else ""
    return exact or str(result["status"])


def tell(wanted: "Search", scores: "Sequence[Score]", out: Path, aloud: bool) -> int:
    """Prints all trials and leaves the best as presets; 1 if an architecture has none."""
    from rich.console import Console

    from tfstudy.report.tuning_trials import trials
    from tfstudy.tuning.best_presets import NAME, best, keep, preset_text

    chosen = best(scores)
    console = Console()
    wide = console if console.is_terminal else Console(width=200)
    wide.print(trials(scores, chosen), markup=False, highlight=False)
    text = preset_text(wanted, chosen)
    if chosen:
        if aloud:
            print(text)
        keep(out, text)
        print(f"--preset {out}:{NAME}")
    for arch in wanted.words.archs:
        if arch not in chosen:
            print(f"every trial of {arch} diverged, so it has no preset", file=sys.stderr)
    return int(len(chosen) < len(wanted.words.archs))

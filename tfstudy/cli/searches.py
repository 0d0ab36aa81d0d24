"""Run a search and show its trials. Imported by `tfstudy tune` when it runs: unlike a grid, a search needs torch."""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfstudy.cli.batches import run_batch
from tfstudy.cli.output import print_listing, without_progress
from tfstudy.grids.expand import PlannedRun
from tfstudy.launchers import ExecutorSettings
from tfstudy.launchers.batch import Batch, jobs_of, running
from tfstudy.report.render import Cells, Listing
from tfstudy.tuning.search import (
    Search,
    SearchRequest,
    TrialScore,
    best_trials,
    check_out,
    plan_search,
    preset_yaml,
    run_search,
    save_presets,
    use_of,
)


def tune_architectures(
    request: SearchRequest,
    root: Path,
    study: str,
    settings: ExecutorSettings,
    out: Path | None = None,
    quiet: bool = False,
) -> int:
    """Run a search on this machine, print its trials and save the best presets.

    Return 1 if a trial failed, or if no trial of an architecture was measured. The presets go to `out`; by default they
    are saved with the trials. With `quiet`, the trials are not printed while they run.
    """
    if out:
        check_out(out)
    search = plan_search(request)
    study = study or f"{request.task}-{search.split.replace('/', '_')}"
    archs: dict[str, list[str]] = {}  # those with the same settings
    for arch, space in search.spaces.items():
        archs.setdefault("\n".join(f"  {key}={kind}" for key, kind in space.items()), []).append(arch)

    def run_trials(planned: Sequence[PlannedRun]) -> bool:
        for keys, names in archs.items():
            print(f"searched for {', '.join(names)}:\n{keys}", flush=True)
        with running(settings) as executor:
            jobs = jobs_of(planned, settings.options, executor.threads)
            return not run_batch(Batch(jobs, {}), executor)

    with without_progress(quiet):
        scores = run_search(search, root, study, run_trials)
    if not scores:
        print("some trials failed, so no preset was saved; run the same command again to retry them", file=sys.stderr)
        return 1
    return show_trials(search, scores, out or root / study / "preset.yaml")


def show_trials(search: Search, scores: Sequence[TrialScore], out: Path) -> int:
    """Print all trials and save the best as presets; return 1 if an architecture has none."""
    best = best_trials(scores)
    print_listing(trials(scores, best), "text")
    if best:
        if archived := save_presets(out, preset_yaml(search, best)):
            print(f"archived the previous presets: {archived}")
        print(f"saved: {out}\nnext: {use_of(search, best, out)}")
    without = [arch for arch in search.request.archs if arch not in best]
    for arch in without:
        finished = any(one.trial.arch == arch and one.status == "finished" for one in scores)
        reason = f"no trial of {arch} has a validation loss" if finished else f"all trials of {arch} diverged"
        print(f"{reason}, so it has no preset", file=sys.stderr)
    return int(bool(without))


def trials(scores: Sequence[TrialScore], best: Mapping[str, TrialScore]) -> Listing:
    """Return a table of all trials by architecture, the best first and marked with a star."""
    keys = list(dict.fromkeys(key for score in scores for key in score.trial.values))
    archs = list(dict.fromkeys(score.trial.arch for score in scores))
    rows = sorted(scores, key=lambda score: (archs.index(score.trial.arch), score.order))

    def values(key: str) -> list[str]:
        own = [row.trial.values.get(key, "") for row in rows]
        return [f"{value:g}" if isinstance(value, float) else str(value) for value in own]

    frame = {
        "architecture": [row.trial.arch for row in rows],
        "trial": [f"{'* ' * (row is best.get(row.trial.arch))}{row.trial.number}" for row in rows],
        **{key.rpartition(".")[2].replace("_", " "): values(key) for key in keys},
        "loss": [f"{row.loss:.4f}" if math.isfinite(row.loss) else "" for row in rows],
        "exact match": [f"{100 * row.exact_match:.1f}" if row.status == "finished" else row.status for row in rows],
        "parameters": [f"{row.parameters:,}" for row in rows],
        "run": [row.path.name for row in rows],
    }
    title = "trials, judged on the validation split (* is the best)"
    return Listing([Cells(frame, title=title, left=("architecture", "run"))])

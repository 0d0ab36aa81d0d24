"""`grid --dry-run`, `status`, `why` and `table` agree on which runs are finished and which are outdated."""

import contextlib
import runpy
import shutil
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import ROOT
from tests.example_tables import rows as conditions
from tfstudy.grids.expand import expand, plan
from tfstudy.grids.spec import load_grid
from tfstudy.runs.find import find_runs
from tfstudy.runs.store import is_finished

SETTINGS = {"data.train_examples": 60, "data.eval_examples": 10, "model.dim": 8, "model.hidden": 8, "train.steps": 2,
            "train.warmup_steps": 1}  # fmt: skip
COMMAND = ["--arch", "lstm", "--accelerator", "cpu", *(w for k, v in SETTINGS.items() for w in ("--set", f"{k}={v}"))]
REASON = "training version 1, now 2"
DATA = ROOT.parent / "shared" / "data"
FILES = {
    "scan-mcd": "scan",
    "scan-simple": "scan",
    "cogs": "pairs/cogs-variable-free",
    "inflection": "pairs/sigmorphon-2022",
}
DOCUMENTS = runpy.run_path(str(ROOT / "results" / "update.py"))


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """The results of a study with two seeds."""
    results = tmp_path_factory.mktemp("study") / "results"
    for seed in "01":
        assert tfstudy("run", "copying", *COMMAND, "--seed", seed, "--study", "mine", "--results", results) == 0
    return results


@pytest.fixture(autouse=True)
def _here(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(study, "results")


@pytest.fixture
def show(capsys):
    """The output of a command."""

    def show(*words) -> str:
        capsys.readouterr()
        assert tfstudy(*words) == 0
        return capsys.readouterr().out

    return show


def dry_run(show, seeds: str = "0-1") -> str:
    return show("grid", "--task", "copying", *COMMAND, "--seed", seeds, "--study", "mine", "--dry-run")


def rows() -> dict[str, int]:
    """The rows of the table on the test set `test`: the number of their seeds, by preset and settings."""
    found = conditions(Path("results/mine"))
    return {row.preset_label: len(row.runs) for row in found if row.test == "test"}


def test_all_four_report_runs_made_before_a_version_was_raised_and_never_in_one_row_with_newer_ones(show, monkeypatch):
    monkeypatch.setattr("tfstudy.training.version.VERSION", 2)
    for finished in (0, 1):  # of the current version
        planned = dry_run(show)
        assert f"2 runs, {finished} finished" in planned
        assert f"2 finished runs are outdated: {REASON}" in planned
        assert f"2 of {2 + finished} finished runs are outdated: {REASON}" in show("status", "mine")
        assert f"outdated: {REASON}" in show("table", "mine")
        if not finished:
            for path in Path("results").glob("mine/*/*/s*"):
                assert f"outdated:\n  {REASON}" in show("result", path, "--changes")
            show("run", "copying", *COMMAND, "--seed", "0", "--study", "mine")
    assert rows() == {"default": 1, "default outdated": 2}
    assert "default outdated" in show("table", "mine")


@pytest.mark.slow
def test_the_grids_of_committed_studies_have_nothing_left_to_run_but_those_called_unfinished(tmp_path):
    (tmp_path / "corpora").symlink_to(DATA / "translation")
    grids = {}
    for name in DOCUMENTS["TABLES"]:
        synthetic = name == "translation-sizes-synthetic"
        if DATA.exists() or synthetic or not (name in FILES or name.startswith("translation")):
            roots = [f"data.root={DATA / FILES[name]}"] if name in FILES else []
            grids[name] = expand(load_grid(name, set_=roots))
    with contextlib.chdir(tmp_path):  # one plan for all: data that studies share are built once
        paths = iter([run.path for run in plan([run for runs in grids.values() for run in runs], tmp_path, "any")])
    for name, runs in grids.items():
        study = ROOT / "results" / name
        folders = [study / next(paths).relative_to(tmp_path / "any") for _ in runs]
        left = [path for path in folders if not is_finished(path)]
        assert len(runs) - len(left) == sum(map(is_finished, find_runs(study))) > 0, name
        assert bool(left) == (name in DOCUMENTS["UNFINISHED"]), name


def test_a_checkout_agrees_with_itself_on_its_committed_study(show):
    results = ROOT / "results"
    finished = [path for path in find_runs(results / "scan") if is_finished(path)]
    n, first_five = len(finished), len([path for path in finished if int(path.name[1]) < 5])
    splits = "length,addprim_jump,addprim_turn_left,template_around_right"
    words = ["grid", "--task", "scan", "--split", splits, "--study", "scan", "--dry-run", "--results", results]
    planned = show(*words, "--arch", "transformer,lstm,cnn", "--seed", "0-4")
    assert f"{first_five} runs, {first_five} finished" in planned
    assert f"{n} of {n} runs finished" in (status := show("status", "scan", "--results", results))
    assert "up to date" in show("result", finished[0], "--changes")
    assert "outdated" not in status + show("table", "scan", "--results", results)
    more = show(*words, "--arch", "cnn", "--seed", "0-5")
    assert f"{first_five // 15 * 6} runs, {first_five // 3} finished" in more

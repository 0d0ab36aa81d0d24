"""Which runs are finished: `grid --dry-run`, `result --changes` and `table` agree, the last two on what is outdated."""

import contextlib
import re
import runpy
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import ROOT
from tests.example_tables import rows as conditions
from tests.interrupted_runs import command
from tfstudy.grids.expand import expand, plan
from tfstudy.grids.spec import load_grid
from tfstudy.runs.find import find_runs
from tfstudy.runs.store import is_finished

REASON = "training version 1, now 2"
DATA = ROOT.parent / "shared" / "data"
FILES = {
    "scan-mcd": "scan",
    "scan-simple": "scan",
    "cogs": "pairs/cogs-variable-free",
    "inflection": "pairs/sigmorphon-2022",
    "slog": "pairs/slog",
}
DOCUMENTS = runpy.run_path(str(ROOT / "results" / "update.py"))


def test_all_report_runs_made_before_a_version_was_raised_and_never_in_one_row_with_newer_ones(
    finished, monkeypatch, capsys
):
    def show(*words) -> str:
        assert tfstudy(*words) == 0
        return capsys.readouterr().out

    for seed in "01":
        finished("lstm", "--seed", seed, study="mine")
    grid = ["grid", "--task", "reverse", *command()[2:], "--seed", "0-1", "--study", "mine", "--dry-run"]
    monkeypatch.setattr("tfstudy.training.VERSION", 2)
    for newer in (0, 1):  # of the current version
        planned = show(*grid)
        assert f"2 runs, {newer} finished" in planned
        assert f"outdated: {REASON}" in show("table", "mine")
        if not newer:
            for path in Path("results").glob("mine/*/*/s*"):
                assert re.search(r"outdated\n.*\ntraining version +1 +2\n", show("result", path, "--changes"))
            show(*command(), "--seed", "0", "--study", "mine")
    found = [row for row in conditions(Path("results/mine")) if row.test == "test"]
    assert {row.preset_label: len(row.runs) for row in found} == {"default": 1, "default outdated": 2}
    assert "default outdated" in show("table", "mine")


@pytest.mark.slow
def test_the_grids_of_committed_studies_have_nothing_left_to_run(tmp_path):
    (tmp_path / "corpora").symlink_to(DATA / "translation")
    grids = {}
    for name in DOCUMENTS["TABLES"]:
        runs = expand(load_grid(name, set_=[f"data.root={DATA / FILES[name]}"] if name in FILES else []))
        roots = {getattr(config.data, "root", "") for config, _ in runs}
        if all((tmp_path / root).exists() for root in roots):  # else its data are not on this machine
            grids[name] = runs
    assert {"scan", "tasks", "lake-2018"} <= grids.keys()
    with contextlib.chdir(tmp_path):  # one plan for all: data that studies share are built once
        paths = iter([run.path for run in plan([run for runs in grids.values() for run in runs], tmp_path, "any")])
    for name, runs in grids.items():
        study = ROOT / "results" / name
        folders = [study / next(paths).relative_to(tmp_path / "any") for _ in runs]
        assert [path for path in folders if not is_finished(path)] == [], name
        assert len(runs) == sum(map(is_finished, find_runs(study))), name

"""`grid --dry-run`, `status`, `why` and `table` agree on which runs are finished and which are outdated."""

import contextlib
import functools
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import ROOT
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions
from tfstudy.grids.expand import expand, plan
from tfstudy.grids.spec import load_grid
from tfstudy.runs.find import find_runs
from tfstudy.runs.reader import is_finished
from tfstudy.tasks.base import fingerprint

SETTINGS = {
    "data.train_examples": 60,
    "data.eval_examples": 10,
    "model.dim": 8,
    "model.hidden": 8,
    "train.steps": 2,
    "train.warmup_steps": 1,
}
COMMAND = ["--arch", "lstm", "--accelerator", "cpu", *(w for k, v in SETTINGS.items() for w in ("--set", f"{k}={v}"))]
REASON = "training version 1, now 2"
DATA = Path(__file__).parents[3] / "shared" / "data"
NEED_OFFICIAL = ("scan-mcd", "scan-simple")  # studies of the official files of SCAN
NEED_CORPORA = (
    "translation-checkpoints",
    "translation-corpora",
    "translation-corpora-all",
    "translation-dropout",
    "translation-length-news",
    "translation-presets",
    "translation-sizes",
)
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


def runs() -> list[Path]:
    return sorted(Path("results").glob("mine/*/*/s*"))


def rows() -> dict[str, int]:
    """The rows of the table on the test set `test`: the number of their seeds, by preset and settings."""
    found = conditions(read_study(Path("results/mine")).runs)
    return {row.preset_label: len(row.runs) for row in found if row.test_set == "test"}


def test_all_four_agree_on_a_study_of_this_code(show):
    assert "2 runs, 2 finished" in dry_run(show)
    assert "outdated" not in dry_run(show)
    assert "2 of 2 runs finished" in show("status", "mine")
    assert "outdated" not in show("status", "mine") + show("table", "mine")
    for path in runs():
        assert "up to date" in show("why", path)
    assert rows() == {"default": 2}


def test_all_four_report_runs_made_before_a_version_was_raised(show, monkeypatch):
    monkeypatch.setattr("tfstudy.training.version.VERSION", 2)
    planned = dry_run(show)
    assert "2 runs, 0 finished" in planned
    assert f"2 finished runs are outdated: {REASON}" in planned
    assert f"2 of 2 finished runs are outdated: {REASON}" in show("status", "mine")
    assert REASON in show("table", "mine")
    for path in runs():
        text = show("why", path)
        assert "outdated:" in text
        assert REASON in text


def test_runs_of_two_versions_are_never_in_one_row(show, monkeypatch):
    monkeypatch.setattr("tfstudy.training.version.VERSION", 2)
    show("run", "copying", *COMMAND, "--seed", "0", "--study", "mine")
    planned = dry_run(show)
    assert "2 runs, 1 finished" in planned
    assert f"2 finished runs are outdated: {REASON}" in planned
    assert f"2 of 3 finished runs are outdated: {REASON}" in show("status", "mine")
    assert f"2 of 3 runs outdated: {REASON}" in show("table", "mine")
    assert rows() == {"default": 1, "default outdated": 2}
    assert "default outdated" in show("table", "mine")


def test_runs_on_other_data_are_in_a_row_of_their_own(show, monkeypatch):
    for module in ("tfstudy.experiment.prepare", "tfstudy.grids.expand", "tfstudy.report.run_changes"):
        monkeypatch.setattr(f"{module}.fingerprint", lambda task: fingerprint(task)[::-1])
    planned = dry_run(show)
    assert "2 finished runs are outdated: data " in planned
    assert "outdated:\n  data " in show("why", runs()[0])
    show("run", "copying", *COMMAND, "--seed", "0", "--study", "mine")
    assert sorted(rows().values()) == [1, 2]
    assert all("data=" in label for label in rows())


def test_a_study_is_topped_up_with_seeds_in_the_same_row(show, monkeypatch):
    monkeypatch.setattr("tfstudy.runs.environment.code_digest", lambda module: "other code")
    assert "3 runs, 2 finished" in dry_run(show, "0-2")
    show("run", "copying", *COMMAND, "--seed", "2", "--study", "mine")
    assert "3 of 3 runs finished" in show("status", "mine")
    assert "outdated" not in show("status", "mine") + show("table", "mine")
    assert rows() == {"default": 3}


NEEDED = {**dict.fromkeys(NEED_OFFICIAL, DATA / "scan"), **dict.fromkeys(NEED_CORPORA, DATA / "translation")}
STUDIES = tuple(name for name in DOCUMENTS["TABLES"] if name not in NEED_CORPORA)


@pytest.fixture(scope="module")
def planned(tmp_path_factory) -> Callable[[tuple[str, ...]], dict[str, list[Path]]]:
    """The folders of the runs of each study's grid, by its name; data that studies share are built once."""

    @functools.cache
    def planned(names: tuple[str, ...]) -> dict[str, list[Path]]:
        folder = tmp_path_factory.mktemp("planned")
        (folder / "corpora").symlink_to(DATA / "translation")
        grids = {}
        for name in names:
            if name not in NEEDED or NEEDED[name].exists():
                roots = [f"data.root={NEEDED[name]}"] if name in NEED_OFFICIAL else []
                grids[name] = expand(load_grid(name, set_=roots))
        with contextlib.chdir(folder):
            paths = iter([run.path for run in plan([run for runs in grids.values() for run in runs], folder, "any")])
        return {
            name: [ROOT / "results" / name / next(paths).relative_to(folder / "any") for _ in runs]
            for name, runs in grids.items()
        }

    return planned


@pytest.mark.parametrize("name", [*STUDIES, *(pytest.param(name, marks=pytest.mark.slow) for name in NEED_CORPORA)])
def test_the_grid_of_a_committed_study_has_nothing_left_to_run_unless_it_is_called_unfinished(planned, name):
    runs = planned(NEED_CORPORA if name in NEED_CORPORA else STUDIES)
    if name not in runs:
        pytest.skip("no copy of the data beside the repository")
    finished = [path for path in runs[name] if is_finished(path)]
    assert len(finished) == len(list(find_runs(ROOT / "results" / name))) > 0
    assert (len(finished) == len(runs[name])) == (name not in DOCUMENTS["UNFINISHED"])


def test_a_checkout_agrees_with_itself_on_its_committed_study(show):
    results = Path(__file__).parents[2] / "results"
    finished = list(find_runs(results / "scan"))
    n, first_five = len(finished), len([path for path in finished if int(path.name[1]) < 5])
    splits = "length,addprim_jump,addprim_turn_left,template_around_right"
    words = ["grid", "--task", "scan", "--split", splits, "--study", "scan", "--dry-run"]
    words += ["--results", results]
    planned = show(*words, "--arch", "transformer,lstm,cnn", "--seed", "0-4")
    assert f"{first_five} runs, {first_five} finished" in planned
    assert f"{n} of {n} runs finished" in show("status", "scan", "--results", results)
    assert "up to date" in show("why", finished[0])
    output = [show(command, "scan", "--results", results) for command in ("status", "table")]
    assert not [text for text in output if "outdated" in text]
    more = show(*words, "--arch", "cnn", "--seed", "0-5")
    assert f"{first_five // 15 * 6} runs, {first_five // 3} finished" in more

"""A study in zip files is the same study: to every command, after a kill at any moment, and whoever wrote the file."""

import json
import os
import shutil
import signal
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import unpacked
from tests.example_records import put
from tests.example_study import finish_run, planned, running_elsewhere, start_run
from tests.interrupted_runs import COPYING, COPYING_RUN, die
from tfstudy.errors import UserError
from tfstudy.experiment.finished import load
from tfstudy.launchers.batch import save_plan
from tfstudy.runs.find import find_run, find_runs, read_plan, study_runs
from tfstudy.runs.pack import pack_study
from tfstudy.runs.store import open_run, read_bytes, read_metrics, read_predictions, read_result
from tfstudy.runs.studyfile import PLANS, exists, names_in

COMMANDS = (
    ["table", "study", "--format", "json"],
    ["table", "results/study", "--format", "csv"],
    ["list", "runs", "--format", "json"],
    ["status", "study", "--format", "json"],
    ["result", "study/lstm/s0", "--format", "json"],
    ["errors", "study/lstm/s0", "--format", "json"],
    ["result", "study/lstm/s0", "study/lstm/s1", "--format", "json"],
    ["result", "study/lstm/s1", "--changes", "--format", "json"],
    ["result", "study/lstm/s1", "--log"],
    ["predict", "study/lstm/s0", "a b a", "--format", "json"],
    ["measure", "study/lstm/s0", "entropy", "--format", "json", "--quiet"],
    [*COPYING_RUN, "--seed", "1"],
)


@pytest.fixture
def study(trained, tmp_path, monkeypatch) -> Path:
    """A copy of the study; the first of its runs has only shared weights, the second only checkpoints."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "results")
    run = find_run(Path("results"), "study/lstm/s0")
    load(run).save_weights()
    shutil.rmtree(run / "checkpoints")
    return Path("results/study")


def small_study(*seeds: int) -> list[Path]:
    """Finished runs that were never trained, with a file in a folder."""
    runs = [finish_run(Path(job.path)) for job in planned(",".join(map(str, seeds)))]
    for run in runs:
        (run / "predictions").mkdir(exist_ok=True)
        (run / "predictions" / "test.jsonl.gz").write_bytes(run.name.encode())
    return runs


def contents(folder: Path) -> dict[str, bytes]:
    """The files of all runs below a folder, wherever they are, without locks."""
    found: dict[str, bytes] = {}
    for run in find_runs(folder):
        todo = [run]
        while todo:
            path = todo.pop()
            inside = names_in(path)
            todo += [path / name for name in inside if name != ".lock"]
            if not inside:
                found[str(path)] = read_bytes(path)
    return found


def test_all_commands_say_the_same_of_a_packed_study_and_what_writes_says_how_to_unpack_it(study, capsys):
    before = contents(study)

    def said() -> list[str]:
        texts = []
        for words in COMMANDS:
            assert tfstudy(*words) == 0, words
            texts.append(capsys.readouterr().out)
        return texts

    unpacked = said()
    assert tfstudy("pack", "study") == 0
    assert "2 runs" in capsys.readouterr().out
    assert [path.name for path in study.iterdir() if not path.name.startswith(".")] == ["runs.zip"]
    assert said() == unpacked
    for words in (
        ["evaluate", "study/lstm/s0"],
        ["measure", "study/lstm/s0", "entropy", "--save"],
        ["export", "study/lstm/s0"],
        [*COPYING_RUN, "--restart"],
    ):
        assert tfstudy(*words) == 2, words
        assert "`unzip -n results/study/runs.zip -d results/study` unpacks its runs" in capsys.readouterr().err, words
    assert contents(study) == before
    packed = (study / "runs.zip").read_bytes()
    with zipfile.ZipFile(study / "runs.zip") as archive:
        archive.extractall(study)
    (study / "runs.zip").unlink()
    assert contents(study) == before
    for path in sorted(study.rglob("*"), reverse=True):
        os.utime(path, (1, 1))
    pack_study(study)
    assert (study / "runs.zip").read_bytes() == packed, "the same runs are the same bytes"


def test_a_packed_study_has_the_plans_of_its_grids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_plan(planned("0,1,2"))
    study = small_study(0, 1)[0].parents[2]
    plan = read_plan(study)
    assert len(plan.runs) == 3
    pack_study(study)
    shutil.rmtree(study / PLANS)
    assert read_plan(study) == plan
    assert [run.state for run in study_runs(study)] == ["finished", "finished", "pending"]


def test_a_grid_adds_its_new_runs_to_a_packed_study_and_its_runs_are_copied_into_others(study, capsys):
    Path("grid.yaml").write_text(json.dumps({"base": COPYING | {"task": "copying", "arch": "lstm"}, "seeds": "0-2"}))
    grid = ["grid", "grid.yaml", "--study", "study", "--accelerator", "cpu"]
    assert tfstudy(*grid, "--dry-run") == 0
    unpacked = capsys.readouterr().out
    pack_study(study)
    packed = (study / "runs.zip").read_bytes()
    assert tfstudy(*grid, "--dry-run") == 0
    assert capsys.readouterr().out == unpacked
    assert tfstudy(*grid, "--quiet") == 0
    new = find_run(Path("results"), "study/lstm/s2")
    assert new.is_dir()
    assert not find_run(Path("results"), "study/lstm/s1").exists()
    assert (study / "runs.zip").read_bytes() == packed
    assert len(study_runs(study)) == 3


def test_what_is_not_finished_stays_a_folder_and_later_runs_go_to_another_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    finished, running, unfinished = (Path(job.path) for job in planned("0-2"))
    finish_run(finished)
    finish_run(running)
    start_run(planned("2")[0])
    with running_elsewhere(running):
        assert tfstudy("pack", "study") == 0
    assert "not packed (running): 1 run" in capsys.readouterr().out
    assert (finished.exists(), running.exists(), unfinished.exists()) == (False, True, True)
    first = Path("results/study/runs.zip").read_bytes()
    for said in ("results/study/runs-2.zip: 1 run", "nothing to pack"):
        assert tfstudy("pack", "study") == 0
        assert said in capsys.readouterr().out
    assert Path("results/study/runs.zip").read_bytes() == first
    assert [run.state for run in study_runs(Path("results/study"))] == ["finished", "finished", "interrupted"]


def test_a_folder_hides_a_packed_run_and_a_later_file_an_earlier_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [run] = small_study(0)
    pack_study(Path("results/study"))
    unpacked(run, run.with_name("copy")).rename(run)
    (run / "train.log").write_text("{}")
    (run / "predictions/test.jsonl.gz").unlink()
    for _ in range(2):  # as a folder, and packed
        assert list(find_runs(Path("results"))) == [run]
        assert read_bytes(run / "train.log") == b"{}"
        assert not exists(run / "predictions/test.jsonl.gz")
        pack_study(Path("results/study"))
    assert sorted(path.name for path in Path("results/study").glob("runs*")) == ["runs-2.zip", "runs.zip"]


def test_without_predictions_a_command_that_needs_them_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [run] = small_study(0)
    assert tfstudy("pack", "study", "--without", "predictions", "--without", "checkpoints") == 0
    assert read_result(run).task == "copying"
    with pytest.raises(UserError, match="packed without predictions"):
        read_predictions(run, "test")
    assert tfstudy("pack", "study", "--without", "prediction") == 2
    assert "did you mean 'predictions'" in capsys.readouterr().err


def interrupted_at(number: int, work: Callable[[], object]) -> bool:
    """Whether `work` was killed before its file operation of this number, in a process of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
        process = os.fork()
    if not process:
        try:
            done = 0

            def counted(function):
                def call(*args, **more):
                    nonlocal done
                    done += 1
                    if done == number:
                        die()
                    return function(*args, **more)

                return call

            for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync", "sync", "open"):
                setattr(os, name, counted(getattr(os, name)))
            for owner, name in ((zipfile.ZipFile, "writestr"), (Path, "write_bytes"), (Path, "open")):
                setattr(owner, name, counted(getattr(owner, name)))
            work()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def test_a_kill_at_any_file_operation_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_study(0, 1)
    before = contents(Path("results"))
    shutil.copytree("results", "original")
    number = 1
    while interrupted_at(number, lambda: pack_study(Path("results/study"))):
        assert contents(Path("results")) == before, number
        pack_study(Path("results/study"))  # the same command goes on
        assert contents(Path("results")) == before, number
        hidden = [path for path in Path("results").rglob(".*") if path.name != ".lock"]
        assert hidden == [], number
        shutil.rmtree("results")
        shutil.copytree("original", "results")
        number += 1
    assert number > 20
    assert contents(Path("results")) == before
    assert Path("results/study/runs.zip").exists()


INSIDE = "e/lstm/s0-aaaa0000"
BAD_MEMBERS = {
    "an absolute path": [f"/{INSIDE}/config.yaml"],
    "a path out of the study": [f"{INSIDE}/../../../../config.yaml"],
    "a control character": [f"{INSIDE}/\x1b[2J"],
    "twice the same": [f"{INSIDE}/config.yaml"] * 2,
    "no run": ["README.md"],
    "a bomb": [f"{INSIDE}/result.json"],
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", [*BAD_MEMBERS, "cut off"])
def test_a_file_that_pack_would_not_write_is_refused_and_other_runs_stay_readable(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small_study(0)
    pack_study(Path("results/study"))
    [sound] = find_runs(Path("results"))
    bad = Path("results/study/runs-2.zip")
    with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in BAD_MEMBERS.get(kind, [f"{INSIDE}/config.yaml"]):
            archive.writestr(name, bytes(10_000_000 if kind == "a bomb" else 1))
    if kind == "cut off":
        bad.write_bytes(bad.read_bytes()[:-10])
    assert list(find_runs(Path("results"))) == [sound]
    assert f"left out: {bad}" in capsys.readouterr().err
    assert read_result(sound).task == "copying"
    assert tfstudy("list", "runs") == 0
    with pytest.raises(UserError, match=r"runs-2\.zip can't be read"):
        pack_study(Path("results/study"))
    assert sorted(path.name for path in Path("results/study").iterdir()) == ["runs-2.zip", "runs.zip"]
    assert tfstudy(*COPYING_RUN, "--seed", "5") == 2
    assert "runs-2.zip can't be read" in capsys.readouterr().err


def test_a_damaged_member_belongs_to_one_run_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = small_study(0, 1)
    put(runs[0], "metrics.csv", "step,metric,value\n" + "1,loss,2.5\n" * 9)
    pack_study(Path("results/study"))
    file = Path("results/study/runs.zip")
    content = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.filename.endswith((f"{runs[0].name}/metrics.csv", f"{runs[0].name}/result.json")):
                content[info.header_offset + 30 + len(info.filename) + 5] ^= 0xFF
    file.write_bytes(content)
    assert "result.json is damaged: in results/study/runs.zip" in str(open_run(runs[0]).broken or "")
    with pytest.raises(UserError, match="damaged"):
        read_metrics(runs[0])
    assert read_result(runs[1]).task == "copying"
    assert [run.state for run in study_runs(Path("results/study"))] == ["failed", "finished"]

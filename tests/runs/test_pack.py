"""A study in zip files is the same study: to every command, after a kill at any moment, and whoever wrote the file."""

import json
import os
import shutil
import zipfile
from itertools import count
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.committed import unpacked
from tests.example_records import put
from tests.example_study import finish_run, planned, running_elsewhere, start_run
from tests.interrupted_runs import COPYING, COPYING_RUN, die, forked
from tfstudy.errors import UserError
from tfstudy.experiment.finished import load
from tfstudy.launchers.batch import save_plan
from tfstudy.runs.files import exists, names_in
from tfstudy.runs.find import find_run, find_runs, study_runs
from tfstudy.runs.pack import pack_study
from tfstudy.runs.store import open_run, read_bytes, read_metrics, read_predictions, read_result

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
pytestmark = pytest.mark.usefixtures("empty_folder")
STUDY = Path("results/study")


@pytest.fixture
def study(trained) -> Path:
    """A copy of the study; the first of its runs has only shared weights, the second only checkpoints."""
    shutil.copytree(trained, "results")
    run = find_run(Path("results"), "study/lstm/s0")
    load(run).save_weights()
    shutil.rmtree(run / "checkpoints")
    return STUDY


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


def test_a_grid_adds_its_new_runs_to_a_packed_study_and_its_runs_are_copied_into_others(study, capsys):
    Path("grid.yaml").write_text(json.dumps({"base": COPYING | {"task": "copying", "arch": "lstm"}, "seeds": "0-2"}))
    grid, previews = ["grid", "grid.yaml", "--study", "study", "--accelerator", "cpu"], []
    for _ in range(2):  # with folders, and packed
        assert tfstudy(*grid, "--dry-run") == 0
        previews.append(capsys.readouterr().out)
        pack_study(study)
    assert previews[0] == previews[1]
    packed = (study / "runs.zip").read_bytes()
    assert tfstudy(*grid, "--quiet") == 0
    assert [find_run(Path("results"), f"study/lstm/s{seed}").is_dir() for seed in range(3)] == [False, False, True]
    assert (study / "runs.zip").read_bytes() == packed


def test_what_is_not_finished_stays_a_folder_and_later_runs_go_to_another_file(capsys):
    save_plan(planned("0-3"))
    finished, running, unfinished = (Path(job.path) for job in planned("0-2"))
    finish_run(finished)
    finish_run(running)
    start_run(planned("2")[0])
    with running_elsewhere(running):
        assert tfstudy("pack", "study") == 0
    assert "not packed (running): 1 run" in capsys.readouterr().out
    assert (finished.exists(), running.exists(), unfinished.exists()) == (False, True, True)
    first = (STUDY / "runs.zip").read_bytes()
    for said in ("results/study/runs-2.zip: 1 run", "nothing to pack"):
        assert tfstudy("pack", "study") == 0
        assert said in capsys.readouterr().out
    assert (STUDY / "runs.zip").read_bytes() == first
    assert [run.state for run in study_runs(STUDY)] == ["finished", "finished", "interrupted", "pending"]


def test_a_folder_hides_a_packed_run_and_a_later_file_an_earlier_one():
    [run] = small_study(0)
    pack_study(STUDY)
    unpacked(run, run.with_name("copy")).rename(run)
    (run / "train.log").write_text("{}")
    (run / "predictions/test.jsonl.gz").unlink()
    for _ in range(2):  # as a folder, and packed
        assert list(find_runs(Path("results"))) == [run]
        assert read_bytes(run / "train.log") == b"{}"
        assert not exists(run / "predictions/test.jsonl.gz")
        pack_study(STUDY)
    assert sorted(path.name for path in STUDY.glob("runs*")) == ["runs-2.zip", "runs.zip"]
    [other] = small_study(1)
    assert tfstudy("pack", "study", "--without", "predictions", "--without", "checkpoints") == 0
    assert read_result(other).task == "copying"
    with pytest.raises(UserError, match="packed without predictions"):
        read_predictions(other, "test")


def interrupted_at(number: int) -> bool:
    """Whether `tfstudy pack` was killed before its file operation of this number, or else ended."""

    def prepare() -> None:
        done = count(1)

        def counted(function):
            def call(*args, **more):
                if next(done) == number:
                    die()
                return function(*args, **more)

            return call

        for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync", "sync", "open"):
            setattr(os, name, counted(getattr(os, name)))
        for owner, name in ((zipfile.ZipFile, "writestr"), (Path, "write_bytes"), (Path, "open")):
            setattr(owner, name, counted(getattr(owner, name)))

    _, status = os.waitpid(forked(["pack", "study"], prepare), 0)
    return os.WIFSIGNALED(status)


def test_a_kill_at_any_file_operation_loses_nothing():
    small_study(0, 1)
    before = contents(Path("results"))
    shutil.copytree("results", "original")
    number = 1
    while interrupted_at(number):
        assert contents(Path("results")) == before, number
        pack_study(STUDY)  # the same command goes on
        assert contents(Path("results")) == before, number
        assert [path for path in Path("results").rglob(".*") if path.name != ".lock"] == [], number
        shutil.rmtree("results")
        shutil.copytree("original", "results")
        number += 1
    assert number > 20
    assert contents(Path("results")) == before
    assert (STUDY / "runs.zip").exists()


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
def test_a_file_that_pack_would_not_write_is_refused_and_other_runs_stay_readable(kind, capsys):
    small_study(0)
    pack_study(STUDY)
    [sound] = find_runs(Path("results"))
    bad = STUDY / "runs-2.zip"
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
        pack_study(STUDY)
    assert sorted(path.name for path in STUDY.iterdir()) == ["runs-2.zip", "runs.zip"]
    assert tfstudy(*COPYING_RUN, "--seed", "5") == 2
    assert "runs-2.zip can't be read" in capsys.readouterr().err
    for words in (["--resume", "study"], ["--task", "copying", "--study", "study"]):
        assert tfstudy("grid", *words) == 2, "before a run starts, whose folder would hide a packed one"
        assert "runs-2.zip can't be read" in capsys.readouterr().err
    assert sorted(path.name for path in STUDY.iterdir()) == ["runs-2.zip", "runs.zip"]
    (STUDY / "runs.zip").unlink()
    assert tfstudy("status", "study") == 2, "it has no run that can be read"
    assert "runs-2.zip can't be read" in capsys.readouterr().err


def test_a_damaged_member_belongs_to_one_run_only():
    runs = small_study(0, 1)
    put(runs[0], "metrics.csv", "step,metric,value\n" + "1,loss,2.5\n" * 9)
    pack_study(STUDY)
    file = STUDY / "runs.zip"
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
    assert [run.state for run in study_runs(STUDY)] == ["failed", "finished"]

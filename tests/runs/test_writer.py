"""Run folders: whole or not at all, nobody's but their own, and never thrown away."""

import errno
import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import tasks
from tasks.errors import UserError
from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import assert_same, at_row, command, folder, killed
from tfstudy.runs.files import write_whole
from tfstudy.runs.reader import find_run, find_runs, read_result
from tfstudy.runs.writer import RunFolder, set_aside
from tfstudy.training.loggers import MetricsFile


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def files(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file() and file.name != ".lock"}


def begun(step: int = 15) -> Path:
    """A run that was killed at this step, with a checkpoint at 10."""
    killed(command(), at_row(step))
    return folder()


# Files appear whole


def test_the_result_is_the_last_file_of_a_run():
    assert tfstudy(*command()) == 0
    times = {path.name: path.stat().st_mtime_ns for path in folder().rglob("*") if path.is_file()}
    assert max(times, key=times.get) == "result.json"
    names = {"config.yaml", "env.json", "metrics.csv", "train.log", "result.json", "test_reads.csv"}
    assert names <= times.keys()
    assert not list(folder().rglob("*.part"))


def test_a_file_that_can_not_be_finished_is_not_there_at_all(tmp_path, monkeypatch):
    write_whole(tmp_path / "old.json", b"old")

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    for name in ("result.json", "old.json"):
        with pytest.raises(OSError, match="Input/output error"):
            write_whole(tmp_path / name, b"new")
    assert not (tmp_path / "result.json").exists()
    assert (tmp_path / "old.json").read_bytes() == b"old"
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_a_run_whose_result_can_not_be_written_is_not_finished(monkeypatch, capsys):
    replace = os.replace

    def fail(source, target):
        if Path(target).name == "result.json":
            raise OSError(errno.EIO, "Input/output error", str(target))
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        assert tfstudy(*command()) == 1
    err = capsys.readouterr().err
    assert "Input/output error" in err
    assert "Traceback" not in err
    assert not (folder() / "result.json").exists()
    assert not list(folder().rglob("*.part"))
    assert tfstudy(*command()) == 0
    assert "resuming after step 40 of 40" in capsys.readouterr().out


def test_a_result_that_holds_no_number_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="Out of range float"):
        RunFolder(tmp_path, "0" * 64).finish({"loss": float("nan")})
    assert not (tmp_path / "result.json").exists()


def test_the_same_predictions_are_the_same_bytes(tmp_path, monkeypatch):
    rows = [{"source": "ä", "prediction": "b c"}, {"source": "", "prediction": ""}]
    writer = RunFolder(tmp_path, "0" * 64)
    written = []
    for now in (1.0, 1e9):
        monkeypatch.setattr("time.time", lambda now=now: now)
        writer.write_predictions("test", rows)
        written.append((tmp_path / "predictions/test.jsonl.gz").read_bytes())
    assert written[0] == written[1]
    assert gzip.decompress(written[0]).decode().splitlines()[0] == '{"source": "ä", "prediction": "b c"}'
    assert list(writer.predictions("test")) == rows


# What can't be written


def test_a_file_in_the_place_of_the_folder_is_one_error(capsys):
    Path("results").write_text("not a folder")
    assert tfstudy(*command()) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: can't write to results/runs/reverse-short/lstm/s0-")
    assert err.endswith(": Not a directory\n")
    assert Path("results").read_text() == "not a folder"


def test_results_in_the_current_folder_are_results_in_the_current_folder():
    assert tfstudy(*command("lstm", "--results", ".", "--smoke")) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one_error(capsys):
    Path("results").mkdir(mode=0o500)
    assert tfstudy(*command()) == 2
    assert "Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["metrics.csv", "last.ckpt", "result.json", "validation.jsonl.gz"])
def test_a_run_on_a_full_disk_says_so_and_goes_on_once_there_is_space(place, monkeypatch, capsys, tmp_path):
    from lightning.pytorch import Trainer

    from tfstudy.runs import writer
    from tfstudy.training import loggers

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        if place == "metrics.csv":
            write = loggers.MetricsFile.log_metrics
            patch.setattr(
                loggers.MetricsFile,
                "log_metrics",
                lambda self, metrics, step=None: full() if step == 15 else write(self, metrics, step),
            )
        elif place == "last.ckpt":
            save = Trainer.save_checkpoint
            patch.setattr(
                Trainer,
                "save_checkpoint",
                lambda self, path, *a, **k: full() if self.global_step == 20 else save(self, path, *a, **k),
            )
        else:
            whole = writer.write_whole
            patch.setattr(writer, "write_whole", lambda path, text: full() if path.name == place else whole(path, text))
        assert tfstudy(*command()) == 1
    err = capsys.readouterr().err
    assert "No space left on device" in err
    assert "the same command goes on from the last checkpoint" in err
    assert "Traceback" not in err
    assert tfstudy(*command()) == 0
    assert tfstudy(*command(), "--results", "others") == 0
    assert_same(folder(), folder(Path("others")))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 300 kB; what makes it large."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = shutil.which("mount")
    done = (
        subprocess.run([mount, "-t", "tmpfs", "-o", "size=300k", "none", path], capture_output=True) if mount else None
    )
    if not done or done.returncode:
        pytest.skip("may not mount a file system here")
    try:
        yield path, lambda: subprocess.run([mount, "-o", "remount,size=50m", path], check=True)
    finally:
        subprocess.run(["umount", path], check=True)


def test_a_really_full_disk_is_reported_and_the_same_command_goes_on_with_space(small_disk, capsys):
    path, enlarge = small_disk
    assert tfstudy(*command(), "--results", path / "results") == 1
    err = capsys.readouterr().err
    assert "No space left on device" in err
    assert "Traceback" not in err
    assert not list(path.rglob("result.json"))
    enlarge()
    assert tfstudy(*command(), "--results", path / "results") == 0
    assert tfstudy(*command(), "--results", "others") == 0
    assert_same(folder(path / "results"), folder(Path("others")))


def test_a_full_disk_at_the_very_start_is_reported(small_disk, capsys):
    path, enlarge = small_disk
    (path / "ballast").write_bytes(bytes(300 * 1024 - 8192 * 3))
    assert tfstudy(*command(), "--results", path / "results") == 1
    assert "No space left on device" in capsys.readouterr().err
    enlarge()
    assert tfstudy(*command(), "--results", path / "results") == 0


# Damaged and foreign files


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda _: b"",
        lambda _: b"garbage" * 99,
        lambda content: content[:2000] + bytes(500) + content[2500:],
    ],
    ids=["truncated", "empty", "garbage", "overwritten"],
)
def test_a_damaged_checkpoint_is_refused_and_kept(damage, capsys):
    path = begun()
    checkpoint = path / "checkpoints/last.ckpt"
    checkpoint.write_bytes(damage(checkpoint.read_bytes()))
    before = files(path)
    assert tfstudy(*command()) == 2
    err = capsys.readouterr().err
    assert f"{checkpoint} is not a readable checkpoint" in err
    assert "--fresh" in err
    assert "Traceback" not in err
    after = files(path)
    assert all(after[file] == content for file, content in before.items() if file.name != "env.json")


def test_a_checkpoint_that_is_no_dictionary_of_ours_is_refused(capsys):
    path = begun()
    torch.save({"state_dict": {}}, path / "checkpoints/last.ckpt")
    assert tfstudy(*command()) == 2
    assert "is not a readable checkpoint" in capsys.readouterr().err


def test_another_runs_checkpoint_is_refused_and_kept(capsys):
    killed(command("lstm", "--seed", "1"), at_row(15))
    foreign = folder() / "checkpoints/last.ckpt"
    content = foreign.read_bytes()
    other = folder()
    other.rename(other.with_name("other"))
    killed(command(), at_row(15))
    shutil.rmtree(other.with_name("other"))
    (folder() / "checkpoints/last.ckpt").write_bytes(content)
    before = files(folder())
    assert tfstudy(*command()) == 2
    assert "belongs to another run" in capsys.readouterr().err
    assert all(files(folder())[file] == text for file, text in before.items() if file.name != "env.json")
    assert tfstudy(*command("lstm", "--fresh")) == 0


def test_a_lost_checkpoint_means_to_begin_anew(capsys):
    path = begun()
    shutil.rmtree(path / "checkpoints")
    assert tfstudy(*command()) == 0
    assert "resuming" not in capsys.readouterr().out
    assert tfstudy(*command(), "--results", "others") == 0
    assert_same(folder(), folder(Path("others")))


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("steps: 40", "steps: 50"),
        lambda text: text.replace("arch: lstm", "arch: cnn"),
        lambda _: "",
        lambda _: "- a list",
        lambda _: "a: [",
        lambda text: text + "extra: 1\n",
    ],
)
@pytest.mark.parametrize("finished", [False, True])
def test_an_edited_config_is_refused_and_nothing_is_changed(edit, finished, capsys):
    path = begun(40 if finished else 5)
    if finished:
        RunFolder(path, "0" * 64).finish({"status": "made up"})
    config = path / "config.yaml"
    config.write_text(edit(config.read_text()))
    before = files(path)
    assert tfstudy(*command()) == 2
    assert "was edited after the run began" in capsys.readouterr().err
    assert files(path) == before


def test_a_comment_in_the_config_is_no_edit():
    path = begun(5)
    with (path / "config.yaml").open("a") as file:
        file.write("# looks good\n")
    assert tfstudy(*command()) == 0


def test_a_result_of_another_format_is_refused(tmp_path, capsys):
    path = begun(5)
    (path / "result.json").write_text('{"format": 99, "run": "x"}')
    with pytest.raises(UserError, match=r"result\.json has format 99, but this version reads 1"):
        read_result(path)
    assert tfstudy(*command()) == 2
    assert "has format 99" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "[]", "\udcff", "3"])
def test_a_result_that_is_no_result_is_refused(text, tmp_path):
    (tmp_path / "result.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=r"result\.json"):
        read_result(tmp_path)


def test_a_folder_without_a_result_is_no_finished_run(tmp_path):
    with pytest.raises(UserError, match=r"is not a finished run: it has no result\.json"):
        read_result(tmp_path)


# Metrics


def test_rewinding_drops_later_rows_and_a_half_written_last_line(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,metric,value\n5,a,1.0\n10,a,2.0\n10,b,3.0\n15,a,4.0\n10,hal")
    RunFolder(tmp_path, "").rewind(10)
    assert path.read_text() == "step,metric,value\n5,a,1.0\n10,a,2.0\n10,b,3.0\n"
    RunFolder(tmp_path, "").rewind(0)
    assert path.read_text() == "step,metric,value\n"


def test_a_half_written_header_is_written_again(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,met")
    RunFolder(tmp_path, "").rewind(0)
    MetricsFile(path).log_metrics({"a": 1.0}, 5)
    assert path.read_text() == "step,metric,value\n5,a,1.0\n"


def test_metrics_have_one_header_and_one_row_for_each_step_and_name():
    assert tfstudy(*command()) == 0
    header, *rows = (folder() / "metrics.csv").read_text().splitlines()
    assert header == "step,metric,value"
    keys = [tuple(row.split(",")[:2]) for row in rows]
    assert len(keys) == len(set(keys)) == 8 * 3 + 4 * 2
    assert {key[0] for key in keys if key[1] == "validation_loss"} == {"10", "20", "30", "40"}
    assert [int(key[0]) for key in keys] == sorted(int(key[0]) for key in keys)


# Finding runs


def made(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "config.yaml").write_text("{}")
    return path


def test_a_run_is_found_by_its_folder_or_the_start_of_its_hash(tmp_path):
    one = made(tmp_path / "r/study/scan-simple/lstm/s0-abc12345")
    two = made(tmp_path / "r/study/scan-simple/lstm/s1-abd12345")
    assert find_run(tmp_path / "r", str(one)) == one
    assert find_run(tmp_path / "r", "abc") == one
    assert find_run(tmp_path / "r", "abd12345") == two
    with pytest.raises(UserError, match=f"'ab' is the start of 2 runs: {one}, {two}"):
        find_run(tmp_path / "r", "ab")
    with pytest.raises(UserError, match=r"no run 'zzz': it must be .*tfstudy list runs"):
        find_run(tmp_path / "r", "zzz")
    with pytest.raises(UserError, match="no run"):
        find_run(tmp_path / "nowhere", "abc")


def test_runs_set_aside_are_not_listed(tmp_path):
    one = made(tmp_path / "study/scan-simple/lstm/s0-abc12345")
    aside = set_aside(one)
    assert aside.name == "s0-abc12345.old-1"
    assert (aside / "config.yaml").exists()
    assert list(find_runs(tmp_path)) == []
    (one / "config.yaml").write_text("{}")
    assert list(find_runs(tmp_path)) == [one]
    assert set_aside(one).name == "s0-abc12345.old-2"


def test_smoke_runs_are_kept_out_of_the_results(capsys):
    assert tfstudy(*command("lstm", "--smoke")) == 0
    out = capsys.readouterr().out
    assert out.count("SMOKE RUN") == 2, "at the start and over the table"
    assert not Path("results").exists()
    [path] = find_runs(Path("results-smoke"))
    assert read_result(path)["smoke"] is True
    assert tfstudy(*command("lstm", "--smoke")) == 0
    assert "SMOKE RUN" in capsys.readouterr().out


def test_a_smoke_run_is_kept_out_however_it_was_asked_for():
    assert tfstudy(*command("lstm", "--set", "smoke=true")) == 0
    assert not Path("results").exists()


def test_a_finished_run_says_what_it_was_made_with():
    assert tfstudy(*command()) == 0
    result = read_result(folder())
    [environment] = json.loads((folder() / "env.json").read_text())
    assert folder().name == f"s0-{result['run'][:8]}"
    assert result["status"] == "finished"
    assert result["step"] == 40
    assert result["overlap"] == {"validation": 0, "test": 0}
    assert result["parameters"] > 0
    assert environment["versions"]["torch"] == torch.__version__
    assert environment["code_versions"].keys() == {"task", "model", "training", "evaluation"}
    assert "tfstudy.models.lstm" in environment["syntax_trees"]

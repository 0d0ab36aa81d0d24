"""Folders that can't be written and full disks: one message, and the same command continues once there is space."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import assert_same, command, folder
from tfstudy import tasks


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def test_a_file_in_the_place_of_the_folder_is_one_error(capsys):
    Path("results").write_text("not a folder")
    assert tfstudy(*command()) == 2
    err = capsys.readouterr().err
    assert err == "error: --results must be a folder, but 'results' is a file\n"
    assert Path("results").read_text() == "not a folder"


def test_results_in_the_current_folder_are_results_in_the_current_folder():
    assert tfstudy(*command("lstm", "--results", ".", "--smoke")) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one_error(capsys):
    Path("results").mkdir(mode=0o500)
    assert tfstudy(*command()) == 2
    assert "Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["metrics.csv", "last.ckpt", "result.json", "validation.jsonl.gz"])
def test_a_run_on_a_full_disk_says_so_and_resumes_once_there_is_space(place, monkeypatch, capsys, tmp_path):
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
            write_file = writer.write_atomically
            patch.setattr(
                writer,
                "write_atomically",
                lambda path, *a, **k: full() if path.name == place else write_file(path, *a, **k),
            )
        assert tfstudy(*command()) == 1
    err = capsys.readouterr().err
    assert "No space left on device" in err
    assert "same command" in err
    assert "Traceback" not in err
    assert tfstudy(*command()) == 0
    assert tfstudy(*command(), "--results", "others") == 0
    assert_same(folder(), folder(Path("others")))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 300 kB, and a function that enlarges it."""
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


def test_a_really_full_disk_is_reported_and_the_same_command_resumes_with_space(small_disk, capsys):
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

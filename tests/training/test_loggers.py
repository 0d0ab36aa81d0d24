"""Loggers: what they receive, and that no failure of theirs changes a run."""

import csv
import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import pytest
from lightning.pytorch.loggers import Logger

from tests.commands import tfstudy
from tests.example_task import TASK, added
from tests.interrupted_runs import assert_same, at_row, command, folder, killed
from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.experiment import api
from tfstudy.experiment.api import RunOptions
from tfstudy.experiment.run import run
from tfstudy.runs.writer import RunFolder
from tfstudy.training import loggers


class Fake(Logger):
    """Records all calls, and fails in the method `fails`."""

    instances: ClassVar[list["Fake"]] = []
    fails = ""

    def __init__(self, target: loggers.LogTarget) -> None:
        super().__init__()
        self.target, self.calls = target, []
        Fake.instances.append(self)
        self._called("__init__")

    name, version = "fake", ""

    def _called(self, method: str, *given) -> None:
        self.calls.append((method, *given))
        warnings.warn("advice to users of the package", UserWarning, stacklevel=2)
        if method == self.fails:
            raise RuntimeError(f"{method}:\n  no network")

    def log_hyperparams(self, params, *_, **__):
        self._called("log_hyperparams", params)

    def log_metrics(self, metrics, step=None):
        self._called("log_metrics", step, metrics)

    def save(self):
        self._called("save")

    def finalize(self, status):
        self._called("finalize", status)


@pytest.fixture(autouse=True)
def _fake(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(loggers.FACTORIES, "fake", Fake)
    monkeypatch.setattr(Fake, "instances", [])
    monkeypatch.setattr(api, "LOGGERS", [*api.LOGGERS, "fake"])
    monkeypatch.setattr(api, "find_spec", lambda name: name == "fake" or find_spec(name))
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def rows(path: Path) -> Iterator[tuple[int, str, float]]:
    with (path / "metrics.csv").open(newline="") as file:
        yield from ((int(r["step"]), r["metric"], float(r["value"])) for r in csv.DictReader(file))


def test_a_logger_gets_the_config_and_every_row_of_the_metrics_file():
    assert tfstudy(*command(), "--logger", "fake") == 0
    [fake] = Fake.instances
    assert fake.calls[1][0] == "log_hyperparams"
    assert fake.calls[1][1]["model"]["hidden"] == 16
    logged = [(call[1], *row) for call in fake.calls if call[0] == "log_metrics" for row in call[2].items()]
    assert logged == list(rows(folder()))
    assert ("finalize", "success") in fake.calls
    assert fake.target.folder == folder() / "logs" / "fake"
    assert fake.target.run.startswith(folder().name[-8:])
    assert len(fake.target.run) == 64
    assert fake.target.step == 0


@pytest.mark.parametrize("method", ["__init__", "log_metrics", "finalize"])
def test_a_logger_that_fails_changes_no_number_and_leaves_one_line(method, undisturbed, monkeypatch):
    monkeypatch.setattr(Fake, "fails", method)
    assert tfstudy(*command(), "--logger", "fake") == 0
    assert_same(folder(), undisturbed(command()))
    assert folder().name == undisturbed(command()).name, "a logger is no part of a run's identity"
    lines = [line for line in (folder() / "train.log").read_text().splitlines() if "fake" in line]
    assert lines == [f"logger fake dropped, the run continues: RuntimeError: {method}: no network"]


def test_neither_a_full_disk_nor_a_folder_that_can_not_be_created_ends_a_run(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    (tmp_path / "file").touch()
    reports = []
    monkeypatch.setattr(Fake, "fails", "log_metrics")
    for path, report in ((tmp_path / "file" / "fake", reports.append), (tmp_path / "logs", full)):
        logger = loggers.GuardedLogger("fake", loggers.LogTarget(path, "0", "a/b/c", 0), {}, report)
        logger.log_metrics({"loss": 1.0}, 5)
        logger.finalize("success")
        assert len(reports) == 1
    assert [call[0] for call in Fake.instances[0].calls] == ["__init__", "log_hyperparams", "log_metrics"]


def test_a_resumed_run_continues_in_the_same_place():
    killed([*command(), "--logger", "fake"], at_row(25))
    assert tfstudy(*command(), "--logger", "fake") == 0
    [fake] = Fake.instances
    assert fake.target == (folder() / "logs" / "fake", RunFolder(folder(), "").result.run, fake.target.name, 20)
    assert fake.target.name == "/".join(folder().parts[-3:])
    assert [call[1] for call in fake.calls if call[0] == "log_metrics"] == [25, 30, 30, 35, 40, 40]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tensorbord", "unknown logger 'tensorbord'; did you mean 'tensorboard'? Expected one of: tensorboard,"),
        (
            "fake,wandb, tensorboard",
            "logger wandb,tensorboard: not installed; to install it: pip install wandb tensorboard\n",
        ),
    ],
    ids=["unknown", "absent"],
)
def test_a_logger_that_is_unknown_or_absent_is_one_line_before_anything_starts(given, message, monkeypatch, capsys):
    monkeypatch.setattr(api, "find_spec", lambda name: name == "fake")
    assert tfstudy(*command(), "--logger", given) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    with pytest.raises(UserError, match=r"unknown logger|not installed"):
        run(None, Path("results"), "runs", RunOptions(accelerator="cpu", loggers=tuple(given.split(","))))
    assert not Path("results").exists()


# The packages themselves, where they are installed


def logged_twice(kind: str) -> Path:
    """The folder of a logger whose run was killed after step 25 and resumed from step 20."""
    pytest.importorskip(kind)
    killed([*command(), "--logger", kind], at_row(25))
    assert tfstudy(*command(), "--logger", kind) == 0
    assert "dropped" not in (folder() / "train.log").read_text()
    return folder() / "logs" / kind


def losses() -> list[tuple[int, float]]:
    return [(step, pytest.approx(value)) for step, metric, value in rows(folder()) if metric == "train_loss"]


def test_tensorboard_shows_a_resumed_run_as_one():
    path = logged_twice("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("train_loss")] == losses()


def test_wandb_is_offline_and_keeps_the_id_of_a_resumed_run(monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    path = logged_twice("wandb")
    identity = RunFolder(folder(), "").result.run
    parts = [item for item in (path / "wandb").iterdir() if item.name.startswith("offline-run-")]
    assert 1 <= len(parts) <= 2  # two in different seconds
    assert all(item.name.endswith(identity) for item in parts)
    assert "WANDB_MODE" not in os.environ

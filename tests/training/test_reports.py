"""What training reports: to loggers, in `train.log` and as lines of progress."""

import csv
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from lightning.pytorch.loggers import Logger

from tests.commands import tfstudy
from tests.interrupted_runs import assert_same, at_row, command, folder, killed
from tests.training.small_training import trained
from tfstudy.experiment import api
from tfstudy.runs.store import read_result
from tfstudy.training import loggers, progress
from tfstudy.training.callbacks import TrainingProgress


class Fake(Logger):
    """Records all calls."""

    name, version = "fake", ""

    def __init__(self) -> None:
        super().__init__()
        self.targets, self.metrics, self.hyperparameters, self.ends = [], [], {}, []

    def start(self, *target):
        self.targets.append(target)
        return self

    def log_hyperparams(self, params, *_, **__):
        self.hyperparameters = params

    def log_metrics(self, metrics, step=None):
        self.metrics += [(step, name, value) for name, value in metrics.items()]

    def finalize(self, status):
        self.ends.append(status)


def rows(path: Path) -> Iterator[tuple[int, str, float]]:
    with (path / "metrics.csv").open(newline="") as file:
        yield from ((int(r["step"]), r["metric"], float(r["value"])) for r in csv.DictReader(file))


def test_a_logger_gets_the_config_and_every_row_and_a_resumed_run_continues_in_the_same_place(undisturbed, monkeypatch):
    fake = Fake()
    monkeypatch.setitem(loggers.FACTORIES, "fake", fake.start)
    monkeypatch.setattr(api, "LOGGERS", [*api.LOGGERS, "fake"])
    monkeypatch.setattr(api, "find_spec", lambda name: name == "fake" or find_spec(name))
    killed([*command(), "--logger", "fake"], at_row(25))
    assert tfstudy(*command(), "--logger", "fake") == 0
    assert_same(folder(), undisturbed(command()))
    assert folder().name == undisturbed(command()).name, "a logger is no part of a run's identity"
    name = "/".join(folder().parts[-3:])
    assert fake.targets == [(folder() / "logs" / "fake", read_result(folder()).run, name, 20)]
    assert fake.hyperparameters["model"]["hidden"] == 16
    assert fake.metrics == [row for row in rows(folder()) if row[0] > 20]
    assert fake.ends == ["success"]


def test_a_line_of_progress_has_the_number_the_speed_and_the_time_left(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = progress.ProgressLines("evaluate test", 3000, "examples")
    for seconds, done, share in ((9, 900, 0.3), (1, 1024, 0.25)):  # the first is less than ten seconds
        now[0] += seconds
        lines.examples(done, share)
    assert capsys.readouterr().out == "evaluate test: 1,024 of 3,000 examples, 102/s, 30 s left\n"


def test_training_shows_its_progress_and_logs_its_validations(capsys, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    logged: list[str] = []
    trained(callbacks=[TrainingProgress(logged.append)])
    metrics = r"validation loss \d+\.\d{4}, .*validation exact match [\d.]+$"
    for line, step in zip(logged, (2, 4), strict=True):
        assert re.search(rf"^step {step}  [\d,]+ tokens/s  {metrics}", line)
    assert re.search(r"training: 3 of 4 steps, loss \d\.\d{4}, [\d,]+ tokens/s, \d+ s left", capsys.readouterr().out)


# The packages themselves, where they are installed


def logged_twice(kind: str) -> Path:
    """The folder of a logger whose run was killed after step 25 and resumed from step 20."""
    pytest.importorskip(kind)
    killed([*command(), "--logger", kind], at_row(25))
    assert tfstudy(*command(), "--logger", kind) == 0
    return folder() / "logs" / kind


def test_tensorboard_shows_a_resumed_run_as_one():
    path = logged_twice("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(path))
    events.Reload()
    losses = [(step, pytest.approx(value)) for step, metric, value in rows(folder()) if metric == "train_loss"]
    assert [(event.step, event.value) for event in events.Scalars("train_loss")] == losses


def test_wandb_is_offline_and_keeps_the_id_of_a_resumed_run(monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    path = logged_twice("wandb")
    identity = read_result(folder()).run
    parts = [item for item in (path / "wandb").iterdir() if item.name.startswith("offline-run-")]
    assert 1 <= len(parts) <= 2  # two in different seconds
    assert all(item.name.endswith(identity) for item in parts)
    assert "WANDB_MODE" not in os.environ

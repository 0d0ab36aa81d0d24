"""Progress is shown as a bar on a terminal and as a line at most every ten seconds elsewhere."""

import sys

import pytest

from tests.training.small_training import small_training
from tfstudy.training import progress_display
from tfstudy.training.callbacks import ProgressBar
from tfstudy.training.fit import fit
from tfstudy.training.progress_display import ProgressDisplay


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test sets."""
    now = [100.0]
    monkeypatch.setattr(progress_display.time, "monotonic", lambda: now[0])
    return now


def test_a_line_has_the_number_the_speed_and_the_time_left(clock, capsys):
    with ProgressDisplay("evaluate test", 3000, "examples") as display:
        clock[0] += 9
        display.examples(900, 0.3)
        assert capsys.readouterr().out == "", "less than ten seconds"
        clock[0] += 1
        display.examples(1024, 0.25)
    assert capsys.readouterr().out == "evaluate test: 1,024 of 3,000 examples, 102/s, 30 s left\n"


def test_without_a_share_the_time_left_is_proportional_to_the_number(clock, capsys):
    display = ProgressDisplay("training", 200, "steps", done=100)
    clock[0] += 20
    display.update(150, "loss 1.0")
    assert capsys.readouterr().out == "training: 150 of 200 steps, loss 1.0, 20 s left\n"


def test_on_a_terminal_there_is_a_bar_that_is_removed_at_the_end(clock, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    display = ProgressDisplay("evaluate test", 30, "examples")
    clock[0] += 0.5
    display.examples(10, 0.5)
    assert display._bar
    display.stop(30)
    assert not display._bar
    assert "evaluate test: 30 of 30 examples" in capsys.readouterr().out


def test_training_and_its_validation_show_their_progress(capsys, monkeypatch):
    monkeypatch.setattr(progress_display, "LINE_INTERVAL", 0.0)
    module, data = small_training()
    fit(module, data, accelerator="cpu", callbacks=[ProgressBar(lambda _: None)])
    out = capsys.readouterr().out
    assert "training: 3 of 4 steps, loss " in out
    assert "training: 4 of 4 steps, validation: batch 1 of 1, 0 s left" in out
    assert " tokens/s, " in out


def test_a_batch_that_is_split_is_reported_once(capsys):
    module, data = small_training()
    module.executor.splits = 3
    logged = []
    fit(module, data, accelerator="cpu", callbacks=[ProgressBar(logged.append)])
    lines = [line for line in capsys.readouterr().out.splitlines() if "memory ran out" in line]
    assert len(lines) == len([line for line in logged if "memory ran out" in line]) == 1
    assert "train.batch_size" in lines[0]

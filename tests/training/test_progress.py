"""Progress is shown as a bar on a terminal and as a line at most every ten seconds elsewhere."""

import io
import re
import sys

import pytest

from tests.training.small_training import small_training
from tfstudy.cli.command_line import PrintableStream
from tfstudy.training import progress_display
from tfstudy.training.callbacks import TrainingProgress
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


def test_the_bar_of_a_command_is_redrawn_in_place(clock, monkeypatch):
    out = io.StringIO()
    out.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", PrintableStream(out))
    display = ProgressDisplay("training", 30, "steps")
    for step in (10, 20):
        clock[0] += 0.5
        display.update(step)
    display.stop(30)
    assert "\\x1b" not in out.getvalue()
    assert "\x1b[2K" in out.getvalue()


def test_training_and_its_validation_show_their_progress(capsys, monkeypatch):
    monkeypatch.setattr(progress_display, "LINE_INTERVAL", 0.0)
    module, data = small_training()
    logged: list[str] = []
    fit(module, data, accelerator="cpu", callbacks=[TrainingProgress(logged.append)])
    assert re.search(r"validation loss \d+\.\d{4}, .*validation exact match [\d.]+$", logged[-1])
    out = capsys.readouterr().out
    assert "training: 3 of 4 steps, loss " in out
    assert "training: 4 of 4 steps, validation: batch 1 of 1, 0 s left" in out
    assert " tokens/s, " in out

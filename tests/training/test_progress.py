"""Progress is shown as a bar on a terminal and as a line at most every ten seconds elsewhere."""

import io
import re
import sys
from types import SimpleNamespace

import pytest

from tests.training.small_training import small_training
from tfstudy.cli.command_line import PrintableStream
from tfstudy.training import progress_display
from tfstudy.training.callbacks import TrainingProgress
from tfstudy.training.fit import fit
from tfstudy.training.progress_display import ProgressDisplay, in_notebook


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


def in_a_notebook(monkeypatch) -> list[str]:
    """What the line in the cell shows, one text after the other."""
    shown: list[str] = []
    monkeypatch.setattr(progress_display, "in_notebook", lambda: True)
    monkeypatch.setattr(progress_display, "notebook_line", lambda: shown.append)
    return shown


def test_in_a_notebook_one_line_is_updated_and_stays_with_the_time_that_it_took(clock, capsys, monkeypatch):
    shown = in_a_notebook(monkeypatch)
    with ProgressDisplay("evaluate test", 3000, "examples") as display:
        for done in range(0, 3000, 300):
            clock[0] += 0.5
            display.examples(done, done / 3000)
    assert len(shown) == 6, "one update each second, and the last"
    assert shown[0] == "evaluate test: 300 of 3,000 examples, 300/s, 9 s left"
    assert shown[-1] == "evaluate test: 3,000 examples in 5 s"
    assert capsys.readouterr().out == ""


def test_a_kernel_is_a_notebook_and_ipython_in_a_terminal_is_not(monkeypatch):
    for shell, notebook in ((SimpleNamespace(kernel=1), True), (SimpleNamespace(), False), (None, False)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert in_notebook() == notebook
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


def test_training_and_its_validation_show_their_progress(capsys, monkeypatch):
    monkeypatch.setattr(progress_display, "LINE_INTERVAL", 0.0)
    module, data = small_training()
    logged: list[str] = []
    fit(module, data, accelerator="cpu", callbacks=[TrainingProgress(logged.append)])
    assert re.search(r"loss \d+\.\d{4}, teacher-forced accuracy [\d.]+ %, exact match [\d.]+ %$", logged[-1])
    out = capsys.readouterr().out
    assert "training: 3 of 4 steps, loss " in out
    assert "training: 4 of 4 steps, validation: batch 1 of 1, 0 s left" in out
    assert " tokens/s, " in out


def test_a_batch_that_is_split_is_reported_once(capsys):
    module, data = small_training(micro_batches=1)
    module.compute_gradients.splits = 3
    logged = []
    fit(module, data, accelerator="cpu", callbacks=[TrainingProgress(logged.append)])
    lines = [line for line in capsys.readouterr().out.splitlines() if "memory ran out" in line]
    assert len(lines) == len([line for line in logged if "memory ran out" in line]) == 1
    assert "train.batch_size" in lines[0]

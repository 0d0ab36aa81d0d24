"""The same command again: a killed run ends as if it had never stopped, a finished one is left alone, `--restart`
archives it, and a living one is safe."""

import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import tfstudy
from tests.example_jobs import wait_for
from tests.interrupted_runs import assert_same, at_row, command, die, folder, forked, killed
from tfstudy.cli import main
from tfstudy.evaluation import evaluate
from tfstudy.runs.store import open_run

pytestmark = pytest.mark.usefixtures("reverse")


def at_file(name: str, count: int, when: str) -> Callable[[], None]:
    """Just before or after the file of this name appears for the `count`-th time."""

    def prepare() -> None:
        replace, seen = os.replace, []

        def counted(source, target):
            ours = Path(target).name == name
            seen.extend([1] * ours)
            if ours and when == "before" and len(seen) == count:
                die()
            replace(source, target)
            if ours and when == "after" and len(seen) == count:
                die()

        os.replace = counted

    return prepare


def half_a_row() -> None:
    with (folder() / "metrics.csv").open("a") as file:
        file.write("15,gradient_no")
    die()


PLACES = {
    "before the first checkpoint": (at_row(5), 0),
    "when the first checkpoint is about to appear": (at_file("last.ckpt", 1, "before"), 0),
    "between checkpoints": (at_row(15), 10),
    "in the middle of a row": (at_row(15, half_a_row), 10),
    "after the best and before the last checkpoint": (at_file("last.ckpt", 3, "before"), 20),
    "just after a checkpoint": (at_file("last.ckpt", 3, "after"), 30),
    "between training and evaluation": (at_file("last.ckpt", 4, "after"), 40),
    "during evaluation": (at_file("validation.jsonl.gz", 1, "after"), 40),
    "while the second split is written": (at_file("test.jsonl.gz", 1, "before"), 40),
    "before the result": (at_file("result.json", 1, "before"), 40),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_run_killed_anywhere_and_started_again_ends_as_if_undisturbed(place, undisturbed, capsys):
    prepare, step = PLACES[place]
    killed(command(), prepare)
    assert not (folder() / "result.json").exists()
    assert tfstudy(*command()) == 0
    err = capsys.readouterr().err
    assert (f"resuming after step {step} of 40" in err) == (step > 0)
    assert_same(folder(), undisturbed(command()))
    assert not list(folder().rglob("*.part"))


@pytest.mark.parametrize("arch", ["transformer", "cnn"])
def test_every_architecture_killed_again_and_again_ends_as_if_undisturbed(arch, undisturbed, capsys):
    words = command(arch)
    for step in (5, 15, 35):
        killed(words, at_row(step))
    assert tfstudy(*words) == 0
    assert "resuming after step 30 of 40" in capsys.readouterr().err
    assert_same(folder(), undisturbed(words))


@pytest.mark.parametrize(
    "settings",
    [
        ["train.steps=37", "train.teacher_forcing=0.5"],  # the last epoch is cut short
        ["train.batching=fairseq", "train.batch_tokens=40", "train.resampled_examples=90"],
        ["train.gradient_checkpointing=true", "eval.checkpoint=best", "train.accumulate_grad_batches=2"],
        ["data.split=alone"],  # without validation
    ],
    ids=lambda settings: settings[-1],
)
def test_these_settings_resume_to_the_same_result(settings, undisturbed):
    words = command("lstm", *(word for setting in settings for word in ("--set", setting)))
    killed(words, at_row(35))
    assert tfstudy(*words) == 0
    assert_same(folder(), undisturbed(words))


@pytest.mark.parametrize("place", ["training", "evaluation"])
def test_an_interrupted_run_says_how_to_resume_it_and_exits_with_130(place, undisturbed):
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def child() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if place == "training":
            at_row(15, interrupt)()
        else:
            evaluate.summarise_outputs = lambda *_: interrupt() or time.sleep(5)
        try:
            with Path("err").open("w", buffering=1) as sys.stderr:
                main(command())
        except SystemExit as end:
            os._exit(int(end.code or 0))

    process = forked([], child)
    _, status = os.waitpid(process, 0)
    assert os.WEXITSTATUS(status) == 130
    assert re.search("same command.*resume", Path("err").read_text())
    assert tfstudy(*command()) == 0
    assert_same(folder(), undisturbed(command()))


def test_an_evaluation_that_fails_leaves_the_training_and_says_so(monkeypatch, undisturbed, capsys):
    decode = evaluate.evaluate

    def fail(*args):
        if args[2] == "test":
            raise RuntimeError("broken")
        return decode(*args)

    monkeypatch.setattr(evaluate, "evaluate", fail)
    with pytest.raises(RuntimeError, match="broken"):
        tfstudy(*command())
    assert "the training is complete and kept: the same command only evaluates" in capsys.readouterr().err
    monkeypatch.setattr(evaluate, "evaluate", decode)
    assert tfstudy(*command()) == 0
    assert_same(folder(), undisturbed(command()))


def test_a_run_that_goes_on_on_another_device_says_so_and_records_both(monkeypatch, capsys):
    killed(command(), at_row(20))
    monkeypatch.setattr("tfstudy.experiment.run.device_name", lambda device: "another one")
    assert tfstudy(*command()) == 0
    [first, second] = [event.environment.device for event in open_run(folder()).events if event.event == "started"]
    assert second == "another one"
    assert f"resumed on another one, after {first}: " in capsys.readouterr().err


@pytest.fixture
def finished(undisturbed) -> Path:
    """The folder of a finished run of `command()`, in a copy of its results."""
    shutil.copytree(undisturbed(command()).parents[3], "results")
    return folder()


def test_restart_archives_the_whole_run_and_runs_it_again(finished, capsys):
    old = {path.relative_to(finished): path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    first, second = (finished.with_name(f"{finished.name}.old-{number}") for number in (1, 2))
    for archived in (first, second):
        assert tfstudy(*command("lstm", "--restart")) == 0
        assert (archived / "result.json").exists()
        assert archived.name in capsys.readouterr().err
    for name, content in old.items():
        assert name.name == ".lock" or (first / name).read_bytes() == content
    assert_same(finished, first)
    assert json.loads((folder() / "result.json").read_text())["test_reads"] == {"test": 1}


def test_a_run_of_another_process_is_refused_until_that_has_died(undisturbed, capsys):
    process = forked(command(), at_row(15, signal.pause))
    try:
        wait_for(lambda: list(Path("results").glob("runs/*/*/*/metrics.csv")), 60)
        for more in ([], ["--restart"]):
            assert tfstudy(*command("lstm", *more)) == 2
            err = capsys.readouterr().err
            assert f"process {process} on " in err
        assert tfstudy(*command("lstm", "--seed", "1", "--results", "others")) == 0
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert tfstudy(*command()) == 0
    assert_same(folder(), undisturbed(command()))
    assert not list(folder().parent.glob("*.old-*"))

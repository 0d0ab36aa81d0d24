"""A short training run, ways to kill it at a chosen point, and the comparison of two finished runs."""

import json
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tfstudy.config.trees import flatten

ARCHITECTURES = {
    "transformer": ["--arch", "transformer", "--set", "model.feedforward=16"],
    "lstm": ["--arch", "lstm", "--set", "model.hidden=16", "--set", "model.layers=2", "--set", "model.dropout=0.3"],
    "cnn": ["--arch", "cnn", "--set", "model.channels=16", "--set", "model.layers=2"],
}
COPYING = {
    "model": {"dim": 8, "hidden": 8},
    "data": {"train_examples": 60, "eval_examples": 8},
    "train": {"steps": 8, "validation_interval": 4, "log_interval": 2},
    "eval": {"max_examples": 8},
}
COPYING_RUN = ["run", "copying", "--arch", "lstm", "--accelerator", "cpu", "--study", "study", "--quiet"]
COPYING_RUN += [word for key, value in flatten(COPYING).items() for word in ("--set", f"{key}={value}")]
SETTINGS = {"steps": 40, "validation_interval": 10, "log_interval": 5, "batch_size": 8}


def command(arch: str = "lstm", *more: str) -> list[str]:
    """A run of some tenths of a second, with validations and checkpoints at steps 10, 20, 30 and 40."""
    train = [word for key, value in SETTINGS.items() for word in ("--set", f"train.{key}={value}")]
    small = ["--set", "model.dim=16", "--set", "eval.max_examples=24", "--accelerator", "cpu"]
    return ["run", "reverse", *train, *small, *ARCHITECTURES[arch], *more]


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> Callable[[Sequence[str]], Path]:
    """The folder of the same command's run, never stopped."""
    made: dict[tuple[str, ...], Path] = {}

    def undisturbed(words: Sequence[str]) -> Path:
        key = tuple(words)
        if key not in made:
            results = tmp_path_factory.mktemp("undisturbed")
            assert tfstudy(*words, "--results", results) == 0
            made[key] = folder(results)
        return made[key]

    return undisturbed


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """The results of a study of two finished runs of `COPYING_RUN`, with checkpoints and a measurement."""
    results = tmp_path_factory.mktemp("trained") / "results"
    for seed in "01":
        assert tfstudy(*COPYING_RUN, "--seed", seed, "--results", results) == 0
        words = ["measure", f"study/lstm/s{seed}", "entropy", "--save", "--quiet"]
        assert tfstudy(*words, "--results", results) == 0
    return results


def folder(results: Path = Path("results")) -> Path:
    """The only run under the results."""
    [path] = [p.parent for p in results.glob("runs/*/*/*/config.yaml") if ".old-" not in str(p)]
    return path


def forked(words: Sequence[str], prepare: Callable[[], None]) -> int:
    """The process id of the command in a process of its own, in which `prepare` has been called."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
        process = os.fork()
    if process:
        return process
    try:
        prepare()
        tfstudy(*words)
    finally:
        os._exit(99)


def killed(words: Sequence[str], prepare: Callable[[], None]) -> None:
    """Runs the command in a process that `prepare` makes kill itself somewhere."""
    _, status = os.waitpid(forked(words, prepare), 0)
    assert os.WIFSIGNALED(status), "the run ended before it could be killed"
    assert os.WTERMSIG(status) == signal.SIGKILL


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_row(step: int, then: Callable[[], None] = die) -> Callable[[], None]:
    """Once the metrics of this step are written."""

    def prepare() -> None:
        from tfstudy.training.loggers import MetricsFile

        write = MetricsFile.log_metrics

        def log_metrics(self, metrics, step_=None):
            write(self, metrics, step_)
            if step_ == step:
                then()

        MetricsFile.log_metrics = log_metrics

    return prepare


def weights(path: Path, name: str) -> dict[str, torch.Tensor]:
    return torch.load(path / "checkpoints" / name, weights_only=True)["state_dict"]


def assert_same(one: Path, other: Path) -> None:
    """Two finished runs have the same metrics and predictions by the byte, the same weights and the same numbers."""
    names = ["metrics.csv", *(f"predictions/{path.name}" for path in (other / "predictions").iterdir())]
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    for name in ("last.ckpt", *(["best.ckpt"] if len(names) > 2 else [])):  # the best needs validation
        a, b = weights(one, name), weights(other, name)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[key], b[key]) for key in a), name
    a, b = (json.loads((path / "result.json").read_text()) for path in (one, other))
    unlike = {"train_seconds", "evaluate_seconds"}
    unlike |= {"started", "finished", "files", "events_size", "sha256"}
    assert {k: v for k, v in a.items() if k not in unlike} == {k: v for k, v in b.items() if k not in unlike}

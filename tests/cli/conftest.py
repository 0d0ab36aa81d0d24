"""Every test of a command runs in a folder of its own, with the small task `reverse`; finished runs are shared."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.example_task import TASK, added
from tests.interrupted_runs import command
from tfstudy import tasks


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module", autouse=True)
def _reverse(tmp_path_factory) -> Iterator[None]:
    with added(tasks, "reverse", TASK, tmp_path_factory.mktemp("tasks")):
        yield


@pytest.fixture
def finished(undisturbed, capsys) -> Callable[..., Path]:
    """`finished(arch, *more)`: the folder of a finished run of `command(arch, *more)`, a copy below `results`."""

    def finished(arch: str = "lstm", *more: str, study: str = "runs") -> Path:
        run = undisturbed(command(arch, *more))
        capsys.readouterr()
        return Path(shutil.copytree(run, Path("results", study, *run.parts[-3:])))

    return finished

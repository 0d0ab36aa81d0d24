"""The plug-in package of `examples/plugin`, installed; and an architecture that `tfstudy new` wrote, in a study."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.committed import ROOT

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
SETTINGS = ("train.steps=4", "train.warmup_steps=2", "train.batch_size=8", "model.dim=16", "model.hidden=16")
SMALL = (
    *(word for one in SETTINGS for word in ("--set", one)),
    "--set",
    "eval.max_examples=16",
    "--accelerator",
    "cpu",
)
DATA = ("--set", "data.train_examples=100", "--set", "data.eval_examples=20")

pytestmark = pytest.mark.slow


def run(folder: Path, *words: str, site: Path | None = None) -> str:
    """What a command prints; it runs in this folder, with these packages installed."""
    environment = (
        os.environ | {"OMP_NUM_THREADS": "1", "TFSTUDY_PLUGINS": ""} | ({"PYTHONPATH": str(site)} if site else {})
    )
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def new_files() -> list[str]:
    """The files of the repository that git does not know and that have the name of the architecture."""
    words = ("git", "ls-files", "--others", "--", "*mynet*")
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "examples" / "plugin", folder / "source")
    options = ("--no-deps", "--no-build-isolation", "--target", str(folder / "site"))
    run(folder, *PIP, "install", *options, str(folder / "source"))
    return folder / "site"


def test_its_task_and_architecture_are_listed_and_take_part_in_a_study(site, tmp_path):
    tfstudy = (sys.executable, "-m", "tfstudy")
    assert "plug-in: tfstudy-example 0.1.0" in run(tmp_path, *tfstudy, "list", "tasks", site=site)
    assert "elman" in run(tmp_path, *tfstudy, "list", "architectures", site=site)
    grid = ("grid", "--task", "shift", "--arch", "elman,lstm", "--seed", "0", "--study", "shift", *SMALL, *DATA)
    run(tmp_path, *tfstudy, *grid, site=site)
    table = run(tmp_path, *tfstudy, "table", "shift", site=site)
    assert "elman" in table
    assert "lstm" in table
    run(tmp_path, *tfstudy, "plot", "shift", "--out", "shift.svg", site=site)
    assert (tmp_path / "shift.svg").stat().st_size > 5000
    [elman] = (tmp_path / "results" / "shift").glob("*/elman/s0-*")
    run(tmp_path, *tfstudy, "predict", str(elman), "a b", site=site)
    assert "elman" in run(tmp_path, *tfstudy, "table", "shift")  # without the package


def test_its_own_tests_pass_where_it_is_installed(site):
    out = run(
        site.parent / "source", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", site=site
    )
    assert "3 passed" in out


@pytest.mark.parametrize("launcher", ["local", "ray"])
def test_a_new_architecture_takes_part_in_a_study_without_a_change_of_the_repository(launcher, tmp_path):
    if launcher == "ray":
        pytest.importorskip("ray")
    tfstudy = (sys.executable, "-m", "tfstudy", "--plugin", "mynet.py")
    run(tmp_path, *tfstudy[:3], "new", "architecture", "mynet")
    grid = ("grid", "--task", "copying", "--arch", "mynet,lstm", "--seed", "0", "--study", "own", *SMALL, *DATA)
    run(tmp_path, *tfstudy, *grid, "--launcher", launcher)
    assert "mynet" in run(tmp_path, *tfstudy, "table", "own")
    run(tmp_path, *tfstudy, "plot", "own", "--out", "own.svg")
    [path] = (tmp_path / "results" / "own").glob("*/mynet/s0-*")
    assert "plug-in architecture mynet" in (path / "env.json").read_text()
    assert new_files() == []

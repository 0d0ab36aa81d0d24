"""The wheel and the sdist: what is in them, one version for all files that state it, and what an installed one runs."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import tfstudy
from tests.committed import ROOT

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
SUFFIXES = (".py", ".yaml", ".csv", ".bib", ".json")
INSTALL = (*PIP, "install", "--no-deps", "--no-build-isolation", "--target")


def build(folder: Path, target: str, out: Path) -> Path:
    """Build a wheel or an sdist from a source tree; return its path."""
    words = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    [path] = out.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this tree."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def run(folder: Path, *words: object, site: Path | None = None) -> str:
    """What a command prints; it runs in this folder, with the packages in `site`."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TFSTUDY_PLUGINS": ""}
    environment |= {"PYTHONPATH": str(site)} if site else {}
    done = subprocess.run([*map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_with_tasks_and_configs_and_no_caches_or_results(wheel):
    names = set(contents(wheel))
    assert {name.split("/")[0] for name in names} == {"tfstudy", f"tfstudy-{tfstudy.__version__}.dist-info"}
    assert [name for name in names if re.search(r"__pycache__|\.pyc$|\.ckpt$|/\.|tests?/", name)] == []
    assert "tfstudy/py.typed" in names
    for folder, inside in (("tasks", "tfstudy/tasks"), ("configs", "tfstudy/configs")):
        files = [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
        assert {f"{inside}/{path.relative_to(ROOT / folder)}" for path in files} <= names


def test_the_sdist_builds_the_same_wheel(wheel, tmp_path):
    with tarfile.open(build(ROOT, "sdist", tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [folder] = (tmp_path / "source").iterdir()
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "constraints.txt", "tasks"} <= names
    assert contents(build(folder, "wheel", tmp_path / "wheel")) == contents(wheel)


def test_all_files_that_state_the_version_state_the_same(wheel):
    [metadata] = [text for name, text in contents(wheel).items() if name.endswith("/METADATA")]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    released = re.findall(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation["version"] == released[0] == tfstudy.__version__
    assert f"\nVersion: {tfstudy.__version__}\n" in metadata.decode()


@pytest.mark.slow
def test_an_installed_wheel_runs_in_an_empty_folder(wheel, tmp_path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    run(empty, *INSTALL, site, wheel)
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == {"tfstudy", "bin"}
    assert "SMOKE RUN" in run(empty, sys.executable, "-m", "tfstudy", "run", "scan", "--smoke", site=site)
    code = "import tfstudy.tasks as t, tfstudy.config.trees as c; print(t.__file__, c.__file__, c.configs())"
    assert all(Path(place).is_relative_to(site) for place in run(empty, sys.executable, "-c", code, site=site).split())


# A plug-in package

SETTINGS = ("train.steps=4", "train.warmup_steps=2", "train.batch_size=8", "model.dim=16", "model.hidden=16",
            "eval.max_examples=16", "data.train_examples=100", "data.eval_examples=20")  # fmt: skip
SMALL = (*(word for one in SETTINGS for word in ("--set", one)), "--seed", "0", "--accelerator", "cpu")


@pytest.mark.slow
def test_the_example_of_a_package_takes_part_in_a_study_and_passes_its_own_tests(tmp_path):
    site, source = tmp_path / "site", tmp_path / "source"
    shutil.copytree(ROOT / "examples" / "plugin", source)
    run(tmp_path, *INSTALL, site, source)
    program = (sys.executable, "-m", "tfstudy")
    assert "plug-in: tfstudy-example 0.1.0" in run(tmp_path, *program, "list", "tasks", site=site)
    assert "elman" in run(tmp_path, *program, "list", "architectures", site=site)
    run(tmp_path, *program, "grid", "--task", "shift", "--arch", "elman,lstm", "--study", "shift", *SMALL, site=site)
    [elman] = (tmp_path / "results" / "shift").glob("*/elman/s0-*")
    run(tmp_path, *program, "predict", elman, "a b", site=site)
    assert "elman" in run(tmp_path, *program, "table", "shift")  # without the package
    assert "3 passed" in run(source, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", site=site)

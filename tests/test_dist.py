"""The wheel and the sdist: what is in them, and one version for all files that state it."""

import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
import yaml

import tfstudy
from tests.committed import ROOT


def build(folder: Path, target: str, out: Path) -> Path:
    """Build a wheel or an sdist from a source tree; return its path."""
    words = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    [path] = out.iterdir()
    return path


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    """The sdist of this tree."""
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    """The wheel of this tree."""
    with zipfile.ZipFile(build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))) as opened:
        yield opened


def contents(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    return {name: wheel.read(name) for name in wheel.namelist()}


def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def test_the_wheel_holds_tfstudy_only_and_no_caches_or_results(wheel):
    names = wheel.namelist()
    assert {name.split("/")[0] for name in names} == {"tfstudy", f"tfstudy-{tfstudy.__version__}.dist-info"}
    assert len(names) == len(set(names)), "no file twice"
    assert [name for name in names if re.search(r"__pycache__|\.pyc$|\.ckpt$|/\.|tests?/", name)] == []


def test_the_wheel_holds_the_tasks_the_configs_and_the_marker_of_types(wheel):
    names = set(wheel.namelist())
    assert "tfstudy/py.typed" in names
    for folder, inside in (("tasks", "tfstudy/tasks"), ("configs", "tfstudy/configs")):
        files = [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".yaml", ".csv", ".bib")]
        assert {f"{inside}/{path.relative_to(ROOT / folder)}" for path in files} <= names


def test_an_editable_install_copies_no_file_of_the_package(tmp_path):
    words = f"from hatchling.build import build_editable; build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", words], cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.iterdir())) as built:
        assert [name for name in built.namelist() if ".dist-info/" not in name] == ["_tfstudy.pth"]
        assert Path(built.read("_tfstudy.pth").decode()) == ROOT


def test_the_sdist_builds_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [folder] = (tmp_path / "source").iterdir()
    assert {"README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "constraints.txt", "tasks"} <= {
        path.name for path in folder.iterdir()
    }
    with zipfile.ZipFile(build(folder, "wheel", tmp_path / "wheel")) as again:
        assert contents(again) == contents(wheel)


def test_the_metadata_are_complete(wheel):
    head = metadata(wheel)
    assert (head["Name"], head["Version"]) == ("tfstudy", tfstudy.__version__)
    assert (head["Author"], head["License-Expression"]) == ("tfstudy developers", "Apache-2.0")
    assert head["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in head.get_all("Classifier")
    assert head["Description-Content-Type"] == "text/markdown"
    assert head.get_payload().strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()


@pytest.mark.parametrize("folder", ["docs", "tfstudy", "tasks"])
def test_extras_are_installed_from_a_checkout_and_never_by_name_from_an_index(folder):
    texts = [path for path in (ROOT / folder).rglob("*") if path.suffix in (".md", ".py")]
    assert len(texts) > 10
    assert [str(path) for path in texts if re.search(r"(?<![/\w])tfstudy\[", path.read_text(encoding="utf-8"))] == []


def test_all_files_that_state_the_version_state_the_same():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    released = re.findall(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation["version"] == released[0] == tfstudy.__version__
    assert citation["authors"] == [{"name": "tfstudy developers"}]

"""Workflows and the issue forms: GitHub's schemas, and their commands; targets of the Makefile."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.code_blocks import check_command, commands
from tests.committed import ROOT

GITHUB = ROOT / ".github"
SCHEMAS = {
    "github-workflows": sorted(GITHUB.glob("workflows/*.yml")),
    "github-issue-forms": [p for p in sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml")) if p.name != "config.yml"],
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
}
WORKFLOWS = SCHEMAS["github-workflows"]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def steps() -> list[tuple[str, dict[str, Any]]]:
    """Every step of a workflow, with the file that it is in."""
    return [(path.name, step) for path in WORKFLOWS for job in read(path)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_files_follow_the_schemas_of_github(name):
    assert SCHEMAS[name], "there is at least one"
    words = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{name}", *map(str, SCHEMAS[name])]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_of_a_workflow_exists():
    lines = [words for _, step in steps() for words in commands(step.get("run", ""))]
    known = [words for words in lines if words[0] in ("make", "tfstudy")]
    assert {" ".join(words[:2]) for words in known} >= {"make check", "make dist", "tfstudy grid", "tfstudy check"}
    for words in known:
        check_command(words)


def test_no_input_is_pasted_into_a_script():
    assert [name for name, step in steps() if "${{" in step.get("run", "")] == []


def test_accuracies_are_checked_when_the_versions_of_packages_change():
    triggers = read(GITHUB / "workflows" / "accuracy.yml")[True]  # PyYAML reads the key `on` as true
    assert {"pyproject.toml", "constraints.txt"} <= set(triggers["pull_request"]["paths"])


def test_the_pythons_of_the_metadata_are_those_that_a_workflow_tests():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    stated = [line.split(" :: ")[-1] for line in stated if re.search(r"Python :: 3\.\d+$", line)]
    assert read(GITHUB / "workflows" / "tests.yml")["jobs"]["check"]["strategy"]["matrix"]["python"] == stated


def test_a_workflow_runs_the_slow_tests_every_week_and_builds_the_image():
    workflow = read(GITHUB / "workflows" / "tests.yml")
    runs = {name: [step.get("run", "") for step in job["steps"]] for name, job in workflow["jobs"].items()}
    assert "make slow" in runs["slow"]
    assert "docker build --tag tfstudy ." in runs["image"]
    assert [len(entry["cron"].split()) for entry in workflow[True]["schedule"]] == [5]


MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_make_help_lists_every_target():
    listed = re.findall(r'@echo "make ([\w-]+) ', MAKEFILE)
    [targets] = re.findall(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)
    assert sorted(listed) == sorted(targets.split())


def test_make_clean_removes_every_folder_that_the_tools_leave():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    left = {line.strip("/") for line in ignored if re.fullmatch(r"/?[\w.-]+/", line)}
    inside = {"__pycache__", "checkpoints", ".plans", ".weights", ".slurm"}  # in packages, studies and runs
    assert left - inside <= set(MAKEFILE.split("\nclean:")[1].split())

"""Workflows, the reusable action and the issue forms: GitHub's schemas, and their commands; targets of the Makefile."""

import os
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
from tests.example_jobs import executable

GITHUB = ROOT / ".github"
SCHEMAS = {
    "github-workflows": sorted(GITHUB.glob("workflows/*.yml")),
    "github-actions": sorted(GITHUB.glob("actions/*/action.yml")),
    "github-issue-forms": [p for p in sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml")) if p.name != "config.yml"],
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
}
WORKFLOWS, [ACTION] = SCHEMAS["github-workflows"], SCHEMAS["github-actions"]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def steps() -> list[tuple[str, dict[str, Any]]]:
    """Every step of a workflow or an action, with the file that it is in."""
    found = [(path.name, step) for path in WORKFLOWS for job in read(path)["jobs"].values() for step in job["steps"]]
    return found + [(ACTION.name, step) for step in read(ACTION)["runs"]["steps"]]


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
        check_command([word for word in words if word != "$OPTIONS"])


def test_a_step_that_uses_the_action_gives_inputs_that_it_has():
    inputs = read(ACTION)["inputs"]
    used = [step for _, step in steps() if step.get("uses") == f"./{ACTION.parent.relative_to(ROOT)}"]
    assert used
    for step in used:
        assert step["with"].keys() <= inputs.keys()
        assert {name for name, given in inputs.items() if given.get("required")} <= step["with"].keys()
        assert (ROOT / step["with"]["baseline"]).is_file()


def test_no_input_is_pasted_into_a_script():
    assert [name for name, step in steps() if "${{" in step.get("run", "")] == []


def test_the_inputs_that_the_action_reads_are_those_that_it_declares():
    read_names = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text()))
    assert read_names == read(ACTION)["inputs"].keys()


def outputs(environment: dict[str, str], file: Path) -> dict[str, str]:
    """The outputs of the step that names the study and the artifact."""
    [step] = [step for step in read(ACTION)["runs"]["steps"] if step.get("id") == "names"]
    subprocess.run(["bash", "-e", "-c", step["run"]], check=True, env=environment | {"GITHUB_OUTPUT": str(file)})
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


@pytest.mark.parametrize(
    ("grid", "study", "expected"), [("ci", "", "ci"), ("my grids/a.yaml", "", "a"), ("ci", "x", "x")]
)
def test_the_action_trains_and_checks_one_study(grid, study, expected, tmp_path):
    executable(tmp_path / "bin" / "tfstudy", f'printf "%s|" "$@" >> {tmp_path}/calls; echo >> {tmp_path}/calls')
    given = {"GRID": grid, "OPTIONS": "--accelerator cpu --seed 0-2", "RESULTS": "results", "SUITE": str(ROOT)}
    given |= {"BASELINE": "b.json", "TOLERANCE": "2", "JUNIT": "j.xml", "GITHUB_STEP_SUMMARY": "s.md", "ARTIFACT": ""}
    environment = os.environ | given | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    named = outputs(environment | {"STUDY": study}, tmp_path / "outputs")
    for step in read(ACTION)["runs"]["steps"]:
        if "tfstudy " in step.get("run", ""):
            assert step["env"]["STUDY"] == "${{ steps.names.outputs.study }}"
            words = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
            subprocess.run(words, check=True, env=environment | {"STUDY": named["study"]})
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"grid|{grid}|--study|{expected}|--results|results|--accelerator|cpu|--seed|0-2|",
        f"check|{expected}|--results|results|--against|b.json|--tolerance|2|--junit|j.xml|--summary|s.md|",
    ]


@pytest.mark.parametrize(
    ("grid", "study", "artifact", "expected"),
    [("a/b.yaml", "", "", "accuracy-b"), ("a/b.yaml", "x", "", "accuracy-x"), ("ci", "", "on-3.12", "on-3.12")],
)
def test_the_artifact_is_named_after_the_study_or_as_asked(grid, study, artifact, expected, tmp_path):
    given = {"GRID": grid, "STUDY": study, "ARTIFACT": artifact, "SUITE": str(ROOT)}
    assert outputs(os.environ | given, tmp_path / "outputs")["artifact"] == expected
    [upload] = [step for step in read(ACTION)["runs"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert upload["with"]["name"] == "${{ steps.names.outputs.artifact }}"


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

"""What commands import: nothing slow for help, no torch to read records, no Lightning without training."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.example_records import ENVIRONMENT, result, write
from tests.interrupted_runs import command

PACKAGES = ("torch", "lightning", "torchmetrics", "pandas", "datasets", "seaborn", "numpy")
CODE = """
import json, sys
from tfstudy.cli import main
imported = []
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        code = end.code or 0
    imported.append([code, [name for name in {packages} if name in sys.modules]])
print(json.dumps(imported))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def study() -> Path:
    """The records of finished runs, which have the settings that are not defaults."""
    study = write(Path("results/study"), result(0, 0.2), result(1, 0.4))
    environment = ENVIRONMENT | {"settings": {"task": "scan", "arch": "lstm", "data": {"split": "length"}}}
    for run in study.glob("*/*/*"):
        (run / "env.json").write_text(json.dumps([environment]))
        (run / "train.log").write_text("step 1\n")
    return study


def imported(*commands: list[str | Path]) -> list[tuple[int, set[str]]]:
    """Each command's exit code, and the slow packages after it in one new process for all."""
    words = json.dumps([list(map(str, command)) for command in commands])
    process = subprocess.run(
        [sys.executable, "-c", CODE.format(packages=PACKAGES), words],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
    )
    return [(code, set(packages)) for code, packages in json.loads(process.stdout.splitlines()[-1])]


def test_help_and_unknown_names_import_nothing_slow():
    right = (["--help"], ["--version"], ["run", "--help"])
    wrong = ([], ["nonsense"], ["run", "scna"], ["predict", "none", "a"], ["attention", "none", "a"])
    assert imported(*right, *wrong) == [(0, set())] * len(right) + [(2, set())] * len(wrong)


def test_commands_that_read_records_import_no_torch(study):
    run = next(study.glob("*/*/*"))
    commands = [
        ["status"],
        ["status", "study"],
        *(["list", kind] for kind in ("runs", "tasks", "splits", "presets", "grids")),
        ["table", "study"],
        ["claims", "L2"],
        ["logs", run],
        ["result", run],
        ["diff", run, run],
        ["retry", "study", "--dry-run"],
        ["plot", "study", "--out", "plot.svg"],
    ]
    for command_, (code, packages) in zip(commands, imported(*commands), strict=True):
        assert code == 0, command_
        assert not {"torch", "lightning"} & packages, command_
    refused = imported(["check", "study", "--against", "none.json"], ["errors", run])
    assert [code for code, _ in refused] == [2, 2]
    assert not {"torch", "lightning"} & refused[-1][1]


def test_commands_that_do_not_train_import_no_lightning():
    few = ["--set", "data.train_examples=200", "--set", "data.eval_examples=20"]
    [(code, packages)] = imported(["run", "copying", *command()[2:], *few])
    assert code == 0
    assert packages >= {"torch", "lightning"}
    run = next(Path("results").glob("*/*/*/s*"))
    commands = [
        ["config", "copying"],
        ["why", run],
        ["predict", run, json.loads(_first_example(run))["source"]],
        ["attention", run, json.loads(_first_example(run))["source"], "--format", "json"],
        ["evaluate", run, "--test-set", "validation"],
        ["grid", "--task", "copying", "--arch", "lstm", *few, "--dry-run"],
    ]
    for command_, (code, packages) in zip(commands, imported(*commands), strict=True):
        assert code == 0, command_
        assert "lightning" not in packages, command_


def _first_example(run: Path) -> str:
    return gzip.decompress((run / "predictions" / "validation.jsonl.gz").read_bytes()).decode().splitlines()[0]

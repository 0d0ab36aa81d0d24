"""What commands import: nothing slow for help, no torch to read records, no Lightning without training."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.commands import tfstudy
from tests.interrupted_runs import command
from tfstudy.runs.store import read_predictions

SLOW = {"torch", "lightning", "torchmetrics", "pandas", "datasets", "seaborn", "matplotlib", "numpy"}
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


def test_a_command_imports_only_what_it_needs():
    """One process runs all commands, those that need least first; the last one trains."""
    few = ["--set", "data.train_examples=200", "--set", "data.eval_examples=20"]
    train = ["run", "copying", *command()[2:], *few, "--study", "mine"]
    assert tfstudy(*train) == 0
    [run] = Path("results").glob("mine/*/*/s*")
    source = read_predictions(run, "validation")[0].source
    stages = [  # what must not be imported, and the commands with their exit codes
        (SLOW, 0, [["--help"], ["--version"], ["run", "--help"]]),
        (SLOW, 2, [[], ["nonsense"], ["run", "scna"], ["predict", "none", "a"], ["result", "none", "--log"]]),
        (SLOW - {"numpy"}, 2, [["run", "scan", "--arch", "lstn"]]),
        (SLOW - {"numpy"}, 0, [["status"], ["status", "mine"]]),
        (SLOW - {"numpy"}, 0, [["list", kind] for kind in ("runs", "tasks", "presets", "grids")]),
        ({"torch", "lightning"}, 0, [["table", "mine"], ["claims", "L2"], ["result", run, "--log"], ["result", run]]),
        ({"torch", "lightning"}, 0, [["errors", run], ["result", run, run], ["grid", "--resume", "mine", "--dry-run"]]),
        ({"torch", "lightning"}, 0, [["plot", "mine", "--out", "plot.svg"], ["report", "--out", "page"]]),
        ({"torch", "lightning"}, 2, [["check", "mine", "--against", "none.json"]]),
        ({"lightning"}, 0, [["config", "copying"], ["result", run, "--changes"], ["predict", run, source]]),
        ({"lightning"}, 0, [["measure", run, "entropy", "--set", "examples=6"]]),
        ({"lightning"}, 0, [["grid", "--task", "copying", "--arch", "lstm", *few, "--dry-run"]]),
        (set(), 0, [[*train, "--seed", "1"]]),
    ]
    words = json.dumps([list(map(str, one)) for *_, commands in stages for one in commands])
    program = [sys.executable, "-c", CODE.format(packages=sorted(SLOW)), words]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.run(program, capture_output=True, text=True, env=environment, check=True)
    found = iter(json.loads(process.stdout.splitlines()[-1]))
    for forbidden, expected, commands in stages:
        for one in commands:
            code, packages = next(found)
            assert code == expected, (one, process.stderr)
            assert not forbidden & set(packages), one
    assert {"torch", "lightning"} <= set(packages), "training needs both"

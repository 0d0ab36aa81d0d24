"""A misspelled name is answered without importing what is slow: torch for tasks and architectures, Lightning always."""

import json
import subprocess
import sys

CODE = """
import json, sys
from tfstudy.cli import main
try:
    main({words!r})
except SystemExit as end:
    code = end.code
print(json.dumps([code, [name for name in ("torch", "lightning", "torchmetrics", "pandas") if name in sys.modules]]))
"""


def run(*words: str) -> tuple[int, list[str], str]:
    """The exit code of a command in a new process, the slow packages that it imported, and its error message."""
    code = CODE.format(words=list(words))
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    exit_code, packages = json.loads(process.stdout.splitlines()[-1])
    return exit_code, packages, process.stderr


def test_a_misspelled_name_is_answered_without_torch():
    for words, hint in ((["scn"], "'scan'"), (["scan", "--arch", "lstn", "--config", "none.yaml"], "'lstm'")):
        code, packages, message = run("run", *words)
        assert (code, packages) == (2, [])
        assert hint in message


def test_misspelled_keys_are_answered_together_without_lightning():
    keys = {"model.hiden": "hidden", "train.step": "steps", "data.splt": "split", "trian.steps": "train"}
    words = [word for key in keys for word in ("--set", f"{key}=3")]
    code, packages, message = run("run", "scan", "--arch", "lstm", *words)
    assert code == 2
    for key, near in keys.items():
        assert f"'{key}'" in message or f"'{key.split('.')[0]}'" in message
        assert near in message
    assert set(packages) <= {"torch"}


def test_run_folders_and_the_identity_need_no_torch():
    code = (
        "import sys, tfstudy.runs.environment, tfstudy.runs.identity, tfstudy.runs.store, "
        "tfstudy.config.schema, tfstudy.experiment.code_versions as v; v.declared_versions('scan', 'lstm', 'simple'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Checks of tasks and architectures hold without `assert` too."""

import subprocess
import sys

import pytest

from tests.example_plugins import TASK, write
from tfstudy.testing.expect import expect


def test_a_condition_that_does_not_hold_is_an_assertion_error_with_the_message():
    expect([1], "unused")
    with pytest.raises(AssertionError, match=r"^the list is empty$"):
        expect([], "the list is empty")


def test_faults_are_found_by_python_with_its_option_for_no_assertions(tmp_path):
    fault = "    version = 0\n\n    def score(self, predictions, examples):\n        return {'accuracy': 5.0}\n"
    path = write(tmp_path, "mine", TASK + "\n" + fault)
    code = f"from tfstudy.testing import check_task, load_plugin; check_task(load_plugin({str(path)!r}))"
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "its config is valid: the version must be a whole number from 1, but is 0" in done.stderr
    assert "accuracy of the targets themselves is 5.0, but must be 1" in done.stderr

"""The architecture of docs/how-to/own-architecture.md, in a file of its own, passes the property tests."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "how-to" / "own-architecture.md"
# Runs pytest with a folder of architectures more. It must be known before the tests are collected.
PROGRAM = (
    "import sys, pytest; from tfstudy import models; models.__path__.append(sys.argv[1]); "
    "sys.exit(pytest.main(['-q', '-n', '0', '-p', 'no:cacheprovider', *sys.argv[2:]]))"
)
TESTS = ("tests/models/test_properties.py", "tests/models/test_registry.py")


def test_the_architecture_of_the_documentation_has_all_properties(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    examples = [block for block in blocks if re.search(r"^class \w+\(Model\)", block, re.M)]
    if not examples:
        pytest.skip("the page shows no architecture")
    (tmp_path / "readme_example.py").write_text(examples[0], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), *TESTS, "-k", "readme_example"],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20, "each property is a test"

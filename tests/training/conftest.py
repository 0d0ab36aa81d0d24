"""The small task of these tests, in a working folder of its own."""

import pytest

from tests.example_task import TASK, added
from tfstudy import tasks


@pytest.fixture(autouse=True)
def _reverse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield

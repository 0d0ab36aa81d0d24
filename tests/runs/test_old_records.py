"""Records of format 2, such as those of the committed studies, are read as today's, and damage to them is found."""

import json
from pathlib import Path

import pytest

from tests.committed import ROOT
from tfstudy.config.resolve import resolve
from tfstudy.runs.find import find_runs
from tfstudy.runs.identity import identify
from tfstudy.runs.pack import write_files
from tfstudy.runs.schema import FORMAT
from tfstudy.runs.store import (
    broken_because,
    is_finished,
    last_start,
    read_config,
    read_environments,
    read_result,
    read_test_reads,
)
from tfstudy.runs.writer import write_run


@pytest.fixture
def run(tmp_path) -> Path:
    """A run of a committed study, in a folder."""
    packed = next(path for path in find_runs(ROOT / "results" / "first") if path.parent.name == "lstm")
    path = tmp_path / "results" / "first" / Path(*packed.parts[-3:])
    write_files(packed, path)
    return path


DAMAGES = {
    "result.json": lambda text: text.replace('"exact_match": 0.', '"exact_match": 1.', 1),
    "result.json without a digest": lambda text: text[: text.index('"digest"')].rstrip(" \n,") + "\n}",
    "config.yaml": lambda text: text.replace("seed: 0", "seed: 1"),
    "config.yaml of a setting": lambda text: text.replace("split: ", "split: other-"),
    "metrics.csv": lambda text: text[: len(text) // 2],
    "env.json": lambda text: text[: len(text) // 2],
    "env.json of other data": lambda text: text.replace('"data": "', '"data": "0'),
    "test_reads.csv": lambda text: "",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_a_record_of_older_code_is_found(damage, run):
    name = damage.split(" ")[0]
    assert broken_because(run) == ""
    before = (run / name).read_text()
    (run / name).write_text(DAMAGES[damage](before))
    assert (run / name).read_text() != before
    assert broken_because(run).startswith(f"{name} is damaged")
    assert not is_finished(run)


@pytest.mark.parametrize("name", ["config.yaml", "env.json", "metrics.csv", "test_reads.csv"])
def test_a_missing_file_of_older_code_is_found(name, run):
    (run / name).unlink()
    assert broken_because(run).startswith(f"{name} is damaged")


def test_a_record_of_older_code_that_is_written_to_becomes_one_of_today(run):
    result, reads, environments, start = (
        read(run) for read in (read_result, read_test_reads, read_environments, last_start)
    )
    config = resolve(read_config(run))
    with write_run(run, config, identify(config, environments[0].data, environments[0].code_versions)) as folder:
        folder.count_reads(["test"], "evaluate")
    assert json.loads((run / "result.json").read_text())["format"] == FORMAT == 3
    assert (read_environments(run), last_start(run)) == (environments, start)
    assert read_test_reads(run) == {name: count + (name == "test") for name, count in reads.items()}
    after = read_result(run)
    assert {name: (one.metrics, one.slices) for name, one in after.splits.items()} == {
        name: (one.metrics, one.slices) for name, one in result.splits.items()
    }
    for name in ("env.json", "test_reads.csv", "progress.json"):
        (run / name).unlink(missing_ok=True)
    assert broken_because(run) == ""

"""Records of format 2, such as those of the committed studies, are read as today's, and damage to them is found."""

from pathlib import Path

import pytest

from tests.committed import ROOT, unpacked
from tfstudy.config.resolve import resolve
from tfstudy.errors import UserError
from tfstudy.runs.find import find_runs
from tfstudy.runs.identity import identify
from tfstudy.runs.schema import Event
from tfstudy.runs.store import is_finished, open_run, read_config, write_run

DAMAGES = {
    "result.json": lambda text: text.replace('"exact_match": 0.', '"exact_match": 1.', 1),
    "result.json without a digest": lambda text: text[: text.index('"digest"')].rstrip(" \n,") + "\n}",
    "config.yaml": lambda text: text.replace("seed: 0", "seed: 1"),
    "config.yaml of a setting": lambda text: text.replace("split: ", "split: other-"),
    "config.yaml of a key": lambda text: text.replace("  steps:", "  stepr:"),
    "metrics.csv": lambda text: text[: len(text) // 2],
    "env.json": lambda text: text[: len(text) // 2],
    "env.json of other data": lambda text: text.replace('"data": "', '"data": "0'),
    "test_reads.csv": lambda text: "",
    **dict.fromkeys([f"{name} missing" for name in ("config.yaml", "env.json", "metrics.csv", "test_reads.csv")]),
}


@pytest.fixture
def run(tmp_path) -> Path:
    """A run of a committed study, in a folder."""
    packed = next(path for path in find_runs(ROOT / "results" / "first") if path.parent.name == "lstm")
    return unpacked(packed, tmp_path / "results" / "first" / Path(*packed.parts[-3:]))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_a_record_of_older_code_is_found(damage, run):
    name = damage.split(" ")[0]
    assert not open_run(run).broken
    before = (run / name).read_text()
    (run / name).unlink()
    if change := DAMAGES[damage]:
        (run / name).write_text(change(before))
        assert (run / name).read_text() != before
    assert str(open_run(run).broken).startswith(f"{name} is damaged")
    assert not is_finished(run)


def test_nothing_is_added_to_a_record_of_older_code(run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    config, [*_, last] = resolve(read_config(run)), open_run(run).environments
    identity = identify(config, last.data, last.code_versions)
    with pytest.raises(UserError, match="recorded by older code"), write_run(run, config, identity) as folder:
        folder.record(Event(event="test read", split="test", reason="evaluate"))
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"} == before
    assert open_run(run).test_reads == {"test": 1}

"""Measurements of instruments, and records of format 2, such as those of most committed studies."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.committed import ROOT, unpacked
from tests.example_study import finish_run
from tfstudy.config.resolve import resolve
from tfstudy.errors import UserError
from tfstudy.runs.files import sealed
from tfstudy.runs.find import find_runs
from tfstudy.runs.identity import identify
from tfstudy.runs.schema import Chart, Event, Measurement
from tfstudy.runs.store import (
    is_finished,
    open_run,
    read_config,
    read_measurement,
    save_measurement,
    saved_instruments,
    write_run,
)

RUN = "a" * 64
CHART = Chart("line", x="length", y="entropy", hue="head")
ROWS = [{"head": head, "length": 4, "entropy": 0.1 * head, "kind": "cross"} for head in (1, 2, 3)]


def record(rows=ROWS, name="entropy", chart=CHART, **settings):
    return Measurement.of(rows, RUN, name, 1, settings, chart)


@pytest.fixture
def run(tmp_path):
    return finish_run(tmp_path, run=RUN)


def test_what_is_saved_is_read_back_and_none_is_lost_when_many_are_saved_at_the_same_time(run):
    assert saved_instruments(run) == []
    with pytest.raises(UserError, match=r"no measurement 'entropy'; `tfstudy measure --save`"):
        read_measurement(run, "entropy")
    settings = {"examples": 5, "split": "test", "exact": True, "share": 0.5}
    names = [f"one{number % 4}" for number in range(80)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: save_measurement(run, record(name=name, **settings)), names))
    assert saved_instruments(run) == sorted({*names})
    for name in {*names}:
        assert read_measurement(run, name) == record(name=name, **settings)
    assert record().rows()[2] == {"head": 3, "length": 4, "entropy": pytest.approx(0.3), "kind": "cross"}
    assert [path.name for path in (run / "instruments").iterdir() if path.suffix != ".json"] == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run": "b" * 64}, "belongs to another run"),
        ({"instrument": "other"}, "belongs to another run or instrument"),
        ({"columns": {"length": [1], "entropy": [1, 2], "head": [1, 2]}}, "different lengths"),
        ({"columns": {"length": [1], "entropy": ["a"], "head": [1]}}, "number for each row"),
        ({"chart": {"kind": "line", "x": "depth", "y": "entropy"}}, "unknown column of the chart 'depth'"),
        ({"chart": {"kind": "pie", "x": "length", "y": "entropy"}}, "is broken"),
    ],
)
def test_a_file_with_impossible_values_is_refused_with_the_reason(run, change, reason):
    save_measurement(run, record(examples=5))
    file = run / "instruments/entropy.json"
    tree = json.loads(file.read_text())
    del tree["sha256"]
    file.write_bytes(sealed(tree | change))
    with pytest.raises(UserError, match=reason):
        read_measurement(run, "entropy")


def test_numbers_are_finite_when_saved_and_when_read(run):
    chart = Chart("line", "length", "entropy")
    with pytest.raises(UserError, match="null"):
        record([{"length": 1, "entropy": float("nan")}], chart=chart)
    save_measurement(run, record())
    file = run / "instruments/entropy.json"
    for number in ("1e999", "0.3"):
        file.write_text(file.read_text().replace("0.2", number))
        with pytest.raises(UserError, match="broken"):
            read_measurement(run, "entropy")


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
def old_run(tmp_path) -> Path:
    """A run of a committed study, in a folder."""
    packed = next(path for path in find_runs(ROOT / "results" / "first") if path.parent.name == "lstm")
    return unpacked(packed, tmp_path / "results" / "first" / Path(*packed.parts[-3:]))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_a_record_of_older_code_is_found(damage, old_run):
    name = damage.split(" ")[0]
    assert not open_run(old_run).broken
    before = (old_run / name).read_text()
    (old_run / name).unlink()
    if change := DAMAGES[damage]:
        (old_run / name).write_text(change(before))
        assert (old_run / name).read_text() != before
    assert str(open_run(old_run).broken).startswith(f"{name} is damaged")
    assert not is_finished(old_run)


def test_nothing_is_added_to_a_record_of_older_code(old_run):
    before = {path: path.read_bytes() for path in old_run.rglob("*") if path.is_file()}
    config, [*_, last] = resolve(read_config(old_run)), open_run(old_run).environments
    identity = identify(config, last.data, last.code_versions)
    with pytest.raises(UserError, match="recorded by older code"), write_run(old_run, config, identity) as folder:
        folder.record(Event(event="test read", split="test", reason="evaluate"))
    assert {path: path.read_bytes() for path in old_run.rglob("*") if path.is_file() and path.name != ".lock"} == before
    assert open_run(old_run).test_reads == {"test": 1}

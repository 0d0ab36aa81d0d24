"""`bench.jsonl`: written whole, read with care."""

import json

import msgspec
import pytest

from tests.performance.example_measurements import MACHINE, record
from tfstudy.errors import UserError
from tfstudy.performance.record import NAME, read_records, write_records


def test_records_are_read_as_they_were_written(tmp_path):
    first, second = (
        [record(0.1, 0.2), record(variant="explicit", memory=None, step_memory=None, flops=None)],
        [record()],
    )
    write_records(tmp_path / "a", first)
    write_records(tmp_path / "b" / "c", second)
    assert read_records(tmp_path) == first + second
    assert len((tmp_path / "a" / NAME).read_text().splitlines()) == 2
    assert read_records(tmp_path / "nowhere") == []


def test_records_are_never_replaced(tmp_path):
    write_records(tmp_path, [record(0.1)])
    with pytest.raises(UserError, match="exists"):
        write_records(tmp_path, [record(0.2)])
    assert read_records(tmp_path) == [record(0.1)]


def test_speed_is_by_cpu_time_on_one_cpu_thread_and_else_by_wall_clock_time():
    several = msgspec.structs.replace(MACHINE, threads=2)
    gpu = msgspec.structs.replace(MACHINE, accelerator="cuda")
    assert record(0.5, 0.25).tokens_per_second == [32, 64]
    assert record(0.5, machine=several).tokens_per_second == record(0.5, machine=gpu).tokens_per_second == [16]


@pytest.mark.parametrize(
    "change",
    [
        {"work": "sleeping"},
        {"variant": "uncached"},  # not of training
        {"arch": "\x1b[31mred"},
        {"model": {"heads": [1]}},
        {"model": {"x" * 300: 1}},
        {"length": 0},
        {"seconds": [1.0, 1.0]},  # one CPU time
        {"seconds": [0.0], "cpu_seconds": [1.0]},
        {"seconds": [1e9], "cpu_seconds": [1.0]},
        {"memory": -1},
        {"memory": 1, "step_memory": 2},
        {"flops": {"total": 1, "attention": 1, "feedforward": 1}},
        {"more": 1},
    ],
)
def test_impossible_records_are_refused(tmp_path, change):
    write_records(tmp_path, [record(0.1)])
    sound = json.loads((tmp_path / NAME).read_text())
    (tmp_path / NAME).write_text(json.dumps(sound) + "\n")
    assert read_records(tmp_path) == [record(0.1)]
    (tmp_path / NAME).write_text(json.dumps(sound | change))
    with pytest.raises(UserError, match="is broken"):
        read_records(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[" * 10**5, '{"machine": NaN}', "\xff"])
def test_broken_files_are_refused(tmp_path, content):
    (tmp_path / NAME).write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match="is broken"):
        read_records(tmp_path)

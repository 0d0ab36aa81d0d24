"""`bench.jsonl`: written whole, read with care."""

import json

import msgspec
import pytest

from tests.performance.example_measurements import MACHINE, record
from tfstudy.errors import UserError
from tfstudy.performance.record import NAME, read_records, write_records


def test_records_are_read_as_they_were_written_and_never_replaced(tmp_path):
    first = [record(0.1, 0.2), record(variant="explicit", memory=None, step_memory=None, flops=None)]
    write_records(tmp_path / "a", first)
    write_records(tmp_path / "b" / "c", [record()])
    assert read_records(tmp_path) == [*first, record()]
    with pytest.raises(UserError, match="has measurements"):
        write_records(tmp_path / "a", [record(0.2)])
    assert read_records(tmp_path / "a") == first
    assert read_records(tmp_path / "nowhere") == []


def test_speed_is_by_cpu_time_on_one_cpu_thread_and_else_by_wall_clock_time():
    several = msgspec.structs.replace(MACHINE, threads=2)
    gpu = msgspec.structs.replace(MACHINE, accelerator="cuda")
    assert record(0.5, 0.25).tokens_per_second == [32, 64]
    assert record(0.5, machine=several).tokens_per_second == record(0.5, machine=gpu).tokens_per_second == [16]


SOUND = json.loads(msgspec.json.encode(record(0.1)))
WRONG = [
    {"work": "sleeping"}, {"model": {"heads": [1]}}, {"arch": "x" * 300}, {"length": 0}, {"memory": -1}, {"more": 1},
    {"seconds": [1.0, 1.0]}, {"seconds": [0.0], "cpu_seconds": [1.0]}, {"seconds": [1e9], "cpu_seconds": [1.0]},
]  # fmt: skip


@pytest.mark.parametrize("content", [*(json.dumps(SOUND | change) for change in WRONG), "{", "[" * 10**5, "\xff"])
def test_impossible_records_are_refused(tmp_path, content):
    (tmp_path / NAME).write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match="is broken"):
        read_records(tmp_path)

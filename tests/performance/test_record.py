"""`bench.jsonl`: written whole, read with care; and the settings that are measured."""

import json

import msgspec
import pytest

from tests.performance.example_measurements import MACHINE, record
from tfstudy.errors import UserError
from tfstudy.performance.record import NAME, read_records, write_records
from tfstudy.performance.settings import AXES, Request, check_overrides, config_of, parse_axes


def test_records_are_read_as_they_were_written_and_never_replaced(tmp_path):
    first = [record(0.1, 0.2), record(variant="explicit", memory=None, step_memory=None, flops=None)]
    write_records(tmp_path / "a", first)
    write_records(tmp_path / "b" / "c", [record()])
    assert read_records(tmp_path) == [*first, record()]
    with pytest.raises(UserError, match="exists"):
        write_records(tmp_path / "a", [record(0.2)])
    assert read_records(tmp_path / "a") == first
    assert read_records(tmp_path / "nowhere") == []


def test_speed_is_by_cpu_time_on_one_cpu_thread_and_else_by_wall_clock_time():
    several = msgspec.structs.replace(MACHINE, threads=2)
    gpu = msgspec.structs.replace(MACHINE, accelerator="cuda")
    assert record(0.5, 0.25).tokens_per_second == [32, 64]
    assert record(0.5, machine=several).tokens_per_second == record(0.5, machine=gpu).tokens_per_second == [16]


SOUND = json.loads(msgspec.json.encode(record(0.1)))


@pytest.mark.parametrize(
    "content",
    [
        *(
            json.dumps(SOUND | change)
            for change in (
                {"work": "sleeping"},
                {"arch": "\x1b[31mred"},
                {"model": {"heads": [1]}},
                {"model": {"x" * 300: 1}},
                {"length": 0},
                {"seconds": [1.0, 1.0]},  # one CPU time
                {"seconds": [0.0], "cpu_seconds": [1.0]},
                {"seconds": [1e9], "cpu_seconds": [1.0]},
                {"memory": -1},
                {"more": 1},
            )
        ),
        "{",
        "[" * 10**5,
        '{"machine": NaN}',
        "\xff",
    ],
)
def test_impossible_records_are_refused(tmp_path, content):
    (tmp_path / NAME).write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match="is broken"):
        read_records(tmp_path)


# Settings


def request(*archs, variants=("default",), overrides=None, **axes):
    return Request(archs, {**AXES, "length": (8,), **axes}, ("training",), variants, overrides or {})


def configs(asked):
    return [config_of(setting, asked) for setting in asked.settings()]


def test_axes_that_are_given_replace_the_defaults_and_come_first():
    found = parse_axes(["batch=2,4,2"])
    assert found == {"batch": (2, 4), "length": AXES["length"], "width": AXES["width"]}
    assert next(iter(found)) == "batch"


@pytest.mark.parametrize("width", [64, 256])
def test_all_widths_are_scaled_together(width):
    [model] = [one.model for one in configs(request("transformer", width=(width,)))]
    assert (model.dim, model.feedforward, model.heads) == (width, 2 * width, 4)


def test_variants_change_the_config_and_a_setting_applies_to_the_architectures_that_have_it():
    default, checkpointing, bf16 = configs(request("lstm", variants=("default", "checkpointing", "bf16")))
    assert [one.train.gradient_checkpointing for one in (default, checkpointing, bf16)] == [False, True, False]
    assert bf16.train.precision == "bf16-mixed"
    first, second = configs(request("transformer", "lstm", overrides=check_overrides({"model": {"heads": 8}})))
    assert (first.model.heads, second.arch) == (8, "lstm")

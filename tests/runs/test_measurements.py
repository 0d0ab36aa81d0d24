"""Measurements of instruments, in the folders of runs."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.example_study import finish_run
from tfstudy.errors import UserError
from tfstudy.runs.files import sealed
from tfstudy.runs.schema import Chart, Measurement
from tfstudy.runs.store import read_measurement, save_measurement, saved_instruments

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

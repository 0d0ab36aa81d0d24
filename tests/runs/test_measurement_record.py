"""`instruments/NAME.json`: what is saved is read back; what can't be, or is another run's, is refused."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tfstudy.errors import UserError
from tfstudy.runs.measurement_record import (
    Chart,
    Measurement,
    read_measurement,
    save_measurement,
    saved_instruments,
    settings_digest,
)

RUN = "a" * 64
CHART = Chart("line", x="length", y="entropy", hue="head")
ROWS = [{"head": head, "length": 4, "entropy": 0.1 * head, "kind": "cross"} for head in (1, 2, 3)]


def record(rows=ROWS, name="entropy", chart=CHART, **settings):
    return Measurement.of(RUN, name, 1, settings, chart, rows)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps({"run": RUN}))
    return tmp_path


def test_what_is_saved_is_read_back_with_the_same_rows(run):
    assert saved_instruments(run) == []
    file = save_measurement(run, record(examples=5, split="test", exact=True, share=0.5))
    found = read_measurement(run, "entropy")
    assert (found, file.relative_to(run).as_posix()) == (
        record(examples=5, split="test", exact=True, share=0.5),
        "instruments/entropy.json",
    )
    assert found.rows()[2] == {"head": 3, "length": 4, "entropy": pytest.approx(0.3), "kind": "cross"}


def test_a_record_without_a_note_is_read(run):
    file = save_measurement(run, record())
    content = json.loads(file.read_text())
    assert content.pop("note") == ""
    file.write_text(json.dumps(content))
    assert read_measurement(run, "entropy") == record()


def test_each_instrument_has_a_file_and_the_last_measurement_replaces_the_one_before(run):
    for one in (record(examples=5), record(name="other"), record(examples=6)):
        save_measurement(run, one)
    assert saved_instruments(run) == ["entropy", "other"]
    assert read_measurement(run, "entropy").settings == {"examples": 6}


def test_no_record_is_lost_or_half_written_when_many_are_saved_at_the_same_time(run):
    names = [f"one{number % 4}" for number in range(80)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: save_measurement(run, record(name=name)), names))
    assert saved_instruments(run) == ["one0", "one1", "one2", "one3"]
    assert [read_measurement(run, name).instrument for name in sorted(set(names))] == sorted(set(names))
    assert [path.name for path in (run / "instruments").iterdir() if path.suffix != ".json"] == []


def test_the_digest_depends_on_the_instrument_its_version_and_its_settings_but_not_on_their_order():
    base = settings_digest("entropy", 1, {"a": 1, "b": 2})
    assert settings_digest("entropy", 1, {"b": 2, "a": 1}) == base
    others = [("heads", 1, {"a": 1, "b": 2}), ("entropy", 2, {"a": 1, "b": 2}), ("entropy", 1, {"a": 1, "b": 3})]
    assert base not in {settings_digest(*other) for other in others}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda tree: tree | {"run": "b" * 64}, "belongs to another run"),
        (lambda tree: tree | {"instrument": "other"}, "of the instrument 'other'"),
        (lambda tree: tree | {"settings": {"examples": 9}}, "digest"),
        (lambda tree: tree | {"columns": {}}, "no columns"),
        (lambda tree: tree | {"columns": tree["columns"] | {"head": [1, 2]}}, "different lengths"),
        (lambda tree: tree | {"columns": tree["columns"] | {"../x": [1, 2, 3]}}, r"the name '\.\./x'"),
        (lambda tree: tree | {"columns": tree["columns"] | {"entropy": ["a", 1, 2]}}, "number for each row"),
        (lambda tree: tree | {"chart": tree["chart"] | {"x": "depth"}}, "unknown column of the chart 'depth'"),
        (lambda tree: tree | {"chart": tree["chart"] | {"kind": "pie"}}, "is broken"),
        (lambda tree: tree | {"columns": [[]]}, "is broken"),
    ],
)
def test_a_file_with_impossible_values_is_refused_with_the_reason(run, change, reason):
    file = save_measurement(run, record(examples=5))
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(UserError, match=reason):
        read_measurement(run, "entropy")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), "1e999"])
def test_numbers_are_finite_when_saved_and_when_read(run, number):
    if isinstance(number, float):
        with pytest.raises(UserError, match="the number"):
            record([{"length": 1, "entropy": number}], chart=Chart("line", "length", "entropy"))
        return
    file = save_measurement(run, record())
    file.write_text(file.read_text().replace("0.2", number))
    with pytest.raises(UserError, match="broken"):
        read_measurement(run, "entropy")


def test_a_missing_measurement_is_named_with_the_command_that_saves_it(run):
    with pytest.raises(UserError, match=r"no measurement 'entropy'; `tfstudy measure --save`"):
        read_measurement(run, "entropy")


def test_rows_have_the_same_keys_in_the_same_order():
    with pytest.raises(ValueError, match="the same keys"):
        record([{"length": 1, "entropy": 1.0}, {"entropy": 1.0, "length": 1}], chart=Chart("line", "length", "entropy"))

"""The search space: ranges, lists, draws and errors."""

from statistics import median

import pytest

from tfstudy.config.resolve import resolve
from tfstudy.errors import UserError
from tfstudy.tuning import space
from tfstudy.tuning.space import Choice, Range, draw, parse


def test_a_key_has_a_range_or_a_list():
    assert parse("train.learning_rate=1e-4..1e-2:log") == ("train.learning_rate", Range(1e-4, 1e-2, True, False))
    assert parse("model.layers=1..4") == ("model.layers", Range(1, 4, False, True))
    assert parse("model.dropout=0..0.5") == ("model.dropout", Range(0, 0.5, False, False))
    assert parse("width=1..2") == ("width", Range(1, 2, False, False)), "a factor is no whole number"
    assert parse("train.gradient_clip_norm=[1e-3, 2]") == ("train.gradient_clip_norm", Choice((0.001, 2))), (
        "YAML takes 1e-3 for a word"
    )
    assert parse("model.norm=[pre, post, pre]") == ("model.norm", Choice(("pre", "post")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model.dim", "'model.dim'"),
        ("model.dim=[]", "must be KEY=LOW..HIGH"),
        ("=1..2", "must be KEY=LOW..HIGH"),
        ("model.dim=1..2:lin", "must be KEY=LOW..HIGH"),
        ("model.dim=1..two", "must be KEY=LOW..HIGH"),
        ("model.dim=4..2", "'4..2'"),
        ("width=0..1", "at least 1e-30"),
        ("train.learning_rate=1e-320..1:log", "at least 1e-30"),
        ("train.learning_rate=0...nan", "must not exceed"),
    ],
)
def test_an_invalid_range_is_refused(text, message):
    with pytest.raises(UserError) as error:
        parse(text)
    assert message in str(error.value)


def test_draws_are_a_pure_function_of_seed_index_and_key():
    one = dict(map(parse, space.DEFAULT))
    more = one | dict([parse("model.layers=1..4")])
    for index in range(20):
        values = draw(more, 3, index)
        assert {key: values[key] for key in one} == draw(one, 3, index)
        assert values != draw(more, 4, index)
        assert values != draw(more, 3, index + 1)


def test_draws_fill_their_range_on_its_scale_and_never_leave_it():
    kinds = dict(map(parse, ("a=1e-4..1e-2:log", "b=1..4", "c=[x,y]", "d=0.0..0.4", "e=1..100:log", "f=2..2")))
    rows = [draw(kinds, 0, i) for i in range(2000)]
    assert median(row["a"] for row in rows) == pytest.approx(1e-3, rel=0.15)
    assert median(row["e"] for row in rows) == pytest.approx(10, abs=2)
    assert {row["b"] for row in rows} == {1, 2, 3, 4}
    assert {row["c"] for row in rows} == {"x", "y"}
    assert {row["f"] for row in rows} == {2}
    for key, (low, high) in {"a": (1e-4, 1e-2), "d": (0, 0.4), "e": (1, 100)}.items():
        assert min(row[key] for row in rows) >= low
        assert max(row[key] for row in rows) <= high
    assert all(isinstance(row["b"], int) for row in rows), "a whole number stays one"


@pytest.mark.parametrize("factor", [0.5, 0.7, 1.9])
def test_scaled_widths_fit_the_heads(factor):
    config = resolve({"task": "copying", "arch": "transformer", "model": {"heads": 8}})
    widths = space.scaled(config, factor)
    assert widths["dim"] % 16 == 0
    assert widths["dim"] == pytest.approx(128 * factor, abs=8)
    assert widths["feedforward"] == pytest.approx(256 * factor, abs=2)

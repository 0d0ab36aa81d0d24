"""What every generated task promises: its lengths, no example twice, the same examples always."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.tasks.base import checksum, fingerprint, overlap
from tfstudy.tasks.export import to_datasets
from tfstudy.tasks.generated import FRESH_EXAMPLES, Generated, Span, parse_spans

ALL = {name: tasks.find(name) for name in tasks.names()}
GENERATED = [(name, split) for name, cls in ALL.items() if issubclass(cls, Generated) for split in cls.split_schemes()]
SMALL = {"train_examples": 300, "eval_examples": 60}


def made(name, split, **data):
    cls = ALL[name]
    return cls(cls.Config(split=split, **SMALL | data))


every = pytest.mark.parametrize(("name", "split"), GENERATED, ids=lambda value: value)


@every
def test_a_split_has_examples_of_its_lengths_alone_and_none_twice(name, split):
    task = made(name, split)
    tested = {f"test_{s.first}_{s.last}": s for s in task.test_spans}
    assert set(tested) <= set(task.splits().tests)
    for part in task.splits().all:
        examples = task.examples(part)
        span = tested.get(part, task.train_span)
        assert examples
        assert {e.tags["length"] for e in examples} <= set(range(span.first, span.last + 1))
        assert len({e.source for e in examples}) == len(examples)
        assert len({tuple(e.tags) for e in examples}) == 1


@every
def test_no_source_is_in_two_splits(name, split):
    task = made(name, split)
    assert set(overlap(task).values()) == {0}
    sources = [e.source for part in ("train", "validation", "test") for e in task.examples(part)]
    assert len(set(sources)) == len(sources)


@every
def test_every_token_of_a_longer_test_split_is_known_from_training(name, split):
    task = made(name, split, train_examples=3000)
    known = task.vocabulary()
    for part in task.splits().tests:
        for example in task.examples(part):
            assert set(example.source) <= known[0]
            assert set(example.target) <= known[1]


@every
def test_more_examples_begin_with_the_fewer(name, split):
    few, many = made(name, split), made(name, split, train_examples=500, eval_examples=80)
    for part in few.splits().all:
        assert many.examples(part)[: len(few.examples(part))] == few.examples(part)


@every
def test_another_seed_draws_other_examples(name, split):
    one, other = made(name, split), made(name, split, seed=1)
    longest = one.splits().tests[-1]
    if len(one.examples(longest)) > 10:  # a few experiments have one source a length
        assert one.examples(longest) != other.examples(longest)


@every
def test_fresh_examples_are_of_the_length_that_is_asked_for(name, split):
    task = made(name, split)
    last = parse_spans(task.config.test_length)[-1].last
    drawn = {length: task.at_length(length) for length in (last + 1, last + 2, last + 3)}
    assert any(drawn.values())
    for length, fresh in drawn.items():
        assert len(fresh) <= FRESH_EXAMPLES
        assert {e.tags["length"] for e in fresh} <= {length}


@every
def test_gold_targets_have_all_scores_of_1(name, split):
    task = made(name, split)
    examples = task.examples("train")
    assert set(task.score([e.target for e in examples], examples).values()) == {1.0}


def test_the_same_examples_in_another_process():
    code = (
        "from tfstudy import tasks\nfrom tfstudy.tasks.base import fingerprint\n"
        "from tfstudy.tasks.generated import Generated\n"
        "for name in tasks.names():\n"
        "    cls = tasks.find(name)\n"
        "    if issubclass(cls, Generated):\n"
        "        for split in cls.split_schemes():\n"
        "            config = cls.Config(split=split, train_examples=300, eval_examples=60)\n"
        "            print(name, split, fingerprint(cls(config)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    here = [f"{name} {split} {fingerprint(made(name, split))}" for name, split in GENERATED]
    assert done.stdout.splitlines() == here


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ("1-10", "8-12", "data.test_length 8-12 overlaps data.train_length 1-10"),
        ("1-10", "11-15,15-20", "data.test_length 15-20 overlaps data.test_length 11-15"),
        ("5", "5", "data.test_length 5-5 overlaps data.train_length 5-5"),
        ("0-3", "4", "data.train_length must start at 1 or more here, but is '0-3'"),
    ],
)
def test_ranges_that_touch_are_refused(train, test, message):
    with pytest.raises(UserError, match=re.escape(message)):
        made("copying", "copy", train_length=train, test_length=test)


@pytest.mark.parametrize("text", ["ten", "10-1", "1-", "-3", "1-5,", "1-2-3", "1.5"])
def test_ranges_that_are_none_are_refused(text):
    with pytest.raises(ValidationError, match="must be"):
        ALL["copying"].Config(test_length=text)


def test_no_other_lengths_are_tested_if_none_are_named():
    assert made("copying", "copy", test_length="").splits().tests == ("test",)


def test_one_range_is_trained_on():
    with pytest.raises(ValidationError, match="must be one range of lengths such as 1-10"):
        ALL["copying"].Config(train_length="1-3,5-7")


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=1))
def test_ranges_are_read_as_they_are_written(pairs):
    wanted = [Span(min(pair), max(pair)) for pair in pairs]
    assert parse_spans(",".join(map(str, wanted))) == wanted


def test_short_lengths_are_held_out_too():
    task = made("copying", "copy", train_length="2-6", train_examples=20000, eval_examples=2000, symbols=10)
    held = [e for e in task.examples("test") if len(e.source) == 2]
    trained = [e for e in task.examples("train") if len(e.source) == 2]
    assert len(held) + len(trained) + sum(len(e.source) == 2 for e in task.examples("validation")) == 100
    assert 3 <= len(held) <= 25


def test_a_task_with_few_sources_has_as_many_examples_as_there_are():
    task = made("copying", "copy", symbols=2, train_length="1-3", test_length="4", train_examples=1000)
    count = sum(len(task.examples(part)) for part in ("train", "validation", "test"))
    assert count == 2 + 4 + 8
    assert len(task.examples("test_4_4")) == 16


@every
def test_a_task_exports_as_a_data_set(name, split):
    task = made(name, split, train_examples=20, eval_examples=5)
    exported = to_datasets(task)
    assert set(exported) == set(task.splits().all)
    assert exported["train"].num_rows == len(task.examples("train"))
    assert checksum(task.examples("train")) == checksum(
        made(name, split, train_examples=20, eval_examples=5).examples("train")
    )


@given(st.text("abc", min_size=1, max_size=12))
def test_copies_are_what_python_makes_of_a_string(text):
    class Fixed:
        def choices(self, *_, k):
            return text[:k]

    def target(split, **data):
        return "".join(made("copying", split, **data).draw(Fixed(), len(text), "train").target)

    assert target("copy") == text
    assert target("reverse") == "".join(reversed(text))
    assert target("repeat", repeats=3) == text + text + text


def test_a_task_without_train_or_test_examples_is_a_user_error():
    with pytest.raises(UserError, match=r"5-5 .*train split"):
        made("counting", "length", train_length="5", test_length="6").splits()
    with pytest.raises(UserError, match=r"1-1 .*test split: set data\.test_length"):
        made("copying", "copy", symbols=2, train_length="1", test_length="").splits()

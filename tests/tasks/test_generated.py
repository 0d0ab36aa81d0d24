"""What every generated task promises: its lengths, no example twice, the same examples always."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.tasks.generated_tasks import ALL, made
from tfstudy.errors import UserError
from tfstudy.tasks.arithmetic import carries, columns
from tfstudy.tasks.base import fingerprint

every = pytest.mark.parametrize("name", ALL)


def in_all_schemes(name, **data):
    return [made(name, split, **data) for split in ALL[name].split_schemes()]


@every
def test_every_scheme_has_its_lengths_no_source_twice_known_tokens_and_more_examples_that_begin_with_the_fewer(name):
    for few in in_all_schemes(name):
        split = few.config.split
        task, other = made(name, split, train_examples=3000, eval_examples=80), made(name, split, seed=1)
        tested = {f"test_{s.first}_{s.last}": s for s in task.test_spans}
        assert set(tested) <= set(task.splits().tests)
        sources, targets = task.vocabulary()
        for part in task.splits().all:
            examples, span = task.examples(part), tested.get(part, task.train_span)
            assert {e.tags["length"] for e in examples} <= set(range(span.first, span.last + 1))
            assert {token for e in examples for token in e.source} <= sources
            assert {token for e in examples for token in e.target} <= targets
            assert examples[: len(few.examples(part))] == few.examples(part)
        every_source = [e.source for part in ("train", "validation", "test", *tested) for e in task.examples(part)]
        assert len(set(every_source)) == len(every_source)
        assert few.examples(few.splits().tests[-1]) != other.examples(few.splits().tests[-1])


def test_repeated_sources_make_all_train_lengths_equally_frequent_and_are_never_held_out():
    few, many = (made("chomsky", "parity", repeat_sources=True, train_examples=n) for n in (300, 8000))
    sources = {part: [e.source for e in many.examples(part)] for part in ("train", "validation", "test")}
    counts = Counter(map(len, sources["train"]))
    assert set(counts) == set(range(1, 41))
    assert 120 < min(counts.values()) <= max(counts.values()) < 280  # 200 each
    assert many.examples("train")[:300] == few.examples("train")
    assert not set(sources["train"]) & {*sources["validation"], *sources["test"]}
    for held_out in (sources["validation"], sources["test"]):
        assert len(set(held_out)) == len(held_out)


def test_redrawn_examples_are_new_at_every_pass_and_seed_never_held_out_and_as_long_as_the_curriculum_says():
    task = made("copying", "copy", redraw=True, curriculum=0.5, symbols=3, train_length="2-10")
    held_out = {e.source for part in task.splits().held_out for e in task.examples(part)}
    passes = [task.redrawn(number, seed, number / 4) for seed in (0, 1) for number in range(4)]
    assert passes == [task.redrawn(number, seed, number / 4) for seed in (0, 1) for number in range(4)]
    assert len(set(map(str, passes))) == 8
    for number, examples in enumerate(passes):
        assert len(examples) == 300
        assert {len(e.source) for e in examples} == set(range(2, (3, 7, 11, 11)[number % 4]))
        assert not {e.source for e in examples} & held_out
        assert all(e.target == e.source for e in examples)
    assert task.redraws
    assert not made("copying", "copy").redraws


def test_a_curriculum_starts_at_the_shortest_length_that_is_not_held_out():
    for seed in range(20):
        task = made("chomsky", "parity", redraw=True, curriculum=1, train_length="1-3", test_length="41", seed=seed)
        assert len(task.redrawn(0, 0, 0.0)) == len(task.examples("train"))


# Fingerprints of all split schemes, in their order; another one needs another version of the task. A new task is added
# with its first results.
GOLDEN = {
    "arithmetic": "2ed6924d e7542435 fd1a4413 5eac3c39",
    "chomsky": "163d161b c2f06456 951958f9 9daf6f15 8c551d33 4f71c09d 7f210347 52b321aa ff7251db",
    "copying": "24db0f01 ecf28dad",
    "counting": "197f4500",
    "groups": "7701e1c9 31839e09 82acf812 60f3e81f",
    "parentheses": "28b4ba26 ae92ec72",
    "pcfg": "5b1adb60 4965b99e 06880edd",
    "recall": "2e92912a 638f8fcc",
    "sorting": "20eecab0",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_examples_are_those_of_all_earlier_versions(name):
    assert " ".join(fingerprint(task)[:8] for task in in_all_schemes(name)) == GOLDEN[name]


REFUSED = [
    ("copying", "copy", {"test_length": "8-12"}, "data.test_length 8-12 overlaps data.train_length 1-"),
    ("copying", "copy", {"test_length": "41-45,45-50"}, "data.test_length 45-50 overlaps data.test_length 41-45"),
    ("copying", "copy", {"curriculum": 0.5}, "data.curriculum=0.5 needs data.redraw=true"),
    ("copying", "copy", {"train_length": "0"}, "data.train_length 0-0: the lengths of 'copy' are 1, 2, 3, ..., 9999"),
    ("arithmetic", "addition", {"test_length": "41,4000"}, "data.test_length 4000-4000: the lengths of 'addition' are"),
    ("chomsky", "modular_arithmetic", {"test_length": "41,44"}, "data.test_length 44-44: the lengths of 'modular_ar"),
    ("groups", "s3", {"order": 7}, "data.order needs data.split=cyclic, but it is s3"),
    ("parentheses", "recognition", {"test_depth": 5}, "data.test_depth must be 0 or more than data.train_depth (6)"),
    ("recall", "multi_query", {"keys": 15}, "13-16: the lengths of 'multi_query' are 1, 2, 3, ..., 15"),
    ("copying", "copy", {"index_hints": 9}, "data.train_length 1-10: the lengths of 'copy' are 1, 2, 3, ..., 9"),
    ("arithmetic", "division", {"scratchpad": True}, "data.scratchpad needs data.split=addition or subtraction"),
    ("sorting", "symbols", {"scratchpad": True}, "data.scratchpad needs another task"),
    ("groups", "s3", {"scratchpad": True}, "data.scratchpad needs data.output=final"),
]


def test_settings_that_do_not_go_together_are_refused():
    for name, split, data, message in REFUSED:
        with pytest.raises(UserError, match=re.escape(message)):
            made(name, split, **data)


def test_ranges_that_are_none_are_refused():
    for text in ("ten", "10-1", "1-", "-3", "1-5,", "1-2-3", "1.5"):
        with pytest.raises(ValidationError, match="must be"):
            ALL["copying"].Config(test_length=text)
    with pytest.raises(ValidationError, match="must be one range of lengths such as 1-10"):
        ALL["copying"].Config(train_length="1-3,5-7")


def test_a_task_with_few_sources_has_as_many_examples_as_there_are():
    task = made("copying", "copy", symbols=2, train_length="1-3", test_length="4", train_examples=1000)
    assert sum(len(task.examples(part)) for part in ("train", "validation", "test")) == 2 + 4 + 8
    assert len(task.examples("test_4_4")) == 16
    assert made("copying", "copy", test_length="").splits().tests == ("test",)
    with pytest.raises(UserError, match=r"1-1 .*train split"):  # with this seed both are held out
        made("chomsky", "parity", train_length="1", test_length="2", seed=61).splits()
    with pytest.raises(UserError, match=r"1-1 .*test split: set data\.test_length"):
        made("copying", "copy", symbols=2, train_length="1", test_length="").splits()


@pytest.mark.parametrize(("name", "split"), [(n, s) for n in ALL for s in ALL[n].with_steps])
def test_a_scratchpad_changes_targets_only_and_its_answer_is_scored_apart(name, split):
    extra = {"output": "final"} if name == "groups" else {}
    without, task = made(name, split, **extra), made(name, split, scratchpad=True, **extra)
    for plain, example in zip(without.examples("train"), task.examples("train"), strict=True):
        assert (example.source, example.tags) == (plain.source, plain.tags)
        end = example.target.index(":")
        assert end > 0
        assert example.target[end + 1 :] == plain.target
    first, second, *_ = task.examples("train")
    answer = second.target[second.target.index(":") :]
    scores = task.score([("?", *first.target[1:]), second.target[:-1], answer[1:], ()], [first, second, second, first])
    assert (scores["exact_match"], scores["answer_exact_match"]) == (0.0, 0.25)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.booleans())
def test_the_columns_of_a_scratchpad_are_those_of_the_written_method(left, right, adds):
    high, low = max(left, right), min(left, right)
    result = high + low if adds else high - low
    steps = "".join(columns(left, right, result, carries(left, "+" if adds else "-", right))).split(",")
    assert len(steps) == len(str(high))
    before = 0
    for at, (a, b, digit, carry) in enumerate(map(int, step) for step in steps):
        assert (a, b, digit) == tuple(number // 10**at % 10 for number in (high, low, result))
        assert a + b + before == digit + 10 * carry if adds else a - b - before == digit - 10 * carry
        before = carry


@pytest.mark.parametrize("split", ["copy", "reverse"])
def test_index_hints_say_where_each_symbol_stood_and_a_string_is_held_out_with_all_of_its_hints(split):
    task = made("copying", split, index_hints=20, train_length="1-6", test_length="7-8", train_examples=3000)
    seen = set()
    for example in task.examples("train"):
        hints = [int(hint.removeprefix("#")) for hint in example.source[::2]]
        assert hints == list(range(hints[0], hints[0] + example.tags["length"]))
        places = dict(zip(example.source[::2], example.source[1::2], strict=True))
        order = example.source[::2] if split == "copy" else example.source[::2][::-1]
        assert example.target == tuple(token for hint in order for token in (hint, places[hint]))
        seen |= {*hints}
    assert seen == set(range(1, 21)), "training has every hint though its strings are shorter"
    trained = {example.source[1::2] for example in task.examples("train")}
    assert not trained & {example.source[1::2] for example in task.examples("test")}

"""Targets and tags of generated tasks against what another reading of the source says."""

import re
import sys
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.generated_tasks import ALL, made
from tfstudy.tasks import chomsky
from tfstudy.tasks.base import Example
from tfstudy.tasks.groups import elements

SCHEMES = [(name, split) for name in ALL if name not in ("parentheses", "pcfg") for split in ALL[name].schemes]


def composed(split, sequence):
    """The product by other means: numbers are added, and each object is followed through the permutations."""
    if split == "cyclic":
        return str(sum(map(int, sequence)) % 60)
    images = []
    for place in "12345"[: len(sequence[0])]:
        for element in sequence:
            place = element[int(place) - 1]
        images.append(place)
    return "".join(images)


def recalled(split, source):
    mark = source.index("?")
    keys, values, asked = source[:mark:2], source[1:mark:2], source[mark + 1 :]
    assert len(set(keys)) == len(keys)
    assert len(set(asked)) == len(asked) == (1 if split == "single_query" else len(keys))
    return [dict(zip(keys, values, strict=True))[key] for key in asked]


def read_bits(source):
    """The bit after the last w before each r."""
    parts = "".join(source).split("r")[:-1]
    return ["r".join(parts[: i + 1]).rpartition("w")[2][0] for i in range(len(parts))]


def evaluated(tokens):
    """The value of an expression and its depth, with a stack that is read from left to right."""
    stack, deepest = [[]], 0
    for token in tokens:
        if token.startswith("["):
            stack.append([token])
            deepest = max(deepest, len(stack) - 1)
        elif token == "]":
            name, *values = stack.pop()
            assert 2 <= len(values) <= 5
            found = {"[MAX": np.max, "[MIN": np.min, "[MED": np.median, "[SM": lambda v: np.sum(v) % 10}[name](values)
            stack[-1].append(int(found))
        else:
            stack[-1].append(int(token))
    [[result]] = stack
    return result, deepest


def reckoned(source):
    left, symbol, right = re.fullmatch(r"(\d+)([-+*/])(\d+)=", "".join(source)).groups()
    if symbol == "/":
        return "{}r{}".format(*divmod(int(left), int(right)))
    return str(eval(f"{left}{symbol}{right}"))


def changes(source):
    text = "".join(source)
    return "even" if (text.count("01") + text.count("10")) % 2 == 0 else "odd"


def final_stack(source):
    stack = ""
    for token in source:
        stack = stack[:-1] if token == "pop" else stack + token[-1]
    return stack[::-1]


ANSWERS = {  # from a source to its target
    ("copying", "copy"): lambda s: s,
    ("copying", "reverse"): reversed,
    ("counting", "occurrences"): lambda s: str(sum(symbol == s[-1] for symbol in s[:-2])),
    ("sorting", "symbols"): lambda s: "".join(letter * s.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"),
    ("listops", "value"): lambda s: str(evaluated(s)[0]),
    ("chomsky", "even_pairs"): changes,
    ("chomsky", "parity"): lambda s: "odd" if int("".join(s), 2).bit_count() % 2 else "even",
    ("chomsky", "cycle_navigation"): lambda s: str(sum(map(int, s)) % 5),
    ("chomsky", "modular_arithmetic"): lambda s: str(eval("".join(s)) % 5),
    ("chomsky", "reverse_string"): reversed,
    ("chomsky", "stack_manipulation"): final_stack,
    ("chomsky", "duplicate_string"): lambda s: [*s, *s],
    ("chomsky", "odds_first"): lambda s: [s[i] for i in sorted(range(len(s)), key=lambda i: i % 2)],
    ("chomsky", "bucket_sort"): lambda s: "".join(digit * s.count(digit) for digit in "01234"),
    **{("arithmetic", split): reckoned for split in ALL["arithmetic"].schemes},
    **{("flipflop", split): read_bits for split in ALL["flipflop"].schemes},
    **{("recall", split): lambda s, split=split: recalled(split, s) for split in ALL["recall"].schemes},
    **{
        ("groups", split): lambda s, split=split: [composed(split, s[: i + 1]) for i in range(len(s))]
        for split in ALL["groups"].schemes
    },
}
SIZES = {  # from a source to its length, where this is not the number of its tokens
    "arithmetic": lambda s: max(map(len, re.split(r"[-+*/]", "".join(s)[:-1]))),
    "counting": lambda s: len(s) - 2,
    "flipflop": lambda s: sum(token in "wir" for token in s),
    "recall": lambda s: s.index("?") // 2,
}


def tags_of(name, split, source, target):
    match name:
        case "counting":
            return {"count": int("".join(target))}
        case "sorting":
            return {"duplicates": "yes" if max(Counter(source).values()) > 1 else "no"}
        case "recall" if split == "single_query":
            return {"distance": source.index("?") // 2 - source.index(source[-1]) // 2}
        case "flipflop":
            return {"distance": [token for token in source if token in "wir"][::-1].index("w")}
        case "listops":
            return {"depth": evaluated(source)[1], "operation": source[0].removeprefix("[")}
        case "chomsky":
            before = chomsky.__doc__.partition(f"  {split} ")[0]
            return {"level": re.findall(r"^    (\S.*) \(", before, re.MULTILINE)[-1]}
        case "arithmetic":
            left, right = map(int, re.split(r"[-+*/]", "".join(source)[:-1]))
            tags = {"digits_left": len(str(left)), "digits_right": len(str(right))}
            if split in ("multiplication", "division"):
                return tags
            # each carry turns ten of one column into one of the next: it takes 9 from the sum of digits (Legendre)
            parts = (left, right) if split == "addition" else (abs(left - right), min(left, right))
            lost = sum(int(digit) for part in parts for digit in str(part)) - sum(map(int, str(sum(parts))))
            return tags | {"carries": lost // 9}
    return {}


@pytest.mark.parametrize(("name", "split"), SCHEMES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), length=st.integers(1, 32) | st.just(499))
def test_targets_and_tags_are_what_the_sources_say(name, split, seed, length):
    task = made(name, split, **({"test_length": ""} if name == "recall" else {}))
    if length in task.lengths():
        source, target, tags, _ = next(filter(None, (task.draw(Random(seed + i), length, "train") for i in range(99))))
        assert "".join(target) == "".join(ANSWERS[name, split](source))
        assert SIZES.get(name, len)(source) == length
        assert dict(tags) == tags_of(name, split, source, target)


@pytest.mark.parametrize("name", {name: 0 for name, _ in SCHEMES})
def test_the_examples_at_the_top_of_each_file_are_right(name):
    text = sys.modules[ALL[name].__module__].__doc__.partition("\n    data.")[0]
    shown = re.findall(r"^ +((?:\w+  +)?\S.*?) +-> +(.*?)(?:  +\((\w+).*)?$", text, re.MULTILINE)
    assert shown
    for source, target, scheme in shown:
        words = source.split()
        split = words.pop(0) if name == "chomsky" else scheme or next(iter(ALL[name].schemes))
        if ("output" in text and len(target.split()) == 1 < len(words)) or words[0].startswith("#"):
            continue  # of `data.output=final`, or with index hints
        assert "".join(target.split()) == "".join(ANSWERS[name, split](words)), source


def test_other_forms_of_a_task_differ_in_what_they_say_only():
    for seed in range(50):
        plain, turned = (made("arithmetic", "subtraction", format=form) for form in ("plain", "reversed"))
        plain, turned = (task.draw(Random(seed), 5, "train") for task in (plain, turned))
        for one, other in ((plain.source, turned.source), (plain.target, turned.target)):
            assert re.sub(r"\d+", lambda number: number[0][::-1], "".join(other)) == "".join(one)
        assert plain.tags == turned.tags
        every, last = (made("groups", "a5", output=form).draw(Random(seed), 5, "train") for form in ("all", "final"))
        assert last == every._replace(target=every.target[-1:])
    small = made("recall", "multi_query", keys=8, values=3, test_length="", train_examples=1000)
    sides = [{token for e in small.examples("train") for token in e.source if token[0] == side} for side in "kv"]
    assert (len(sides[0]), sides[1]) == (8, {"v0", "v1", "v2"})


@pytest.mark.parametrize(("split", "form"), [("addition", "plain"), ("multiplication", "reversed")])
def test_no_operands_are_in_train_one_way_and_held_out_the_other(split, form):
    task = made("arithmetic", split, format=form, train_examples=3000, eval_examples=300)

    def swapped(source):
        left, symbol, right = re.split(r"([+*])", "".join(source).removesuffix("="))
        return tuple(f"{right}{symbol}{left}=")

    trained = {e.source for e in task.examples("train")}
    assert any(swapped(source) in trained for source in trained), "both orders are drawn"
    for name in task.splits().held_out:
        assert not [e.source for e in task.examples(name) if swapped(e.source) in trained]


def test_ignored_instructions_are_as_frequent_as_each_test_says():
    task, shares = made("flipflop", "all_reads", train_examples=400, eval_examples=100), {}
    for part in ("train", "test_sparse", "test_dense"):
        inner = [token for e in task.examples(part) for token in e.source[2:-1] if token in "wir"]
        shares[part] = inner.count("i") / len(inner)
    assert shares == pytest.approx({"train": 0.8, "test_sparse": 0.98, "test_dense": 0.1}, abs=0.03)


@pytest.mark.parametrize(("split", "order"), [("cyclic", 60), ("s3", 6), ("s5", 120), ("a5", 60)])
def test_the_elements_are_those_of_the_group_and_label_each_token(split, order):
    names = [*elements(split, 60)]
    assert len(set(names)) == order
    assert all(composed(split, (names[0], name)) == name for name in names), "0 is the identity"
    assert {composed(split, (a, b)) for a in names[:9] for b in names} == set(names), "no product leaves the group"
    source = tuple(names[:5])
    label = made("groups", split).labels(Example(source, (), {}))["state"]
    assert [names[state] for state in label] == [composed(split, source[: i + 1]) for i in range(5)]

"""Arithmetic: what the text of a source says, reckoned by Python's integers, against the text of its target."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.tasks.arithmetic import MAX_DIGITS, Arithmetic
from tfstudy.tasks.base import Example
from tfstudy.tasks.generated import ANSWER

FORMATS = ("plain", "padded", "reversed")


def made(split="addition", **data):
    return Arithmetic(Arithmetic.Config(split=split, **{"train_examples": 300, "eval_examples": 60} | data))


def number(text, form):
    """What a text such as `-021` says; its digits are turned if the format is reversed."""
    sign, digits = re.fullmatch(r"(-?)(\d+)", text).groups()
    return int(digits[::-1] if form == "reversed" else digits) * (-1 if sign else 1)


def read(example, form):
    """Left operand, symbol, right operand and modulus (or None) of a source."""
    text = re.fullmatch(r"(\d+)([-+*/])(\d+)(?:mod(\d+))?=", "".join(example.source))
    left, symbol, right, modulus = text.groups()
    return number(left, form), symbol, number(right, form), number(modulus, form) if modulus else None


def expected(left, symbol, right, modulus):
    """The numbers of the answer: one, or quotient and remainder."""
    if symbol == "/":
        return list(divmod(left, right))
    result = eval(f"{left}{symbol}{right}")
    return [result if modulus is None else result % modulus]


def examples(draw, **fixed):
    """A task of any kind but for what is fixed, and one of its examples."""
    split = fixed.pop("split", None) or draw(st.sampled_from(list(Arithmetic.schemes)))
    chosen = {
        "format": draw(st.sampled_from(FORMATS)),
        "scratchpad": draw(st.booleans()),
        "modulus": draw(st.integers(2, 2000)),
    } | fixed
    task = made(split, **chosen)
    length, random = draw(st.integers(1, 12)), Random(draw(st.integers(0, 2**32)))
    return task, length, next(filter(None, (task.draw(random, length, "train") for _ in range(100))))


@given(st.data())
def test_the_answer_is_what_python_s_integers_make_of_the_source_and_its_length_the_digits_of_the_larger(data):
    task, length, drawn = examples(data.draw)
    form = task.config.format
    left, _, right, _ = read(drawn, form)
    assert (drawn.tags["digits_left"], drawn.tags["digits_right"]) == (len(str(left)), len(str(right)))
    assert length == len(str(max(left, right)))
    text = "".join(drawn.target).split(ANSWER)
    assert len(text) == 1 + task.config.scratchpad
    assert [number(part, form) for part in text[-1].split("r")] == expected(*read(drawn, form))


@given(st.data())
def test_no_number_but_a_padded_one_begins_with_zero_and_padded_ones_are_as_long_as_the_answer_can_be(data):
    task, length, drawn = examples(data.draw, scratchpad=False)
    texts = re.findall(r"\d+", " ".join(("".join(drawn.source), "".join(drawn.target))))
    if task.config.format == "padded":
        wide = {"multiplication": 2 * length, "modular": max(length + 1, len(str(task.config.modulus)))}
        assert {len(text) for text in texts} == {wide.get(task.config.split, length + 1)}
    else:
        assert all(text == "0" or text[-1 if task.config.format == "reversed" else 0] != "0" for text in texts)


@given(st.data(), st.sampled_from(["addition", "subtraction"]))
def test_carries_are_as_many_as_the_sums_of_digits_say(data, split):
    """Each carry turns ten of one column into one of the next, and so takes 9 from the sum of digits (Legendre)."""
    task, _, drawn = examples(data.draw, split=split)
    left, _, right, _ = read(drawn, task.config.format)
    parts = (left, right) if split == "addition" else (abs(left - right), min(left, right))
    lost = sum(int(digit) for part in parts for digit in str(part)) - sum(map(int, str(sum(parts))))
    assert drawn.tags["carries"] == lost / 9


# Scratchpads


def steps(drawn):
    """The steps of the working, each a string of digits."""
    return "".join(drawn.target).split(ANSWER)[0].split(",")


def place(value, at):
    """The digit of a number at a power of ten."""
    return value // 10**at % 10


@given(st.data(), st.sampled_from(["addition", "subtraction"]))
def test_columns_hold_the_digits_of_operands_and_result_and_the_carry_into_the_next(data, split):
    task, length, drawn = examples(data.draw, split=split, scratchpad=True)
    left, symbol, right, _ = read(drawn, task.config.format)
    high, low = (max(left, right), min(left, right)) if symbol == "-" else (left, right)
    result = high - low if symbol == "-" else high + low
    columns = [tuple(map(int, step)) for step in steps(drawn)]
    assert [column[:3] for column in columns] == [
        (place(high, at), place(low, at), place(result, at)) for at in range(length)
    ]
    carried = [0] + [column[3] for column in columns]
    for (a, b, digit, carry), before in zip(columns, carried, strict=False):
        assert a + b + before == digit + 10 * carry if symbol == "+" else a - b - before == digit - 10 * carry


@given(st.data())
def test_a_multiplication_s_totals_are_products_by_the_digits_so_far(data):
    task, _, drawn = examples(data.draw, split="multiplication", scratchpad=True)
    left, _, right, _ = read(drawn, task.config.format)
    totals = [(int(step[0]), int(step[1:][::-1])) for step in steps(drawn)]
    assert totals == [(place(right, at), left * (right % 10 ** (at + 1)) // 10**at) for at in range(len(str(right)))]


@given(st.data())
def test_a_long_division_divides_every_prefix_of_the_number(data):
    task, _, drawn = examples(data.draw, split="division", scratchpad=True)
    left, _, right, _ = read(drawn, task.config.format)
    prefixes = [int(str(left)[:cut]) for cut in range(1, len(str(left)) + 1)]
    found = [(int(step[0]), int(step[1:])) for step in steps(drawn)]
    assert found == [(prefix // right % 10, prefix % right) for prefix in prefixes]


@given(st.data())
def test_modular_working_reduces_every_prefix_of_both_operands(data):
    task, _, drawn = examples(data.draw, split="modular", scratchpad=True)
    left, _, right, modulus = read(drawn, task.config.format)
    prefixes = [int(str(side)[:cut]) for side in (left, right) for cut in range(1, len(str(side)) + 1)]
    assert [int(step) for step in steps(drawn)] == [prefix % modulus for prefix in prefixes]


# Reversed output


@given(st.data())
def test_reversed_output_reverses_the_digits_of_the_answer_and_nothing_else(data):
    form, split = data.draw(st.sampled_from(["plain", "padded"])), data.draw(st.sampled_from(list(Arithmetic.schemes)))
    scratchpad, seed = data.draw(st.booleans()), data.draw(st.integers(0, 99))
    plain, turned = (made(split, format=form, scratchpad=scratchpad, reverse_output=on) for on in (False, True))
    length = data.draw(st.integers(1, 9))
    one, other = (task.draw(Random(seed), length, "train") for task in (plain, turned))
    if one is None:  # a division by zero
        return
    assert (other.source, other.tags) == (one.source, one.tags)
    *steps, answer = "".join(one.target).split(ANSWER)
    *same, reverse = "".join(other.target).split(ANSWER)
    assert steps == same
    assert [number(text, "reversed") for text in reverse.split("r")] == [int(text) for text in answer.split("r")]
    assert len(reverse) == len(answer)


# What is held out, and labels


@pytest.mark.parametrize(
    ("split", "form"), [("addition", "plain"), ("multiplication", "padded"), ("modular", "reversed")]
)
def test_no_operands_are_in_train_one_way_and_held_out_the_other(split, form):
    task = Arithmetic(Arithmetic.Config(split=split, format=form, train_examples=3000, eval_examples=300))

    def swapped(source):
        text = " ".join(source).replace(" mod", " =", 1) if "mod" in source else " ".join(source)
        symbol = next(c for c in "+*-" if f" {c} " in text)
        left, _, rest = text.partition(f" {symbol} ")
        right = rest.partition(" =")[0]
        tail = source[source.index("mod") :] if "mod" in source else ("=",)
        return None if symbol == "-" else (*right.split(), symbol, *left.split(), *tail)

    trained = {e.source for e in task.examples("train")}
    assert any(swapped(source) in trained for source in trained), "both orders are drawn"
    for name in task.splits().held_out:
        assert not [e.source for e in task.examples(name) if swapped(e.source) in trained]


def test_every_digit_is_labelled_with_the_carry_of_its_column():
    for source, split, form, wanted in (
        ("95+7=", "addition", "plain", [1, 1, None, 1, None]),
        ("59+7=", "addition", "reversed", [1, 1, None, 1, None]),
        ("095+007=", "addition", "padded", [0, 1, 1, None, 0, 1, 1, None]),
        ("3-12=", "subtraction", "plain", [1, None, 0, 1, None]),
    ):
        assert made(split, format=form).labels(Example(tuple(source), (), {})) == {"carry": wanted}
    assert not made("multiplication").labels(Example(tuple("2*3="), (), {}))
    assert made("multiplication").at_length(MAX_DIGITS + 1) == []

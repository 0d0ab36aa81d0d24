"""Arithmetic: what the text of a source says, reckoned by Python's integers, against the text of its target."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.tasks.arithmetic import Arithmetic, carries, columns
from tfstudy.tasks.base import Example

SCHEMES = st.sampled_from(list(Arithmetic.schemes))
# the format of the operands, whether the output is reversed, and with it the format of the answer
FORMS = st.sampled_from([("plain", False, "plain"), ("plain", True, "reversed"), ("reversed", False, "reversed")])


def made(split="addition", **data):
    return Arithmetic(Arithmetic.Config(split=split, **{"train_examples": 300, "eval_examples": 60} | data))


def number(text, form):
    """What a text such as `-21` says; its digits are turned if the format is reversed, and none begins with zero."""
    sign, digits = re.fullmatch(r"(-?)(\d+)", text).groups()
    digits = digits[::-1] if form == "reversed" else digits
    assert digits == "0" or digits[0] != "0"
    return int(sign + digits)


@given(SCHEMES, FORMS, st.integers(1, 12), st.integers(0, 2**32))
def test_the_answer_is_what_python_s_integers_make_of_the_source_and_its_length_the_digits_of_the_larger(
    split, forms, length, seed
):
    form, reverse, answer = forms
    task, random = made(split, format=form, reverse_output=reverse), Random(seed)
    drawn = next(filter(None, (task.draw(random, length, "train") for _ in range(100))))
    first, symbol, second = re.fullmatch(r"(\d+)([-+*/])(\d+)=", "".join(drawn.source)).groups()
    left, right = number(first, form), number(second, form)
    assert (drawn.tags["digits_left"], drawn.tags["digits_right"]) == (len(str(left)), len(str(right)))
    assert length == len(str(max(left, right)))
    wanted = [*divmod(left, right)] if symbol == "/" else [eval(f"{left}{symbol}{right}")]
    assert [number(text, answer) for text in "".join(drawn.target).split("r")] == wanted
    if symbol in "+-":
        # each carry turns ten of one column into one of the next, and so takes 9 from the sum of digits (Legendre)
        parts = (left, right) if symbol == "+" else (abs(left - right), min(left, right))
        lost = sum(int(digit) for part in parts for digit in str(part)) - sum(map(int, str(sum(parts))))
        assert drawn.tags["carries"] == lost / 9
        # and the carries of the columns are those of the source's labels, at the longer operand
        labels = task.labels(Example(drawn.source, drawn.target, {}))["carry"]
        assert sum(max(labels[: len(first)], labels[len(first) + 1 : -1], key=len)) == drawn.tags["carries"]


@pytest.mark.parametrize(("split", "form"), [("addition", "plain"), ("multiplication", "reversed")])
def test_no_operands_are_in_train_one_way_and_held_out_the_other(split, form):
    task = Arithmetic(Arithmetic.Config(split=split, format=form, train_examples=3000, eval_examples=300))

    def swapped(source):
        left, symbol, right = re.split(r"([+*])", "".join(source).removesuffix("="))
        return tuple(f"{right}{symbol}{left}=")

    trained = {e.source for e in task.examples("train")}
    assert any(swapped(source) in trained for source in trained), "both orders are drawn"
    for name in task.splits().held_out:
        assert not [e.source for e in task.examples(name) if swapped(e.source) in trained]


def test_every_digit_is_labelled_with_the_carry_of_its_column():
    for source, split, form, wanted in (
        ("95+7=", "addition", "plain", [1, 1, None, 1, None]),
        ("59+7=", "addition", "reversed", [1, 1, None, 1, None]),
        ("3-12=", "subtraction", "plain", [1, None, 0, 1, None]),
    ):
        assert made(split, format=form).labels(Example(tuple(source), (), {})) == {"carry": wanted}
    assert not made("multiplication").labels(Example(tuple("2*3="), (), {}))


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

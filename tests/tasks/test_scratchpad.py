"""Scratchpads: steps before the answer, its score, and schemes without them."""

import re
from itertools import accumulate

import pytest

from tfstudy.errors import UserError
from tfstudy.tasks import find

SMALL = {"train_examples": 100, "eval_examples": 20}
WITH = [("arithmetic", "addition"), ("groups", "s3"), ("counting", "parity"), ("parentheses", "recognition")]


def made(name, split, **data):
    cls = find(name)
    extra = {"output": "final"} if name == "groups" else {}
    return cls(cls.Config(split=split, **SMALL | extra | data))


@pytest.mark.parametrize(("name", "split"), WITH)
def test_a_scratchpad_changes_targets_only_and_ends_with_the_answer(name, split):
    without, task = made(name, split), made(name, split, scratchpad=True)
    for plain, example in zip(without.examples("train"), task.examples("train"), strict=True):
        assert (example.source, example.tags) == (plain.source, plain.tags)
        end = example.target.index(":")
        assert end > 0
        assert example.target[end + 1 :] == plain.target


@pytest.mark.parametrize(("name", "split"), WITH)
def test_the_answer_is_scored_apart_from_the_steps(name, split):
    task = made(name, split, scratchpad=True)
    chosen = task.examples("train")[:2]
    wrong_steps = ("?", *chosen[0].target[1:])
    scores = task.score([wrong_steps, chosen[1].target[:-1]], chosen)
    assert (scores["exact_match"], scores["answer_exact_match"]) == (0.0, 0.5)
    assert next(iter(scores)) == "exact_match"


def test_steps_of_parity_are_the_parities_of_all_prefixes():
    for example in made("counting", "parity", scratchpad=True).examples("train"):
        counts = accumulate(symbol == "b" for symbol in example.source)
        assert [*example.target[: len(example.source)]] == ["odd" if n % 2 else "even" for n in counts]


def test_steps_of_recognition_are_the_brackets_that_may_follow_up_to_the_first_fault():
    pairs = {"(": ")", "[": "]"}
    for example in made("parentheses", "recognition", scratchpad=True).examples("train"):
        *steps, _, answer = example.target
        for i, step in enumerate(steps):
            left = "".join(example.source[: i + 1])
            while (less := re.sub(r"\(\)|\[\]", "", left)) != left:
                left = less
            assert step == ("x" if set(left) & set(")]") else pairs[left[-1]] if left else "-")
        assert (answer == "balanced") == (steps[-1] == "-" and len(steps) == len(example.source))


@pytest.mark.parametrize(("name", "split"), [("counting", "majority"), ("parentheses", "completion")])
def test_a_scheme_without_steps_is_refused(name, split):
    with pytest.raises(UserError, match=rf"data\.scratchpad needs data\.split=.* but it is {split}"):
        made(name, split, scratchpad=True)

"""A target and a prediction below each other, with the first difference marked."""

import random

import pytest

from tfstudy.evaluation.error_kinds import first_error
from tfstudy.report.alignment import DOTS, END, alignment


def lines(target: str, prediction: str, width: int = 60) -> list[str]:
    return [text.plain.rstrip() for text in alignment(target.split(), prediction.split(), width)]


@pytest.mark.parametrize(
    ("target", "prediction", "shown"),
    [
        ("a b c", "a x c", ["a b c", "a x c", "  ^ token 2 of 3"]),
        ("a bb c", "a b c", ["a bb c", "a b  c", "  ^ token 2 of 3"]),
        ("a b c d", "a b d", ["a b c d", "a b   d", "    ^ token 3 of 4"]),
        ("a b", "a", ["a b", "a (end)", "  ^ token 2 of 2"]),
        ("a b", "a b c", ["a b (end)", "a b c", "    ^ after all 2 tokens"]),
        ("a b", "", ["a     b", "(end)", "^ token 1 of 2"]),
        ("a a b", "a b", ["a a b", "a   b", "  ^ token 2 of 3"]),
        ("a b", "a b", ["a b", "a b", "correct"]),
    ],
)
def test_tokens_are_below_each_other_and_the_first_difference_is_marked(target, prediction, shown):
    assert lines(target, prediction) == shown


def test_long_sequences_are_shown_around_the_first_difference():
    words = [f"w{number}" for number in range(100)]
    gold, predicted, mark = lines(" ".join(words), " ".join([*words[:70], "x", *words[71:]]), 40)
    assert gold.startswith(DOTS)
    assert gold.endswith(DOTS)
    assert predicted.startswith(DOTS)
    assert predicted.endswith(DOTS)
    assert mark.endswith("^ token 71 of 100")
    place = mark.index("^")
    assert (gold[place : place + 3], predicted[place : place + 3]) == ("w70", "x  ")


def test_an_output_that_ended_is_not_continued_by_dots():
    words = [f"w{number}" for number in range(100)]
    gold, predicted, _ = lines(" ".join(words), " ".join(words[:50]), 40)
    assert gold.endswith(DOTS)
    assert predicted.endswith(END)


def test_no_line_is_wider_than_the_screen_and_the_caret_is_at_the_first_difference():
    generator = random.Random(0)
    for _ in range(300):
        kinds = ["a", "bb", "I_TURN_LEFT", "翻译", "x" * 50][: generator.choice([3, 5])]
        target, prediction = (generator.choices(kinds, k=generator.randrange(60)) for _ in range(2))
        width = generator.randrange(50, 80)
        texts = alignment(target, prediction, width)
        assert all(text.cell_len <= width for text in texts)
        assert ("^" in texts[2].plain) == (first_error(target, prediction) is not None)


def test_differing_tokens_are_bold():
    gold, predicted, _ = alignment(["a", "b", "c"], ["a", "x", "c"], 60)
    assert [(str(span.style), gold.plain[span.start : span.end].strip()) for span in gold.spans] == [("bold", "b")]
    assert [str(span.style) for span in predicted.spans] == ["bold red"]


def test_very_long_sequences_are_aligned_quickly():
    target = ["a", "b"] * 100_000
    gold, predicted, mark = alignment(target, ["b", *target], 60)
    assert mark.plain.startswith("^ token 1 of 200000")
    assert max(gold.cell_len, predicted.cell_len) <= 60

"""Messages quote values on one line, without control characters, and not at any length."""

import pytest

from tfstudy.errors import UserError, one_of, printable, quoted, similar


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b[2J\r", "\\x1b[2J\\r"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("a\u202eb", "a\\u202eb"),
        ("\udcff", "\\udcff"),
        ("a\tb\nZürich 東京 \u200c\U0001f600", "a\tb\nZürich 東京 \u200c\U0001f600"),
    ],
)
def test_control_characters_are_shown_as_escapes(text, shown):
    assert printable(text) == shown


def test_a_value_is_quoted_on_one_line_and_cut():
    assert quoted("a\nb\x1b") == r"'a\nb\x1b'"
    assert quoted("x" * 61) == f"'{'x' * 60}...'"
    assert quoted("\x1b" * 1000).count("x1b") < 20
    with pytest.raises(UserError, match=r"^unknown task '\\x1bx{56}\.\.\.'; expected one of: scan$"):
        one_of("task", "\x1b" + "x" * 100_000, ["scan"])
    message = r"^a.yaml: unknown task 'scna'; did you mean 'scan'\? Expected one of: pcfg, scan$"
    with pytest.raises(UserError, match=message):
        one_of("task", "scna", ["pcfg", "scan"], "a.yaml")


@pytest.mark.parametrize(
    ("name", "near"),
    [("BLEU", "bleu"), ("dim", "model.dim"), ("Dmi", "model.dim"), ("lake", "lake-2018"), ("foo", ""), ("l", "")],
)
def test_a_near_match_is_of_any_case_the_last_part_of_a_key_or_a_continuation(name, near):
    assert similar(name, ["bleu", "task", "model.dim", "train.steps", "lake-2018", "loula-2018"]) == near

"""Numbers and text in Markdown, LaTeX, HTML and JSON."""

import json
import math

import pytest

from tfstudy.report.markup import (
    MINUS,
    ends,
    escape_latex,
    escape_markdown,
    json_text,
    markdown_table,
    number,
    p_value,
    q_equals,
    signed,
    significant,
    with_interval,
)


def test_numbers_have_a_minus_sign_and_no_negative_zero():
    assert (number(-1.25), number(-0.01), number(math.nan)) == (f"{MINUS}1.2", "0.0", "")
    assert (signed(2.0), signed(0.0), ends(-1, 2, "+")) == ("+2.0", "+0.0", f"[{MINUS}1.0, +2.0]")
    assert with_interval(1, 0, 2) == "1.0 [0.0, 2.0]"
    assert with_interval(1, math.nan, math.nan) == "1.0"


def test_a_difference_has_the_sign_of_its_exact_value():
    assert ends(-0.0003, 2, "+") == f"[{MINUS}0.0, +2.0]"
    assert ends(0.0003, 2, "+") == "[+0.0, +2.0]"


def test_a_significant_p_value_is_not_rounded_to_the_threshold():
    assert [p_value(p) for p in (0.04949, 0.04999696, 0.05)] == [".049", "<.050", ".050"]
    assert q_equals(0.04999696) == "q < .050"


def test_a_pipe_does_not_end_a_cell():
    assert markdown_table(("a", "b"), [("x|y", "---")]) == "| a | b |\n|---|---|\n| x\\|y | --- |"


def test_text_is_escaped_for_each_language():
    assert escape_markdown("<b>*a*\n`b`") == "&lt;b>\\*a\\* \\`b\\`"
    assert escape_latex(r"50 % ± a_b \ <") == r"50 \% $\pm$ a\_b \textbackslash{} $<$"


def test_json_has_null_for_nan_at_any_depth():
    text = json_text({"a": math.nan, "b": [math.nan, (1.5, "ü")]})
    assert json.loads(text) == {"a": None, "b": [None, [1.5, "ü"]]}
    assert text.endswith("}\n")
    assert "ü" in text
    with pytest.raises(ValueError, match="inf"):
        json_text(math.inf)


@pytest.mark.parametrize(
    ("value", "sign", "text"),
    [
        (0.0321, "", "0.0321"),
        (-0.0321, "", f"{MINUS}0.0321"),
        (0.5, "+", "+0.500"),
        (0, "", "0.00"),
        (99.94, "", "99.9"),
        (99.96, "", "100"),
        (12345.6, "+", "+12,300"),
    ],
)
def test_numbers_have_three_significant_digits(value, sign, text):
    assert significant(value, sign) == text

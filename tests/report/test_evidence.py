"""Numbers of evidence: those of instruments have three significant digits, whatever their unit."""

import math

import pytest

from tfstudy.report.evidence import significant, significant_interval
from tfstudy.report.markup import MINUS


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


def test_an_interval_that_is_unknown_is_left_out():
    assert significant_interval(0.0321, 0.03, 0.0342) == "0.0321 [0.0300, 0.0342]"
    assert significant_interval(0.0321, math.nan, math.nan) == "0.0321"

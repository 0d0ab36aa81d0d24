"""The text beside a verdict: what was measured."""

from tests.example_claims import NEAR_HALF, judged, values
from tfstudy.report.evidence import measured


def test_a_comparison_of_unequal_numbers_of_seeds_names_both(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    values(tmp_path, "cnn", 0.1, 0.11, 0.12)
    above = {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}
    [statement] = judged(tmp_path, above).statements
    assert " (n = 5 and 3), p" in measured(statement)

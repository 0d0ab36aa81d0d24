"""The text beside a verdict: what was measured."""

import pytest

from tests.example_claims import NEAR_HALF, judged, values
from tfstudy.report.evidence import about, measured


def test_a_comparison_of_unequal_numbers_of_seeds_names_both(tmp_path):
    values(tmp_path, "lstm", *NEAR_HALF)
    values(tmp_path, "cnn", 0.1, 0.11, 0.12)
    above = {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}
    [statement] = judged(tmp_path, above).statements
    assert " (n = 5 and 3), p" in measured(statement)


SHARED = {"model.dim": 64, "data.train_length": "1-10"}


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ({"arch": "lstm"}, {}, "lstm on scan length"),
        (
            SHARED | {"arch": "cnn", "preset": "small"},
            {},
            "cnn (preset small, dim=64, train_length=1-10) on scan length",
        ),
        ({"arch": "lstm"}, {"arch": "cnn"}, "lstm minus cnn on scan length"),
        (
            SHARED | {"arch": "lstm"},
            SHARED | {"arch": "cnn"},
            "lstm minus cnn (dim=64, train_length=1-10) on scan length",
        ),
        (
            {"arch": "lstm", "model.dim": 64, "model.cell": "gru"},
            {"arch": "lstm", "model.dim": 32, "model.cell": "gru"},
            "lstm dim=64 minus dim=32 (cell=gru) on scan length",
        ),
        ({"arch": "lstm", "model.dim": 64}, {"arch": "lstm"}, "lstm dim=64 minus lstm on scan length"),
        ({"arch": "cnn", "preset": "a"}, {"arch": "cnn", "preset": "b"}, "cnn preset a minus preset b on scan length"),
        (
            {"arch": "lstm", "test": "test", "model.dim": 64},
            {"arch": "lstm", "test": "test_long", "model.dim": 64},
            "lstm (dim=64) on scan length, test minus test_long",
        ),
        (
            {"arch": "lstm", "tag": "length", "value": "1"},
            {"arch": "lstm", "tag": "length", "value": "3"},
            "lstm on scan length, length 1 minus length 3",
        ),
        ({"arch": "lstm"}, {"arch": "lstm", "split": "simple"}, "lstm on scan length minus scan simple"),
        (
            {"arch": "lstm", "model.dim": 64},
            {"arch": "cnn", "split": "simple", "model.dim": 64},
            "lstm on scan length minus cnn on scan simple (dim=64)",
        ),
    ],
)
def test_what_two_conditions_share_stands_once(tmp_path, first, second, text):
    found = judged(tmp_path, {"of": first, **({"minus": second} if second else {}), "above": 0})
    assert about(found.statements[0]) == f"exact match of {text}"


def test_rows_of_an_instrument_are_named_like_settings(tmp_path):
    first, second = ({"arch": "lstm", "rows.head": head, "rows.take": "max", "rows.role": "next"} for head in (1, 2))
    found = judged(tmp_path, {"of": first, "minus": second, "above": 0}, metric="head_roles")
    text = "lstm largest of head 1, role next minus largest of head 2, role next on scan length, measured by head_roles"
    assert about(found.statements[0]) == text

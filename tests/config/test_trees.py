"""Trees of settings: merged, flattened and back."""

from hypothesis import given
from hypothesis import strategies as st

from tfstudy.config.trees import flatten, merge, unflatten


@given(st.dictionaries(st.sampled_from(["a", "b.c", "b.d", "e.f.g"]), st.integers() | st.just({}), min_size=1))
def test_unflatten_is_the_inverse_of_flatten(flat):
    assert flatten(unflatten(flat)) == flat


def test_later_trees_win_key_by_key():
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}}, {"d": {"e": 5}}) == {
        "a": {"b": 1, "c": 4},
        "d": {"e": 5},
    }

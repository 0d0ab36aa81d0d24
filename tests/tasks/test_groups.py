"""Word problems of groups: products against a composition of functions, and the laws of a group."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.errors import UserError
from tfstudy.tasks.groups import Groups, cyclic, symmetric

ORDERS = {"cyclic": 60, "s3": 6, "s5": 120, "a5": 60}
every = pytest.mark.parametrize("split", ORDERS)


def made(split, **data):
    return Groups(Groups.Config(split=split, **{"train_examples": 200, "eval_examples": 20} | data))


def group(split):
    return {"cyclic": cyclic(60), "s3": symmetric(3), "s5": symmetric(5), "a5": symmetric(5, even=True)}[split]


def composed(split, elements):
    """The product by other means: numbers are added, and each object is followed through the permutations."""
    if split == "cyclic":
        return str(sum(map(int, elements)) % 60)
    images = []
    for start in "12345"[: len(elements[0])]:
        place = start
        for element in elements:
            place = element[int(place) - 1]
        images.append(place)
    return "".join(images)


@every
def test_a_table_is_that_of_a_group(split):
    names, table = group(split)
    assert len(set(names)) == len(table) == ORDERS[split]
    numbers = range(len(names))
    assert table[0] == [row[0] for row in table] == [*numbers], "0 is the identity"
    assert all(sorted(row) == [*numbers] for row in table), "each element has an inverse"
    random = Random(0)
    some = [random.choices(numbers, k=3) for _ in range(200)]
    assert all(table[table[a][b]][c] == table[a][table[b][c]] for a, b, c in some)


@every
def test_a_table_agrees_with_the_composition_of_two_elements(split):
    names, table = group(split)
    assert all(names[table[a][b]] == composed(split, (x, y)) for a, x in enumerate(names) for b, y in enumerate(names))


@given(st.sampled_from([*ORDERS]), st.integers(0, 99), st.integers(1, 30))
def test_targets_are_the_products_of_all_prefixes_or_of_the_sequence(split, seed, length):
    source, target, _ = made(split).draw(Random(seed), length, "train")
    assert target == tuple(composed(split, source[: i + 1]) for i in range(length))
    assert made(split, output="final").draw(Random(seed), length, "train").target == target[-1:]
    steps = made(split, output="final", scratchpad=True).draw(Random(seed), length, "train").target
    assert steps == (*target, ":", target[-1])


def test_the_state_of_each_token_is_its_label():
    task = made("s3")
    example = task.examples("train")[0]
    assert [symmetric(3).names[state] for state in task.labels(example)["state"]] == [*example.target]


def test_an_order_of_another_group_is_refused():
    with pytest.raises(UserError, match=r"data\.order needs data\.split=cyclic, but it is s3"):
        made("s3", order=7)


def test_a_scratchpad_of_the_target_itself_is_refused():
    with pytest.raises(UserError, match=r"data\.scratchpad needs data\.output=final"):
        made("s3", scratchpad=True)

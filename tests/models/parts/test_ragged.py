"""Groups of rows are flattened, split again, and know their positions."""

import torch

from tfstudy.models.parts.tokens import flatten_groups, shapes_by_source, shapes_of, split_groups, token_positions

GROUPS = [torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[7]]), torch.zeros(0, 4, dtype=torch.long)]


def test_groups_are_flattened_row_by_row_and_split_again():
    flat = flatten_groups(GROUPS)
    assert flat.tolist() == [1, 2, 3, 4, 5, 6, 7]
    again = split_groups(flat, shapes_of(GROUPS))
    assert all(torch.equal(a, b) for a, b in zip(again, GROUPS, strict=True))


def test_a_single_group_is_not_copied():
    assert flatten_groups(GROUPS[:1]).data_ptr() == GROUPS[0].data_ptr()


def test_positions_start_at_0_or_at_each_rows_own_start():
    assert token_positions(GROUPS).tolist() == [0, 1, 2, 0, 1, 2, 0]
    starts = [torch.tensor([5, 1]), torch.tensor([9]), torch.tensor([], dtype=torch.long)]
    assert token_positions(GROUPS, starts).tolist() == [5, 6, 7, 1, 2, 3, 9]


def test_the_hypotheses_of_a_source_are_like_one_longer_target():
    groups = [torch.zeros(6, 5), torch.zeros(2, 1), torch.zeros(0, 4)]
    masks = [torch.ones(2, 3), torch.ones(2, 7), torch.ones(0, 7)]
    assert shapes_by_source(groups, masks) == [(2, 15), (2, 1), (0, 0)]

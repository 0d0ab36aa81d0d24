"""Linear attention against its quadratic form, and the size of its state."""

import pytest
import torch
from torch.nn.functional import elu
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.models.parts import linear_attention
from tfstudy.models.parts.linear_attention import LinearAttention
from tfstudy.testing.architecture_variant import leaves


def quadratic(attention, x, seen):
    """sum_j phi(q_i) phi(k_j) v_j / sum_j phi(q_i) phi(k_j) over the keys that `seen` (queries, keys) allows."""
    head = x.shape[-1] // attention.heads
    q, (k, v) = attention.query(x), attention.key_value(x).chunk(2, -1)
    parts = []
    for h in range(attention.heads):
        at = slice(h * head, (h + 1) * head)
        weights = (elu(q[:, at]) + 1) @ (elu(k[:, at]) + 1).T * seen
        parts.append(weights / weights.sum(1, keepdim=True) @ v[:, at])
    return attention.out(torch.cat(parts, 1))


def test_attention_to_all_keys_is_its_quadratic_form_without_the_padding():
    attention, x = randomised(LinearAttention(12, 3)), torch.randn(7, 12)
    mask = torch.tensor([True] * 5 + [False] * 2)
    got = attention(x, [(1, 7)], attention.project(x, [(1, 7)]), [mask.view(1, 1, 1, 7)])
    assert_close(got, quadratic(attention, x, mask.float()), **CLOSE)


@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_causal_attention_is_its_quadratic_form_in_chunks_of_any_size_and_in_pieces(chunk, monkeypatch):
    monkeypatch.setattr(linear_attention, "CHUNK", chunk)
    attention, x = randomised(LinearAttention(12, 3)), torch.randn(8, 12)
    state, found = attention.empty(x, 1), []
    for piece in x.split([5, 1, 2]):
        attended, [state] = attention.attend_causally(piece, [(1, len(piece))], [state])
        found.append(attended)
    assert_close(torch.cat(found), quadratic(attention, x, torch.ones(8, 8).tril()), **CLOSE)
    assert state.length == 8


def test_the_state_does_not_grow_with_the_target(build, source):
    model, sizes = build("transformer-linear").eval(), []
    for length in (1, 40):
        state = model.encode(source, source > 0)
        state = model.decode(torch.full((3, length), 4), state)[1]
        sizes.append(sum(leaf.numel() for leaf in leaves(state.past)))
    assert sizes == [2 * 3 * 2 * 8 * 9] * 2  # layers, rows, heads, width of a head, and one column for the sum


def test_features_are_elu_plus_1_and_never_0():
    x = torch.tensor([-30.0, -3, 0, 2])
    assert_close(linear_attention.features(x), elu(x) + 1, atol=1e-7, rtol=1e-6)
    assert linear_attention.features(x).min() > 0

"""Positions against their formulas, and what theory says of attention with and without them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tfstudy.models.parts.attention import MultiHeadAttention
from tfstudy.models.parts.layers import Embedding, EmbeddingInit, embedding_init
from tfstudy.models.parts.positions.base import Places, Setup, consecutive
from tfstudy.models.parts.positions.schemes import TransformerXL, sinusoids

CLOSE = {"atol": 2e-5, "rtol": 1e-4}


def encoding(position, dim):
    """Vaswani et al. 2017, section 3.5, element by element, in double precision."""
    angles = [position / 10000 ** (2 * (k // 2) / dim) for k in range(dim)]
    return torch.tensor([math.cos(a) if k % 2 else math.sin(a) for k, a in enumerate(angles)])


def randomised(module):
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()


@given(position=st.integers(-500, 500), dim=st.integers(1, 33))
def test_sinusoids_follow_the_formula(position, dim):
    assert_close(sinusoids(torch.tensor(position), dim), encoding(position, dim), atol=2e-4, rtol=0)


@given(position=st.integers(0, 400), shift=st.integers(-50, 50), half=st.integers(1, 8))
def test_a_shifted_encoding_is_a_linear_map_that_does_not_depend_on_the_position(position, shift, half):
    rotation = torch.zeros(2 * half, 2 * half)
    for i in range(half):
        angle = shift / 10000 ** (i / half)
        sin, cos = math.sin(angle), math.cos(angle)
        rotation[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[cos, sin], [-sin, cos]])
    here, there = sinusoids(torch.tensor([position, position + shift]), 2 * half)
    assert_close(rotation @ here, there, atol=2e-4, rtol=0)


def test_encodings_of_different_positions_differ():
    table = sinusoids(torch.arange(512), 16)
    assert (torch.cdist(table, table) + 9 * torch.eye(512)).min() > 0.05


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "none"])
def test_an_embedding_is_scaled_and_its_position_added(kind):
    torch.manual_seed(0)
    embedding = Embedding(9, 6, kind, max_positions=20, init=EmbeddingInit(scale=3.0))
    tokens, positions = torch.tensor([[4, 5, 4]]), torch.tensor([[2, 3, 19]])
    added = {
        "sinusoidal": lambda: sinusoids(positions, 6),
        "learned": lambda: embedding.positions.weight[positions],
        "none": lambda: 0,
    }[kind]()
    assert_close(embedding(tokens, positions), 3.0 * embedding.tokens.weight[tokens] + added)


def test_a_sinusoidal_position_past_the_table_is_computed():
    embedding = Embedding(9, 6, "sinusoidal", max_positions=4)
    far = torch.tensor([[3, 4, 70]])
    added = embedding(torch.full((1, 3), 5), far) - embedding.tokens.weight[5]
    assert_close(added, sinusoids(far, 6), **CLOSE)


def test_an_embedding_that_knows_the_end_of_its_positions_is_the_same():
    embedding, places = Embedding(9, 6, "sinusoidal", max_positions=4), torch.tensor([3, 0, 70, 3])
    tokens = torch.tensor([4, 5, 6, 7])
    assert torch.equal(embedding(tokens, places, end=71), embedding(tokens, places))


def test_a_learned_position_past_the_table_is_refused():
    with pytest.raises(IndexError):
        Embedding(9, 6, "learned", max_positions=4)(torch.tensor([[5]]), torch.tensor([[4]]))


def test_a_sinusoidal_table_is_neither_trained_nor_saved():
    embedding = Embedding(9, 6, "sinusoidal", max_positions=4)
    assert [name for name, _ in embedding.named_parameters()] == list(embedding.state_dict()) == ["tokens.weight"]


@pytest.mark.parametrize(("new", "keys", "causal"), [(5, 5, True), (1, 5, True), (2, 5, True), (5, 5, False)], ids=str)
def test_relative_attention_agrees_with_a_double_loop(new, keys, causal):
    """Dai et al. 2019, section 3.3: (q_i + u) k_j + (q_i + v) W r_{i-j}, over sqrt(d)."""
    dim, heads, head = 12, 3, 4
    attention = randomised(MultiHeadAttention(dim, heads, scheme="relative"))
    relative, x = attention.relative, torch.randn(keys, dim)
    q, k, v = attention.query(x), *attention.key_value(x).chunk(2, -1)
    mask = torch.tensor([True, True, True, True, causal])
    rows = []
    for i in range(keys - new, keys):
        parts = []
        for h in range(heads):
            at, scores = slice(h * head, (h + 1) * head), []
            seen = [j for j in range(keys) if (j <= i if causal else mask[j])]
            for j in seen:
                distance = relative.project.weight[at] @ encoding(i - j, dim)
                content = (q[i, at] + relative.content_bias[h, 0]) @ k[j, at]
                place = (q[i, at] + relative.position_bias[h, 0]) @ distance
                scores.append((content + place) / math.sqrt(head))
            parts.append(torch.stack(scores).softmax(0) @ v[seen, at])
        rows.append(attention.out(torch.cat(parts)))
    seen = attention.project(x, [(1, keys)])
    got = attention(x[keys - new :], [(1, new)], seen, None if causal else [mask.view(1, 1, 1, -1)], causal)
    assert_close(got, torch.stack(rows), **CLOSE)


@given(start=st.integers(0, 12), keys=st.integers(1, 9), shift=st.integers(1, 20))
@settings(max_examples=30)
def test_relative_terms_depend_on_the_distance_alone(start, keys, shift):
    relative = randomised(TransformerXL(Setup(8, 2)))
    queries, near_keys = torch.randn(1, 2, 3, 4), torch.randn(1, 2, keys, 4)
    near = Places(torch.arange(start, start + 3)[None], torch.arange(keys)[None], start - keys + 1, start + 2)
    far = Places(near.queries + shift, near.keys + shift, near.lowest - 2, near.highest + 3)
    assert_close(relative.bias(queries, near_keys, far), relative.bias(queries, near_keys, near), **CLOSE)


def test_consecutive_places_have_the_distances_from_queries_to_keys():
    places = consecutive(5, 2, torch.device("cpu"))
    assert places.distances.tolist() == [[[3, 2, 1, 0, -1], [4, 3, 2, 1, 0]]]
    assert (places.lowest, places.highest) == (-1, 4)
    assert places.part(slice(None), slice(1, None)).distances.tolist() == [[[4, 3, 2, 1, 0]]]


def to_itself(attention, x):
    """Self-attention of one row (length, dim)."""
    return attention(x, [(1, len(x))], attention.project(x, [(1, len(x))]))


@given(order=st.permutations(range(6)))
@settings(max_examples=20)
def test_self_attention_without_positions_is_permutation_equivariant(order):
    attention, x = randomised(MultiHeadAttention(8, 2)), torch.randn(6, 8)
    assert_close(to_itself(attention, x[order]), to_itself(attention, x)[order], **CLOSE)


def test_self_attention_with_relative_positions_is_not_permutation_equivariant():
    attention, x = randomised(MultiHeadAttention(8, 2, scheme="relative")), torch.randn(6, 8)
    order = [1, 0, 2, 3, 4, 5]
    assert (to_itself(attention, x[order]) - to_itself(attention, x)[order]).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("name", "kind", "std", "scale"),
    [
        ("unit_variance", "normal", 100**-0.5, 10),
        ("token_upscaling", "uniform", (2 / 500) ** 0.5, 10),
        ("xavier", "uniform", (2 / 500) ** 0.5, 1),
    ],
)
def test_embeddings_start_as_csordas_et_al_describe(name, kind, std, scale):
    torch.manual_seed(0)
    embedding = Embedding(400, 100, "sinusoidal", 50, embedding_init(name, 400, 100))
    weight, positions = embedding.tokens.weight, torch.arange(400)
    assert_close(weight.std().item(), std, rtol=0.01, atol=0)
    assert (weight.abs().max() <= std * 3**0.5) == (kind == "uniform")
    expected = scale * weight + sinusoids(positions, 100)
    assert_close(embedding(positions, positions), expected)
    assert_close(embedding(positions, positions, end=400), expected)


@pytest.mark.parametrize("name", ["unit_variance", "token_upscaling", "xavier"])
def test_learned_positions_start_with_the_scale_of_the_tokens(name):
    torch.manual_seed(0)
    embedding = Embedding(400, 100, "learned", 500, embedding_init(name, 400, 100))
    tokens = (embedding.scale * embedding.tokens.weight).std().item()
    assert_close(embedding.positions.weight.std().item(), tokens, rtol=0.02, atol=0)

"""Positions against the formulas of their papers, and what theory says of attention with and without them."""

import math
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tests.models.reference import CLOSE, at, placed, randomised, sight
from tfstudy.models.attention import MultiHeadAttention
from tfstudy.models.config import Positions
from tfstudy.models.layers import Embedding, embedding_init
from tfstudy.models.positions import SCHEMES, Setup, acts_on_attention
from tfstudy.models.positions.base import PositionScheme
from tfstudy.models.positions.schemes import BUCKETS, Contextual, Rotary, T5Buckets, alibi_slopes, sinusoids
from tfstudy.models.transformer import Transformer

DIM, HEADS = 12, 3
HEAD = DIM // HEADS
BY_DISTANCE = [name for name in SCHEMES if acts_on_attention(name) and name != "fire"]

# On embeddings


def encoding(position, dim):
    """Vaswani et al. 2017, section 3.5, element by element, in double precision."""
    angles = [position / 10000 ** (2 * (k // 2) / dim) for k in range(dim)]
    return torch.tensor([math.cos(a) if k % 2 else math.sin(a) for k, a in enumerate(angles)])


@given(position=st.integers(-500, 500), dim=st.integers(1, 33))
def test_sinusoids_follow_the_formula(position, dim):
    assert_close(sinusoids(torch.tensor(position), dim), encoding(position, dim), atol=2e-4, rtol=0)


@given(position=st.integers(0, 400), shift=st.integers(-50, 50), half=st.integers(1, 8))
def test_a_shifted_encoding_is_a_linear_map_that_does_not_depend_on_the_position(position, shift, half):
    """A claim in configs/claims names this test and the next."""
    rotation = torch.zeros(2 * half, 2 * half)
    for i in range(half):
        angle = shift / 10000 ** (i / half)
        sin, cos = math.sin(angle), math.cos(angle)
        rotation[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[cos, sin], [-sin, cos]])
    here, there = sinusoids(torch.tensor([position, position + shift]), 2 * half)
    assert_close(rotation @ here, there, atol=2e-4, rtol=0)


@given(order=st.permutations(range(6)))
def test_self_attention_without_positions_is_permutation_equivariant(order):
    attention, x, seen = randomised(MultiHeadAttention(8, 2)), torch.randn(6, 8), sight([(1, 6)])
    first, second = (attention(y, seen, attention.key_values(y, seen)) for y in (x[order], x))
    assert_close(first, second[order], **CLOSE)


@pytest.mark.parametrize(("new", "keys", "causal"), [(5, 5, True), (1, 5, True), (2, 5, True), (5, 5, False)], ids=str)
def test_relative_attention_agrees_with_a_double_loop(new, keys, causal):
    """Dai et al. 2019, section 3.3: (q_i + u) k_j + (q_i + v) W r_{i-j}, over sqrt(d)."""
    attention = randomised(MultiHeadAttention(DIM, HEADS, scheme="relative"))
    relative, x = attention.relative, torch.randn(keys, DIM)
    q, k, v = attention.query(x), *attention.key_value(x).chunk(2, -1)
    mask = torch.tensor([True, True, True, True, causal])
    rows = []
    for i in range(keys - new, keys):
        parts = []
        for h in range(HEADS):
            own, scores = slice(h * HEAD, (h + 1) * HEAD), []
            seen = [j for j in range(keys) if (j <= i if causal else mask[j])]
            for j in seen:
                distance = relative.project.weight[own] @ encoding(i - j, DIM)
                content = (q[i, own] + relative.content_bias[h, 0]) @ k[j, own]
                place = (q[i, own] + relative.position_bias[h, 0]) @ distance
                scores.append((content + place) / math.sqrt(HEAD))
            parts.append(torch.stack(scores).softmax(0) @ v[seen, own])
        rows.append(attention.out(torch.cat(parts)))
    seen = attention.key_values(x, sight([(1, keys)]))
    masks, places = None if causal else [mask.view(1, 1, 1, -1)], [at(range(keys - new, keys), range(keys))]
    got = attention(x[keys - new :], sight([(1, new)], masks, places, causal=causal), seen)
    assert_close(got, torch.stack(rows), **CLOSE)


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
    weight, positions = embedding.tokens.weight, torch.arange(400)  # most are past the table
    assert_close(weight.std().item(), std, rtol=0.01, atol=0)
    assert (weight.abs().max() <= std * 3**0.5) == (kind == "uniform")
    assert_close(embedding(placed(positions[None], positions[None])), scale * weight + sinusoids(positions, 100))
    learned = Embedding(400, 100, "learned", 500, embedding_init(name, 400, 100))
    table = learned.positions.weight
    assert_close(table.std().item(), (2 / 600) ** 0.5 if kind == "uniform" else std * scale, rtol=0.02, atol=0)
    assert_close(learned(placed(positions[None], positions[None])), scale * learned.tokens.weight + table[:400])


# On attention


def built(name, causal=False):
    """A scheme with random parameters."""
    torch.manual_seed(0)
    return randomised(SCHEMES[name](Setup(DIM, HEADS, causal)))


def vectors(*lengths):
    return [torch.randn(2, HEADS, length, HEAD) for length in lengths]


def scores(scheme, queries, keys, places):
    """Unscaled products with the bias of a scheme."""
    keys = scheme.rotate(keys, places.keys)
    bias = scheme.bias(queries, keys, places)
    products = scheme.rotate_queries(queries, places.queries) @ keys.transpose(-1, -2)
    return products if bias is None else products + bias


def by_position(name, scheme, head, i, j):
    """The bias of one head for a query at i and a key at j, from the paper, for the schemes without queries."""
    distance = abs(i - j)
    if name == "alibi":
        return -distance * alibi_slopes(HEADS)[head]
    if name == "kerple":
        return -scheme.r1[head].item() * math.log(1 + scheme.r2[head].item() * distance)
    end = max(i, j, abs(512 * scheme.threshold.item()))
    x = math.log(abs(scheme.c.item()) * distance + 1) / math.log(abs(scheme.c.item()) * end + 1)
    return scheme.network(torch.tensor([x if i > j else -x]))[head].item()


def test_the_config_admits_the_schemes_of_the_registry_and_a_scheme_says_what_it_acts_on():
    assert set(get_args(Positions)) == set(SCHEMES)
    with pytest.raises(TypeError, match="Silent must say what it acts on"):
        type("Silent", (PositionScheme,), {"bias": lambda *_: None})


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", BY_DISTANCE)
def test_scores_depend_on_the_distance_only(name, causal):
    scheme, (queries, keys) = built(name, causal), vectors(3, 6)
    near = scores(scheme, queries, keys, at([3, 4, 5], [0, 1, 2, 3, 4, 5]))
    far = scores(scheme, queries, keys, at([43, 44, 45], [40, 41, 42, 43, 44, 45]))
    assert_close(near, far, **CLOSE)


@pytest.mark.parametrize("name", ["alibi", "kerple", "fire"])
def test_a_bias_follows_the_formula_of_its_paper(name):
    scheme, (queries, keys) = built(name), vectors(3, 5)
    if name == "fire":
        scheme.threshold.data.fill_(10 / 512)  # some positions are below it, others beyond
    rows, columns = [0, 7, 30], [0, 1, 7, 9, 64]
    found = scheme.bias(queries, keys, at(rows, columns))
    expected = [[[by_position(name, scheme, h, i, j) for j in columns] for i in rows] for h in range(HEADS)]
    assert_close(found, torch.tensor([expected]), **CLOSE)


def test_parameters_of_kerple_start_uniform_as_in_the_paper_and_keep_their_bounds_and_their_gradients():
    torch.manual_seed(0)
    scheme = SCHEMES["kerple"](Setup(8000, 4000))
    for values, end in ((scheme.r1, 2), (scheme.r2, 1)):
        quantiles = values.quantile(torch.tensor([0.25, 0.5, 0.75])) / end
        assert_close(quantiles, torch.tensor([0.25, 0.5, 0.75]), atol=0.03, rtol=0)
    for value in (-10.0, 10.0):
        for parameter in scheme.parameters():
            parameter.data.fill_(value)
        assert min(scheme.r1.min(), scheme.r2.min()) > 0
        other = scheme.of_distances(torch.tensor([3])).sum()
        assert all(gradient.all() for gradient in torch.autograd.grad(other, list(scheme.parameters())))


@pytest.mark.parametrize(("heads", "slopes"), [(4, [2, 4, 6, 8]), (8, range(1, 9)), (6, [2, 4, 6, 8, 1, 3])])
def test_slopes_of_alibi_are_those_of_the_paper(heads, slopes):
    assert_close(torch.tensor(alibi_slopes(heads)), torch.tensor([2.0**-slope for slope in slopes]))


def t5_bucket(distance, number):
    """Raffel et al. 2020: one bucket for each distance below `number` / 2, then ranges that grow logarithmically."""
    exact = number // 2
    edges = [exact * (128 / exact) ** (k / (number - exact)) for k in range(number - exact)]
    return distance if distance < exact else exact - 1 + sum(distance >= edge - 1e-9 for edge in edges)


@pytest.mark.parametrize("causal", [True, False])
def test_buckets_of_t5_are_those_of_the_paper(causal):
    distances = torch.arange(-300, 301)
    found = T5Buckets(Setup(DIM, HEADS, causal)).buckets(distances).tolist()
    half = BUCKETS // 2
    for distance, bucket in zip(distances.tolist(), found, strict=True):
        both = half * (distance < 0) + t5_bucket(abs(distance), half)
        assert bucket == (t5_bucket(max(distance, 0), BUCKETS) if causal else both), distance


@pytest.mark.parametrize("causal", [True, False])
def test_shaw_adds_a_vector_of_the_clipped_distance_to_each_key(causal):
    scheme, (queries, keys) = built("shaw", causal), vectors(2, 4)
    places = at([30, 31], [0, 16, 29, 30] if causal else [0, 16, 29, 90])
    found = scores(scheme, queries, keys, places)
    for i, query in enumerate(places.queries[0]):
        for j, key in enumerate(places.keys[0]):
            clipped = max(-16, min(16, int(query - key)))
            vector = scheme.vectors[clipped if causal else clipped + 16]
            assert_close(found[..., i, j], (queries[:, :, i] * (keys[:, :, j] + vector)).sum(-1), **CLOSE)


def test_rotary_multiplies_pairs_of_features_by_complex_numbers():
    (x,) = vectors(3)
    positions = torch.tensor([[0, 3, 50]])
    rates = torch.tensor([10000 ** (-2 * k / HEAD) for k in range(HEAD // 2)])
    angles = positions[:, None, :, None] * rates
    turned = torch.view_as_complex(x.view(2, HEADS, 3, -1, 2).contiguous()) * torch.exp(1j * angles)
    assert_close(Rotary(Setup(DIM, HEADS)).rotate(x, positions), torch.view_as_real(turned).flatten(-2), **CLOSE)


def gate(query, key):
    return 1 / (1 + math.exp(-(query @ key).item() / math.sqrt(HEAD)))


@pytest.mark.parametrize("causal", [True, False])
def test_contextual_positions_of_three_tokens_are_those_computed_by_hand(causal):
    """Golovneva et al. 2024, eq. 3 to 7, and the same in the other direction."""
    scheme = randomised(Contextual(Setup(DIM, HEADS, causal)))
    queries, keys = vectors(3, 3)
    found = scheme.bias(queries, keys, at(range(3), range(3)))
    query, key = queries[1, 2], keys[1, 2]
    for i in range(3):
        for j in range(i + 1 if causal else 3):
            position = sum(gate(query[i], key[k]) for k in range(min(i, j), max(i, j) + 1))
            below, first = int(position), 64 if j > i else 0
            low, high = (scheme.embeddings[first + below + step] for step in (0, 1))
            expected = query[i] @ (low + (position - below) * (high - low))
            assert_close(found[1, 2, i, j], expected, **CLOSE)


@pytest.mark.parametrize("name", ["alibi", "shaw"])
def test_a_bias_is_added_to_scores_before_or_after_they_are_scaled(name):
    attention = randomised(MultiHeadAttention(DIM, HEADS, scheme=name))
    scheme, x = attention.relative, torch.randn(4, DIM)
    queries, keys, values = (
        part.view(1, 4, HEADS, HEAD).transpose(1, 2)
        for part in (attention.query(x), *attention.key_value(x).chunk(2, -1))
    )
    places = at(range(4), range(4))
    bias = scheme.bias(queries, keys, places)
    products = queries @ keys.transpose(-1, -2)
    summed = products / HEAD**0.5 + bias if name == "alibi" else (products + bias) / HEAD**0.5
    expected = attention.out((summed.softmax(-1) @ values).transpose(1, 2).reshape(4, DIM))
    seen = sight([(1, 4)], places=[places])
    assert_close(attention(x, seen, attention.key_values(x, seen)), expected, **CLOSE)


@pytest.mark.parametrize("name", ["relative", "t5", "kerple", "fire"])
def test_weight_decay_spares_biases_of_positions(name):
    model = Transformer(Transformer.Config(**{**Transformer.small, "positions": name}), 9, 9)
    spared = {id(parameter) for parameter in model.parameters_without_decay()}
    scheme = model.encoder.layers[0].attention.relative
    decayed = [parameter for parameter in scheme.parameters() if id(parameter) not in spared]
    weights = [layer.weight for layer in scheme.modules() if isinstance(layer, nn.Linear)]
    assert [id(parameter) for parameter in decayed] == [id(weight) for weight in weights]

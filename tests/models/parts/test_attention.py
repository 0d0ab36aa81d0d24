"""Windows, score scales and normalised queries and keys of attention. Attention itself: test_transformer.py."""

import pytest
import torch
from torch.testing import assert_close

from tests.models.reference import CLOSE, randomised
from tfstudy.models.parts.attention import MultiHeadAttention, Scores, windowed
from tfstudy.models.parts.observing import Site, recorded_attention

SITE = Site("encoder", 1)


def weights(attention, x, **options):
    with recorded_attention() as recorded, torch.no_grad():
        attention(x, [(1, len(x))], attention.project(x, [(1, len(x))]), site=SITE, **options)
    return recorded[0].weights[0]


@pytest.mark.parametrize("window", [1, 3, 20])
def test_a_window_is_an_explicit_mask_and_decoding_sees_the_same(window):
    attention, x = randomised(MultiHeadAttention(8, 2, window=window)), torch.randn(9, 8)
    places = torch.arange(9)
    distances = places[:, None] - places
    mask = ((distances >= 0) & (distances <= window))[None, None]
    own = attention.project(x, [(1, 9)])
    expected = attention(x, [(1, 9)], own, [mask])
    assert_close(attention(x, [(1, 9)], own, causal=True), expected, **CLOSE)
    past, found = [attention.empty(x, 1)], []
    for piece in x.split([4, 1, 1, 3]):
        attended, past = attention.attend_causally(piece, [(1, len(piece))], past)
        found.append(attended)
    assert_close(torch.cat(found), expected, **CLOSE)


def test_a_window_to_both_sides_hides_padding_and_what_is_further_away():
    mask = torch.tensor([[True, True, True, True, False, False, False]])
    seen = windowed(mask, 1)[0, 0].int().tolist()
    assert seen[:5] == [
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [0, 1, 1, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0],
    ]
    assert seen[5:] == [[1, 1, 1, 1, 0, 0, 0]] * 2  # queries that are padding have to see something
    assert torch.equal(windowed(mask, 0), mask[:, None, None])


@pytest.mark.parametrize(
    ("scores", "divisor"), [(Scores(), 2), (Scores(False), 1), (Scores(temperature=3), 6), (Scores(False, 0.5), 0.5)]
)
def test_scores_are_divided_by_their_scale_and_the_temperature(scores, divisor):
    attention, x = randomised(MultiHeadAttention(8, 2, scores=scores)), torch.randn(5, 8)
    q, (k, _) = attention.query(x), attention.key_value(x).chunk(2, -1)
    expected = torch.stack([(q[:, at] @ k[:, at].T / divisor).softmax(-1) for at in (slice(0, 4), slice(4, 8))])
    assert_close(weights(attention, x), expected, **CLOSE)
    own, everything = attention.project(x, [(1, 5)]), [torch.ones(1, 1, 1, 5, dtype=torch.bool)]
    with recorded_attention():
        explicit = attention(x, [(1, 5)], own, everything, site=SITE)
    assert_close(attention(x, [(1, 5)], own, everything), explicit, **CLOSE)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_scores_of_normalised_queries_and_keys_are_bounded_however_large_the_input(norm):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(16, 2, scores=Scores(norm=norm)).eval(), 100 * torch.randn(30, 16)
    found = weights(attention, x)
    ratio = (found.amax(-1) / found.amin(-1)).log()  # the difference of the largest and the least score
    assert 1 < ratio.max() <= 2 * 8**0.5 + 1e-3
    free = weights(MultiHeadAttention(16, 2).eval(), x)
    assert free.amax() > 0.999


def test_a_norm_of_queries_and_keys_is_one_of_each_head():
    attention, x = MultiHeadAttention(8, 2, scores=Scores(norm="rms")).eval(), torch.randn(3, 8)
    keys = attention.project(x, [(1, 3)])[0].keys
    assert_close(keys.square().mean(-1), torch.ones(1, 2, 3))
    assert attention.key_norm.weight.shape == (4,)

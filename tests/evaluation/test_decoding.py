"""Greedy and beam search, against loops without a cache and against all possible sequences."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.evaluation import reference
from tfstudy.data.encoding import BOS, EOS, PAD, UNK
from tfstudy.evaluation.decoding import beam, greedy, greedy_both, greedy_of_lengths
from tfstudy.models.base import Model
from tfstudy.models.config import ModelConfig

INFINITY = float("inf")


class TableState(NamedTuple):
    key: torch.Tensor  # (batch,) a hash of the source and of all tokens so far


class Table(Model):
    """Logits drawn at random for every source and prefix, and the same for the same prefix."""

    def __init__(self, vocab=7, end=0.0, sharpness=1.5):
        super().__init__(ModelConfig(), vocab, vocab)
        self.vocab, self.end, self.sharpness = vocab, end, sharpness
        self.drawn = {}

    def encode(self, source, source_mask):
        return TableState((source * source_mask * torch.tensor([7, 31, 101])[: source.shape[1]]).sum(1))

    def decode(self, tokens, state):
        logits, key = [], state.key
        for step in tokens.unbind(1):
            key = (key * 1_000_003 + step * 7919 + 17) % 2**31
            logits.append(torch.stack([self.draw(k) for k in key.tolist()]))
        return torch.stack(logits, 1), TableState(key)

    def draw(self, key):
        if key not in self.drawn:
            logits = torch.randn(self.vocab, generator=torch.Generator().manual_seed(key)) * self.sharpness
            logits[EOS] += self.end
            logits[[PAD, BOS]] += 2.0  # tempting
            self.drawn[key] = logits
        return self.drawn[key]


def sources(rows):
    torch.manual_seed(rows)
    return torch.randint(4, 50, (rows, 3)), torch.ones(rows, 3, dtype=torch.bool)


def each(limit, rows):
    return torch.full((len(rows),), limit)


def naive(model, source, mask, max_length, banned=(PAD, BOS)):
    """One row's greedy target, from a model that reads the whole prefix again at every step."""
    out = []
    while len(out) < max_length:
        logits = model(source[None], mask[None], torch.tensor([[BOS, *out]]))[0, -1]
        logits[list(banned)] = -INFINITY
        token = int(logits.argmax())
        if token == EOS:
            break
        out.append(token)
    return out


def ended_at_will(model, source, length=8):
    """The model with EOS raised by as much as makes about half of the rows end before `length` tokens."""
    mask = source != PAD
    path = torch.tensor(greedy_of_lengths(model, source, mask, torch.full((len(source),), length)))
    inputs = torch.cat([torch.full((len(source), 1), BOS), path[:, :-1]], 1)
    with torch.no_grad():
        logits = model(source, mask, inputs)
    lead = (logits.gather(2, path[..., None])[..., 0] - logits[..., EOS]).amin(1).sort().values
    raised = torch.zeros(logits.shape[-1])
    raised[EOS] = lead[(len(lead) - 1) // 2 : (len(lead) - 1) // 2 + 2].mean()
    model.output.register_forward_hook(lambda module, inputs, logits: logits + raised)
    return model


# Greedy


def test_greedy_equals_a_loop_without_cache(model, source):
    source = torch.cat([source, source.roll(2, 1).clamp(min=4)])
    ended_at_will(model, source)
    with torch.no_grad():
        expected = [naive(model, row, row != PAD, 8) for row in source]
    assert greedy(model, source, source != PAD, each(8, source)) == expected
    assert min(map(len, expected)) < 8 == max(map(len, expected))


@pytest.mark.parametrize("end", [-1.0, 0.0, 1.0])
def test_dropping_finished_rows_changes_nothing(end):
    model, (source, mask) = Table(end=end), sources(23)
    together = greedy(model, source, mask, each(12, source))
    assert together == [naive(model, s, m, 12) for s, m in zip(source, mask, strict=True)]
    assert together == [greedy(model, source[i, None], mask[i, None], torch.tensor([12]))[0] for i in range(23)]
    assert len({len(row) for row in together}) > 3


def watched(model, sizes):
    """The model, which appends the number of rows of each step to `sizes`."""
    decode = model.decode
    model.decode = lambda tokens, state: (sizes.append(len(tokens)), decode(tokens, state))[1]
    return model


def test_finished_rows_are_no_longer_computed():
    sizes, (source, mask) = [], sources(23)
    longest = max(map(len, greedy(watched(Table(end=1.0), sizes), source, mask, each(40, source))))
    assert sizes[0] == 23
    assert sizes[-1] < 5
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) <= longest + 1


@given(max_length=st.integers(0, 9))
@settings(max_examples=10)
def test_no_target_is_longer_than_max_length(max_length):
    source, mask = sources(5)
    lengths = [len(row) for row in greedy(Table(end=-9.0), source, mask, each(max_length, source))]
    assert lengths == [max_length] * 5
    assert max(map(len, greedy(Table(end=1.0), source, mask, each(max_length, source)))) <= max_length


@given(lengths=st.lists(st.integers(0, 9), min_size=6, max_size=6))
@settings(max_examples=30)
def test_oracle_lengths_are_met_exactly_and_eos_is_never_chosen(lengths):
    model, (source, mask) = Table(end=4.0), sources(6)
    out = greedy_of_lengths(model, source, mask, torch.tensor(lengths))
    assert [len(row) for row in out] == lengths
    wanted = [naive(model, s, m, n, (PAD, BOS, EOS)) for s, m, n in zip(source, mask, lengths, strict=True)]
    assert out == wanted


def test_the_lengths_that_are_given_stay_as_they_are():
    (source, mask), lengths = sources(6), torch.tensor([1, 2, 9, 9, 9, 9])
    greedy_both(Table(), source, mask, lengths, lengths)
    assert lengths.tolist() == [1, 2, 9, 9, 9, 9]


@pytest.mark.parametrize("width", [0, 1, 3])
def test_pad_and_bos_are_never_chosen(width):
    model, (source, mask) = Table(end=-2.0), sources(9)
    out = beam(model, source, mask, each(8, source), width) if width else greedy(model, source, mask, each(8, source))
    chosen = {token for row in out for token in row}
    assert not chosen & {PAD, BOS, EOS}
    assert UNK in chosen  # a word like any other


def decoding_inputs(model, source):
    """The model with outputs of unequal length, six sources and their mask."""
    source = torch.cat([source, source.roll(2, 1).clamp(min=4)])
    return ended_at_will(model, source), source, source != PAD


@pytest.mark.usefixtures("shapes")
def test_one_pass_gives_what_two_greedy_decodings_give(model, source):
    inputs = decoding_inputs(model, source)
    limits, lengths = torch.tensor([8, 8, 3, 0, 8, 5]), torch.tensor([2, 7, 3, 4, 0, 6])
    free, gold = greedy_both(*inputs, limits, lengths)
    assert free == greedy(*inputs, limits)
    assert gold == greedy_of_lengths(*inputs, lengths)


@given(rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12), end=st.floats(-1, 4))
@settings(max_examples=40)
def test_one_pass_gives_what_the_first_implementation_gives(rows, end):
    model, (source, mask) = Table(end=end), sources(len(rows))
    limits, lengths = torch.tensor(rows).unbind(1)
    free, gold = greedy_both(model, source, mask, limits, lengths)
    assert gold == reference.greedy(model, source, mask, 0, lengths)
    for row, (limit, _) in enumerate(rows):
        assert free[row] == reference.greedy(model, source[row, None], mask[row, None], limit)[0]


def test_no_rows_have_no_outputs():
    (source, mask), none = sources(0), torch.zeros(0, dtype=torch.long)
    assert greedy_both(Table(), source, mask, none, none) == ([], [])
    assert beam(Table(), source, mask, none, 2) == []


def test_a_row_ends_where_logits_are_not_numbers():
    source, mask = sources(3)
    assert greedy(Table(sharpness=math.nan), source, mask, each(50, source)) == [[], [], []]


# Beam search


@given(
    limits=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    end=st.floats(-2, 2),
    width=st.integers(1, 5),
    length_penalty=st.floats(0, 2),
)
@settings(max_examples=60)
def test_a_beam_gives_what_the_first_implementation_gives(limits, end, width, length_penalty):
    model, (source, mask) = Table(end=end), sources(len(limits))
    expected = [
        reference.beam(model, source[i, None], mask[i, None], limit, width, length_penalty)[0]
        for i, limit in enumerate(limits)
    ]
    assert beam(model, source, mask, torch.tensor(limits), width, length_penalty) == expected


def test_a_beam_gives_what_the_first_implementation_gives_for_every_model(model, source):
    inputs = decoding_inputs(model, source)
    expected = reference.beam(*inputs, 8, 3, length_penalty=1.0)
    assert beam(*inputs, each(8, inputs[1]), 3, length_penalty=1.0) == expected
    assert any(expected)


def test_rows_whose_beam_is_finished_are_no_longer_computed():
    sizes, (source, mask) = [], sources(23)
    beam(watched(Table(end=1.0), sizes), source, mask, each(40, source), 2)
    assert sizes[0] == 46
    assert sizes[-1] < 10
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("end", [-9.0, 0.0, 1.0])
def test_a_beam_of_one_is_greedy(end):
    model, (source, mask) = Table(end=end), sources(17)
    assert beam(model, source, mask, each(7, source), 1) == greedy(model, source, mask, each(7, source))


@pytest.mark.usefixtures("shapes")
def test_a_beam_of_one_is_greedy_for_every_model(model, source):
    inputs = ended_at_will(model, source), source, source != PAD, each(8, source)
    assert beam(*inputs, 1) == greedy(*inputs)


def outcomes(model, source, mask, max_length, vocab):
    """Every target with its log-probability and its length, EOS included; at `max_length` it may stand unfinished."""
    words = [token for token in range(vocab) if token not in (PAD, BOS, EOS)]
    for length in range(max_length + 1):
        outputs = torch.tensor(list(itertools.product(words, repeat=length)), dtype=torch.long)
        inputs = nn.functional.pad(outputs, (1, 0), value=BOS)
        targets = nn.functional.pad(outputs, (0, 1), value=EOS)[:, :max_length]
        with torch.no_grad():
            logits = model(source.expand(len(outputs), -1), mask.expand(len(outputs), -1), inputs)
        chosen = logits[:, : targets.shape[1]].log_softmax(-1).gather(2, targets[..., None])
        for target, total in zip(outputs.tolist(), chosen.double().sum((1, 2)).tolist(), strict=True):
            yield target, total, targets.shape[1]


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
def test_a_beam_as_wide_as_the_space_finds_the_best_target(length_penalty):
    model, (source, mask) = Table(vocab=6, end=1.0), sources(12)
    out = beam(model, source, mask, each(4, source), 150, length_penalty)
    lengths = set()
    for row in range(12):
        _, best = max((p / n**length_penalty, t) for t, p, n in outcomes(model, source[row], mask[row], 4, 6))
        if len(best) < 4:  # finished
            assert out[row] == best
            lengths.add(len(best))
    assert len(lengths) > 1


@pytest.mark.parametrize(("length_penalty", "end"), [(0.0, -2.0), (1.0, 0.5)])
def test_what_is_unfinished_at_max_length_counts_as_it_stands(length_penalty, end):
    model, (source, mask) = Table(vocab=6, end=end), sources(20)
    out = beam(model, source, mask, each(3, source), 60, length_penalty)
    best = [
        max((p / n**length_penalty, t) for t, p, n in outcomes(model, s, m, 3, 6))[1]
        for s, m in zip(source, mask, strict=True)
    ]
    assert out == best
    assert any(len(row) == 3 for row in best)
    assert any(len(row) < 3 for row in best)


def probability(model, source, mask, target, max_length):
    """Log-probability of a target, of its EOS too unless it reached `max_length`."""
    targets = [*target, EOS][:max_length]
    logits = model(source[None], mask[None], torch.tensor([[BOS, *target]]))[0].log_softmax(-1)
    return sum(float(logits[i, token]) for i, token in enumerate(targets))


def test_a_beam_that_misses_nothing_is_never_less_probable_than_greedy():
    model, (source, mask) = Table(vocab=6, end=0.5), sources(12)
    wide, first = beam(model, source, mask, each(3, source), 60), greedy(model, source, mask, each(3, source))
    gains = [
        probability(model, s, m, w, 3) - probability(model, s, m, g, 3)
        for s, m, w, g in zip(source, mask, wide, first, strict=True)
    ]
    assert min(gains) > -1e-5
    assert max(gains) > 0.1


def test_a_wider_beam_is_more_probable_on_average():
    model, (source, mask) = Table(end=-1.0), sources(20)

    def total(width):
        out = beam(model, source, mask, each(6, source), width)
        return sum(probability(model, s, m, t, 6) for s, m, t in zip(source, mask, out, strict=True))

    assert total(1) + 1 < total(4)


def test_a_length_penalty_lengthens_targets():
    model, (source, mask) = Table(end=0.5), sources(20)
    lengths = [sum(map(len, beam(model, source, mask, each(6, source), 20, penalty))) for penalty in (0.0, 1.0, 3.0)]
    assert lengths[0] < lengths[1] < lengths[2]


def test_the_rows_of_a_beam_do_not_depend_on_each_other():
    model, (source, mask) = Table(end=0.5), sources(9)
    together = beam(model, source, mask, each(7, source), 3, 0.6)
    alone = [beam(model, source[i, None], mask[i, None], torch.tensor([7]), 3, 0.6)[0] for i in range(9)]
    assert together == alone


def test_a_beam_wider_than_the_vocabulary_works(model, source, tokens):
    out = beam(model, source, source != PAD, each(4, source), 12)
    assert [len(row) <= 4 for row in out] == [True] * 3
    assert not {token for row in out for token in row} & {PAD, BOS, EOS}


def test_a_beam_finds_the_most_probable_target_of_every_model(model, source):
    """With more hypotheses than there are targets, the best is the one that counting finds."""
    ended_at_will(model, source, length=1)
    for row in source:
        best = beam(model, row[None], (row != PAD)[None], each(2, row[None]), 50)[0]
        scores = {tuple(target): score for target, score, _ in outcomes(model, row, row != PAD, 2, 9)}
        assert math.isclose(scores[tuple(best)], max(scores.values()), abs_tol=1e-4)

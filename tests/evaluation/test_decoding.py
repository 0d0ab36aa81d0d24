"""Greedy and beam search, against loops without a cache and against all possible sequences; limits of their length."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tfstudy.config.schema import DecodeConfig
from tfstudy.data.encoding import BOS, EOS, PAD
from tfstudy.evaluation.decoding import (
    beam,
    generation_limit,
    greedy,
    greedy_both,
    greedy_of_lengths,
    length_ratio,
    limits_of,
    needed_positions,
)
from tfstudy.instruments.hooks import logits_of
from tfstudy.models.base import PaddedModel
from tfstudy.models.config import ModelConfig
from tfstudy.models.tokens import Tokens
from tfstudy.runs.schema import GenerationLimit
from tfstudy.tasks.base import Example, Splits, Task

INFINITY = float("inf")


class TableState(NamedTuple):
    key: torch.Tensor  # (batch,) a hash of the source and of all tokens so far


class Table(PaddedModel):
    """Logits drawn at random for every source and prefix, and the same for the same prefix."""

    def __init__(self, vocab=7, end=0.0, sharpness=1.5):
        super().__init__(ModelConfig(), vocab, vocab)
        self.vocab, self.end, self.sharpness = vocab, end, sharpness
        self.drawn = {}

    def encode_padded(self, source, mask):
        return TableState((source * mask * torch.tensor([7, 31, 101])[: source.shape[1]]).sum(1))

    def decode_padded(self, tokens, state):
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
    return torch.randint(4, 50, (rows, 3))


def each(limit, rows):
    return torch.full((len(rows),), limit)


def naive(model, source, max_length, banned=(PAD, BOS)):
    """One row's greedy target, from a model that reads the whole prefix again at every step."""
    out = []
    while len(out) < max_length:
        logits = logits_of(model, source[None], torch.tensor([[BOS, *out]]))[0, -1]
        logits[list(banned)] = -INFINITY
        token = int(logits.argmax())
        if token == EOS:
            break
        out.append(token)
    return out


def ended_at_will(model, source, length=8):
    """The model with EOS raised by as much as makes about half of the rows end before `length` tokens."""
    path = torch.tensor(greedy_of_lengths(model, Tokens.of(source), torch.full((len(source),), length)))
    inputs = torch.cat([torch.full((len(source), 1), BOS), path[:, :-1]], 1)
    with torch.no_grad():
        logits = logits_of(model, source, inputs)
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
        expected = [naive(model, row, 8) for row in source]
    assert greedy(model, Tokens.of(source), each(8, source)) == expected
    assert min(map(len, expected)) < 8 == max(map(len, expected))


def watched(model, sizes):
    """The model, which appends the number of rows of each step to `sizes`."""
    decode = model.decode_padded
    model.decode_padded = lambda tokens, state: (sizes.append(len(tokens)), decode(tokens, state))[1]
    return model


def test_finished_rows_are_no_longer_computed():
    sizes, source = [], sources(23)
    longest = max(map(len, greedy(watched(Table(end=1.0), sizes), Tokens.of(source), each(40, source))))
    assert sizes[0] == 23
    assert sizes[-1] < 5
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) <= longest + 1
    sizes.clear()
    beam(watched(Table(end=1.0), sizes), Tokens.of(source), each(40, source), 2)
    assert (sizes[0], sizes[-1] < 10) == (46, True)


@given(rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12), end=st.floats(-1, 4))
@settings(max_examples=40)
def test_one_pass_decodes_each_row_freely_and_at_its_given_length(rows, end):
    model, source = Table(end=end), sources(len(rows))
    limits, lengths = torch.tensor(rows).unbind(1)
    free, gold = greedy_both(model, Tokens.of(source), limits, lengths)
    each_row = list(zip(source, rows, strict=True))
    assert free == [naive(model, row, limit) for row, (limit, _) in each_row]
    assert gold == [naive(model, row, length, (PAD, BOS, EOS)) for row, (_, length) in each_row]
    assert [limits.tolist(), lengths.tolist()] == [list(x) for x in zip(*rows, strict=True)], "both stay as they are"


def test_a_row_ends_where_logits_are_not_numbers_and_no_rows_have_no_outputs():
    source, none = sources(3), torch.zeros(0, dtype=torch.long)
    assert greedy_both(Table(), Tokens.of(sources(0)), none, none) == ([], [])
    assert beam(Table(), Tokens.of(sources(0)), none, 2) == []
    assert greedy(Table(sharpness=math.nan), Tokens.of(source), each(50, source)) == [[], [], []]


# Beam search


def beam_by_hand(model, source, limit, width, length_penalty):
    """One row's target by beam search, from a model that reads each whole prefix again at every step."""
    unfinished, finished = [(0.0, [])], []
    for step in range(1, limit + 1):
        candidates = []
        for score, prefix in unfinished:
            following = logits_of(model, source[None], torch.tensor([[BOS, *prefix]]))[0, -1].log_softmax(-1) + score
            words = (token for token in range(len(following)) if token not in (PAD, BOS))
            candidates += [(float(following[token]), prefix, token) for token in words]
        best = sorted(candidates, key=lambda candidate: -candidate[0])[: 2 * width]
        ended = [(score / step**length_penalty, prefix) for score, prefix, token in best[:width] if token == EOS]
        finished += ended[: width - len(finished)]
        unfinished = [(score, [*prefix, token]) for score, prefix, token in best if token != EOS][:width]
        if len(finished) == width:
            return max(finished)[1]
    score, prefix = unfinished[0]
    return max([*finished, (score / max(1, limit) ** length_penalty, prefix)])[1]


@given(
    limits=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    end=st.floats(-2, 2),
    width=st.integers(1, 5),
    length_penalty=st.floats(0, 2),
)
@settings(max_examples=40)
def test_a_beam_is_that_of_a_search_without_cache_for_each_row(limits, end, width, length_penalty):
    model, source = Table(end=end), sources(len(limits))
    rows = zip(source, limits, strict=True)
    expected = [beam_by_hand(model, row, limit, width, length_penalty) for row, limit in rows]
    assert beam(model, Tokens.of(source), torch.tensor(limits), width, length_penalty) == expected


@torch.no_grad()
def test_a_beam_of_every_model_is_that_of_a_search_without_cache(model, source):
    ended_at_will(model, source)
    expected = [beam_by_hand(model, row, 8, 3, 2.0) for row in source]
    assert beam(model, Tokens.of(source), each(8, source), 3, length_penalty=2.0) == expected
    assert any(expected)


def outcomes(model, source, max_length, vocab):
    """Every target with its log-probability and its length, EOS included; at `max_length` it may stand unfinished."""
    words = [token for token in range(vocab) if token not in (PAD, BOS, EOS)]
    for length in range(max_length + 1):
        outputs = torch.tensor(list(itertools.product(words, repeat=length)), dtype=torch.long)
        inputs = nn.functional.pad(outputs, (1, 0), value=BOS)
        targets = nn.functional.pad(outputs, (0, 1), value=EOS)[:, :max_length]
        with torch.no_grad():
            logits = logits_of(model, source.expand(len(outputs), -1), inputs)
        chosen = logits[:, : targets.shape[1]].log_softmax(-1).gather(2, targets[..., None])
        for target, total in zip(outputs.tolist(), chosen.double().sum((1, 2)).tolist(), strict=True):
            yield target, total, targets.shape[1]


@pytest.mark.parametrize(("length_penalty", "end"), [(0.0, -2.0), (0.6, 0.0), (1.0, 0.5), (2.0, 0.5)])
def test_a_beam_as_wide_as_the_space_finds_the_best_target_unfinished_or_not(length_penalty, end):
    model, source = Table(vocab=6, end=end), sources(20)
    out = beam(model, Tokens.of(source), each(3, source), 60, length_penalty)
    best = [max((p / n**length_penalty, t) for t, p, n in outcomes(model, row, 3, 6))[1] for row in source]
    assert out == best
    assert any(len(row) == 3 for row in best)
    assert any(len(row) < 3 for row in best)


# Limits


class Lengths(Task):
    """Examples of given lengths."""

    def __init__(self, train, test=((3, 3),)):
        self.pairs = {"train": train, "test": test}

    def splits(self):
        return Splits("train", None, ("test",))

    def examples(self, split):
        return [Example(("a",) * source, ("b",) * target, {}) for source, target in self.pairs[split]]


def test_the_limit_is_given_or_that_of_the_longest_target_or_by_source():
    task = Lengths([(2, 9), (5, 1)], [(4, 11)])
    assert generation_limit(task, DecodeConfig()) == GenerationLimit(0.0, 27)
    assert generation_limit(task, DecodeConfig(max_length=12, limit="source")) == GenerationLimit(0.0, 12)
    by_source = DecodeConfig(limit="source")
    assert limits_of(GenerationLimit(1.1, 16), torch.tensor([1, 10, 100])).tolist() == [18, 27, 126], "rounded up"
    assert generation_limit(Lengths([(10, 2)] * 5), by_source) == GenerationLimit(1.0, 16)
    for outlier in ((1, 1284), (1284, 1300)):
        assert generation_limit(Lengths([*[(10, 15)] * 199, outlier]), by_source) == GenerationLimit(1.5, 16)


def test_more_than_one_per_cent_of_the_pairs_count():
    assert length_ratio(Lengths([(10, 10)] * 98 + [(10, 30)] * 2)) == 3.0
    assert length_ratio(Lengths([(10, 10)] * 99 + [(10, 30)])) == 1.0


def test_positions_are_enough_for_sources_targets_and_both_limits():
    assert needed_positions(Lengths([(2, 2)], [(300, 2)])) == 1 + 300 + 16
    assert needed_positions(Lengths([(2, 2)], [(2, 300)])) == 1 + 300 + 16
    assert needed_positions(Lengths([(10, 20)], [(100, 2)])) == 1 + 200 + 16

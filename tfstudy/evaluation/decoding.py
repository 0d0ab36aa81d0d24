"""Greedy and beam search with any model's `decode`, one token at a time, and the limit of tokens for each row."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.parametrize import cached

from tfstudy.config.schema import DecodeConfig
from tfstudy.data.encoding import BOS, EOS, PAD
from tfstudy.models.base import Model, State, select_hypotheses, select_rows
from tfstudy.runs.schema import GenerationLimit
from tfstudy.tasks.base import Example, Task

EXTRA_TOKENS = 16  # beyond the longest target, or beyond what the source suggests: predictions can be too long
QUANTILE = 0.99  # of target length / source length in train, so that a few odd pairs do not decide
COMPACT = 0.8  # finished rows are dropped when at most this fraction of the rows is unfinished
INFINITY = float("inf")

Ids = list[list[int]]  # of the tokens of each row


def greedy(
    model: Model,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"],
    limits: Int[Tensor, " batch"],
) -> Ids:
    """Return the ids chosen greedily for each row, up to EOS (which is left out) or the row's limit of tokens.

    PAD and BOS are never chosen.
    """
    return greedy_both(model, source, source_mask, limits, torch.zeros_like(limits))[0]


def greedy_of_lengths(
    model: Model,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"],
    lengths: Int[Tensor, " batch"],
) -> Ids:
    """Return the ids chosen greedily for each row, as many as in `lengths`; EOS is never chosen.

    With the lengths of the targets this is the oracle length of Lake & Baroni 2018 and Newman et al. 2020.
    """
    return greedy_both(model, source, source_mask, torch.zeros_like(lengths), lengths)[1]


@torch.no_grad()
@cached()  # weight normalisation is computed once, and not at every token
def greedy_both(
    model: Model,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"],
    limits: Int[Tensor, " batch"],
    lengths: Int[Tensor, " batch"],
) -> tuple[Ids, Ids]:
    """Return the outputs of `greedy` and of `greedy_of_lengths`, from one pass.

    Both are the beginning of one sequence, in which EOS is never chosen: the first output ends where EOS was more
    probable than any word.
    """
    ends = limits.clone()  # the length of the first output, as far as is known
    out = torch.full((len(source), _largest(limits, lengths)), PAD, device=source.device)
    rows = torch.arange(len(source), device=source.device)
    tokens = torch.full_like(rows, BOS)
    state = model.encode(source, source_mask)
    for step in range(out.shape[1]):
        logits, state = model.decode(tokens[:, None], state)
        tokens, ended = _best_words(logits[:, -1])
        out[rows, step] = tokens
        ends[rows] = torch.where(ended, ends[rows].clamp(max=step), ends[rows])
        unfinished = torch.maximum(ends, lengths)[rows] > step + 1
        count = int(unfinished.sum())
        if not count:
            break
        if count <= COMPACT * len(rows):
            keep = unfinished.nonzero()[:, 0]
            rows, tokens, state = rows[keep], tokens[keep], select_rows(state, keep)
    return first_tokens(out, ends), first_tokens(out, lengths)


def _largest(*limits: Tensor) -> int:
    return max([0, *(int(limit.max()) for limit in limits if len(limit))])


def _best_words(logits: Float[Tensor, "rows vocab"]) -> tuple[Int[Tensor, " rows"], Bool[Tensor, " rows"]]:
    """Return the most probable words, and where EOS is at least as probable."""
    special = torch.tensor([PAD, BOS, EOS], device=logits.device)
    best, words = logits.index_fill(1, special, -INFINITY).max(-1)
    return words, ~(logits[:, EOS] < best)  # a logit that is not a number ends the row


def first_tokens(out: Int[Tensor, "batch longest"], lengths: Int[Tensor, " batch"]) -> Ids:
    """Return the first tokens of each row, as many as its length."""
    return [ids[:length] for ids, length in zip(out.tolist(), lengths.tolist(), strict=True)]


class _Results:
    """Each row's best hypothesis so far, and the number of its finished ones."""

    def __init__(self, limits: Tensor, beam_size: int) -> None:
        self.limits, self.beam_size = limits, beam_size
        self.finished = torch.zeros_like(limits)
        self.scores = torch.full(limits.shape, -INFINITY, dtype=torch.float64, device=limits.device)
        self.tokens = limits.new_full((len(limits), _largest(limits)), PAD)
        self.lengths = torch.zeros_like(limits)

    def offer(self, rows: Tensor, scores: Tensor, prefixes: Tensor) -> None:
        """Keep the hypotheses, one for each of these rows, whose scores are better than the row's best so far."""
        better = scores > self.scores[rows]
        rows, length = rows[better], prefixes.shape[1]
        self.scores[rows], self.lengths[rows] = scores[better], length
        self.tokens[rows, :length] = prefixes[better]

    def add_ended(
        self, rows: Tensor, best: Tensor, origin: Tensor, token: Tensor, prefixes: Tensor, divisor: float
    ) -> None:
        """Count the candidates that end within the beam, until a row has as many as the beam, and keep the best."""
        ends = (token == EOS)[:, : self.beam_size] & best[:, : self.beam_size].isfinite()
        ends &= self.finished[rows, None] + ends.cumsum(1) <= self.beam_size
        self.finished[rows] += ends.sum(1)
        first = ends.int().argmax(1, keepdim=True)  # candidates are sorted
        some = ends.any(1).nonzero()[:, 0]
        scores = best.double().gather(1, first)[some, 0] / divisor
        self.offer(rows[some], scores, prefixes[some, origin.gather(1, first)[some, 0]])

    def add_at_limit(self, rows: Tensor, scores: Tensor, prefixes: Tensor, divisor: float) -> None:
        """End the search of the rows whose limit is the prefixes' length; the best of `scores` counts as it stands."""
        last = ((self.limits[rows] == prefixes.shape[2]) & (self.finished[rows] < self.beam_size)).nonzero()[:, 0]
        best, which = scores[last].double().max(1)
        self.offer(rows[last], best / divisor, prefixes[last, which])
        self.finished[rows[last]] = self.beam_size


@torch.no_grad()
@cached()
def beam(
    model: Model,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"],
    limits: Int[Tensor, " batch"],
    beam_size: int,
    length_penalty: float = 0.0,
) -> Ids:
    """Return, for each row, the finished hypothesis of beam search with the best score / length^length_penalty.

    The score is the sum of log-probabilities; EOS counts in score and length. The search of a row ends with `beam_size`
    finished hypotheses or at the row's limit of tokens, where the best unfinished one counts as it is. PAD and BOS are
    never chosen.
    """
    results = _Results(limits, beam_size)
    rows = limits.nonzero()[:, 0]
    state = select_hypotheses(model.encode(source, source_mask), rows.repeat_interleave(beam_size), rows)
    tokens = rows.new_full((len(rows) * beam_size,), BOS)
    prefixes = rows.new_zeros(len(rows), beam_size, 0)
    scores = torch.full((len(rows), beam_size), -INFINITY, device=source.device)
    scores[:, 0] = 0.0  # at first, all hypotheses of a row are equal
    for step in range(1, _largest(limits) + 1):
        logits, state = model.decode(tokens[:, None], state)
        best, origin, token = _candidates(logits[:, -1], scores)
        results.add_ended(rows, best, origin, token, prefixes, step**length_penalty)
        scores, chosen = best.masked_fill(token == EOS, -INFINITY).topk(beam_size)
        origin, token = origin.gather(1, chosen), token.gather(1, chosen)
        prefixes = torch.cat([prefixes.gather(1, origin[..., None].expand(-1, -1, step - 1)), token[..., None]], -1)
        results.add_at_limit(rows, scores, prefixes, step**length_penalty)
        keep = (results.finished[rows] < beam_size).nonzero()[:, 0]
        if not len(keep):
            break
        if len(keep) > COMPACT * len(rows):
            keep = torch.arange(len(rows), device=rows.device)
        state = _continue(state, origin, keep)
        rows, tokens, scores, prefixes = rows[keep], token[keep].flatten(), scores[keep], prefixes[keep]
    return first_tokens(results.tokens, results.lengths)


def _candidates(
    logits: Float[Tensor, "hypotheses vocab"], scores: Float[Tensor, "batch beam"]
) -> tuple[Float[Tensor, "batch candidates"], Int[Tensor, "batch candidates"], Int[Tensor, "batch candidates"]]:
    """Return the scores of each row's best continuations, the hypotheses that they continue, and their tokens.

    There are 2 * beam of them, so at least `beam` remain unfinished: each hypothesis has one continuation with EOS.
    """
    log_probabilities = logits.log_softmax(-1).view(*scores.shape, -1)
    log_probabilities[..., [PAD, BOS]] = -INFINITY
    beam_size, vocab = log_probabilities.shape[1:]
    best, flat = (scores[..., None] + log_probabilities).flatten(1).topk(min(2 * beam_size, beam_size * vocab))
    return best, flat // vocab, flat % vocab


def _continue(state: State, origin: Int[Tensor, "batch beam"], keep: Int[Tensor, " kept"]) -> State:
    """Return the state of the rows to keep, after which each hypothesis continues the one at its `origin`."""
    batch, beam_size = origin.shape
    hypotheses = torch.arange(batch * beam_size, device=origin.device).view_as(origin)
    chosen = hypotheses[:, :1] + origin
    if len(keep) < batch:
        return select_hypotheses(state, chosen[keep].flatten(), keep)
    return state if torch.equal(chosen, hypotheses) else select_hypotheses(state, chosen.flatten())


def generate_both(
    model: Model, source: Tensor, mask: Tensor, limits: Tensor, lengths: Tensor, decode: DecodeConfig
) -> tuple[Ids, Ids]:
    """Generate the token ids of each row's target, without EOS, freely and greedily at the given lengths."""
    if decode.method == "greedy":
        return greedy_both(model, source, mask, limits, lengths)
    return generate(model, source, mask, limits, decode), greedy_of_lengths(model, source, mask, lengths)


def generate(model: Model, source: Tensor, mask: Tensor, limits: Tensor, decode: DecodeConfig) -> Ids:
    """Generate the token ids of each row's target, at most as many as its limit, by greedy or beam search."""
    if decode.method == "beam":
        return beam(model, source, mask, limits, decode.beam_size, decode.length_penalty)
    return greedy(model, source, mask, limits)


def generation_limit(task: Task, decode: DecodeConfig, examples: Sequence[Example] = ()) -> GenerationLimit:
    """Return the limit that `decode` describes; with 'longest', no target of the task or the examples exceeds it."""
    if decode.max_length:
        return GenerationLimit(constant=decode.max_length)
    if decode.limit == "source":
        return GenerationLimit(length_ratio(task), EXTRA_TOKENS)
    return GenerationLimit(constant=EXTRA_TOKENS + max(longest_target(task), *(len(e.target) for e in examples), 0))


def length_ratio(task: Task) -> float:
    """Return the 99 % quantile of target length / source length over the train split, at least 1."""
    train = task.examples(task.splits().train)
    ratios = sorted(len(e.target) / max(1, len(e.source)) for e in train)
    quantile = ratios[math.ceil(QUANTILE * len(ratios)) - 1] if ratios else 1.0
    return max(1.0, round(quantile, 3))


def limits_of(limit: GenerationLimit, source_lengths: Tensor) -> Tensor:
    """Return the maximum number of tokens for sources of these lengths (rows,), EOS not counted."""
    return torch.tensor([_limit(limit, length) for length in source_lengths.tolist()], dtype=torch.long)


def _limit(limit: GenerationLimit, source_length: int) -> int:
    return math.ceil(limit.per_source_token * source_length - 1e-9) + limit.constant


def longest_target(task: Task) -> int:
    """Return the number of tokens in the longest target of any split."""
    return max(len(e.target) for split in task.splits().all for e in task.examples(split))


def needed_positions(task: Task) -> int:
    """Return the number of positions that any source and any output of a task can have, whatever `decode` is.

    Sources end with EOS and decoder inputs start with BOS. An output may be as long as either limit of `decode.limit`
    allows.
    """
    longest_source = max(len(e.source) for split in task.splits().all for e in task.examples(split))
    relative = _limit(GenerationLimit(length_ratio(task), EXTRA_TOKENS), longest_source)
    return 1 + max(longest_source, longest_target(task) + EXTRA_TOKENS, relative)

"""Greedy and beam search with any model's `decode`, one token at a time, and the limit of tokens for each row."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.parametrize import cached

from tfstudy.config.schema import DecodeConfig
from tfstudy.data.encoding import BOS, EOS, PAD
from tfstudy.models.base import Model, select_hypotheses
from tfstudy.models.tokens import Tokens
from tfstudy.runs.schema import GenerationLimit
from tfstudy.tasks.base import Task

EXTRA_TOKENS = 16  # beyond the longest target, or beyond what the source suggests: predictions can be too long
QUANTILE = 0.99  # of target length / source length in train, so that a few odd pairs do not decide
COMPACT = 0.8  # finished rows are dropped when at most this fraction of the rows is unfinished
INFINITY = float("inf")

Ids = list[list[int]]  # of the tokens of each row


class Next(NamedTuple):
    """The hypotheses that the search goes on with: each one's next token, and which hypothesis of the state it has."""

    tokens: Int[Tensor, " hypotheses"]
    hypotheses: Int[Tensor, " hypotheses"] | None = None  # None: those of the state, in their order
    sources: Int[Tensor, " sources"] | None = None  # of the state, which they belong to; None: all of them


@torch.no_grad()
@cached()  # weight normalisation is computed once, and not at every token
def run(search: "Greedy | Beam", model: Model, source: Tokens) -> None:
    """Search for at most `search.longest` steps, until a step returns None. Finished rows are no longer computed."""
    state, following = model.encode(source), search.start()
    for number in range(search.longest):
        if following.hypotheses is not None:
            state = select_hypotheses(state, following.hypotheses, following.sources)
        logits, state = model.decode(Tokens.of(following.tokens[:, None]), state)
        chosen = search.step(number, logits)
        if chosen is None:
            break
        following = chosen


class Greedy:
    """Chooses the most probable word at each step, whether or not EOS is more probable.

    So each row's output is the beginning of one sequence: it ends where EOS was at least as probable as any word
    (`free`), or at a given length.
    """

    def __init__(self, limits: Int[Tensor, " batch"], lengths: Int[Tensor, " batch"]) -> None:
        self.ends = limits.clone()  # the length of the free output, as far as is known
        self.lengths, self.longest = lengths, max([0, *limits.tolist(), *lengths.tolist()])
        self.out = torch.full((len(limits), self.longest), PAD, device=limits.device)
        self.rows = torch.arange(len(limits), device=limits.device)
        self.special = torch.tensor([PAD, BOS, EOS], device=limits.device)

    def start(self) -> Next:
        """Return the hypotheses of the first step, of the state in which each source is a row."""
        return Next(torch.full_like(self.rows, BOS))

    def step(self, number: int, logits: Float[Tensor, "hypotheses vocab"]) -> Next | None:
        """Return how to go on after step `number` (from 0), given the logits; None ends the search."""
        rows = self.rows
        best, words = logits.index_fill(1, self.special, -INFINITY).max(-1)
        ended = ~(logits[:, EOS] < best)  # a logit that is not a number ends the row
        self.out[rows, number] = words
        self.ends[rows] = torch.where(ended, self.ends[rows].clamp(max=number), self.ends[rows])
        unfinished = torch.maximum(self.ends, self.lengths)[rows] > number + 1
        count = int(unfinished.sum())
        if not count:
            return None
        if count > COMPACT * len(rows):
            return Next(words)
        keep = unfinished.nonzero()[:, 0]
        self.rows = rows[keep]
        return Next(words[keep], keep, keep)


class Beam:
    """Beam search: the finished hypothesis of each row with the best score / length^length_penalty.

    The score is the sum of log-probabilities; EOS counts in score and length. The search of a row ends with `size`
    finished hypotheses, even if an unfinished one is more probable (as in fairseq), or at the row's limit of tokens,
    where the best unfinished one counts as it is.
    """

    def __init__(self, limits: Int[Tensor, " batch"], size: int, length_penalty: float) -> None:
        self.limits, self.size, self.length_penalty = limits, size, length_penalty
        self.longest, self.rows = max([0, *limits.tolist()]), limits.nonzero()[:, 0]
        # Of each row, the number of finished hypotheses, and the best one so far
        self.finished, self.best_length = torch.zeros_like(limits), torch.zeros_like(limits)
        self.best_score = torch.full(limits.shape, -INFINITY, dtype=torch.float64, device=limits.device)
        self.best = limits.new_full((len(limits), self.longest), PAD)
        # Of each row that is searched and its hypotheses; at first, all hypotheses are equal
        self.prefixes = self.rows.new_zeros(len(self.rows), size, 0)
        self.scores = torch.full((len(self.rows), size), -INFINITY, device=limits.device)
        self.scores[:, 0] = 0.0

    def start(self) -> Next:
        hypotheses = self.rows.repeat_interleave(self.size)
        return Next(torch.full_like(hypotheses, BOS), hypotheses, self.rows)

    def step(self, number: int, logits: Float[Tensor, "hypotheses vocab"]) -> Next | None:
        divisor = (number + 1) ** self.length_penalty
        best, origin, token = self._candidates(logits)
        self._add_ended(best, origin, token, divisor)
        self.scores, chosen = best.masked_fill(token == EOS, -INFINITY).topk(self.size)
        origin, token = origin.gather(1, chosen), token.gather(1, chosen)
        before = self.prefixes.gather(1, origin[..., None].expand(-1, -1, number))
        self.prefixes = torch.cat([before, token[..., None]], -1)
        self._add_at_limit(divisor)
        return self._continue(origin, token)

    def _candidates(self, logits: Float[Tensor, "hypotheses vocab"]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores of each row's best continuations, the hypotheses that they continue, and their tokens.

        There are 2 * size of them, so at least `size` remain unfinished: each hypothesis has one continuation with EOS.
        """
        log_probabilities = logits.log_softmax(-1).view(*self.scores.shape, -1)
        log_probabilities[..., [PAD, BOS]] = -INFINITY
        size, vocab = log_probabilities.shape[1:]
        best, flat = (self.scores[..., None] + log_probabilities).flatten(1).topk(min(2 * size, size * vocab))
        return best, flat // vocab, flat % vocab

    def _add_ended(self, best: Tensor, origin: Tensor, token: Tensor, divisor: float) -> None:
        """Count the candidates that end within the beam, until a row has as many as the beam, and keep the best."""
        ends = (token == EOS)[:, : self.size] & best[:, : self.size].isfinite()
        ends &= self.finished[self.rows, None] + ends.cumsum(1) <= self.size
        self.finished[self.rows] += ends.sum(1)
        first = ends.int().argmax(1, keepdim=True)  # candidates are sorted
        some = ends.any(1).nonzero()[:, 0]
        scores = best.double().gather(1, first)[some, 0] / divisor
        self._offer(self.rows[some], scores, self.prefixes[some, origin.gather(1, first)[some, 0]])

    def _add_at_limit(self, divisor: float) -> None:
        """End the search of the rows whose limit is reached; the best unfinished hypothesis counts as it stands."""
        full, rows = self.limits[self.rows] == self.prefixes.shape[2], self.rows
        last = (full & (self.finished[rows] < self.size)).nonzero()[:, 0]
        best, which = self.scores[last].double().max(1)
        self._offer(rows[last], best / divisor, self.prefixes[last, which])
        self.finished[rows[last]] = self.size

    def _offer(self, rows: Tensor, scores: Tensor, prefixes: Tensor) -> None:
        """Keep the hypotheses, one for each of these rows, whose scores are better than the row's best so far."""
        better = scores > self.best_score[rows]
        rows, length = rows[better], prefixes.shape[1]
        self.best_score[rows], self.best_length[rows] = scores[better], length
        self.best[rows, :length] = prefixes[better]

    def _continue(self, origin: Int[Tensor, "rows size"], token: Int[Tensor, "rows size"]) -> Next | None:
        """Return the rows whose search goes on, and the hypotheses of the state that theirs continue."""
        keep = (self.finished[self.rows] < self.size).nonzero()[:, 0]
        if not len(keep):
            return None
        hypotheses = torch.arange(origin.numel(), device=origin.device).view_as(origin)
        chosen = hypotheses[:, :1] + origin
        if len(keep) > COMPACT * len(self.rows):
            return Next(token.flatten(), None if torch.equal(chosen, hypotheses) else chosen.flatten())
        self.rows, self.scores, self.prefixes = self.rows[keep], self.scores[keep], self.prefixes[keep]
        return Next(token[keep].flatten(), chosen[keep].flatten(), keep)


def greedy_both(
    model: Model, source: Tokens, limits: Int[Tensor, " batch"], lengths: Int[Tensor, " batch"]
) -> tuple[Ids, Ids]:
    """Return the ids chosen greedily for each row, up to EOS or its limit, and as many as in `lengths`, in one pass.

    EOS is left out of the first and never chosen in the second; PAD and BOS are never chosen. With the lengths of the
    targets the second is the oracle length of Lake & Baroni 2018 and Newman et al. 2020.
    """
    search = Greedy(limits, lengths)
    run(search, model, source)
    return first_tokens(search.out, search.ends), first_tokens(search.out, lengths)


def greedy(model: Model, source: Tokens, limits: Int[Tensor, " batch"]) -> Ids:
    """Return the first output of `greedy_both`."""
    return greedy_both(model, source, limits, torch.zeros_like(limits))[0]


def greedy_of_lengths(model: Model, source: Tokens, lengths: Int[Tensor, " batch"]) -> Ids:
    """Return the second output of `greedy_both`."""
    return greedy_both(model, source, torch.zeros_like(lengths), lengths)[1]


def beam(
    model: Model, source: Tokens, limits: Int[Tensor, " batch"], beam_size: int, length_penalty: float = 0.0
) -> Ids:
    """Return what `Beam` finds for each row. PAD and BOS are never chosen, and EOS is left out."""
    search = Beam(limits, beam_size, length_penalty)
    run(search, model, source)
    return first_tokens(search.best, search.best_length)


def first_tokens(out: Int[Tensor, "batch longest"], lengths: Int[Tensor, " batch"]) -> Ids:
    """Return the first tokens of each row, as many as its length."""
    return [ids[:length] for ids, length in zip(out.tolist(), lengths.tolist(), strict=True)]


def generate_both(
    model: Model, source: Tokens, limits: Tensor, lengths: Tensor, decode: DecodeConfig
) -> tuple[Ids, Ids]:
    """Generate the token ids of each row's target, without EOS, freely and greedily at the given lengths."""
    if decode.method == "greedy":
        return greedy_both(model, source, limits, lengths)
    return generate(model, source, limits, decode), greedy_of_lengths(model, source, lengths)


def generate(model: Model, source: Tokens, limits: Tensor, decode: DecodeConfig) -> Ids:
    """Generate the token ids of each row's target, at most as many as its limit, by greedy or beam search."""
    if decode.method == "beam":
        return beam(model, source, limits, decode.beam_size, decode.length_penalty)
    return greedy(model, source, limits)


def generation_limit(task: Task, decode: DecodeConfig) -> GenerationLimit:
    """Return the limit that `decode` describes; with 'longest', no target of the task exceeds it."""
    if decode.max_length:
        return GenerationLimit(constant=decode.max_length)
    if decode.limit == "source":
        return GenerationLimit(length_ratio(task), EXTRA_TOKENS)
    return GenerationLimit(constant=EXTRA_TOKENS + longest_target(task))


def length_ratio(task: Task) -> float:
    """Return the 99 % quantile of target length / source length over the train split, at least 1."""
    train = task.examples(task.splits().train)
    ratios = sorted(len(e.target) / max(1, len(e.source)) for e in train)
    quantile = ratios[math.ceil(QUANTILE * len(ratios)) - 1] if ratios else 1.0
    return max(1.0, round(quantile, 3))


def limits_of(limit: GenerationLimit, source_lengths: Tensor) -> Tensor:
    """Return the maximum number of tokens for sources of these lengths (rows,), EOS not counted."""
    limits = [math.ceil(limit.per_source_token * n - 1e-9) + limit.constant for n in source_lengths.tolist()]
    return torch.tensor(limits, dtype=torch.long)


def search_limits(model: Model, task: Task, decode: DecodeConfig, source_lengths: Tensor) -> Tensor:
    """Return the maximum number of tokens for sources of any split (rows,), within the positions of the model."""
    limits = limits_of(generation_limit(task, decode), source_lengths)
    return limits if model.max_positions is None else limits.clamp(max=model.max_positions - 1)


def longest_target(task: Task) -> int:
    """Return the number of tokens in the longest target of any split."""
    return max(len(e.target) for split in task.splits().all for e in task.examples(split))


def needed_positions(task: Task) -> int:
    """Return the number of positions that any source and any output of a task can have, whatever `decode` is.

    Sources end with EOS and decoder inputs start with BOS. An output may be as long as either limit of `decode.limit`
    allows.
    """
    longest_source = max(len(e.source) for split in task.splits().all for e in task.examples(split))
    relative = limits_of(GenerationLimit(length_ratio(task), EXTRA_TOKENS), torch.tensor([longest_source]))
    return 1 + max(longest_source, longest_target(task) + EXTRA_TOKENS, int(relative))

"""Greedy decoding and beam search as steps on tensors that keep their place, for graphs. Nothing waits for the device.

The variables of a search have the rows of the batch first. A row that has finished goes on without any effect.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from tfstudy.data.vocabulary import BOS, EOS, PAD
from tfstudy.evaluation.static_state import position_of, static_state, write_state
from tfstudy.models.base import Model, State, select_hypotheses

INFINITY = float("inf")


class Method(NamedTuple):
    """How to search: the number of hypotheses for each row and the length penalty of beam search."""

    hypotheses: int = 1
    length_penalty: float = 0.0


class Search(ABC):
    """A search over some rows. A call of `step` decodes the next token of each row; `left` counts unfinished rows."""

    results: ClassVar[tuple[str, ...]]  # names of the variables that hold the outputs and their lengths

    def __init__(self, model: Model, method: Method, state: State, variables: Mapping[str, Tensor], room: int) -> None:
        self._model, self._method = model, method
        self.rows = len(variables["number"])
        device = variables["number"].device
        self.position = position_of(room, device)
        self.state = static_state(state, self.position)
        self.variables = {name: variable.clone() for name, variable in variables.items()}
        self.left = torch.zeros((), dtype=torch.long, device=device)

    def load(self, state: State, variables: Mapping[str, Tensor], position: Tensor | None = None) -> None:
        """Write where another search is; without a position, the start of one."""
        write_state(self.state, static_state(state, self.position))
        for name, variable in variables.items():
            self.variables[name].copy_(variable)
        self.position.value.copy_(position) if position is not None else self.position.value.zero_()

    def select(self, rows: Tensor) -> tuple[State, dict[str, Tensor]]:
        """Return the state and the variables of these rows."""
        hypotheses = torch.arange(self._method.hypotheses, device=rows.device)
        chosen = (rows[:, None] * self._method.hypotheses + hypotheses).flatten()
        state = select_hypotheses(self.state, chosen, rows)
        return state, {name: variable.index_select(0, rows) for name, variable in self.variables.items()}

    def step(self) -> None:
        """Decode one token."""
        logits, after = self._model.decode(self.variables["tokens"].view(-1, 1), self.state)
        write_state(self.state, after)
        self._choose(logits[:, -1])
        self.position.value.add_(1)
        self.left.copy_(self.unfinished().sum())

    @abstractmethod
    def unfinished(self) -> Tensor:
        """Return which rows have not finished, (rows,)."""

    @abstractmethod
    def _choose(self, logits: Tensor) -> None:
        """Update the variables by the logits (hypotheses, vocab) after the last tokens."""


class GreedySearch(Search):
    """What `decoding.greedy_both` computes. The outputs are `out`, up to `ends` and up to `lengths`."""

    results = ("out", "ends")

    @staticmethod
    def start(number: Tensor, limits: Tensor, lengths: Tensor, room: int) -> dict[str, Tensor]:
        """Return the variables before the first token."""
        out = number.new_full((len(number), room), PAD)
        tokens = torch.full_like(number, BOS)
        return {"number": number, "tokens": tokens, "out": out, "ends": limits, "lengths": lengths}

    def unfinished(self) -> Tensor:
        return torch.maximum(self.variables["ends"], self.variables["lengths"]) > self.position.value

    def _choose(self, logits: Tensor) -> None:
        v, first = self.variables, EOS + 1  # PAD, BOS and EOS come before all words
        best, words = logits[:, first:].max(-1)
        v["tokens"].copy_(words + first)
        v["out"].index_copy_(1, self.position.value, v["tokens"][:, None])
        ended = ~(logits[:, EOS] < best)  # a logit that is not a number ends the row
        v["ends"].copy_(torch.where(ended, torch.minimum(v["ends"], self.position.value), v["ends"]))


class BeamSearch(Search):
    """What `decoding.beam` computes. The outputs are `out`, up to `ends`."""

    results = ("out", "ends")

    @staticmethod
    def start(number: Tensor, limits: Tensor, room: int, method: Method) -> dict[str, Tensor]:
        """Return the variables before the first token; `divisors` has what scores are divided by, by length."""
        rows, beam = len(number), method.hypotheses
        scores = torch.full((rows, beam), -INFINITY, device=number.device)
        scores[:, 0] = 0.0  # at first, all hypotheses of a row are equal
        lengths = [step**method.length_penalty for step in range(1, room + 1)]
        return {
            "number": number,
            "tokens": number.new_full((rows, beam), BOS),
            "prefixes": number.new_full((rows, beam, room), PAD),
            "scores": scores,
            "limits": limits,
            "finished": torch.where(limits > 0, 0, beam),
            "best": torch.full((rows,), -INFINITY, dtype=torch.float64, device=number.device),
            "out": number.new_full((rows, room), PAD),
            "ends": torch.zeros_like(number),
            "divisors": torch.tensor(lengths, dtype=torch.float64, device=number.device).expand(rows, -1),
        }

    def unfinished(self) -> Tensor:
        return self.variables["finished"] < self._method.hypotheses

    def _choose(self, logits: Tensor) -> None:
        v, beam, index = self.variables, self._method.hypotheses, self.position.value
        best, origin, token = self._candidates(logits)
        divisor = v["divisors"].index_select(1, index)[:, 0]
        self._add_ended(best, origin, token, divisor)
        scores, chosen = best.masked_fill(token == EOS, -INFINITY).topk(beam)
        origin, token = origin.gather(1, chosen), token.gather(1, chosen)
        prefixes = v["prefixes"].gather(1, origin[..., None].expand_as(v["prefixes"]))
        v["prefixes"].copy_(prefixes.index_copy_(2, index, token[..., None]))
        last = (v["limits"] == index + 1) & self.unfinished()
        top, which = scores.double().max(1)
        self._offer(last, top / divisor, which, index + 1)
        v["finished"].copy_(torch.where(last, beam, v["finished"]))
        v["scores"].copy_(scores)
        v["tokens"].copy_(token)
        hypotheses = torch.arange(self.rows * beam, device=index.device).view_as(origin)
        write_state(self.state, select_hypotheses(self.state, (hypotheses[:, :1] + origin).flatten()))

    def _candidates(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores of each row's best continuations, the hypotheses that they continue, and their tokens."""
        beam, vocab = self._method.hypotheses, logits.shape[1]
        words = torch.cat([logits.new_full((len(logits), EOS), -INFINITY), logits.log_softmax(-1)[:, EOS:]], 1)
        total = (self.variables["scores"][..., None] + words.view(self.rows, beam, vocab)).flatten(1)
        best, flat = total.topk(min(2 * beam, beam * vocab))
        return best, flat // vocab, flat % vocab

    def _add_ended(self, best: Tensor, origin: Tensor, token: Tensor, divisor: Tensor) -> None:
        """Count the candidates that end within the beam, until a row has as many as the beam, and keep the best."""
        v, beam = self.variables, self._method.hypotheses
        ends = (token == EOS)[:, :beam] & best[:, :beam].isfinite()
        ends &= v["finished"][:, None] + ends.cumsum(1) <= beam
        v["finished"].add_(ends.sum(1))
        first = ends.int().argmax(1, keepdim=True)  # candidates are sorted
        scores = best.double().gather(1, first)[:, 0] / divisor
        self._offer(ends.any(1), scores, origin.gather(1, first)[:, 0], self.position.value)

    def _offer(self, rows: Tensor, scores: Tensor, hypotheses: Tensor, length: Tensor) -> None:
        """Keep a hypothesis of each of these rows (a mask) whose score is better than the row's best so far."""
        v = self.variables
        better = rows & (scores > v["best"])
        prefixes = v["prefixes"].gather(1, hypotheses[:, None, None].expand(-1, 1, v["out"].shape[1]))[:, 0]
        v["best"].copy_(torch.where(better, scores, v["best"]))
        v["out"].copy_(torch.where(better[:, None], prefixes, v["out"]))
        v["ends"].copy_(torch.where(better, length, v["ends"]))

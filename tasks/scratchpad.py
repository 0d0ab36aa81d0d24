"""Scratchpads: intermediate steps that a target contains before the answer (Nye et al. 2021, arXiv 2112.00114).

    b a b  ->  odd odd even : even      (parity, `data.scratchpad` on)
    b a b  ->  even                     (off)

The model generates the steps too, so it can compute the answer one step at a time. A task whose base class is
`Scratchpad` builds its targets with `with_steps` and has the metric `answer_exact_match` next to those of the whole
target.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.base import Example, Tokens
from tfstudy.tasks.generated import Generated, GeneratedConfig
from tfstudy.tasks.scoring import exact_match, mean

ANSWER = ":"  # separates the scratchpad from the answer


def answer(target: Sequence[str]) -> Tokens:
    """Return the tokens after the scratchpad; empty if the separator is missing."""
    target = tuple(target)
    return target[target.index(ANSWER) + 1 :] if ANSWER in target else ()


class ScratchpadConfig(GeneratedConfig):
    """Settings of generated tasks that have a scratchpad (section `data`)."""

    scratchpad: bool = Field(False, description="write the intermediate steps before the answer")


class Scratchpad(Generated):
    """A generated task whose targets may start with a scratchpad."""

    Config: ClassVar[type[ScratchpadConfig]] = ScratchpadConfig
    config: ScratchpadConfig

    def with_steps(self, answer: Tokens, steps: Callable[[], Tokens]) -> Tokens:
        """Return the target: the answer, with the steps before it if `data.scratchpad` is set."""
        return (*steps(), ANSWER, *answer) if self.config.scratchpad else answer

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Return the usual metrics of the whole target and, with a scratchpad, `answer_exact_match` of the answer.

        Runs without a scratchpad have the same figure as `exact_match`.
        """
        scores = super().score(predictions, examples)
        if not self.config.scratchpad:
            return scores
        pairs = zip(predictions, examples, strict=True)
        return scores | {"answer_exact_match": mean(exact_match(answer(p), answer(e.target)) for p, e in pairs)}

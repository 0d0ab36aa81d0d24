"""Heads removed from the least to the most important one: what remains of the accuracy, and how fast decoding gets.

The order is that of Michel et al. 2019 (arXiv 1905.10650, section 4): the importance of eq. 2 in the whole model,
divided by the L2 norm of its layer. Nothing is trained again.
"""

import copy
import time
from collections.abc import Collection
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from tfstudy.evaluation.decoding import generate, greedy_of_lengths, search_limits
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import BATCH, ExampleSettings, chosen_examples
from tfstudy.instruments.head_importance import Head, attention_modules, importances, normalised
from tfstudy.models.attention import MultiHeadAttention
from tfstudy.models.base import Model
from tfstudy.models.tokens import Tokens
from tfstudy.tasks.base import Example

SPEED = "decoding speed"


class PruningConfig(ExampleSettings):
    """The settings of `pruning`."""

    points: int = Field(10, ge=1, le=1000, description="points of the curve, after that of the whole model")
    repeats: int = Field(3, ge=1, le=100, description="times that decoding is timed; the fastest counts")


class Pruning(Instrument):
    """The metrics of the task with free-running decoding, by the share of heads that is removed.

    The speed is relative to the whole model.
    """

    summary = "pruning curve: metrics and decoding speed without the least important heads"
    chart = Chart("line", x="removed", y="value", facet="metric", x_label="share of heads removed")
    Config = PruningConfig
    config: PruningConfig

    def measure(self, subject: Subject) -> list[Row]:
        scores = normalised(importances(subject, self.config))
        order = sorted(scores, key=lambda head: scores[head])
        decoding = Decoding.of(subject, self.config)
        counts = sorted({round(len(order) * point / self.config.points) for point in range(self.config.points + 1)})
        return [
            {"removed": count / len(order), "heads": count, "metric": name, "value": value}
            for count in counts
            for name, value in self._without(subject, order[:count], decoding).items()
        ]

    def _without(self, subject: Subject, removed: Collection[Head], decoding: "Decoding") -> dict[str, float]:
        """Return the metrics without these heads, and the speed of decoding."""
        smaller = without(subject.model, removed)
        speed = decoding.speed(smaller, subject.model, self.config.repeats) if removed else 1.0
        return decoding.metrics(subject, smaller) | {SPEED: speed}


class Decoding(NamedTuple):
    """Sources to decode, in padded batches, each with the limits and the lengths of its targets."""

    examples: list[Example]
    batches: list[tuple[Tensor, Tensor, Tensor]]

    @classmethod
    def of(cls, subject: Subject, settings: ExampleSettings) -> "Decoding":
        """Return the chosen examples, from short to long targets."""
        model, device = subject.model, next(subject.model.parameters()).device
        examples = sorted(chosen_examples(subject, settings), key=lambda e: (len(e.target), len(e.source)))
        encoded = subject.data.encode(examples)
        limits = search_limits(model, subject.task, subject.config.decode, encoded.source_lengths - 1)
        parts = [torch.arange(len(examples))[start : start + BATCH] for start in range(0, len(examples), BATCH)]
        rows = [(encoded.rows(part).source, limits[part], encoded.target_lengths[part] - 2) for part in parts]
        return cls(examples, [(a.to(device), b.to(device), c.to(device)) for a, b, c in rows])

    @torch.no_grad()
    def metrics(self, subject: Subject, model: Model) -> dict[str, float]:
        """Return the metrics of the task with the decoding of the run."""
        outputs = [
            subject.data.target_vocab.decode(tokens)
            for source, limits, _ in self.batches
            for tokens in generate(model, Tokens.of(source), limits, subject.config.decode)
        ]
        return subject.task.score(outputs, self.examples)

    def speed(self, model: Model, whole: Model, repeats: int) -> float:
        """Return how many times as fast a model decodes as the whole one; the fastest of some repeats of each counts.

        They take turns, so that whatever slows the machine for a while slows both.
        """
        seconds = [(self.seconds(whole), self.seconds(model)) for _ in range(repeats)]
        return min(of_whole for of_whole, _ in seconds) / min(of_model for _, of_model in seconds)

    @torch.no_grad()
    def seconds(self, model: Model) -> float:
        """Return the time of greedy decoding with the lengths of the targets, so that all models do the same work.

        On a CPU it is that of the processor, which other processes on the machine hardly change.
        """
        clock = time.process_time if self.batches[0][0].device.type == "cpu" else time.perf_counter
        start = clock()
        for source, _, lengths in self.batches:
            greedy_of_lengths(model, Tokens.of(source), lengths)
        return clock() - start


@torch.no_grad()
def without(model: Model, removed: Collection[Head]) -> Model:
    """Return a copy of the model without these heads, which are no longer computed."""
    smaller = copy.deepcopy(model)
    for name, module in attention_modules(smaller).items():
        gone = {head.head - 1 for head in removed if head.module == name}
        if gone:
            _keep(module, [head for head in range(module.heads) if head not in gone])
    return smaller


def _keep(module: MultiHeadAttention, heads: list[int]) -> None:
    """Remove all other heads of a module."""
    every = torch.arange(module.query.out_features, device=module.query.weight.device).view(module.heads, -1)
    kept, dim = every[heads].flatten(), module.query.out_features
    for layer, rows in ((module.query, kept), (module.key_value, torch.cat([kept, kept + dim]))):
        layer.weight, layer.bias = nn.Parameter(layer.weight[rows]), nn.Parameter(layer.bias[rows])
        layer.out_features = len(rows)
    module.out.weight, module.out.in_features = nn.Parameter(module.out.weight[:, kept]), len(kept)
    if module.relative is not None:
        module.relative.keep_heads(heads)
    module.heads = len(heads)

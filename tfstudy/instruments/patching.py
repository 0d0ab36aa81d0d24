"""Activation patching: where a model holds what makes its outputs for two sources differ.

Vig et al. 2020 (arXiv 2004.12265); Meng et al. 2022 (arXiv 2202.05262). The model computes on one source, but at one
layer and position its hidden state is that from the other source. How much of the output does this change?
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.utils.parametrize import cached

from tfstudy.data.encoding import BOS, EOS
from tfstudy.errors import UserError
from tfstudy.evaluation.decoding import greedy, search_limits
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, chosen_examples, given_source
from tfstudy.instruments.gradient_by_distance import SEQUENCES
from tfstudy.instruments.hooks import Site, logits_of, observing, record_states
from tfstudy.models.base import Model
from tfstudy.models.tokens import Tokens as TokenBatch
from tfstudy.tasks.base import Example, Tokens


class Difference(NamedTuple):
    """The first token in which a model's outputs for two sources of equal length differ."""

    sources: Tensor  # (2, source), with EOS
    inputs: Tensor  # (2, length): BOS and the tokens that both outputs start with
    outputs: Tensor  # (2,): the tokens in which they differ


class Patching(Instrument):
    """The effect of a hidden state of the other source, as a share of the effect of replacing the whole source.

    The number measured is the logit of the first token in which the other source's output differs, minus that of the
    token in its place. The effect is 0 where the state makes no difference, and 1 where it makes as much as the source.
    Without `source` and `other`, they are the two examples of equal length that differ in the fewest tokens.
    The decoder of an LSTM also starts from the last state of each layer of the encoder, which only patched embeddings
    change.
    """

    summary = "activation patching: effect of each hidden state on where two outputs differ"
    chart = Chart("heatmap", x="position", y="layer", hue="effect", facet="sequence", x_label="position and token")

    class Config(ExampleSettings):
        source: str = Field("", description="source whose hidden states are replaced, as it would be typed")
        other: str = Field("", description="source of the same length from which they are taken")

    config: Config

    @torch.no_grad()
    @cached()
    def measure(self, subject: Subject) -> list[Row]:
        if getattr(subject.model, "copy", None) is not None:
            raise UserError("patching needs model.copy_output=false: a model that copies reads source tokens directly")
        difference = first_difference(subject, *source_pair(subject, self.config))
        rows: list[Row] = []
        for site, effects in patching_effects(subject.model, difference):
            names = position_names(subject, difference, site)
            rows += [
                {"sequence": SEQUENCES[site.kind], "layer": site.layer, "position": name, "effect": effect}
                for name, effect in zip(names, effects.round(decimals=4).tolist(), strict=True)
            ]
        return rows


def source_pair(subject: Subject, settings: Patching.Config) -> tuple[Tokens, Tokens]:
    """Return the tokens of the two sources; `UserError` if they do not fit the model or each other."""
    if not (settings.source or settings.other):
        return nearest_pair(chosen_examples(subject, settings))
    if not (settings.source and settings.other):
        raise UserError(
            f"{'other' if settings.source else 'source'} is missing; give both source and other, or neither"
        )
    first, second = (given_source(subject, text) for text in (settings.source, settings.other))
    if len(first) != len(second):
        raise UserError(f"source and other must have equally many tokens, but have {len(first)} and {len(second)}")
    return first, second


def nearest_pair(examples: Sequence[Example]) -> tuple[Tokens, Tokens]:
    """Return the sources of equal length that differ in the fewest tokens and have different targets."""
    pairs = [
        (sum(a != b for a, b in zip(x.source, y.source, strict=True)), x.source, y.source)
        for x, y in combinations(examples, 2)
        if len(x.source) == len(y.source) and x.target != y.target
    ]
    if not pairs:
        raise UserError("no two of these examples have sources of equal length and different targets")
    _, first, second = min(pairs, key=lambda pair: pair[0])
    return first, second


def first_difference(subject: Subject, first: Tokens, second: Tokens) -> Difference:
    """Return where the model's greedy outputs for two sources differ; `UserError` if they are equal."""
    model, examples = subject.model, [Example(first, (), {}), Example(second, (), {})]
    source = subject.data.encode(examples).source.to(next(model.parameters()).device)
    limits = search_limits(model, subject.task, subject.config.decode, torch.tensor([len(first)] * 2))
    outputs = [[*ids, EOS] for ids in greedy(model, TokenBatch.of(source), limits.to(source.device))]
    if outputs[0] == outputs[1]:
        raise UserError("the outputs of the model for these two sources are the same, so there is no effect to measure")
    same = next(i for i, (a, b) in enumerate(zip(*outputs, strict=False)) if a != b)
    inputs = source.new_tensor([[BOS, *outputs[0][:same]]] * 2)
    return Difference(source, inputs, source.new_tensor([output[same] for output in outputs]))


def patching_effects(model: Model, difference: Difference) -> Iterator[tuple[Site, Tensor]]:
    """Yield the effect of patching each position (positions,) at each site, the source's first."""
    source, inputs = difference.sources, difference.inputs
    recorded = record_states(model, source, inputs)
    before, after = logit_difference(recorded.logits, difference.outputs).tolist()
    for site, states in sorted(recorded.states().items(), key=lambda item: (item[0].kind == "decoder", item[0].layer)):
        count = states.shape[1]
        with observing(model, Patch(site, states[1])):
            logits = logits_of(model, source[:1].expand(count, -1), inputs[:1].expand(count, -1))
        yield site, (logit_difference(logits, difference.outputs) - before) / (after - before)


def logit_difference(logits: Tensor, outputs: Tensor) -> Tensor:
    """Return the logit of the second of two tokens minus that of the first, at the last position of each row."""
    return (logits[:, -1, outputs[1]] - logits[:, -1, outputs[0]]).double()


class Patch:
    """Puts `states` (positions, width) in the place of a site's hidden states: position i in row i of the batch."""

    def __init__(self, site: Site, states: Tensor) -> None:
        self.site, self.states, self.start = site, states, 0

    def __call__(self, site: Site, x: Tensor) -> Tensor:
        if site != self.site:
            return x
        rows = x.reshape(len(self.states), -1, x.shape[-1]).clone()
        end = self.start + rows.shape[1]  # a target written step by step is seen in several calls
        index = torch.arange(self.start, min(end, len(rows)), device=x.device)
        rows[index, index - self.start] = self.states[index]
        self.start = end
        return rows.view(x.shape)


def position_names(subject: Subject, difference: Difference, site: Site) -> list[str]:
    """Return the number and the token of each position, or both tokens where the two sources differ."""
    encoder = site.kind == "encoder"
    vocab = subject.data.source_vocab if encoder else subject.data.target_vocab
    pairs = (difference.sources if encoder else difference.inputs).T.tolist()
    tokens = ["/".join(subject.task.readable(vocab.tokens[i]) for i in dict.fromkeys(pair)) for pair in pairs]
    return [f"{number} {token}"[:100] for number, token in enumerate(tokens, 1)]

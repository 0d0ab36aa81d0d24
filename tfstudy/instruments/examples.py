"""What instruments measure: examples in batches without padding, attention on them, and a model before its training."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.utils.parametrize import cached

from tfstudy.data.encoding import SPECIAL
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.instruments.base import Settings, Subject
from tfstudy.instruments.hooks import Site, joined, logits_of, recorded_attention
from tfstudy.models.base import Model
from tfstudy.tasks.base import Example, Tokens

BATCH = 64  # examples


class ExampleSettings(Settings):
    """The settings of an instrument that reads examples with teacher forcing."""

    split: str = Field("", description="split of the task (default: validation, or the first test set)")
    examples: int = Field(200, ge=1, le=10**6, description="number of examples, spread evenly over the split")


class TeacherForced(NamedTuple):
    """Examples of the same source length and target length as token ids. `gold[:, i]` is predicted from `tokens[:, i]`.

    As there is no padding, weights and states at each position belong to a token, whatever the architecture.
    """

    examples: list[Example]
    source: Tensor  # (batch, source), with EOS
    tokens: Tensor  # (batch, target), with BOS and without EOS
    gold: Tensor  # (batch, target), with EOS and without BOS


def split_of(subject: Subject, settings: ExampleSettings) -> str:
    """Return the split that the settings name; `UserError` if the task has no such split."""
    splits = subject.task.splits()
    return one_of("split", settings.split, splits.all) if settings.split else splits.held_out[0]


def chosen_examples(subject: Subject, settings: ExampleSettings) -> list[Example]:
    """Return examples that are spread evenly over the split, without those that the model has no positions for.

    `UserError` if there are none.
    """
    name = split_of(subject, settings)
    every, most = subject.task.examples(name), subject.model.max_positions
    fitting = [e for e in every if most is None or max(len(e.source), len(e.target)) < most]
    if not fitting:
        raise UserError(f"split '{name}' has no example that the model can read")
    count = min(settings.examples, len(fitting))
    return [fitting[number * len(fitting) // count] for number in range(count)]


def in_batches(subject: Subject, settings: ExampleSettings) -> Iterator[TeacherForced]:
    """Yield the chosen examples, from short to long, on the device of the model. Their order is always the same."""
    device = next(subject.model.parameters()).device
    chosen = sorted(chosen_examples(subject, settings), key=_lengths)
    for _, group in groupby(chosen, key=_lengths):
        same = list(group)
        for start in range(0, len(same), BATCH):
            encoded = subject.data.encode(same[start : start + BATCH]).to(device)
            source, target = encoded.source, encoded.target
            yield TeacherForced(same[start : start + BATCH], source, target[:, :-1], target[:, 1:])


def _lengths(example: Example) -> tuple[int, int]:
    return len(example.source), len(example.target)


def given_source(subject: Subject, text: str) -> Tokens:
    """Return the tokens of a source as typed; `UserError` if it is empty, too long, or has an unknown token.

    A word that a corpus lacks in its training split is read as one unknown word, as in a test set.
    """
    task, most = subject.task, subject.model.max_positions
    if not isinstance(text, str):
        raise UserError(f"a source must be text, but is {quoted(text)}")
    if re.search("[\ud800-\udfff]", text):
        raise UserError(f"a source must be text of whole characters in UTF-8, but is {quoted(text)}")
    tokens = tuple(task.tokens(text))
    if not tokens:
        raise UserError("the source must have at least one token")
    for token in () if task.corpus() else tokens:
        one_of("source token", token, subject.data.source_vocab.tokens[len(SPECIAL) :], f"task {subject.config.task}")
    if most is not None and len(tokens) >= most:
        raise UserError(f"the source must have fewer than {most} tokens, but has {len(tokens)}")
    return tokens


class SiteWeights(NamedTuple):
    """The weights (batch, heads, queries, keys) at one site for a batch of examples, and which keys are visible."""

    site: Site
    weights: Tensor
    visible: Tensor
    batch: TeacherForced


def recorded_weights(subject: Subject, settings: ExampleSettings) -> Iterator[SiteWeights]:
    """Yield the attention weights of each site for each batch, with teacher forcing; `UserError` without attention."""
    for batch in in_batches(subject, settings):
        with torch.no_grad(), cached(), recorded_attention(subject.model) as recorded:
            logits_of(subject.model, batch.source, batch.tokens)
        maps, visible = joined(recorded), joined(recorded, "visible")
        if not maps:
            raise no_attention(subject.model)
        yield from (SiteWeights(site, maps[site], visible[site], batch) for site in sorted(maps))


def no_attention(model: Model) -> UserError:
    """Return the error for a model that has no attention."""
    return UserError(f"this needs attention, which this model ({type(model).__name__}) does not have")


def untrained(subject: Subject) -> Model:
    """Return a model of the same config with the weights that the run started with, in eval mode."""
    device = next(subject.model.parameters()).device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(subject.config.seed)
        model = type(subject.model)(*subject.model.arguments).to(device).eval()
    given = dict(subject.model.named_buffers())
    for name in given.keys() - subject.model.state_dict().keys():  # made of the data, such as which tokens are digits
        model.get_buffer(name).copy_(given[name])
    return model

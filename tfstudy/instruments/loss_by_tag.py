"""The loss and the exact match of a model against a tag of the examples, such as their length or edit distance."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import torch
from pydantic import Field
from torch.nn.functional import cross_entropy
from torch.nn.utils.parametrize import cached

from tfstudy.data.encoding import BOS, PAD
from tfstudy.errors import UserError, one_of
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, TeacherForced, chosen_examples, in_batches
from tfstudy.instruments.hooks import logits_of
from tfstudy.models.base import Model
from tfstudy.tasks.base import Example, Tag


class Scored(NamedTuple):
    """The loss of a model on an example, and whether its output is correct."""

    example: Example
    loss: float  # nats, summed over the target tokens
    tokens: int  # target tokens, with EOS
    exact: bool


class LossByTag(Instrument):
    """The loss in nats per target token, the share of exact matches, and the number of examples, for each tag value.

    The loss is that of teacher forcing, as the mean over all target tokens of the examples with the value, with EOS. An
    output is an exact match if each target token is the most probable one; greedy decoding then writes the target.
    Examples without the tag are left out.
    """

    summary = "loss per target token and exact match by a tag of the examples, such as length"
    chart = Chart(
        "line", x="tag", y="value", facet="quantity", x_label="value of the tag", y_label="value of the quantity"
    )

    class Config(ExampleSettings):
        tag: str = Field("length", description="tag of the examples, such as length or depth")
        examples: int = Field(1000, ge=1, le=10**6, description="number of examples, spread evenly over the split")

    config: Config

    def measure(self, subject: Subject) -> list[Row]:
        tag = _known(self.config.tag, chosen_examples(subject, self.config))
        groups: dict[Tag, list[Scored]] = defaultdict(list)
        for batch in in_batches(subject, self.config):
            for one in scores_of(subject.model, batch):
                if tag in one.example.tags:
                    groups[one.example.tags[tag]].append(one)
        return [
            {"quantity": quantity, "tag": value, "value": number}
            for value, group in sorted(groups.items(), key=lambda item: (isinstance(item[0], str), item[0]))
            for quantity, number in _numbers(group).items()
        ]


@torch.no_grad()
@cached()
def scores_of(model: Model, batch: TeacherForced) -> list[Scored]:
    """Return the loss of each example of a batch, and whether it is an exact match."""
    logits = logits_of(model, batch.source, batch.tokens)
    losses = cross_entropy(logits.transpose(1, 2).double(), batch.gold, reduction="none").sum(1)
    logits[..., [PAD, BOS]] = -torch.inf  # which are never generated
    exact = (logits.argmax(-1) == batch.gold).all(1)
    each = zip(batch.examples, losses.tolist(), exact.tolist(), strict=True)
    return [Scored(example, loss, batch.gold.shape[1], correct) for example, loss, correct in each]


def _numbers(group: Sequence[Scored]) -> dict[str, float]:
    return {
        "loss per target token (nats)": sum(one.loss for one in group) / sum(one.tokens for one in group),
        "exact match": sum(one.exact for one in group) / len(group),
        "examples": len(group),
    }


def _known(tag: str, examples: Sequence[Example]) -> str:
    """Return the tag; `UserError` with all tags of the examples if they do not have it."""
    tags = list(dict.fromkeys(tag for example in examples for tag in example.tags))
    if not tags:
        raise UserError("loss_by_tag needs examples with tags, which this split does not have")
    return one_of("tag", tag, tags)

"""The share of examples with an error at each position of the output, by the length of the target."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.utils.parametrize import cached

from tfstudy.data.encoding import BOS, EOS, PAD, pad
from tfstudy.evaluation.decoding import greedy
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, TeacherForced, in_batches
from tfstudy.instruments.hooks import logits_of
from tfstudy.models.base import Model
from tfstudy.models.tokens import Tokens

GROUPS = 4  # of lengths, with about equally many examples


class PositionError(Instrument):
    """The share of wrong tokens at each position, teacher-forced and free-running (greedy), and of wrong prefixes.

    A prefix is wrong if the free-running output has an error at this position or before it; with teacher forcing the
    first error is the same. Positions count from 1; the last one is that of EOS. `length` is that of the target,
    without EOS.
    """

    summary = "errors by position in the output, free-running and teacher-forced, by length"
    chart = Chart(
        "line", x="position", y="rate", hue="error", facet="length",
        x_label="position, with <eos>", y_label="share with an error",
    )  # fmt: skip

    class Config(ExampleSettings):
        examples: int = Field(1000, ge=1, le=10**6, description="number of examples, spread evenly over the split")

    config: Config

    def measure(self, subject: Subject) -> list[Row]:
        errors: dict[int, list[dict[str, Tensor]]] = defaultdict(list)  # by target length
        for batch in in_batches(subject, self.config):
            errors[batch.gold.shape[1] - 1].append(error_positions(subject.model, batch))
        rows: list[Row] = []
        for lengths in length_groups({n: sum(len(e["prefix"]) for e in found) for n, found in errors.items()}):
            name = "-".join(map(str, sorted({lengths[0], lengths[-1]}))) + " tokens"
            parts = [part for length in lengths for part in errors[length]]
            for error in parts[0]:
                for position in range(1, lengths[-1] + 2):  # of all examples that are as long
                    reaching = [part[error][:, position - 1] for part in parts if part[error].shape[1] >= position]
                    rate = float(torch.cat(reaching).double().mean())
                    rows.append({"length": name, "error": error, "position": position, "rate": rate})
        return rows


@torch.no_grad()
@cached()
def error_positions(model: Model, batch: TeacherForced) -> dict[str, Tensor]:
    """Return where a model is wrong, for each kind of error: (batch, target), True at an error."""
    logits = logits_of(model, batch.source, batch.tokens)
    logits[..., [PAD, BOS]] = -torch.inf  # which are never generated
    length = batch.gold.shape[1]
    outputs = greedy(model, Tokens.of(batch.source), torch.full_like(batch.gold[:, 0], length))
    ids, _ = pad([[*output, EOS][:length] + [PAD] * (length - 1 - len(output)) for output in outputs])
    free = ids.to(batch.gold.device) != batch.gold
    forced = logits.argmax(-1) != batch.gold
    return {"token, teacher-forced": forced, "token, free-running": free, "prefix": free.cummax(1).values}


def length_groups(counts: dict[int, int]) -> list[Sequence[int]]:
    """Return lengths in at most `GROUPS` groups, from short to long, given the number of examples of each length."""
    total, before = sum(counts.values()), 0
    groups: dict[int, list[int]] = defaultdict(list)
    for length in sorted(counts):
        groups[before * GROUPS // total].append(length)
        before += counts[length]
    return list(groups.values())

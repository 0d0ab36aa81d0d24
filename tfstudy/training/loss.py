"""The loss of a ragged micro-batch, and the decoder inputs of scheduled sampling."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tfstudy.config.schema import TrainConfig
from tfstudy.data.encoding import BOS, EOS, PAD, PaddedRows
from tfstudy.models.base import Model
from tfstudy.models.parts.layers import gradient_checkpointing
from tfstudy.models.parts.tokens import RaggedGroup


def ragged_group(rows: PaddedRows) -> RaggedGroup:
    """Return the inputs of a model for these rows: sources, and targets without their last token."""
    return RaggedGroup(rows.source, rows.source != PAD, rows.target[:, :-1])


def target_tokens(micro_batch: Sequence[PaddedRows]) -> Tensor:
    """Return the token that follows each decoder input of all groups, PAD included: (positions,)."""
    return torch.cat([rows.target[:, 1:].flatten() for rows in micro_batch])


def summed_loss(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the cross entropy in nats of logits (positions, vocab), summed over all targets (positions,) but PAD."""
    return cross_entropy(logits, targets, ignore_index=PAD, reduction="sum", label_smoothing=smoothing)


def exact_matches(logits: Tensor, micro_batch: Sequence[PaddedRows]) -> Tensor:
    """Return the number of rows of which every target token is the most probable one, given logits (positions, vocab).

    Teacher-forced, but the same as exact match by greedy decoding: a decoder that has made no error so far has seen
    the targets. PAD and BOS are never generated.
    """
    logits = logits.clone()
    logits[:, [PAD, BOS]] = -math.inf
    correct = torch.split(logits.argmax(-1), [rows.target[:, 1:].numel() for rows in micro_batch])
    pairs = zip(correct, (rows.target[:, 1:] for rows in micro_batch), strict=True)
    matches = [((tokens.view_as(target) == target) | (target == PAD)).all(1).sum() for tokens, target in pairs]
    return torch.stack(matches).sum()


def follows_eos(groups: Sequence[RaggedGroup]) -> Tensor:
    """Return which decoder inputs of all groups are EOS or come after it, as a boolean tensor (positions,)."""
    return torch.cat([(group.tokens == EOS).cummax(1).values.flatten() for group in groups])


@torch.no_grad()
def predicted_inputs(model: Model, source: Tensor, mask: Tensor, length: int) -> Tensor:
    """Return decoder inputs (batch, length) for scheduled sampling: BOS, then the model's most probable tokens.

    EOS is a token like any other here, so all rows have the same length (`follows_eos` finds what comes after it).
    """
    state = model.encode(source, mask)
    tokens = [torch.full_like(source[:, 0], BOS)]
    for _ in range(length - 1):
        logits, state = model.decode(tokens[-1][:, None], state)
        logits[:, -1, [PAD, BOS]] = -math.inf
        tokens.append(logits[:, -1].argmax(-1))
    return torch.stack(tokens, 1)


class BatchLoss:
    """The loss of micro-batches, summed over target tokens, compiled or not."""

    def __init__(self, model: Model, config: TrainConfig) -> None:
        self._model, self._config = model, config
        self._forward: Callable[[Sequence[RaggedGroup]], Tensor] = model.forward_groups
        if config.compile:
            self._forward = torch.compile(model.forward_groups)

    def __call__(self, micro_batch: Sequence[PaddedRows], teacher_forcing: bool) -> Tensor:
        """Return the summed loss, with decoder inputs from the targets or, in scheduled sampling, from the model."""
        groups, targets = [ragged_group(rows) for rows in micro_batch], target_tokens(micro_batch)
        if not teacher_forcing:
            groups = [
                group._replace(tokens=predicted_inputs(self._model, *group[:2], group.tokens.shape[1]))
                for group in groups
            ]
            if self._config.sampling_stops_at_eos:
                targets = targets.masked_fill(follows_eos(groups), PAD)
        with gradient_checkpointing(self._config.gradient_checkpointing):
            logits = self._forward(groups)
        return summed_loss(logits, targets, self._config.label_smoothing)

"""The loss of training, scheduled sampling included, and what validation measures. All calls of the model are here."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tfstudy.config.schema import TrainConfig
from tfstudy.data.encoding import BOS, EOS, PAD, UNK, PaddedRows
from tfstudy.models.base import Model
from tfstudy.models.checkpointing import gradient_checkpointing
from tfstudy.models.tokens import Tokens

MicroBatch = Sequence[PaddedRows]  # the rectangles of a batch, or a thread's share of them
LOGIT_COPIES = 4  # of a validation: logits, log-probabilities, and those of the metrics


class TrainingLoss:
    """The loss of micro-batches, summed over target tokens, compiled or not."""

    def __init__(self, model: Model, config: TrainConfig) -> None:
        self.model, self._config = model, config
        self._forward: Callable[[Tokens, Tokens], Tensor] = torch.compile(model) if config.compile else model

    def __call__(self, micro_batch: MicroBatch, teacher_forcing: bool = True) -> Tensor:
        """Return the summed loss, with decoder inputs from the targets or, in scheduled sampling, from the model."""
        (source, inputs), targets = model_inputs(micro_batch), target_tokens(micro_batch)
        if not teacher_forcing:
            pairs = zip(micro_batch, inputs.shapes, strict=True)
            inputs = Tokens.of(*(predicted_inputs(self.model, rows.source, length) for rows, (_, length) in pairs))
            if self._config.sampling_stops_at_eos:
                targets = targets.masked_fill(follows_eos(inputs), PAD)
        with gradient_checkpointing(self._config.gradient_checkpointing):
            logits = self._forward(source, inputs)
        return summed_loss(logits, targets, self._config.label_smoothing)


def validate(model: Model, micro_batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
    """Return the summed loss without label smoothing, and how many target tokens and rows are right and there are.

    Rows are teacher-forced, but that is the same as exact match by greedy decoding: a decoder that has made no error
    so far has seen the targets. As there, PAD and BOS are never generated in a row that is counted, and UNK is wrong.
    """
    logits, targets = model(*model_inputs(micro_batch)), target_tokens(micro_batch)
    loss, counted, known = summed_loss(logits, targets), targets != PAD, targets != UNK
    correct = ((logits.argmax(-1) == targets) & counted & known).sum()
    logits[:, [PAD, BOS]] = -math.inf
    right = ((logits.argmax(-1) == targets) & known) | ~counted
    pairs = zip(torch.split(right, [rows.target[:, 1:].numel() for rows in micro_batch]), micro_batch, strict=True)
    matches = torch.stack([tokens.view(len(rows.target), -1).all(1).sum() for tokens, rows in pairs]).sum()
    rows = sum(len(rows.target) for rows in micro_batch)
    return loss, correct, counted.sum(), matches, rows


def logit_bytes(micro_batch: MicroBatch, vocab: int) -> int:
    """Return the memory of a validation's logits and of the copies that the loss and the metrics make of them."""
    return LOGIT_COPIES * 4 * vocab * sum(rows.target[:, 1:].numel() for rows in micro_batch)


def model_inputs(micro_batch: MicroBatch) -> tuple[Tokens, Tokens]:
    """Return what a model is called with: the sources, and the targets without their last token."""
    return Tokens.of(*(rows.source for rows in micro_batch)), Tokens.of(*(rows.target[:, :-1] for rows in micro_batch))


def target_tokens(micro_batch: MicroBatch) -> Tensor:
    """Return the token that follows each decoder input of all rectangles, PAD included: (tokens,)."""
    return torch.cat([rows.target[:, 1:].flatten() for rows in micro_batch])


def summed_loss(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the cross entropy in nats of logits (tokens, vocab), summed over all targets (tokens,) but PAD."""
    return cross_entropy(logits, targets, ignore_index=PAD, reduction="sum", label_smoothing=smoothing)


def follows_eos(inputs: Tokens) -> Tensor:
    """Return which decoder inputs are EOS or come after it, as a boolean tensor (tokens,)."""
    return torch.cat([(ids == EOS).cummax(1).values.flatten() for (ids,) in inputs.rectangles(inputs.ids)])


@torch.no_grad()
def predicted_inputs(model: Model, source: Tensor, length: int) -> Tensor:
    """Return decoder inputs (rows, length) for scheduled sampling: BOS, then the model's most probable tokens.

    EOS is a token like any other here, so all rows have the same length (`follows_eos` finds what comes after it).
    """
    state = model.encode(Tokens.of(source))
    tokens = [torch.full_like(source[:, 0], BOS)]
    for _ in range(length - 1):
        logits, state = model.decode(Tokens.of(tokens[-1][:, None]), state)
        logits[:, [PAD, BOS]] = -math.inf
        tokens.append(logits.argmax(-1))
    return torch.stack(tokens, 1)

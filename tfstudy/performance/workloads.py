"""What is measured: an optimiser step, and the greedy generation of a batch, of a model on random tokens."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import cached

from tfstudy import models
from tfstudy.config.schema import RunConfig
from tfstudy.data.encoding import BOS, EOS, PAD, SPECIAL
from tfstudy.evaluation.decoding import greedy_of_lengths
from tfstudy.models.attention import Weights
from tfstudy.models.base import Model
from tfstudy.models.checkpointing import gradient_checkpointing
from tfstudy.models.tokens import Tokens
from tfstudy.performance.settings import Setting
from tfstudy.training.loss import summed_loss
from tfstudy.training.step import build_optimizer

VOCAB = 256  # tokens of each vocabulary, with the special ones
SEED = 0


class Trainee(NamedTuple):
    """A model and its optimiser."""

    model: Model
    optimizer: torch.optim.Optimizer

    def tensors(self, training: bool) -> Iterator[Tensor]:
        """Yield the parameters and buffers, and with `training` the states of the optimiser."""
        yield from self.model.parameters()
        yield from self.model.buffers()
        states = self.optimizer.state.values() if training else []
        yield from (value for state in states for value in state.values() if isinstance(value, Tensor))


def build(config: RunConfig, device: torch.device) -> Trainee:
    """Return the model of a config with its optimiser, on a device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = models.find(config.arch)(config.model, VOCAB, VOCAB).to(device)
    return Trainee(model, build_optimizer(model, config.train))


def random_tokens(setting: Setting, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return sources (batch, length) that end with EOS, and targets (batch, length + 1) between BOS and EOS."""
    generator = torch.Generator().manual_seed(SEED)
    shape = (2, setting.batch, setting.length)
    source, tokens = torch.randint(len(SPECIAL), VOCAB, shape, generator=generator)
    source[:, -1] = tokens[:, -1] = EOS
    return source.to(device), nn.functional.pad(tokens, (1, 0), value=BOS).to(device)


class Workload:
    """One step of a setting, to be called again and again."""

    def __init__(self, setting: Setting, config: RunConfig, trainee: Trainee, device: torch.device) -> None:
        self.setting, self.config, self.trainee, self.device = setting, config, trainee, device
        self.source, self.target = random_tokens(setting, device)

    def __call__(self) -> None:
        """Do one optimiser step, or generate the targets of the batch."""
        with explicit_attention(self.trainee.model) if self.setting.variant == "explicit" else ExitStack():
            if self.setting.work == "training":
                self.train()
            else:
                self.generate()

    def train(self) -> None:
        """Compute the loss and its gradient, clip it, and update the parameters, as `tfstudy run` does."""
        model, optimizer = self.trainee
        model.train()
        optimizer.zero_grad(set_to_none=True)
        inputs = Tokens.of(self.source), Tokens.of(self.target[:, :-1])
        targets = self.target[:, 1:].flatten()
        with self._precision(), gradient_checkpointing(self.config.train.gradient_checkpointing):
            loss = summed_loss(model(*inputs), targets, self.config.train.label_smoothing)
        (loss / len(targets)).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), self.config.train.gradient_clip_norm or math.inf)
        optimizer.step()

    def generate(self) -> list[list[int]]:
        """Return as many tokens as the targets have, generated greedily for each source."""
        model, length = self.trainee.model.eval(), self.setting.length
        inputs = model, Tokens.of(self.source)
        with self._precision():
            if self.setting.variant == "uncached":
                return greedy_without_cache(*inputs, length)
            return greedy_of_lengths(*inputs, torch.full_like(self.source[:, 0], length))

    def _precision(self) -> AbstractContextManager[object]:
        enabled = self.config.train.precision == "bf16-mixed"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)


def explicit_attention(model: Model) -> AbstractContextManager[object]:
    """Within this context, attention of a model is computed without the fused kernel, as its weights are hooked."""
    stack = ExitStack()
    for module in model.modules():
        if isinstance(module, Weights):
            stack.callback(module.register_forward_hook(lambda *_: None).remove)
    return stack


@torch.no_grad()
@cached()
def greedy_without_cache(model: Model, source: Tokens, length: int) -> list[list[int]]:
    """Return the same as `greedy_of_lengths`, but compute the decoder for the whole prefix at every token.

    The source is encoded once.
    """
    state, [(rows, _)] = model.encode(source), source.shapes
    prefix = source.ids.new_full((rows, 1), BOS)
    special = torch.tensor([PAD, BOS, EOS], device=prefix.device)
    for _ in range(length):
        logits = model.decode(Tokens.of(prefix), state)[0].view(*prefix.shape, -1)[:, -1]
        words = logits.index_fill(1, special, -math.inf).argmax(-1)
        prefix = torch.cat([prefix, words[:, None]], 1)
    generated: list[list[int]] = prefix[:, 1:].tolist()
    return generated

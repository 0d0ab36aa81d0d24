"""Training speed on SCAN simple: tfstudy against the same model trained in the usual way with Lightning.

The usual way: a DataLoader that shuffles examples, a collate function that encodes and pads them, `nn.Dropout` and
torch's convolution, one padded pass per batch, `self.log` at every step, plain Adam, clipping by the Trainer.
Model, size, batch size and schedule are the same. The figure is target tokens per second, without padding.
"""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from benchmarks.timing import alternate, arguments, now, scan, table, widths
from tfstudy.config.schema import TrainConfig
from tfstudy.data.encoding import BOS, EOS, PAD, Batch
from tfstudy.data.module import TaskData
from tfstudy.experiment.prepare import Prepared
from tfstudy.experiment.train import training_data
from tfstudy.models.base import Model
from tfstudy.models.cnn import GatedConvolution
from tfstudy.models.dropout import Dropout
from tfstudy.models.tokens import Tokens, flat
from tfstudy.tasks.base import Example
from tfstudy.training.fit import fit
from tfstudy.training.module import Seq2Seq
from tfstudy.training.step import learning_rate_factor

SKIP = 5  # first steps that are not measured


class Speed(Callback):
    """Measures target tokens per second after the first `SKIP` steps, and the fraction of padding."""

    def __init__(self) -> None:
        self.groups: list[tuple[Tensor, Tensor]] = []  # sources and targets, padded
        self.began = self.ended = 0.0

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.ended = now()
        if batch_idx < SKIP:
            self.began = self.ended
        else:
            self.groups += list(chain(*batch.micro_batches)) if isinstance(batch, Batch) else [batch]

    def tokens_per_second(self) -> float:
        """Return target tokens per second, without padding and BOS."""
        return sum(int((target[:, 1:] != PAD).sum()) for _, target in self.groups) / (self.ended - self.began)

    def padded(self) -> float:
        """Return the ratio of computed positions to tokens, of sources and targets together."""
        ids_of = [ids for source, target in self.groups for ids in (source, target[:, 1:])]
        return sum(ids.numel() for ids in ids_of) / sum(int((ids != PAD).sum()) for ids in ids_of)


class Usual(LightningModule):
    """Teacher forcing as tutorials write it."""

    def __init__(self, model: Model, config: TrainConfig) -> None:
        super().__init__()
        self.model, self.config = model, config

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        source, target = batch
        targets = target[:, 1:]
        logits = self.model(Tokens.of(source), Tokens.of(target[:, :-1])).unflatten(0, targets.shape)
        loss = cross_entropy(logits.transpose(1, 2), targets, ignore_index=PAD)
        counted = targets != PAD
        self.log("train_loss", loss)
        self.log("train_accuracy", (logits.argmax(-1) == targets)[counted].float().mean())
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), self.config.learning_rate, betas=(0.9, 0.98))
        dim = self.model.dim
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: learning_rate_factor(self.config, step, dim)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class UsualDropout(nn.Dropout):
    """`nn.Dropout` with the attribute `probability`, which our attention reads."""

    @property
    def probability(self) -> float:
        return self.p


def convolution(layer: GatedConvolution, rows: Sequence[Tensor]) -> Tensor:
    """Compute a layer of the CNN with torch's convolution; rectangles (rows, length + span, channels)."""
    convolved = [nn.functional.conv1d(x.transpose(1, 2), layer.weight, layer.bias, 1, 0, layer.dilation) for x in rows]
    return nn.functional.glu(flat([x.transpose(1, 2) for x in convolved]), dim=1)


def with_usual_layers(module: nn.Module) -> nn.Module:
    """Replace our dropout and convolution by those of torch, in place, and return the module."""
    for name, child in module.named_children():
        usual = UsualDropout(child.probability) if isinstance(child, Dropout) else with_usual_layers(child)
        setattr(module, name, usual)
    if isinstance(module, GatedConvolution):
        module.forward = partial(convolution, module)  # type: ignore[method-assign]
    return module


def loader(data: TaskData, batch_size: int) -> DataLoader[Example]:
    """Return a loader of shuffled examples, encoded and padded when they are drawn."""

    def collate(examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        sources = [torch.tensor([*data.source_vocab.encode(e.source), EOS]) for e in examples]
        targets = [torch.tensor([BOS, *data.target_vocab.encode(e.target), EOS]) for e in examples]
        return pad_sequence(sources, True, PAD), pad_sequence(targets, True, PAD)

    examples: Any = data.task.examples(data.task.splits().train)
    return DataLoader(examples, batch_size, shuffle=True, collate_fn=collate)


def usual(prepared: Prepared, accelerator: str = "cpu", speed: Speed | None = None) -> Speed:
    """Measure the speed of the usual way."""
    config, speed = prepared.config.train, speed or Speed()
    trainer = Trainer(
        max_steps=config.steps,
        accelerator=accelerator,
        devices=1,
        gradient_clip_val=config.gradient_clip_norm,
        callbacks=[speed],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model: Any = with_usual_layers(copy.deepcopy(prepared.model))
    trainer.fit(Usual(model, config), loader(training_data(prepared), config.batch_size))
    return speed


def ours(prepared: Prepared) -> Speed:
    """Measure the speed of `tfstudy.training.fit`."""
    speed = Speed()
    module = Seq2Seq(copy.deepcopy(prepared.model), len(prepared.data.target_vocab), prepared.config.train)
    fit(module, training_data(prepared), callbacks=[speed], accelerator="cpu")
    return speed


def main() -> None:
    chosen = arguments(__doc__, sizes=True)
    steps, rounds = (SKIP + 20, 3) if chosen.quick else (SKIP + 60, 5)
    rows = {"batch_size": chosen.batch_size} if chosen.batch_size else {}
    for arch in chosen.arch:
        size = widths(arch, chosen.width) if chosen.width else {}
        default = scan(arch, size, **rows, steps=steps)
        one_micro_batch = scan(arch, size, **rows, steps=steps, micro_batches=1)
        by_length = scan(arch, size, **rows, steps=steps, batching="length", micro_batches=2)
        padded: dict[str, float] = {}

        def target_tokens(
            name: str, way: Callable[[Prepared], Speed], prepared: Prepared, p: dict[str, float] = padded
        ) -> float:
            """Return target tokens per second, and keep the ratio of positions to tokens."""
            speed = way(prepared)
            p[name] = speed.padded()
            return speed.tokens_per_second()

        settings = {
            "usual": (usual, default),
            "ours, one micro-batch": (ours, one_micro_batch),
            "ours": (ours, default),
            "ours, length batching": (ours, by_length),
        }
        measured = alternate({name: partial(target_tokens, name, *way) for name, way in settings.items()}, rounds)
        table(f"{arch}, {torch.get_num_threads()} threads", "tokens/s", measured, "usual")
        print("  computed positions per token:", ", ".join(f"{name} {ratio:.2f}" for name, ratio in padded.items()))


if __name__ == "__main__":
    main()

"""The size of the gradient and of the update of each layer, through training."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn

from tfstudy.config.schema import RunConfig
from tfstudy.instruments.base import Chart
from tfstudy.instruments.during_training import Listener, TrainingInstrument
from tfstudy.runs.schema import MAX_ROWS

POINTS = 200  # measured steps of a run, or fewer if it has very many layers


class LayerGradients(TrainingInstrument):
    """The norm of each layer's gradient before clipping, and that of its update, divided by that of its weights.

    It is measured at up to 200 evenly spaced steps. What is outside of the layers of a stack, such as embeddings, is
    measured too; `encoder (rest)` is what the encoder has outside of its layers, such as a last norm.
    """

    summary = "gradient norm and size of the updates of each layer, during training"
    during_training = True
    chart = Chart("line", x="step", y="value", hue="layer", facet="quantity", log_y=True, y_label="norm")

    def listener(self, name: str, config: RunConfig) -> Listener:
        return LayerListener(name, config.train.steps)


class LayerListener(Listener):
    """Measures the gradients before an optimiser step, and how the step changes the weights."""

    def __init__(self, instrument: str, steps: int) -> None:
        super().__init__(instrument)
        self.steps, self.interval = steps, 1
        self.layers: Mapping[str, list[nn.Parameter]] = {}
        self._before: dict[str, list[Tensor]] = {}  # the weights before the step that is measured

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.layers = layers_of(pl_module.model)  # type: ignore[arg-type]
        self.interval = math.ceil(self.steps / max(1, min(POINTS, MAX_ROWS // (2 * len(self.layers)))))

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Any) -> None:
        step = trainer.global_step + 1
        if step % self.interval:
            return
        for layer, parameters in self.layers.items():
            self._add("gradient norm", layer, step, norm(p.grad for p in parameters if p.grad is not None))
        self._before = {layer: [p.detach().clone() for p in parameters] for layer, parameters in self.layers.items()}

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        for layer, before in self._before.items():
            changes = (p.detach() - old for p, old in zip(self.layers[layer], before, strict=True))
            self._add("update / weights", layer, trainer.global_step, norm(changes) / (norm(before) or math.nan))
        self._before = {}

    def _add(self, quantity: str, layer: str, step: int, value: float) -> None:
        if math.isfinite(value):
            self.rows.append({"quantity": quantity, "layer": layer, "step": step, "value": value})


def layers_of(model: nn.Module) -> dict[str, list[nn.Parameter]]:
    """Return the trained parameters of each layer by its name, such as `encoder 1`, and of all that is in no stack.

    `encoder (rest)` is what is in the encoder and in none of its layers.
    """
    layers: dict[str, list[nn.Parameter]] = defaultdict(list)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            layers[layer_name(name)].append(parameter)
    stacks = {name.rpartition(" ")[0] for name in layers}
    return {f"{name} (rest)" if name in stacks else name: own for name, own in layers.items()}


def layer_name(parameter: str) -> str:
    """Return the layer of a parameter: `encoder 1` for `encoder.layers.0.norm.weight`, `output` for `output.bias`."""
    parts = parameter.split(".")
    number = next((i for i, part in enumerate(parts) if part.isdigit()), 0)
    if not number:
        return parts[0].replace("_", " ")
    return " ".join([*(part for part in parts[:number] if part != "layers"), str(int(parts[number]) + 1)])


def norm(tensors: Iterable[Tensor]) -> float:
    """Return the Euclidean norm of all numbers in some tensors."""
    return math.hypot(*(float(torch.linalg.vector_norm(tensor.detach().float())) for tensor in tensors))

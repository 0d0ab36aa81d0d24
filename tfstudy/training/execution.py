"""How the steps of a training are computed: eager or graphed, with a compiled loss or without."""

from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from tfstudy.config.schema import TrainConfig
from tfstudy.data.module import TaskData
from tfstudy.data.resident import ResidentRows
from tfstudy.data.shapes import choose_shapes
from tfstudy.models.base import Model
from tfstudy.training.graphed_step import GraphedStep
from tfstudy.training.graphs import CudaGraphs, Graphs
from tfstudy.training.module import Seq2Seq
from tfstudy.training.step import WholeStep

SHAPES = 4  # most shapes of batches that are captured; a graph takes about a second to capture
SAMPLE = 512  # most batches from whose shapes they are chosen


class Execution(Callback):
    """Chooses how the steps are computed: `requested` is eager or graphed.

    Where graphs were requested and steps can't be graphed they are eager, which `report` gets in one line. `record`
    gets how steps are computed, and gets it again if a capture fails. `log` gets the padding for each shape. `watched`
    says that a callback looks at gradients.
    """

    def __init__(
        self,
        requested: str = "eager",
        *,
        watched: bool = False,
        record: Callable[[str], None] = lambda how: None,
        report: Callable[[str], None] = print,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._requested, self._watched = requested, watched
        self._record, self._report, self._log = record, report, log
        self._graphed: GraphedStep | None = None

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Replace the eager step of the module by graphs, if they are requested and possible."""
        if not isinstance(pl_module, Seq2Seq):
            raise TypeError(f"the module must be a Seq2Seq, but is a {type(pl_module).__name__}")
        config, device = pl_module.config, pl_module.device
        usual = "compiled" if config.compile else "eager"
        if self._requested != "graphed":
            return self._record(usual)
        without = "an instrument measures the training" if self._watched else ""
        without = without or graph_obstacle(config, pl_module.model, trainer.world_size) or self.device_obstacle(device)
        if not without:
            self._graph(trainer, pl_module)
            return self._record("graphed" if usual == "eager" else f"{usual} and graphed")
        self._report(f"steps are {usual}, not graphed: {without}")
        return self._record(f"{usual}, not graphed: {without}")

    def device_obstacle(self, device: torch.device) -> str:
        """Return why a device has no graphs; empty if it has."""
        if device.type != "cuda":
            return f"graphs need a CUDA device, but the device is {device.type}"
        return "this PyTorch is built for ROCm" if torch.version.hip else ""

    def graphs(self) -> Graphs:
        """Return what captures graphs on the device."""
        return CudaGraphs()

    def _graph(self, trainer: Trainer, module: Seq2Seq) -> None:
        data: TaskData = trainer.datamodule  # type: ignore[attr-defined]
        rows = ResidentRows.of(data.encoded[data.task.splits().train], module.device)
        sample = rows.shapes(data.batches, 0, min(SAMPLE, len(data.batches), module.config.steps))
        shapes = choose_shapes(list(sample), SHAPES)
        parameters = [p for p in module.model.parameters() if p.requires_grad]
        step = WholeStep(module.loss_of, parameters, trainer.optimizers[0], module.config, rows, module.executor)
        self._graphed = GraphedStep(step, rows, shapes, self.graphs(), self._failed)
        module.runner = self._graphed
        data.only_rows = True

    def _failed(self, reason: str) -> None:
        self._report(f"steps are not graphed from here on, because the capture failed: {reason}")
        self._record(f"whole steps, not graphed: the capture failed: {reason}")

    def on_train_end(self, *_: Any) -> None:
        for line in self._graphed.padding() if self._graphed else []:
            self._log(line)
        self._graphed = None  # with the memory of its graphs


def graph_obstacle(config: TrainConfig, model: Model, devices: int = 1) -> str:
    """Return why the steps of a run can't be graphs, whatever the device; empty if they can."""
    obstacles = {
        "train.teacher_forcing is below 1": config.teacher_forcing < 1,
        "train.gradient_checkpointing is true": config.gradient_checkpointing,
        "train.accumulate_grad_batches is above 1": config.accumulate_grad_batches > 1,
        "train.micro_batches is above 1": config.micro_batches > 1,
        "train.precision is 16-mixed": config.precision == "16-mixed",
        "the run has several devices": devices > 1,
    }
    return next((reason for reason, applies in obstacles.items() if applies), "")

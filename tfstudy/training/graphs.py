"""How steps are computed: one kernel after the other, or as a CUDA graph for each shape of a batch.

All that needs CUDA is in `Graphs`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from tfstudy.config.schema import TrainConfig
from tfstudy.data.batching import ResidentRows, Shape, choose_shapes, smallest
from tfstudy.data.encoding import Batch
from tfstudy.data.module import TaskData
from tfstudy.training.module import Seq2Seq
from tfstudy.training.step import StepRunner, WholeStep

SHAPES = 4  # most shapes of batches that are captured; a graph takes about a second to capture
SAMPLE = 512  # most batches from whose shapes they are chosen
WARM_UP = 2  # steps of a shape before it is captured; they are steps of training like any other
Work = Callable[[], None]  # reads and writes tensors that keep their place


class CaptureError(RuntimeError):
    """The work can't be captured in a graph. Nothing of it was computed, and it can be computed without one."""


class Graphs:
    """CUDA graphs on the current device, which share their memory, so only one of them may run at a time.

    Torch's global generator is part of each: a new seed counts in a replay.
    """

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()

    def warm_up(self, work: Work) -> None:
        """Compute the work as it will be captured, so that what torch sets up at the first call exists."""
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            work()
        current.wait_stream(self._stream)

    def capture(self, work: Work) -> Work:
        """Return what replays the work; the capture computes nothing. `CaptureError` if it can't be captured."""
        graph, current = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                work()
        except RuntimeError as error:  # also what the CUDA driver raises
            torch.cuda.set_stream(current)  # `torch.cuda.graph` does not return to it after an error
            _renew_generator()
            cause = error.__context__ or error  # ending a failed capture raises another error
            raise CaptureError(str(cause).partition("\n")[0]) from error
        return graph.replay


def _renew_generator() -> None:
    """Give torch's global CUDA generator a state of its own: a failed capture leaves the old one in capture mode."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    fresh = torch.Generator(generator.device).manual_seed(generator.initial_seed())
    generator.graphsafe_set_state(fresh.graphsafe_get_state())


class GraphedStep(StepRunner):
    """Pads each batch to one of a few shapes and replays the graph of that shape, which holds the whole step.

    The first steps of a shape are computed without a graph, and so are batches that fit no shape, and all steps after
    a capture has failed, which is reported once.
    """

    whole = True

    def __init__(
        self,
        step: WholeStep,
        data: ResidentRows,
        shapes: Sequence[Shape],
        graphs: Graphs,
        report_failure: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._step, self._data, self._shapes, self._graphs = step, data, shapes, graphs
        self._report_failure, self._failed = report_failure, False
        self._replays: dict[Shape, Work] = {}
        self.gradient_norm = step.gradient_norm
        self.steps: Counter[Shape | None] = Counter()  # of each shape; None: of batches that fit none
        self.tokens: Counter[Shape | None] = Counter()  # of the batches of each shape, with the padding of a batch

    def loss(self, batch: Batch, seed: int) -> Tensor:
        rows = torch.from_numpy(batch.rows)
        needed = self._data.shape(rows)
        shape = smallest(self._shapes, needed)
        self.steps[shape] += 1
        self.tokens[shape] += needed.tokens
        self._step.prepare(rows, shape or needed)
        if shape is None or self._failed:
            self._step(shape or needed)
        elif self.steps[shape] <= WARM_UP:
            self._graphs.warm_up(partial(self._step, shape))
        else:
            self._replay(shape, seed)
        return self._step.loss

    def _replay(self, shape: Shape, seed: int) -> None:
        try:
            if shape not in self._replays:
                self._replays[shape] = self._graphs.capture(partial(self._step, shape))
        except CaptureError as error:
            self._failed = True
            self._report_failure(str(error))
            torch.manual_seed(seed)
            self._step(shape)
        else:
            self._replays[shape]()

    def padding(self) -> list[str]:
        """Return a line for each shape: its share of the steps, and how many tokens it adds, in percent."""
        total = sum(self.steps.values())
        lines = []
        for shape in filter(None, sorted(self.steps, key=lambda shape: shape.tokens if shape else 0)):
            steps = self.steps[shape]
            added = 100 * (steps * shape.tokens / self.tokens[shape] - 1)
            lines.append(f"shape {shape}: {100 * steps / total:.1f} % of steps, {added:.1f} % more tokens")
        if self.steps[None]:
            lines.append(f"no shape: {100 * self.steps[None] / total:.1f} % of steps")
        return lines


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
        without = without or graph_obstacle(config, trainer.world_size) or self.device_obstacle(device)
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
        return Graphs()

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


def graph_obstacle(config: TrainConfig, devices: int = 1) -> str:
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

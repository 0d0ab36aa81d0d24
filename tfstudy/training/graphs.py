"""Loss and gradients as CUDA graphs, one for each of a few shapes of batches. All that needs CUDA is in `Graphs`."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from tfstudy.config.schema import TrainConfig
from tfstudy.data.batching import ResidentRows, Shape, choose_shapes, smallest
from tfstudy.data.encoding import Batch
from tfstudy.data.module import TaskData
from tfstudy.training.loss import TrainingLoss
from tfstudy.training.module import Seq2Seq
from tfstudy.training.step import Gradients, PlainGradients

SHAPES = 4  # most shapes of batches that are captured; a graph takes about a second to capture
SAMPLE = 512  # most batches from whose shapes they are chosen
WARM_UP = 2  # steps of a shape before it is captured; they are steps of training like any other
Work = Callable[[], None]  # reads and writes tensors that keep their place
Report = Callable[[str], None]  # gets a line for the user or the record


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
            # a failed capture leaves torch's generator in capture mode, so it gets a state of its own
            generator = torch.cuda.default_generators[torch.cuda.current_device()]
            fresh = torch.Generator(generator.device).manual_seed(generator.initial_seed())
            generator.graphsafe_set_state(fresh.graphsafe_get_state())
            cause = error.__context__ or error  # ending a failed capture raises another error
            raise CaptureError(str(cause).partition("\n")[0]) from error
        return graph.replay


class GraphedGradients(PlainGradients):
    """Pads each batch to one of a few shapes and replays the graph of that shape.

    The rows of the batch, its loss and its gradients are tensors that keep their place: `compute` reads and writes
    them, without waiting for the device, and is what a graph captures. The first steps of a shape are computed without
    a graph, and so are batches that fit no shape, and all after a capture has failed, which `report` gets once.
    """

    def __init__(
        self, loss_of: TrainingLoss, data: ResidentRows, shapes: Sequence[Shape], graphs: Graphs, report: Report
    ) -> None:
        super().__init__(loss_of)
        self._data, self._graphs, self._report = data, graphs, report
        self._warm_up = dict.fromkeys(shapes, WARM_UP)  # steps that are left; empty after a failure
        self._replays: dict[Shape, Work] = {}
        self._rows: dict[Shape, Tensor] = {}  # the index of the rows of the batch, for each shape
        self.loss = torch.zeros((), device=data.source.device)
        self.gradients = tuple(torch.zeros_like(p) for p in self.parameters)

    def __call__(self, batch: Batch, seed: int, teacher_forcing: bool = True) -> tuple[Tensor, Gradients]:
        """Return the loss and gradients of a batch, from a graph where there is one."""
        rows = torch.from_numpy(batch.rows)
        needed = self._data.shape(rows)
        shape = smallest(self._warm_up, needed) or needed
        self.write(rows, shape)
        if left := self._warm_up.get(shape, 0):
            self._warm_up[shape] = left - 1
            self._graphs.warm_up(partial(self.compute, shape))
        elif shape in self._warm_up and self._captured(shape):
            self._replays[shape]()
        else:
            torch.manual_seed(seed)  # after a failed capture
            self.compute(shape)
        return self.loss, self.gradients

    def write(self, rows: Tensor, shape: Shape) -> None:
        """Write the rows (a CPU index) of the next batch, padded to a shape."""
        index = self._data.padded(rows, shape)
        if self.loss.is_cuda:  # from pinned memory, which is not used again before the device has read it
            index = index.pin_memory()
        if shape not in self._rows:
            self._rows[shape] = torch.empty(shape.rows, dtype=torch.long, device=self.loss.device)
        self._rows[shape].copy_(index, non_blocking=True)

    def compute(self, shape: Shape) -> None:
        """Compute the loss and gradients of the rows that were written, and write them."""
        loss, gradients = self.part([self._data.gather(self._rows[shape], shape)], None, True)
        self.loss.copy_(loss)
        torch._foreach_copy_(self.gradients, gradients)

    def _captured(self, shape: Shape) -> bool:
        """Whether there is a graph of the shape, which is captured if there is none."""
        try:
            if shape not in self._replays:
                self._replays[shape] = self._graphs.capture(partial(self.compute, shape))
        except CaptureError as error:
            self._warm_up.clear()
            self._report(str(error))
        return shape in self._replays


class Execution(Callback):
    """Chooses how gradients are computed: `requested` is eager or graphed.

    Where graphs were requested and are impossible, steps are eager, which `report` gets in one line. `record` gets how
    steps are computed, and gets it again if a capture fails.
    """

    def __init__(self, requested: str = "eager", record: Report = lambda how: None, report: Report = print) -> None:
        self._requested, self._record, self._report = requested, record, report

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let the module compute gradients as graphs, if that is requested and possible."""
        assert isinstance(pl_module, Seq2Seq)  # noqa: S101 - for the type checker
        config, usual = pl_module.config, "compiled" if pl_module.config.compile else "eager"
        if self._requested != "graphed":
            return self._record(usual)
        data: TaskData = trainer.datamodule  # type: ignore[attr-defined]
        if obstacle := self.obstacle(config, data, trainer):
            self._report(f"steps are {usual}, not graphed: {obstacle}")
            return self._record(f"{usual}, not graphed: {obstacle}")
        rows = ResidentRows.of(data.encoded[data.task.splits().train], pl_module.device)
        sample = [rows.shape(data.batches.index(i)) for i in range(min(SAMPLE, len(data.batches), config.steps))]
        shapes, loss_of = choose_shapes(sample, SHAPES), pl_module.compute_gradients.loss_of
        pl_module.compute_gradients = GraphedGradients(loss_of, rows, shapes, self.graphs(), self._failed)
        data.only_rows = True
        return self._record("graphed" if usual == "eager" else f"{usual} and graphed")

    def obstacle(self, config: TrainConfig, data: TaskData, trainer: Trainer) -> str:
        """Return why the steps of a run can't be graphs; empty if they can."""
        device = trainer.strategy.root_device
        obstacles = {
            "data.redraw is true": data.task.redraws,
            "train.teacher_forcing is below 1": config.teacher_forcing < 1,
            "train.gradient_checkpointing is true": config.gradient_checkpointing,
            "train.micro_batches is above 1": config.micro_batches > 1,
            f"graphs need a CUDA device, but the device is {device.type}": device.type != "cuda",
            "this PyTorch is built for ROCm": torch.version.hip is not None,
        }
        return next((reason for reason, applies in obstacles.items() if applies), "")

    def graphs(self) -> Graphs:
        """Return what captures graphs on the device."""
        return Graphs()

    def _failed(self, reason: str) -> None:
        self._report(f"steps are not graphed from here on, because the capture failed: {reason}")
        self._record(f"not graphed: the capture failed: {reason}")

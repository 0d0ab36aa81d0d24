"""Steps that are captured in one graph for each shape of a batch."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from tfstudy.data.encoding import Batch
from tfstudy.data.resident import ResidentRows
from tfstudy.data.shapes import Shape, smallest
from tfstudy.training.graphs import CaptureError, Graphs, Work
from tfstudy.training.step import StepRunner, WholeStep

WARM_UP = 2  # steps of a shape before it is captured; they are steps of training like any other


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

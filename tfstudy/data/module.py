"""TaskData: any task as a LightningDataModule."""

from collections.abc import Callable, Iterator

from lightning.pytorch import LightningDataModule
from torch import Tensor

from tfstudy.config.schema import TrainConfig
from tfstudy.data import encoding
from tfstudy.data.batching import Batches
from tfstudy.data.encoding import RECTANGLES, SMALL_STEP, Batch, Encoded, TaskEncoder, micro_batch_count
from tfstudy.tasks.base import Task

VALIDATION_BATCH_SIZE = 256


class Loader:
    """The batches of one epoch. At the start of every pass, `first` is called for the number of the first batch."""

    def __init__(self, count: int, first: Callable[[], int], batch: Callable[[int], Batch]) -> None:
        self._count, self._first, self._batch = count, first, batch

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Batch]:
        first = self._first()
        return map(self._batch, range(first, first + self._count))


class TaskData(LightningDataModule):
    """The data of a task for training with a `lightning.Trainer` (or with `training.fit`).

    Vocabularies are those of the train split. The train and validation splits are tensors, which move to the device as
    a whole. A `Batch` for each step follows from the config and `seed` alone. An epoch is one pass over the train split
    unless `batches_per_epoch` is set. A task may have other train examples for every pass (`Task.redrawn`).
    `config.micro_batches` 0 is 2 on CPU, where padding costs most, and 1 elsewhere, where the number of kernels does;
    on CPU a batch with little work for a model of `parameters` parameters (0: unknown) is then only divided into
    rectangles. Batches are not divided for a compiled model. Validation batches are of similar length.
    """

    def __init__(self, task: Task, config: TrainConfig | None = None, seed: int = 0, parameters: int = 0) -> None:
        super().__init__()
        config = config or TrainConfig()
        self.task, encoder = task, TaskEncoder(task)
        self.encode, self._target_eos = encoder.encode, config.target_eos
        self.source_vocab, self.target_vocab = encoder.source_vocab, encoder.target_vocab
        names = [task.splits().train, *filter(None, [task.splits().validation])]
        self.encoded = {name: self.encode(task.examples(name), config.target_eos) for name in names}
        self._division = config.batch_size, config.batch_tokens, config.batching, seed, config.resampled_examples
        self.batches = Batches(self.encoded[names[0]], *self._division)
        self.batches_per_epoch = len(self.batches)
        self._seed, self._pass, self._parameters = seed, -1, parameters
        self._steps = config.steps * config.accumulate_grad_batches  # batches of all of training
        self._micro_batches = 1 if config.compile else config.micro_batches
        self.only_rows = False  # whether batches for training are the numbers of their rows, as graphed steps take them

    def setup(self, stage: str) -> None:
        """Move the data to the device of the trainer: they are small, and a batch is then an index on the device."""
        if self.trainer:
            device = self.trainer.strategy.root_device
            self.encoded = {name: encoded.to(device) for name, encoded in self.encoded.items()}

    def train_dataloader(self) -> Loader:
        count, train = self.batches_per_epoch, self.task.splits().train

        def first() -> int:
            return count * (self.trainer.current_epoch if self.trainer else 0)

        def batch(number: int) -> Batch:
            if self.task.redraws and number // len(self.batches) != self._pass:
                self._redraw(train, number // len(self.batches))
            encoded, index = self.encoded[train], self.batches.index(number)
            return encoded.batch_of_rows(index) if self.only_rows else self._batch(encoded, index)

        return Loader(count, first, batch)

    def _redraw(self, train: str, number: int) -> None:
        """Replace the train split by that of pass `number`, which has as many batches."""
        progress = min(1.0, number * len(self.batches) / self._steps)
        drawn = self.encode(self.task.redrawn(number, self._seed, progress), self._target_eos)
        self.encoded = self.encoded | {train: drawn.to(self.encoded[train].source.device)}
        self.batches, self._pass = Batches(drawn, *self._division), number

    def val_dataloader(self) -> Loader | list[Loader]:
        validation = self.task.splits().validation
        if validation is None:
            return []
        encoded = self.encoded[validation]
        order = Batches(encoded, VALIDATION_BATCH_SIZE, batching="length")
        return Loader(len(order), lambda: 0, lambda number: self._batch(encoded, order.index(number)))

    def _batch(self, encoded: Encoded, index: Tensor) -> Batch:
        """Return the batch of these rows, divided for the device."""
        micro_batches = micro_batch_count(self._micro_batches, encoded.source.device)
        rectangles = RECTANGLES if micro_batches > 1 else 1
        if self._micro_batches == 0 < self._parameters * encoded.tokens(index) < SMALL_STEP:
            return encoded.batch(index, 1, rectangles, encoding.SMALL_STEP_OVERHEAD)
        return encoded.batch(index, micro_batches, rectangles)

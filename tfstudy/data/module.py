"""TaskData: any task as a LightningDataModule."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Self

from lightning.pytorch import LightningDataModule

from tfstudy.data.batching import Batches
from tfstudy.data.encoding import (
    RECTANGLES,
    SMALL_STEP,
    SMALL_STEP_OVERHEAD,
    Batch,
    Encoded,
    TaskEncoder,
    micro_batch_count,
)
from tfstudy.tasks.base import Example, Task

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

    It builds the vocabularies of the train split, encodes the train and validation splits as tensors, which move to
    the device as a whole, and yields a `Batch` for each step. The order depends on `seed` only (see `Batches` for
    `batch_size`, `batch_tokens`, `batching` and `resampled_examples`). With `target_eos=False` the targets of both
    splits do not end with EOS. By default an epoch is one pass over the train split.
    `micro_batches` is the maximum number of micro-batches per batch; 1 disables splitting, and 0 is 2 on CPU, where
    padding costs most, and 1 elsewhere, where the number of kernels does. With 0 on CPU, a batch with little work for a
    model of `parameters` parameters (0: unknown) is only divided into rectangles. The validation loader covers the
    validation split, if the task has one, in batches of similar length.
    """

    def __init__(
        self,
        task: Task,
        batch_size: int = 64,
        batch_tokens: int = 0,
        batching: str = "random",
        seed: int = 0,
        micro_batches: int = 0,
        resampled_examples: int = 0,
        target_eos: bool = True,
        parameters: int = 0,
    ) -> None:
        super().__init__()
        self.task, self.encoder = task, TaskEncoder(task)
        self.source_vocab, self.target_vocab = self.encoder.source_vocab, self.encoder.target_vocab
        names = [task.splits().train, *filter(None, [task.splits().validation])]
        self.encoded = {name: self.encoder.encode(task.examples(name), target_eos) for name in names}
        train = self.encoded[names[0]]
        self.batches = Batches(train, batch_size, batch_tokens, batching, seed, resampled_examples)
        self.batches_per_epoch = len(self.batches)
        self._micro_batches, self._parameters = micro_batches, parameters
        self.only_rows = False  # whether batches for training are the numbers of their rows, as graphed steps take them

    def with_epochs_of(self, batches: int) -> Self:
        """Return the same data with epochs of this many batches. The order of the batches stays the same."""
        other = copy.copy(self)
        other.batches_per_epoch = batches
        return other

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Encode examples with the vocabularies of this task, for evaluation: targets end with EOS."""
        return self.encoder.encode(examples)

    def setup(self, stage: str) -> None:
        """Move the data to the device of the trainer: they are small, and a batch is then an index on the device."""
        if self.trainer:
            device = self.trainer.strategy.root_device
            self.encoded = {name: encoded.to(device) for name, encoded in self.encoded.items()}

    def train_dataloader(self) -> Loader:
        count = self.batches_per_epoch
        return self._loader(
            self.task.splits().train,
            self.batches,
            count,
            lambda: count * (self.trainer.current_epoch if self.trainer else 0),
        )

    def val_dataloader(self) -> Loader | list[Loader]:
        validation = self.task.splits().validation
        if validation is None:
            return []
        order = Batches(self.encoded[validation], VALIDATION_BATCH_SIZE, batching="length")
        return self._loader(validation, order, len(order), lambda: 0)

    def _loader(self, split: str, batches: Batches, count: int, first: Callable[[], int]) -> Loader:
        rank, ranks = (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)
        encoded = self.encoded[split]
        micro_batches = micro_batch_count(self._micro_batches, encoded.source.device)
        rectangles = RECTANGLES if micro_batches > 1 else 1
        if self.only_rows and batches is self.batches:
            return Loader(count, first, lambda number: encoded.batch_of_rows(batches.index(number)))

        def batch(number: int) -> Batch:
            index = batches.index(number)
            if self._micro_batches == 0 < self._parameters * encoded.tokens(index) < SMALL_STEP:
                return encoded.batch(index, 1, rectangles, rank, ranks, SMALL_STEP_OVERHEAD)
            return encoded.batch(index, micro_batches, rectangles, rank, ranks)

        return Loader(count, first, batch)

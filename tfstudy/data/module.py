"""TaskData: any task as a LightningDataModule."""

from collections.abc import Callable, Iterator, Sequence

from lightning.pytorch import LightningDataModule

from tasks.base import Example, Task
from tfstudy.data.batching import Batches
from tfstudy.data.encoding import Batch, Encoded
from tfstudy.data.ragged import BLOCKS, PARTS
from tfstudy.data.vocabulary import Vocab


class Loader:
    """What Lightning iterates: `count` batches from number `first()` on, asked for anew at every pass."""

    def __init__(self, count: int, first: Callable[[], int], batch: Callable[[int], Batch]) -> None:
        self._count, self._first, self._batch = count, first, batch

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Batch]:
        first = self._first()
        return map(self._batch, range(first, first + self._count))


class TaskData(LightningDataModule):
    """Any task for a `lightning.Trainer`: its vocabularies, its splits as tensors, batches by `Batches`.

    An epoch is a pass over the train split, or `epoch` batches if that is set; the first is number `first_epoch`. A
    batch is computed in at most `parts` parts, with 1 as a padded whole; 0 means `PARTS` on a CPU, where padding costs
    most, and 1 elsewhere, where the number of kernels does. The validation loader covers the validation split, if any,
    in batches sorted by length.
    """

    def __init__(
        self,
        task: Task,
        batch_size: int = 64,
        batch_tokens: int = 0,
        batching: str = "random",
        seed: int = 0,
        parts: int = 0,
    ) -> None:
        super().__init__()
        self.task = task
        self.epoch = self.first_epoch = 0
        self.source_vocab, self.target_vocab = (Vocab(tokens) for tokens in task.vocabulary())
        names = [task.splits().train, *filter(None, [task.splits().validation])]
        self.encoded = {name: self.encode(task.examples(name)) for name in names}
        self.batches = Batches(self.encoded[names[0]], batch_size, batch_tokens, batching, seed)
        self._parts = parts

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Examples as tensors, by this module's vocabularies."""
        return Encoded(examples, self.source_vocab, self.target_vocab)

    def setup(self, stage: str) -> None:
        """Moves the data to the device, once: they are small, and a batch is then an index on it."""
        if self.trainer:
            for encoded in self.encoded.values():
                encoded.to(self.trainer.strategy.root_device)

    def train_dataloader(self) -> Loader:
        count = self.epoch or len(self.batches)
        return self._loader(self.task.splits().train, self.batches, count, lambda: self._epochs_done() * count)

    def val_dataloader(self) -> Loader | list[Loader]:
        validation = self.task.splits().validation
        if validation is None:
            return []
        order = Batches(self.encoded[validation], 256, batching="length")
        return self._loader(validation, order, len(order), lambda: 0)

    def _epochs_done(self) -> int:
        return self.first_epoch + (self.trainer.current_epoch if self.trainer else 0)

    def _loader(self, split: str, batches: Batches, count: int, first: Callable[[], int]) -> Loader:
        rank, ranks = (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)
        encoded, parts = self.encoded[split], self.parts
        blocks = BLOCKS if parts > 1 else 1
        return Loader(count, first, lambda number: encoded.batch(batches.index(number), parts, blocks, rank, ranks))

    @property
    def parts(self) -> int:
        """The most parts that a batch is computed in, on the device where the data are."""
        on_cpu = next(iter(self.encoded.values())).source.device.type == "cpu"
        return self._parts or (PARTS if on_cpu else 1)

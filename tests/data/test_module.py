"""The data module, in a plain trainer and without one."""

from collections import Counter
from typing import ClassVar

import lightning
import pytest
import torch

from tests.data.generated_data import pairs
from tfstudy import tasks
from tfstudy.config.schema import TrainConfig
from tfstudy.data.module import TaskData
from tfstudy.tasks.base import Example
from tfstudy.training.module import Seq2Seq

EIGHT = TrainConfig(batch_size=8)


@pytest.fixture
def task(reverse):
    return tasks.find("reverse")(tasks.find("reverse").Config())


class Watcher(lightning.LightningModule):
    """Learns nothing, but records the rows of every batch."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.trained, self.validated = [], []

    def training_step(self, batch, batch_idx):
        self.trained.append(pairs(batch.micro_batches))
        return self.weight * batch.tokens

    def validation_step(self, batch, batch_idx):
        self.validated.append(pairs(batch.micro_batches))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def trainer(folder, **options):
    quiet = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(
        accelerator="cpu", logger=False, default_root_dir=folder, num_sanity_val_steps=0, **quiet, **options
    )


@pytest.mark.parametrize(("parameters", "count"), [(0, 2), (1000, 1), (10**8, 2)])
def test_a_batch_with_little_work_is_not_split_but_divided_into_groups(task, parameters, count, monkeypatch):
    for name in ("encoding.RECTANGLE_OVERHEAD", "encoding.SMALL_STEP_OVERHEAD"):
        monkeypatch.setattr(f"tfstudy.data.{name}", 0)
    data = TaskData(task, EIGHT, parameters=parameters)
    [first, *_] = data.train_dataloader()
    assert len(first.micro_batches) == count
    assert len(first.micro_batches[0]) > 1
    [first, *_] = TaskData(task, TrainConfig(batch_size=8, micro_batches=2), parameters=parameters).train_dataloader()
    assert len(first.micro_batches) == 2


@pytest.mark.parametrize("micro_batches", [0, 5])
def test_a_plain_trainer_gets_the_batches_of_the_steps_in_order_and_all_of_validation(task, tmp_path, micro_batches):
    module, data = Watcher(), TaskData(task, TrainConfig(batch_size=8, micro_batches=micro_batches), seed=3)
    data.batches_per_epoch = 3
    trainer(tmp_path, max_epochs=4).fit(module, data)
    assert module.trained == [pairs([[data.encoded["train"].rows(data.batches.index(step))]]) for step in range(12)]
    validation = data.encoded["validation"].rows(torch.arange(len(data.encoded["validation"])))
    assert sum(module.validated, Counter()) == sum(4 * [pairs([[validation]])], Counter())


def test_each_pass_has_the_examples_that_are_drawn_for_it_wherever_an_epoch_or_a_resumed_run_begins(task, tmp_path):
    class Redrawn(type(task)):
        """Pass n of seed s has the words of the train split before the letter n + s."""

        redraws = True
        asked: ClassVar = []

        def redrawn(self, number, seed, progress):
            self.asked.append((number, seed, progress))
            rows = [(*example.source, "abc"[(number + seed) % 3]) for example in self.examples("train")]
            return [Example(row, row[::-1], {}) for row in rows]

    changing, count = Redrawn(task.Config()), len(task.examples("train"))
    config = TrainConfig(batch_size=-(-count // 5))  # passes of five batches
    data = [TaskData(changing, config, seed=3) for _ in range(2)]
    module, resumed = Watcher(), Watcher()
    data[0].batches_per_epoch = data[1].batches_per_epoch = 3
    trainer(tmp_path, max_epochs=4).fit(module, data[0])  # twelve steps: passes of 5, 5 and 2
    for number in (0, 1):
        seen = sum(module.trained[5 * number : 5 * number + 5], Counter())
        assert seen == pairs([[data[0].encode(changing.redrawn(number, 3, 0)).rows(torch.arange(count))]])
    assert (1, 3, 5 / config.steps) in Redrawn.asked
    late = trainer(tmp_path, max_epochs=4)
    late.fit_loop.epoch_progress.current.processed = late.fit_loop.epoch_progress.current.completed = 2
    late.fit(resumed, data[1])
    assert resumed.trained == module.trained[6:]


def test_the_lightning_module_learns_in_a_plain_trainer(task, tmp_path, build):
    data = TaskData(task, EIGHT)
    model = build("lstm", dropout=0.0, vocabs=(len(data.source_vocab), len(data.target_vocab)))
    config = TrainConfig(learning_rate=0.02, warmup_steps=0, schedule="constant")
    plain = trainer(tmp_path, max_epochs=6)
    plain.fit(Seq2Seq(model, len(data.target_vocab), config), data)
    assert plain.callback_metrics["validation_loss"] < 1, "0.1 here; three letters and EOS by chance are 1.4"

"""`fit`: train a module on its data, from a checkpoint if one is given."""

import logging
import signal
import threading
import warnings
from collections.abc import Sequence
from typing import Any

from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import Logger

from tfstudy.data.module import TaskData
from tfstudy.training.checkpoints import WholeFile
from tfstudy.training.module import Seq2Seq


def quiet() -> None:
    """Suppress the messages in which Lightning describes itself and advertises other products."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".*LeafSpec.*")


def fit(
    module: Seq2Seq,
    data: TaskData,
    *,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
    resume: dict[str, Any] | None = None,
    devices: int = 1,
    accelerator: str = "auto",
) -> Trainer:
    """Trains until `config.steps` steps, from the checkpoint `resume` on if it is given.

    An epoch is `validation_interval` steps: it ends with validation and, by `callbacks.Checkpoints`, a checkpoint.
    """
    config = module.config
    data.epoch = config.validation_interval * config.accumulate_grad_batches
    if resume:
        module.resume(resume)
        data.first_epoch = module.first_epoch
        for callback in callbacks:
            callback.load_state_dict(resume["callbacks"][callback.state_key])
    trainer = Trainer(
        max_steps=config.steps - (resume["global_step"] if resume else 0),
        max_epochs=-1,
        accelerator=accelerator,
        devices=devices,
        precision=config.precision,
        accumulate_grad_batches=config.accumulate_grad_batches,
        log_every_n_steps=config.log_interval,
        logger=list(loggers),
        callbacks=list(callbacks),
        # by name: in a job of Slurm with one task Lightning would take two devices for one process and half of the data
        plugins=[WholeFile(), LightningEnvironment()],
        num_sanity_val_steps=0,
        limit_val_batches=None if data.task.splits().validation else 0,
        use_distributed_sampler=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    if trainer.world_size != devices:
        raise RuntimeError(f"{devices} devices were asked for, but training would be on {trainer.world_size}")
    interrupt, main = signal.getsignal(signal.SIGINT), threading.current_thread() is threading.main_thread()
    try:
        trainer.fit(module, data)
    except SystemExit:  # what Lightning makes of a KeyboardInterrupt
        raise KeyboardInterrupt from None
    finally:
        if main:
            signal.signal(signal.SIGINT, interrupt)  # Lightning leaves it ignored
        module.teardown("fit")  # an exception skips it
    return trainer

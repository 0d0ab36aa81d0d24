"""`fit`: train a module on its data, from the start or from a checkpoint."""

import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import Logger

from tfstudy.data.module import TaskData
from tfstudy.training.callbacks import AtomicCheckpointIO
from tfstudy.training.graphs import Execution
from tfstudy.training.module import Seq2Seq


def fit(
    module: Seq2Seq,
    data: TaskData,
    *,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
    resume: Path | None = None,
    accelerator: str = "auto",
    execution: Execution | None = None,
) -> Trainer:
    """Train until `config.steps` steps, starting from the checkpoint `resume` of `Checkpoints` if it is given.

    An epoch is `validation_interval` steps and ends with validation. Callbacks get their state from the checkpoint by
    `state_key`. Steps are eager unless `execution` says otherwise.
    """
    config = module.config
    trainer = Trainer(
        max_steps=config.steps,
        max_epochs=-1,
        accelerator=accelerator,
        devices=1,
        precision=config.precision,
        log_every_n_steps=1,  # the module logs every `log_interval` steps
        logger=list(loggers),
        callbacks=[*callbacks, *filter(None, [execution])],
        # named explicitly: in a Slurm job with one task, Lightning would count two devices but start one process
        plugins=[AtomicCheckpointIO(), LightningEnvironment()],
        num_sanity_val_steps=0,
        limit_val_batches=None if data.task.splits().validation else 0,
        use_distributed_sampler=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    interrupt, main = signal.getsignal(signal.SIGINT), threading.current_thread() is threading.main_thread()
    try:
        data.batches_per_epoch = config.validation_interval * config.accumulate_grad_batches
        trainer.fit(module, data, ckpt_path=resume)
    except SystemExit:  # Lightning raises it for a KeyboardInterrupt
        raise KeyboardInterrupt from None
    finally:
        if main:
            signal.signal(signal.SIGINT, interrupt)  # Lightning leaves it ignored
        module.teardown("fit")  # Lightning skips it after an exception
    return trainer

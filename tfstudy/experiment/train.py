"""The training of one run, from its last checkpoint if there is one."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from tfstudy.data.module import TaskData
from tfstudy.experiment.api import RunOptions, device_of
from tfstudy.experiment.prepare import Prepared
from tfstudy.models.base import parameter_count
from tfstudy.runs.schema import Event
from tfstudy.runs.store import RunFolder
from tfstudy.training import loggers
from tfstudy.training.callbacks import Checkpoints, TrainingProgress
from tfstudy.training.checkpoints import LAST, load_checkpoint, model_weights, resumable_checkpoint, rewind_metrics
from tfstudy.training.fit import fit
from tfstudy.training.graphs import Execution
from tfstudy.training.loggers import MetricsFile
from tfstudy.training.module import DivergenceError, Seq2Seq

Report = Callable[[str], None]  # prints a line


class Trained(NamedTuple):
    """How training ended, as fields of a `Result`; if it finished, the model has the weights to evaluate."""

    status: Literal["finished", "diverged"] = "finished"
    reason: str = ""  # why it diverged
    step: int = 0  # of the weights to evaluate
    train_tokens: float = 0.0  # target tokens trained on
    train_seconds: float = 0.0


def training_data(prepared: Prepared) -> TaskData:
    """Return the data of a run in the batches of its config."""
    config = prepared.config
    return TaskData(prepared.task, config.train, config.seed, parameter_count(prepared.model))


def train(prepared: Prepared, folder: RunFolder, options: RunOptions, report: Report = print) -> Trained:
    """Train to the end, from the last checkpoint if there is one; load the weights to evaluate into the model."""
    config, last = prepared.config, folder.checkpoints / LAST
    module = Seq2Seq(prepared.model, len(prepared.data.target_vocab), config.train, config.seed)
    checkpoint = resumable_checkpoint(folder.checkpoints, folder.run)
    step = checkpoint["global_step"] if checkpoint else 0

    def tell(line: str) -> None:
        report(line)
        folder.log(line)

    execution = Execution(options.execution, lambda how: folder.record(Event(event="steps computed", how=how)), tell)
    rewind_metrics(folder.metrics, checkpoint)
    if checkpoint:
        report(f"resuming after step {step} of {config.train.steps}")
        folder.log(f"resumed after step {step}")
        folder.record(Event(event="resumed", step=step))
    checkpoints = Checkpoints(folder.checkpoints, folder.run, folder.metrics)
    try:
        if step < config.train.steps:
            fit(
                module,
                training_data(prepared),
                callbacks=[TrainingProgress(folder.log), checkpoints],
                loggers=[MetricsFile(folder.metrics), *loggers.build(options.loggers, folder, config, step)],
                resume=last if checkpoint else None,
                accelerator=device_of(options).type,
                execution=execution,
            )
    except DivergenceError as error:
        folder.log(str(error))
        return Trained("diverged", str(error))
    totals = load_checkpoint(last, folder.run)["callbacks"][TrainingProgress.state_key]
    weights = load_checkpoint(folder.checkpoints / f"{config.eval.checkpoint}.ckpt", folder.run)
    prepared.model.load_state_dict(model_weights(weights))
    seconds = round(totals["seconds"], 2)
    return Trained("finished", "", weights["global_step"], totals["tokens"], seconds)

"""The weights of one run: trained from its last checkpoint, with instruments that listen, or reused from another run.

Runs that differ only in decoding and evaluation are trained once.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.data.module import TaskData
from tfstudy.errors import UserError
from tfstudy.experiment.api import RunOptions, device_of
from tfstudy.experiment.prepare import Prepared
from tfstudy.instruments.during_training import Listener, listener, measurement
from tfstudy.models.base import parameter_count
from tfstudy.runs.files import command_again, write_atomically
from tfstudy.runs.find import find_runs
from tfstudy.runs.identity import Identity, identify, settings_of
from tfstudy.runs.measurement_record import save_measurement, saved_instruments
from tfstudy.runs.schema import Resumed, StepsComputed
from tfstudy.runs.store import METRICS, RunFolder, has_result, read_config, read_result
from tfstudy.runs.studyfile import exists, read_file
from tfstudy.training import loggers
from tfstudy.training.callbacks import Checkpoints, TrainingProgress
from tfstudy.training.checkpoints import (
    BEST,
    LAST,
    STATE_KEY,
    DamagedError,
    load_checkpoint,
    metrics_digest,
    model_weights,
    resumable_checkpoint,
    rewind_metrics,
    save_checkpoint,
)
from tfstudy.training.fit import fit
from tfstudy.training.graphs import Execution
from tfstudy.training.loggers import MetricsFile
from tfstudy.training.module import DivergenceError, Seq2Seq

Report = Callable[[str], None]  # prints a line


class Trained(NamedTuple):
    """How training ended; if it finished, the model has the weights to evaluate."""

    status: Literal["finished", "diverged"] = "finished"
    reason: str = ""  # why it diverged
    step: int = 0  # of the weights to evaluate
    tokens: float = 0.0  # target tokens trained on
    seconds: float = 0.0
    peak_mib: float = 0.0  # highest memory in training


def training_data(prepared: Prepared) -> TaskData:
    """Return the data of a run in the batches of its config, undivided if the model is compiled."""
    task, train, seed = prepared.task, prepared.config.train, prepared.config.seed
    micro_batches = 1 if train.compile else train.micro_batches
    limits = (train.batch_size, train.batch_tokens, train.batching)
    size, batches = parameter_count(prepared.model), train.steps * train.accumulate_grad_batches
    return TaskData(task, *limits, seed, micro_batches, train.resampled_examples, train.target_eos, size, batches)


def train(
    prepared: Prepared,
    folder: RunFolder,
    options: RunOptions,
    report: Report = print,
) -> Trained:
    """Train to the end, from the last checkpoint if there is one; load the weights to evaluate into the model."""
    config, last = prepared.config, folder.checkpoints / LAST

    module = Seq2Seq(prepared.model, len(prepared.data.target_vocab), config.train, config.seed)
    checkpoint = resumable_checkpoint(folder.checkpoints, folder.run)
    step = checkpoint["global_step"] if checkpoint else 0
    listeners = listeners_of(options.measure, config, checkpoint, folder.path)

    def tell(line: str) -> None:
        report(line)
        folder.log(line)

    execution = Execution(options.execution, lambda how: folder.record(StepsComputed(how=how)), tell)
    rewind_metrics(folder.metrics, checkpoint)
    if checkpoint:
        report(f"resuming after step {step} of {config.train.steps}")
        folder.log(f"resumed after step {step}")
        folder.record(Resumed(step=step))

    try:
        if step < config.train.steps:
            fit(
                module,
                training_data(prepared),
                callbacks=[
                    TrainingProgress(folder.log),
                    Checkpoints(folder.checkpoints, folder.run, folder.metrics),
                    *listeners,
                ],
                loggers=[MetricsFile(folder.metrics), *loggers.build(options.loggers, folder, config, step)],
                resume=last if checkpoint else None,
                accelerator=device_of(options).type,
                execution=execution,
            )
    except DivergenceError as error:
        folder.log(str(error))
        return Trained("diverged", str(error))
    finally:
        for one in listeners:
            if one.rows:
                save_measurement(folder.path, measurement(one, folder.run))
    totals = load_checkpoint(last, folder.run)["callbacks"][TrainingProgress.state_key]
    weights = load_checkpoint(folder.checkpoints / f"{config.eval.checkpoint}.ckpt", folder.run)
    prepared.model.load_state_dict(model_weights(weights))
    peak = totals.get("peak_mib", 0.0)
    return Trained(step=weights["global_step"], tokens=totals["tokens"], seconds=totals["seconds"], peak_mib=peak)


def listeners_of(
    names: Iterable[str], config: RunConfig, checkpoint: Mapping[str, Any] | None, path: Path
) -> list[Listener]:
    """Return the listeners of the run at `path`, with their rows so far: those named, and those of its checkpoint.

    `UserError` if the steps up to the checkpoint were trained without one of them.
    """
    callbacks = checkpoint["callbacks"] if checkpoint else {}
    measured = [key.removeprefix(Listener.state_key) for key in callbacks if key.startswith(Listener.state_key)]
    if checkpoint and (missing := next((name for name in names if name not in measured), "")):
        raise _unmeasured(missing, path, checkpoint["global_step"], config.smoke)
    found = [listener(name, config) for name in dict.fromkeys([*names, *measured])]
    for one in found:
        if state := callbacks.get(one.state_key):
            one.load_state_dict(state)
    return found


def check_measured(names: Sequence[str], folder: RunFolder) -> None:
    """`UserError` if a finished run was not measured with all these instruments."""
    saved = saved_instruments(folder.path)
    if missing := next((name for name in names if name not in saved), ""):
        raise _unmeasured(missing, folder.path, folder.result.step, folder.result.smoke)


def _unmeasured(name: str, path: Path, steps: int, smoke: bool) -> UserError:
    again = command_again(path, smoke, "--measure", name)
    return UserError(f"{path} already has {steps} steps without measuring {name}; `{again}` trains it again")


# Weights of another run


def find_reusable(record: RunFolder, config: RunConfig, identity: Identity, device: str) -> Path | None:
    """Return the folder of a finished run with the same training settings, data, code versions and device, or None.

    Only runs of the same study, test split, architecture and seed are considered. Damaged weights are reported.
    """
    folder, needed = record.path.parent, {LAST, f"{config.eval.checkpoint}.ckpt"}
    for path in find_runs(folder):
        if path == record.path or not path.name.startswith(f"s{config.seed}-") or not has_result(path):
            continue
        try:
            other, result = resolve(read_config(path)), read_result(path)
        except UserError:
            continue
        same = training_settings(other) == training_settings(config)
        same &= identify(other, identity.data, identity.versions).hash == result.run
        same &= (result.status, result.device) == ("finished", device)
        checkpoints = [path / "checkpoints" / name for name in needed]
        if not same or not all(map(exists, [path / METRICS, *checkpoints])):
            continue
        try:
            for checkpoint in checkpoints:
                load_checkpoint(checkpoint, result.run)
            return path
        except UserError as error:
            print(f"the weights of {path.name} can't be reused: {error}", file=sys.stderr)
    return None


def training_settings(config: RunConfig) -> Tree:
    """Return the settings that determine the weights."""
    return {key: value for key, value in settings_of(config).items() if key not in ("decode", "eval")}


def reuse(record: RunFolder, source: Path) -> None:
    """Copy the checkpoints and training metrics of another run into this one, which becomes their owner.

    `last.ckpt`, which marks training as finished, is written last.
    """
    owner = read_result(source).run
    write_atomically(record.metrics, read_file(source / METRICS))
    for path in (source / "checkpoints" / name for name in (BEST, LAST)):
        with suppress(DamagedError):  # of a best checkpoint that this run does not need
            if exists(path):
                checkpoint = load_checkpoint(path, owner)
                checkpoint["callbacks"][STATE_KEY]["run"] = record.run
                checkpoint["callbacks"][STATE_KEY].setdefault("metrics", metrics_digest(record.metrics))
                save_checkpoint(checkpoint, record.checkpoints / path.name)
    record.log(f"weights reused from {source.name}")

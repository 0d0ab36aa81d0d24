"""One experiment, from config to record."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tasks.base import Task, overlap
from tasks.errors import UserError
from tfstudy.config.schema import RunConfig
from tfstudy.evaluation import evaluate, lengths
from tfstudy.experiment.options import DEFAULTS, RunOptions, device_name, device_of
from tfstudy.experiment.prepare import Prepared, describe, prepare
from tfstudy.experiment.reuse import find_reusable, reuse
from tfstudy.models.base import parameter_count
from tfstudy.runs.environment import environment
from tfstudy.runs.writer import RunFolder, open_run, run_folder
from tfstudy.training import loggers
from tfstudy.training.callbacks import Watch
from tfstudy.training.checkpoints import Checkpoints, load_checkpoint, model_weights
from tfstudy.training.fit import fit, quiet
from tfstudy.training.loggers import MetricsFile
from tfstudy.training.module import DivergenceError, Seq2Seq


class Outcome(NamedTuple):
    """A finished run: its folder, its result, and whether this call did any work."""

    path: Path
    result: dict[str, Any]
    worked: bool


def run(
    config: RunConfig,
    root: Path,
    study: str,
    options: RunOptions = DEFAULTS,
    planned: Path | None = None,
    say: Callable[[str], None] = print,
) -> Outcome | None:
    """Trains and evaluates, or goes on where an earlier process stopped, or does nothing if all is done.

    The other processes of a run on several devices train, and return None.
    """
    quiet()
    device = device_of(options)
    if options.restart and options.resume:
        raise UserError("--fresh and --resume exclude each other")
    loggers.check(options.loggers)
    prepared = prepare(config)
    held_out = scored_splits(prepared.task, options)
    path = run_folder(root, study, config, prepared.identity)
    if planned and path != planned:
        raise UserError(f"the data or the code changed after the run was planned: {planned} is {path.name} now")
    if options.resume and not (path / "config.yaml").exists():
        raise UserError(f"--resume: no run of this config was begun ({path})")
    if int(os.environ.get("LOCAL_RANK", 0)):
        train(prepared, RunFolder(path, prepared.identity.hash), Watch(lambda _: None), options, lambda _: None)
        return None
    with open_run(path, config, prepared.identity, options.restart) as record:
        if record.finished:
            if bool(record.result.get("tuning")) != options.tuning:
                raise UserError(f"{path} is {'no' if options.tuning else 'a'} trial of tuning; use another --results")
            say(f"already done, nothing to do (--fresh redoes it): {path}")
            return Outcome(path, record.result, False)
        record.add_environment(environment(prepared.identity, device_name(device), torch.get_num_threads()))
        say(describe(prepared, path))
        for name, content in prepared.task.files().items():
            record.keep(name, content)
        begun = (record.checkpoints / "last.ckpt").exists() or options.restart
        twin = None if begun else find_reusable(record, config, prepared.identity, device.type, options.devices)
        if twin:
            say(f"trained already, with another way of decoding or evaluating: {twin}")
            reuse(record, twin)
        result = {
            "preset": options.preset,
            "trained_in": twin.name if twin else None,  # the run whose weights these are, if it is another
            "task": config.task,
            "split": config.data.split,
            "arch": config.arch,
            "seed": config.seed,
            "experiment": prepared.identity.experiment,
            "decode": config.decode.model_dump(),
            "eval": config.eval.model_dump(),
            "device": device.type,
            "devices": options.devices,
            "smoke": config.smoke,
            "tuning": options.tuning,
            "parameters": parameter_count(prepared.model),
            "train_examples": len(prepared.task.examples(prepared.task.splits().train)),
            "overlap": overlap(prepared.task),
            "data": dict(prepared.task.notes()),
            "signatures": dict(prepared.task.signatures()),
            **train(prepared, record, Watch(record.log), options, say),
        }
        if result["status"] == "finished":
            began = time.monotonic()
            result["splits"] = score(prepared, record, device, "run", held_out)
            result["lengths"] = reach(prepared.task, result["splits"])
            result["evaluate_seconds"] = round(time.monotonic() - began, 2)
        record.finish(result | {"test_reads": record.test_reads()})
        return Outcome(path, record.result, True)


def scored_splits(task: Task, options: RunOptions) -> tuple[str, ...]:
    """The splits that a run is scored on: all that are held out, or in tuning the validation split alone."""
    if options.tuning and not task.splits().validation:
        raise UserError("tuning needs a validation split, but this experiment has none")
    return task.splits().held_out[: 1 if options.tuning else None]


def train(
    prepared: Prepared, record: RunFolder, watch: Watch, options: RunOptions, say: Callable[[str], None]
) -> dict[str, Any]:
    """Trains from the record's last checkpoint, if it has one, to the end; leaves the chosen weights in the model."""
    config, last = prepared.config, record.checkpoints / "last.ckpt"
    module = Seq2Seq(prepared.model, len(prepared.data.target_vocab), config.train, config.seed)
    checkpoint = load_checkpoint(last, record.run) if last.exists() else None
    step = checkpoint["global_step"] if checkpoint else 0
    if checkpoint:
        say(f"resuming after step {step} of {config.train.steps}")
        record.log(f"resumed after step {step}")
    rank = int(os.environ.get("LOCAL_RANK", 0))
    if not rank:
        record.rewind(step)
    try:
        if step < config.train.steps:
            fit(
                module,
                prepared.data,
                callbacks=[watch, Checkpoints(record.checkpoints, record.run)],
                loggers=[MetricsFile(record.metrics), *loggers.build(options.loggers, record, config, step, rank)],
                resume=checkpoint,
                devices=options.devices,
                accelerator=device_of(options).type,
            )
    except DivergenceError as error:
        record.log(str(error))
        return {"status": "diverged", "reason": str(error)}
    work = load_checkpoint(last, record.run)["callbacks"]["Watch"]
    weights = load_checkpoint(record.checkpoints / f"{config.eval.checkpoint}.ckpt", record.run)
    prepared.model.load_state_dict(model_weights(weights))
    return {
        "status": "finished",
        "checkpoint": config.eval.checkpoint,
        "step": weights["global_step"],
        "train_tokens": work["tokens"],
        "train_seconds": round(work["seconds"], 2),
        # Kaplan et al. 2020, section 2.1: 2 a parameter and token forward, twice that backward
        "train_flops_estimate": 6.0 * parameter_count(prepared.model) * work["tokens"],
    }


def score(
    prepared: Prepared, record: RunFolder, device: torch.device, why: str, chosen: Sequence[str]
) -> dict[str, Any]:
    """Evaluates held-out splits, counts the reading of each test split, and keeps a run's own predictions."""
    config, splits, out = prepared.config, prepared.task.splits(), {}
    for split in chosen:
        role = "validation" if split == splits.validation else "test"
        if role == "test":
            record.count_read(split, why)
        result = evaluate.evaluate(prepared.model, prepared.data, split, config.decode, config.eval, device)
        if why == "run":
            record.write_predictions(split, result.rows)
        out[split] = {"role": role, **result.summary}
    return out


def reach(task: Task, summaries: Mapping[str, Any]) -> dict[str, Any]:
    """Accuracy by length, L90 and L50, of the splits that are about length (see `evaluation.lengths`)."""
    return lengths.lengths(summaries[name] for name in task.by_length() if name in summaries)

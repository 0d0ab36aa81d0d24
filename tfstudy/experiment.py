"""One experiment, from config to record."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

import tasks
from tasks.base import Task, UserError, fingerprint, one_of, overlap
from tfstudy import evaluation, loggers, models, training
from tfstudy.callbacks import Checkpoints, MetricsFile, Watch, load_checkpoint, model_weights
from tfstudy.config import Identity, RunConfig, identify
from tfstudy.data import TaskData
from tfstudy.environment import environment, quiet
from tfstudy.models.base import Model, parameter_count
from tfstudy.record import Record, open_record, run_folder
from tfstudy.training import DivergenceError, Seq2Seq, fit
from tfstudy.twin import adopt, find_twin
from tfstudy.vocab import Vocab


class Prepared(NamedTuple):
    """A config made real: everything that a run needs before it trains."""

    config: RunConfig
    task: Task
    data: TaskData
    model: Model
    identity: Identity


class Outcome(NamedTuple):
    """A finished run: its folder, its result, and whether this call did any work."""

    path: Path
    result: dict[str, Any]
    worked: bool


def prepare(config: RunConfig) -> Prepared:
    """Task, data, model with initial weights and identity of a config."""
    task = tasks.find(config.task)(config.data)
    check(config, task)
    train = config.train
    data = TaskData(
        task, train.batch_size, train.batch_tokens, train.batching, config.seed, 1 if train.compile else train.parts
    )
    torch.manual_seed(config.seed)
    model = models.find(config.arch)(config.model, len(data.source_vocab), len(data.target_vocab))
    return Prepared(config, task, data, model, identify(config, fingerprint(task), versions(config)))


def check(config: RunConfig, task: Task) -> None:
    """`UserError` for what each section allows but this model with these data does not."""
    source, target = task.vocabulary()
    if getattr(config.model, "share_embeddings", False) and source != target:
        raise UserError(f"model.share_embeddings needs one vocabulary, but {config.task} has two")
    longest_gold = evaluation.longest_target(task)
    if 0 < config.decode.max_length < longest_gold:
        raise UserError(
            f"decode.max_length must be 0 or at least {longest_gold}, the longest gold target, "
            f"but is {config.decode.max_length}"
        )
    with torch.device("meta"):
        longest = models.find(config.arch)(config.model, len(Vocab(source)), len(Vocab(target))).longest
    longest_source = max(len(e.source) for split in task.splits().all for e in task.examples(split))
    most = max(longest_source + 1, evaluation.generation_limit(task, config.decode) + 1)
    if longest is not None and most > longest:
        raise UserError(f"model.longest must be at least {most} for these data, but is {longest}")
    unchecked = task.splits().validation is None or config.train.steps % config.train.check_every
    if config.eval.checkpoint == "best" and unchecked:
        raise UserError("eval.checkpoint 'best' needs a validation split, and steps that are a multiple of check_every")


def versions(config: RunConfig) -> dict[str, int]:
    """The declared versions of the code that decides a run's numbers."""
    return {
        "task": tasks.find(config.task).version,
        "model": models.find(config.arch).version,
        "training": training.VERSION,
        "evaluation": evaluation.VERSION,
    }


class Options(NamedTuple):
    """How a run is made; of this only the devices touch its numbers, by rounding and the draws of dropout."""

    preset: str = ""  # the name that the config was made from, to be recorded
    fresh: bool = False
    resume: bool = False
    devices: int = 1
    accelerator: str = "auto"
    folder: Path | None = None  # where the run was planned to be, if it was
    loggers: tuple[str, ...] = ()  # beside the metrics file: see `tfstudy.loggers`
    tuning: bool = False  # a trial of `tfstudy.tune`: no test split is scored


OPTIONS = Options()


def run(
    config: RunConfig, root: Path, study: str, options: Options = OPTIONS, say: Callable[[str], None] = print
) -> Outcome | None:
    """Trains and evaluates, or goes on where an earlier process stopped, or does nothing if all is done.

    The other processes of a run on several devices train, and return None.
    """
    quiet()
    device = device_of(options)
    if options.fresh and options.resume:
        raise UserError("--fresh and --resume exclude each other")
    loggers.check(options.loggers)
    prepared = prepare(config)
    held_out = scored_splits(prepared.task, options)
    path = run_folder(root, study, config, prepared.identity)
    if options.folder and path != options.folder:
        raise UserError(f"the data or the code changed after the run was planned: {options.folder} is {path.name} now")
    if options.resume and not (path / "config.yaml").exists():
        raise UserError(f"--resume: no run of this config was begun ({path})")
    if int(os.environ.get("LOCAL_RANK", 0)):
        train(prepared, Record(path, prepared.identity.hash), Watch(lambda _: None), options, lambda _: None)
        return None
    with open_record(path, config, prepared.identity, options.fresh) as record:
        if record.finished:
            if bool(record.result.get("tuning")) != options.tuning:
                raise UserError(f"{path} is {'no' if options.tuning else 'a'} trial of tuning; use another --results")
            say(f"already done, nothing to do (--fresh redoes it): {path}")
            return Outcome(path, record.result, False)
        record.add_environment(environment(prepared.identity, device))
        say(describe(prepared, path))
        for name, content in prepared.task.files().items():
            record.keep(name, content)
        begun = (record.checkpoints / "last.ckpt").exists() or options.fresh
        twin = None if begun else find_twin(record, config, prepared.identity, device.type, options.devices)
        if twin:
            say(f"trained already, with another way of decoding or evaluating: {twin}")
            adopt(record, twin)
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


def scored_splits(task: Task, options: Options) -> tuple[str, ...]:
    """The splits that a run is scored on: all that are held out, or in tuning the validation split alone."""
    if options.tuning and not task.splits().validation:
        raise UserError("tuning needs a validation split, but this experiment has none")
    return task.splits().held_out[: 1 if options.tuning else None]


def device_of(options: Options) -> torch.device:
    """Where evaluation runs; `UserError` if the devices that are asked for are not there."""
    one_of("--accelerator", options.accelerator, ("auto", "cpu", "cuda"))
    there = torch.cuda.device_count()
    if options.accelerator == "cuda" and not there:
        raise UserError("--accelerator cuda: torch sees no CUDA device here")
    device = torch.device("cuda" if options.accelerator != "cpu" and there else "cpu")
    if device.type == "cuda" and options.devices > there:
        raise UserError(f"--devices must be at most {there} here, but is {options.devices}")
    return device


def train(
    prepared: Prepared, record: Record, watch: Watch, options: Options, say: Callable[[str], None]
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


def score(prepared: Prepared, record: Record, device: torch.device, why: str, chosen: Sequence[str]) -> dict[str, Any]:
    """Evaluates held-out splits, counts the reading of each test split, and keeps a run's own predictions."""
    config, splits, out = prepared.config, prepared.task.splits(), {}
    for split in chosen:
        role = "validation" if split == splits.validation else "test"
        if role == "test":
            record.count_read(split, why)
        result = evaluation.evaluate(prepared.model, prepared.data, split, config.decode, config.eval, device)
        if why == "run":
            record.write_predictions(split, result.rows)
        out[split] = {"role": role, **result.summary}
    return out


def reach(task: Task, summaries: Mapping[str, Any]) -> dict[str, Any]:
    """Accuracy by length, L90 and L50, of the splits that are about length (see `evaluation.lengths`)."""
    return evaluation.lengths(summaries[name] for name in task.by_length() if name in summaries)


def describe(prepared: Prepared, path: Path) -> str:
    """Two lines on what is about to run."""
    config, splits = prepared.config, prepared.task.splits()
    sizes = ", ".join(f"{len(prepared.task.examples(name)):,} {name}" for name in splits.all)
    smoke = "SMOKE RUN: its numbers mean nothing\n" if config.smoke else ""
    return (
        f"{smoke}{config.task} {config.data.split}, {config.arch} with {parameter_count(prepared.model):,} parameters, "
        f"seed {config.seed}: {sizes} examples\n{path}"
    )

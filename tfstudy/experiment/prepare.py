"""Build what a config describes: the task, its data, the model with its initial weights, and the identity.

Sections that do not fit each other or the data are refused. Imports no Lightning.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tfstudy import models, tasks
from tfstudy.config.resolve import resolve_section
from tfstudy.config.schema import DecodeConfig, RunConfig
from tfstudy.config.trees import Tree, merge
from tfstudy.data.encoding import PAD, TaskEncoder, Vocab
from tfstudy.errors import UserError, quoted
from tfstudy.evaluation.decoding import longest_target, needed_positions
from tfstudy.experiment.code_versions import declared_versions
from tfstudy.models.base import Model, PaddedModel, parameter_count, select_hypotheses
from tfstudy.models.config import ModelConfig
from tfstudy.models.copying import match_tokens
from tfstudy.models.positions.numbering import mark_digits
from tfstudy.models.tokens import Tokens
from tfstudy.runs.identity import Identity, identify
from tfstudy.tasks.base import Task, check_examples, fingerprint

FEW = 2  # examples, and tokens of their targets, on which the output of a model is checked


class DataShape(NamedTuple):
    """What a model has to fit: facts of a task's data, which take long to collect."""

    vocabularies: tuple[int, int]  # sizes, with the special tokens
    one_vocabulary: bool  # of source and target
    shared_tokens: bool  # whether source and target have a token in common
    has_digits: bool
    longest_source: int  # in training, with EOS
    longest_target: int
    empty_target: bool  # whether an example of training or validation has one
    positions: int  # that any source and any output can have
    validation: str | None  # the name of the validation split

    @classmethod
    def of(cls, task: Task) -> "DataShape":
        """Return the facts of a task's data."""
        (source, target), splits = task.vocabulary(), task.splits()
        learned = [name for name in splits.all if name not in splits.tests]
        return cls(
            vocabularies=(len(Vocab(source)), len(Vocab(target))),
            one_vocabulary=source == target,
            shared_tokens=not set(source).isdisjoint(target),
            has_digits=bool(task.digits()),
            longest_source=1 + max((len(example.source) for example in task.examples(splits.train)), default=0),
            longest_target=longest_target(task),
            empty_target=not all(e.target for name in learned for e in task.examples(name)),
            positions=needed_positions(task),
            validation=splits.validation,
        )


def check(config: RunConfig, data: DataShape) -> int:
    """Return the number of parameters; `UserError` if a value does not fit the data or another section."""
    task, most, model = config.task, config.decode.max_length, config.model.model_dump()
    if config.model.needs_one_vocabulary and not data.one_vocabulary:
        raise UserError(f"model.share_embeddings must be false, since {task} has two vocabularies with these data")
    if 0 < most < data.longest_target:
        longest = f"{data.longest_target}, the length of the longest target"
        raise UserError(f"decode.max_length must be 0 or at least {longest}, but is {most}")
    if data.empty_target and not config.train.target_eos:
        raise UserError(f"train.target_eos must be true, since {task} has empty targets with these data")
    if (tokens := config.train.batch_tokens) and getattr(config.data, "redraw", False):
        raise UserError(f"train.batch_tokens must be 0 with data.redraw, but is {tokens}")
    digits = model.get("digit_positions")
    if digits and not data.has_digits:
        needed = "numbers that start with their last digit (data.format=reversed in arithmetic)"
        raise UserError(f"model.digit_positions needs {needed}, but {task} has none with these settings")
    if digits and digits < data.longest_source + 2:  # the offsets 0 and 1
        fewest = f"{data.longest_source + 2} for the longest source in training and random offsets"
        raise UserError(f"model.digit_positions must be at least {fewest}, but is {digits}")
    if model.get("copy_output") and not data.shared_tokens:
        raise UserError(f"model.copy_output needs tokens that source and target share, but {task} has none")
    available, parameters = sizes(config.arch, with_positions(config.model, data.positions), data.vocabularies)
    if available is not None and available < 1 + most:
        fewest = f"{1 + most} for decode.max_length={most}"
        raise UserError(f"model.max_positions must be at least {fewest}, but is {available}")
    if config.eval.checkpoint == "best" and not data.validation:
        raise UserError("eval.checkpoint 'best' needs a validation split, but there is none")
    return parameters


def with_positions(model: ModelConfig, needed: int) -> ModelConfig:
    """Return the section `model` with `max_positions`, where an architecture has this key, at least as large.

    What the data need does not depend on decoding, so that runs that differ in it can have the same weights.
    `UserError` if positions are drawn from a range that is too small.
    """
    values = model.model_dump()
    size, below = values.get("max_positions"), values.get("randomised_positions")
    if below and below < needed:
        raise UserError(f"model.randomised_positions must be at least {needed} for these data, but is {below}")
    return model if size is None or size >= needed else model.model_copy(update={"max_positions": needed})


def sizes(arch: str, model: ModelConfig, vocabularies: tuple[int, int]) -> tuple[int | None, int]:
    """Return the size of the table of learned positions (None without one), and the number of parameters."""
    return _sizes(arch, model.model_copy(update={"dropout": 0.0}).model_dump_json(), vocabularies)  # for any dropout


@lru_cache(maxsize=1 << 14)
def _sizes(arch: str, model: str, vocabularies: tuple[int, int]) -> tuple[int | None, int]:
    cls = models.find(arch)
    with torch.device("meta"):  # without memory for the weights
        built = cls(cls.Config.model_validate_json(model), *vocabularies)
    return built.max_positions, parameter_count(built)


def check_output(arch: str, model: Model, data: TaskEncoder) -> None:
    """Raise `UserError` if `decode` does not return logits for each token, and a state that can be continued.

    No random number is drawn.
    """
    examples = data.task.examples(data.task.splits().train)[:FEW]
    encoded, tested, padded = data.encode(examples), deepcopy(model).eval(), isinstance(model, PaddedModel)
    source, tokens = encoded.source, encoded.target[:, :FEW]
    name, shape = ("decode_padded", "rows, length") if padded else ("decode", "positions")
    hint = "tfstudy.testing.check_architecture checks all that is required"
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        if isinstance(tested, PaddedModel):
            output: Any = tested.decode_padded(tokens, tested.encode_padded(source, source != PAD))
        else:
            output = tested.decode(Tokens.of(tokens), tested.encode(Tokens.of(source)))
        expected = (*(tokens.shape if padded else tokens.flatten().shape), len(data.target_vocab))
        parts = output if isinstance(output, tuple) else (output,)
        found = [
            f"a tensor of shape {tuple(p.shape)}" if isinstance(p, torch.Tensor) else type(p).__name__ for p in parts
        ]
        if len(found) != 2 or found[0] != f"a tensor of shape {expected}":
            raise UserError(
                f"architecture {arch}: {name} must return logits of shape ({shape}, target_vocab), here {expected}, "
                f"and a state, but returned {' and '.join(found)}; {hint}"
            )
        last = torch.tensor([len(tokens) - 1])  # as generation goes on when the other rows are finished
        try:
            tested.decode(Tokens.of(tokens[last, :1]), select_hypotheses(output[1], last, last))
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            raise UserError(
                f"architecture {arch}: the state that {name} returned cannot be continued with its last row: {error}; "
                f"{hint}"
            ) from error


class Prepared(NamedTuple):
    """Everything that a run needs before it trains."""

    config: RunConfig
    task: Task
    data: TaskEncoder
    model: Model
    identity: Identity


def prepare(config: RunConfig) -> Prepared:
    """Return the task, data, model and identity of a config; `UserError` if they do not fit each other."""
    task = tasks.build(config.task, config.data)
    check_examples(config.task, task)
    shape, data = DataShape.of(task), TaskEncoder(task)
    check(config, shape)
    identity = identify(config, fingerprint(task), declared_versions(config.task, config.arch))
    return _with_model(config, task, data, shape, identity)


def restore(config: RunConfig, files: Mapping[str, str], identity: Identity) -> Prepared | None:
    """Return what a finished run needs to predict, without its data, from the files of the run; None if they lack it.

    The task has no examples, only their lengths.
    """
    task = tasks.find(config.task).restored(config.data, files)
    return _with_model(config, task, TaskEncoder(task), DataShape.of(task), identity) if task else None


def _with_model(config: RunConfig, task: Task, data: TaskEncoder, shape: DataShape, identity: Identity) -> Prepared:
    torch.manual_seed(config.seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the rounding of an orthogonal matrix depends on their number
    try:
        sized = with_positions(config.model, shape.positions)
        model = models.find(config.arch)(sized, len(data.source_vocab), len(data.target_vocab))
    finally:
        torch.set_num_threads(threads)
    match_tokens(model, data.target_vocab.ids_of(data.source_vocab))
    mark_digits(model, task.digits(), data.source_vocab.tokens, data.target_vocab.tokens)
    return Prepared(config, task, data, model, identity)


def with_decoding(prepared: Prepared, tree: Tree) -> Prepared:
    """Return the same with the settings of a tree, which has no section but `decode`; `UserError` if they don't fit."""
    if not tree:
        return prepared
    for key in tree.keys() - {"decode"}:
        raise UserError(f"only settings of section 'decode' can be changed here, not those of {quoted(key)}")
    values = merge({"decode": prepared.config.decode.model_dump()}, tree)["decode"]
    decode = resolve_section(DecodeConfig, values, "decode.")
    decode.check_given(tree["decode"])
    config = prepared.config.model_copy(update={"decode": decode})
    check(config, DataShape.of(prepared.task))
    return prepared._replace(config=config)


def describe(prepared: Prepared, path: Path) -> str:
    """Return two lines on a run that is about to start: its model and data, and its folder."""
    config, splits = prepared.config, prepared.task.splits()
    examples = {name: prepared.task.examples(name) for name in splits.all}
    sizes = ", ".join(f"{len(rows):,} {name}" for name, rows in examples.items())
    tokens = sum(len(row.target) for row in examples[splits.train])  # they help to choose a preset
    smoke = "SMOKE RUN: its numbers mean nothing\n" if config.smoke else ""
    model = f"{config.arch} with {parameter_count(prepared.model):,} parameters, seed {config.seed}"
    data = f"{sizes} examples; {tokens:,} target tokens in {splits.train}"
    return f"{smoke}{config.task} {config.data.split}, {model}: {data}\n{path}"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within this context Lightning does not describe itself or advertise other products.

    Afterwards torch's random state, the filters of warnings and the level of Lightning's log are those of the caller.
    """
    log, devices = logging.getLogger("lightning.pytorch"), range(torch.cuda.device_count())
    level, used = log.level, torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices if used else []), warnings.catch_warnings():
        log.setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", ".*LeafSpec.*")
        # with accumulated batches Lightning counts steps as batches; checkpoints are always at the end of an epoch
        warnings.filterwarnings("ignore", ".*ended before the epoch ended.*")
        try:
            yield
        finally:
            log.setLevel(level)

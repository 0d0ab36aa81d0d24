"""Build what a config describes: the task, its data, the model with its initial weights, and the identity."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

from tfstudy import models, tasks
from tfstudy.config.resolve import resolve_section
from tfstudy.config.schema import DecodeConfig, RunConfig
from tfstudy.config.trees import Tree, merge
from tfstudy.data.encoding import TaskEncoder
from tfstudy.errors import UserError, quoted
from tfstudy.experiment.code_versions import declared_versions
from tfstudy.experiment.compatibility import DataShape, check, sized_model
from tfstudy.models.base import Model, parameter_count
from tfstudy.models.parts.positions.numbering import mark_digits
from tfstudy.models.parts.source_attention import match_tokens
from tfstudy.runs.identity import Identity, identify
from tfstudy.tasks.base import Task, check_examples, fingerprint

SLOW, SLOW_UNSEEN = 2.0, 10.0  # seconds after which preparing is reported, on a terminal and elsewhere


class Prepared(NamedTuple):
    """Everything that a run needs before it trains."""

    config: RunConfig
    task: Task
    data: TaskEncoder
    model: Model
    identity: Identity


def prepare(config: RunConfig) -> Prepared:
    """Return the task, data, model and identity of a config; `UserError` if they do not fit each other."""
    with slow_work_reported(f"preparing {config.task}"):
        task = tasks.find(config.task)(config.data)
        check_examples(config.task, task)
        shape, data = DataShape.of(task), TaskEncoder(task)
        check(config, shape)
        identity = identify(config, fingerprint(task), declared_versions(config.task, config.arch))
    torch.manual_seed(config.seed)
    model = models.find(config.arch)(sized_model(config, shape), len(data.source_vocab), len(data.target_vocab))
    match_tokens(model, data.target_vocab.encode(data.source_vocab.tokens))
    mark_digits(model, task.digits(), data.source_vocab.tokens, data.target_vocab.tokens)
    return Prepared(config, task, data, model, identity)


def with_decoding(prepared: Prepared, tree: Tree) -> Prepared:
    """Return the same with the settings of a tree, which has no section but `decode`; `UserError` if they don't fit."""
    if not tree:
        return prepared
    for key in tree.keys() - {"decode"}:
        raise UserError(
            f"only settings of section 'decode' can be changed here, as decode.beam_size, not those of {quoted(key)}"
        )
    values = merge({"decode": prepared.config.decode.model_dump()}, tree)["decode"]
    decode = resolve_section(DecodeConfig, values, "decode.")
    config = prepared.config.model_copy(update={"decode": decode})
    check(config, DataShape.of(prepared.task))
    return prepared._replace(config=config)


@contextmanager
def slow_work_reported(name: str) -> Iterator[None]:
    """Print the name on standard error once the block has taken long, and at its end how long it took."""
    limit = SLOW if sys.stderr.isatty() else SLOW_UNSEEN
    start, timer = time.monotonic(), threading.Timer(limit, lambda: _print_error(f"{name} ..."))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if (seconds := time.monotonic() - start) >= limit:
        _print_error(f"{name}: {seconds:.1f} s")


def _print_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def describe(prepared: Prepared, path: Path) -> str:
    """Return two lines on a run that is about to start: its model and data, and its folder.

    The target tokens of the train split help to choose a preset. The size of the table of positions is named if the
    data need a larger one than the config has.
    """
    config, splits = prepared.config, prepared.task.splits()
    examples = {name: prepared.task.examples(name) for name in splits.all}
    sizes = ", ".join(f"{len(rows):,} {name}" for name, rows in examples.items())
    tokens = sum(len(row.target) for row in examples[splits.train])
    smoke = "SMOKE RUN: its numbers mean nothing\n" if config.smoke else ""
    size, least = prepared.model.max_positions, config.model.model_dump().get("max_positions")
    positions = f" and {size} positions" if size and least and size > least else ""
    return (
        f"{smoke}{config.task} {config.data.split}, {config.arch} with {parameter_count(prepared.model):,} parameters"
        f"{positions}, seed {config.seed}: {sizes} examples; {tokens:,} target tokens in {splits.train}\n{path}"
    )

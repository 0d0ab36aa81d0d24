"""What is done with a finished run: sources decoded, splits scored again, ever longer examples tried."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tasks.base import Example
from tasks.errors import UserError, one_of
from tfstudy.config.files import read_yaml
from tfstudy.config.resolve import resolve
from tfstudy.data.vocabulary import PAD, SPECIAL
from tfstudy.evaluation import evaluate, lengths
from tfstudy.experiment.options import DEFAULTS, RunOptions, device_of
from tfstudy.experiment.prepare import Prepared, prepare
from tfstudy.experiment.run import score, scored_splits
from tfstudy.runs.reader import read_result
from tfstudy.runs.writer import open_record
from tfstudy.training.checkpoints import load_checkpoint, model_weights

GAP = 5  # lengths in a row that a task may lack


def extend(path: Path, most: int, say: Callable[[str], None] = print) -> dict[str, Any]:
    """A finished run on fresh examples of ever longer lengths, until nothing is right at three of them in a row.

    The first length is the one after the longest trained on, each next one 5 % longer, none above `most`. The figures
    are kept in the run's folder as `extended.json`.
    """
    prepared = load(path)
    task, data, config = prepared.task, prepared.data, prepared.config
    if read_result(path).get("tuning"):
        raise UserError(f"--extend: {path} is a trial of tuning, which sees no more than the validation split")
    length = 1 + max(int(e.tags.get("length", 0)) for e in task.examples(task.splits().train))
    if not any(task.at_length(length + more) for more in range(GAP)):
        raise UserError(f"--extend: {config.task} can't draw examples of a length, such as {length}")
    summaries: list[dict[str, Any]] = []
    missed = 0
    while length <= most and missed < 3:
        examples = task.at_length(length)
        if not examples:  # an experiment may lack some, such as even ones
            length += 1
            continue
        if 0 < config.decode.max_length < max(len(e.target) for e in examples):
            say(f"length {length} has targets of more than decode.max_length={config.decode.max_length} tokens")
            break
        longest = max(max(len(e.source), len(e.target) + evaluate.MARGIN) for e in examples) + 1
        if prepared.model.max_positions is not None and longest > prepared.model.max_positions:
            say(f"length {length} needs {longest} positions, of which the model has {prepared.model.max_positions}")
            break
        summary = evaluate.evaluate_examples(
            prepared.model, data, examples, config.decode, config.eval, device_of(DEFAULTS)
        ).summary
        right = summary["metrics"]["exact_match"]
        missed = 0 if right else missed + 1
        say(f"length {length:4}: {100 * right:5.1f} % of {summary['n']}")
        summaries.append(summary)
        length += max(1, length // 20)
    with open_record(path, config, prepared.identity) as record:
        seen = {name: part for name, part in record.result["splits"].items() if name in task.by_length()}
        found = lengths.lengths([*seen.values(), *summaries])
        record.keep("extended.json", json.dumps(found, indent=1))
    return found


def load(path: Path) -> Prepared:
    """A finished run with its weights; `UserError` if its data or code are no longer those that it was made with."""
    result = read_result(path)
    if result["status"] != "finished":
        raise UserError(f"{path} {result['status']}: it has no weights to use")
    prepared = prepare(resolve(read_yaml(path / "config.yaml")))
    if prepared.identity.hash != result["run"]:
        raise UserError(
            f"{path} was made with another config, other data or another version of the code than are here now "
            f"(its hash is {result['run'][:8]}, theirs {prepared.identity.hash[:8]})"
        )
    checkpoint = path / "checkpoints" / f"{prepared.config.eval.checkpoint}.ckpt"
    if not checkpoint.exists():
        raise UserError(f"{path} has no weights: {checkpoint.name} is not among its checkpoints")
    prepared.model.load_state_dict(model_weights(load_checkpoint(checkpoint, result["run"])))
    prepared.model.eval()
    return prepared


def predict(path: Path, source: str) -> str:
    """The target that a finished run generates for a source, tokens joined by blanks."""
    prepared = load(path)
    data, tokens = prepared.data, prepared.task.tokens(source)
    if not tokens:
        raise UserError("the source must have at least one token")
    for token in tokens if prepared.task.text(tokens) == " ".join(tokens) else ():  # words, not parts of words
        one_of("source token", token, data.source_vocab.tokens[len(SPECIAL) :], f"task {prepared.config.task}")
    encoded = data.encode([Example(tuple(tokens), (), {})])
    if prepared.model.max_positions is not None and len(tokens) >= prepared.model.max_positions:
        raise UserError(f"the source must have less than {prepared.model.max_positions} tokens, but has {len(tokens)}")
    limit = evaluate.generation_limit(prepared.task, prepared.config.decode)
    ids = evaluate.generate(prepared.model, encoded.source, encoded.source != PAD, limit, prepared.config.decode)
    return prepared.task.text(data.target_vocab.decode(ids[0]))


def evaluate_again(path: Path, splits: Sequence[str]) -> dict[str, Any]:
    """The result of a finished run with these splits (all, if none is named) decoded and scored anew."""
    prepared = load(path)
    names = scored_splits(prepared.task, RunOptions(tuning=bool(read_result(path).get("tuning"))))
    chosen = [one_of("split", name, names) for name in splits] or list(names)
    with open_record(path, prepared.config, prepared.identity) as record:
        return record.result | {"splits": score(prepared, record, device_of(DEFAULTS), "evaluate", chosen)}

"""The text that both systems are trained and tested on: our tokens, written as text in which spaces separate tokens.

    Ġa Ġfur ry Ġdog

JoeyNMT takes what spaces separate as words, so both systems have the same subwords and the same vocabulary.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean

from benchmarks.peers.joeynmt_settings import SOURCE, SPECIAL, TARGET, symbol
from tfstudy.config.schema import RunConfig
from tfstudy.tasks.base import Example, Task, Tokens

TEST = "test"  # the split that is translated


def write_data(task: Task, folder: Path, one_vocabulary: bool) -> None:
    """Write train, validation and test text and both vocabularies; with `one_vocabulary` the vocabularies are equal.

    The test text is in `decoding_order`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    splits, test = task.splits(), task.examples(TEST)
    texts = {
        "train": task.examples(splits.train),
        "dev": task.examples(splits.validation or splits.train),
        "test": [test[row] for row in decoding_order(test)],
    }
    for name, examples in texts.items():
        _write_lines(folder / f"{name}.{SOURCE}", (" ".join(example.source) for example in examples))
        _write_lines(folder / f"{name}.{TARGET}", (" ".join(example.target) for example in examples))
    source, target = task.vocabulary()
    if one_vocabulary:
        source = target = source | target
    _write_lines(folder / f"vocabulary.{SOURCE}", sorted(source))
    _write_lines(folder / f"vocabulary.{TARGET}", sorted(target))


def decoding_order(examples: Sequence[Example]) -> list[int]:
    """Return the rows of the examples by source length: both systems decode batches of similar length."""
    return sorted(range(len(examples)), key=lambda row: len(examples[row].source))


def read_outputs(path: Path, order: Sequence[int]) -> list[Tokens]:
    """Return the tokens of each output, without special ones, by row; the outputs in the file are in this `order`.

    `RuntimeError` if there are more or fewer outputs.
    """
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    if len(lines) != len(order):
        raise RuntimeError(f"{path} has {len(lines):,} outputs for {len(order):,} sentences")
    special = {"", *map(symbol, SPECIAL)}
    by_row = dict(zip(order, lines, strict=True))
    return [tuple(token for token in by_row[row].split(" ") if token not in special) for row in sorted(order)]


def sentences_per_batch(config: RunConfig, examples: Sequence[Example]) -> int:
    """Return the average number of sentences in our batches: batches of similar length have little padding."""
    train = config.train
    if not train.batch_tokens:
        return train.batch_size
    longer_side = mean(max(len(example.source), len(example.target)) + 1 for example in examples)
    return max(1, min(train.batch_size, round(train.batch_tokens / longer_side)))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

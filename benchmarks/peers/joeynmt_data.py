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
    """Write train, validation and test text and both vocabularies; with `one_vocabulary` the vocabularies are equal."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = task.splits()
    for name, split in {"train": splits.train, "dev": splits.validation or splits.train, "test": TEST}.items():
        examples = task.examples(split)
        _write_lines(folder / f"{name}.{SOURCE}", (" ".join(example.source) for example in examples))
        _write_lines(folder / f"{name}.{TARGET}", (" ".join(example.target) for example in examples))
    source, target = task.vocabulary()
    if one_vocabulary:
        source = target = source | target
    _write_lines(folder / f"vocabulary.{SOURCE}", sorted(source))
    _write_lines(folder / f"vocabulary.{TARGET}", sorted(target))


def read_outputs(path: Path, number: int) -> list[Tokens]:
    """Return the tokens of each output, without special ones; `RuntimeError` unless there are `number` outputs."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    if len(lines) != number:
        raise RuntimeError(f"{path} has {len(lines):,} outputs for {number:,} sentences")
    special = {"", *map(symbol, SPECIAL)}
    return [tuple(token for token in line.split(" ") if token not in special) for line in lines]


def sentences_per_batch(config: RunConfig, examples: Sequence[Example]) -> int:
    """Return the average number of sentences in our batches: batches of similar length have little padding."""
    train = config.train
    if not train.batch_tokens:
        return train.batch_size
    longer_side = mean(max(len(example.source), len(example.target)) + 1 for example in examples)
    return max(1, min(train.batch_size, round(train.batch_tokens / longer_side)))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

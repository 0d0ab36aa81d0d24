"""Your own pairs of texts: any parallel data, scored by exact match.

    A rose was helped by a dog .  ->  help ( theme = rose , agent = dog )

The pairs are the files of a folder (`data.root`) or a data set of the Hugging Face hub (`data.hub`): columns separated
by tabs, JSON lines, parallel files such as `train.src` and `train.tgt`, or SCAN's `IN: ... OUT: ...`. So the files of
COGS (Kim & Linzen 2020, arXiv 2010.05465) and of SIGMORPHON are read as they are published.

A file or a split is for training or validation by its name (`train`; `dev`, `valid`, `validation`); any other is a
test set of its own name, such as `test` and `gen`. Columns beyond the source and the target are tags, by which results
can be shown (`--by category`). Tokens are what spaces separate; a model knows those of train.
"""

from collections.abc import Sequence
from sys import intern
from typing import Any, ClassVar, Literal

from pydantic import Field

from tfstudy.tasks.base import LONGEST_TAG, Example, Task, Tokens, unknown_tokens
from tfstudy.tasks.corpus import CorpusTask, FilesConfig
from tfstudy.tasks.reading import Split, read_pairs

SPACE = "␣"  # a space, where tokens are characters
MOST_VALUES = 200  # of a column that is a tag: more would be a row of a table for almost every example


class Pairs(CorpusTask):
    """Map the source of a pair to its target; how files are read is at the top of this file."""

    schemes: ClassVar = {"given": "the splits of the files or of the data set"}

    class Config(FilesConfig):
        split: str = "given"
        tokens: Literal["words", "characters"] = Field(
            "words", description="tokens: what spaces separate, or characters"
        )

    config: Config

    def __init__(self, config: Config) -> None:
        self.check_config(config)
        self.config = config
        splits, self._unused, self._commit = read_pairs(config)
        self._facts = {"features": splits["train"].features is not None}
        tags = [name for name in splits["train"].tags if self._is_tag(name, splits)]
        self._examples = {name: self._read(split, tags, name) for name, split in splits.items()}
        self._vocabulary = Task.vocabulary(self)

    def notes(self) -> dict[str, Any]:
        """Return what was not used, how many held-out examples have tokens that train lacks, and the commit."""
        return {**super().notes(), "unknown": unknown_tokens(self), "commit": self._commit}

    # Tokens

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a source; features follow a tab, separated by semicolons: `walk<TAB>V;PST`."""
        text, _, features = text.partition("\t") if self._facts.get("features") else (text, "", "")
        marks = tuple(f"[{feature}]" for feature in features.replace(" ", "").split(";") if feature)
        return (*self.target_tokens(text), *marks)

    def target_tokens(self, text: str) -> Tokens:
        if self.config.tokens == "characters":
            return tuple(text.replace(" ", SPACE))
        return tuple(intern(token) for token in text.split(" ") if token)  # one string for all places of a word

    def text(self, tokens: Tokens) -> str:
        if self.config.tokens == "characters":
            return "".join(tokens).replace(SPACE, " ")
        return " ".join(tokens)

    def _read(self, split: Split, tags: Sequence[str], name: str) -> list[Example]:
        """Return the examples of a split; `UserError` for an empty side."""
        split.check_no_empty(name)
        sources = split.sources
        if split.features is not None:
            sources = [f"{source}\t{features}" for source, features in zip(sources, split.features, strict=True)]
        values = zip(*(split.tags[tag] for tag in tags), strict=True) if tags else [()] * len(sources)
        examples = []
        for source, target, own in zip(sources, split.targets, values, strict=True):
            tokens = self.target_tokens(target)
            named = {"length": len(tokens), **dict(zip(tags, own, strict=True))}
            examples.append(Example(self.tokens(source), tokens, named))
        return examples

    def _is_tag(self, name: str, splits: dict[str, Split]) -> bool:
        """Return whether a column of train is a tag: all splits have it, with few values. Others are noted."""
        values = {value for split in splits.values() for value in split.tags.get(name, ())}
        if name == "length":  # which all examples have as a tag
            reason = "the tag length is the number of target tokens"
        elif lacking := [split for split, own in splits.items() if name not in own.tags]:
            reason = f"not in {', '.join(lacking)}"
        elif len(values) > MOST_VALUES:
            reason = f"{len(values):,} values; a tag has at most {MOST_VALUES}"
        elif (longest := max(map(len, values), default=0)) > LONGEST_TAG:
            reason = f"a value of {longest:,} characters; that of a tag has at most {LONGEST_TAG}"
        else:
            return True
        self._unused[f"column {name}"] = reason
        return False

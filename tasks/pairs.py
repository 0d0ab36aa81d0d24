"""Your own pairs of texts: any parallel data, scored by exact match.

    A rose was helped by a dog .  ->  help ( theme = rose , agent = dog )

The pairs are the files of a folder (`data.root`) or a data set of the Hugging Face hub (`data.hub`): columns separated
by tabs, JSON lines, parallel files such as `train.src` and `train.tgt`, or SCAN's `IN: ... OUT: ...`. So the files of
COGS (Kim & Linzen 2020, arXiv 2010.05465) and of SIGMORPHON are read as they are published.

A file or a split is for training or validation by its name (`train`; `dev`, `valid`, `validation`); any other is a
test set of its own name, such as `test` and `gen`. Columns beyond the source and the target are tags, by which results
can be shown (`--by category`). Tokens are what spaces separate; a model knows those of train.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from sys import intern
from typing import Any, ClassVar, Literal

from pydantic import Field

from tfstudy.errors import UserError, one_of
from tfstudy.tasks.base import (
    DataRecord,
    Example,
    Splits,
    Task,
    TaskConfig,
    Tokens,
    read_record,
    unknown_tokens,
    unknown_warnings,
)
from tfstudy.tasks.reading import FilesConfig, Split, check_files, read_pairs

SPACE = "␣"  # a space, where tokens are characters
MOST_VALUES = 200  # of a column that is a tag: more would be a row of a table for almost every example


class Pairs(Task):
    """Map the source of a pair to its target; how files are read is at the top of this file."""

    schemes: ClassVar = {"given": "the splits of the files or of the data set"}

    class Config(FilesConfig):
        split: str = Field("given", description="given: the splits of the files or of the data set")
        tokens: Literal["words", "characters"] = Field(
            "words", description="tokens: what spaces separate, or characters"
        )

    def __init__(self, config: Config) -> None:
        self.check_config(config)
        self.config = config
        data = read_pairs(config)
        self._unused, self._commit = data.unused, data.commit
        self._has_features = data.splits["train"].features is not None
        tags = [name for name in data.splits["train"].tags if self._is_tag(name, data.splits)]
        self._examples = {name: self._read(split, tags, name) for name, split in data.splits.items()}
        self._vocabulary = super().vocabulary()

    @classmethod
    def check_config(cls, config: TaskConfig) -> None:
        super().check_config(config)
        assert isinstance(config, cls.Config)  # noqa: S101 - always true; for the type checker
        check_files("pairs", config)

    def splits(self) -> Splits:
        tests = tuple(name for name in self._examples if name not in ("train", "validation"))
        return Splits("train", "validation" if "validation" in self._examples else None, tests)

    def examples(self, split: str) -> Sequence[Example]:
        return self._examples[one_of("split", split, self._examples)]

    def vocabulary(self) -> tuple[set[str], set[str]]:
        return self._vocabulary

    def corpus(self) -> str:
        return Path(self.config.root).resolve().name if self.config.root else self.config.hub

    def files(self) -> dict[str, str]:
        return {"data.json": DataRecord.of(self, features=self._has_features).model_dump_json()}

    @classmethod
    def restored(cls, config: TaskConfig, files: Mapping[str, str]) -> "Pairs | None":
        assert isinstance(config, cls.Config)  # noqa: S101 - always true; for the type checker
        record = read_record(files)
        if record is None or "train" not in record.lengths:
            return None
        task = cls.__new__(cls)
        task.config, task._has_features = config, record.facts.get("features", False)
        task._unused, task._commit = {}, ""
        task._examples, task._vocabulary = record.examples(), ({*record.source}, {*record.target})
        return task

    def notes(self) -> dict[str, Any]:
        """Return what was not used, how many held-out examples have tokens that train lacks, and the commit."""
        return {"unused": self._unused, "unknown": unknown_tokens(self), "commit": self._commit}

    def remarks(self) -> Sequence[str]:
        unused = ", ".join(f"{name} ({reason})" for name, reason in self._unused.items())
        return [*([f"not used: {unused}"] if unused else []), *unknown_warnings(self)]

    # Tokens

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a source; features follow a tab, separated by semicolons: `walk<TAB>V;PST`."""
        text, _, features = text.partition("\t") if self._has_features else (text, "", "")
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
        for side, (what, texts) in enumerate((("source", split.sources), ("target", split.targets))):
            if empty := [number for number, text in enumerate(texts) if not text.strip(" ")]:
                count = f"{len(empty):,} of {len(texts):,} pairs of {name}"
                raise UserError(f"{split.place(empty[0], side)}: the {what} is empty ({count})")
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
        if name == "length":  # which all examples have as a tag
            self._unused["column length"] = "the tag length is the number of target tokens"
            return False
        if lacking := [split for split, own in splits.items() if name not in own.tags]:
            self._unused[f"column {name}"] = f"not in {', '.join(lacking)}"
            return False
        values = {value for split in splits.values() for value in split.tags[name]}
        if len(values) > MOST_VALUES:
            self._unused[f"column {name}"] = f"{len(values):,} values; a tag has at most {MOST_VALUES}"
        return len(values) <= MOST_VALUES

"""Your own pairs of texts: any parallel data, scored by exact match.

    A rose was helped by a dog .  ->  help ( theme = rose , agent = dog )

The pairs are the files of a folder (`data.root`) or a data set of the Hugging Face hub (`data.hub`): columns separated
by tabs, JSON lines, parallel files such as `train.src` and `train.tgt`, or SCAN's `IN: ... OUT: ...`. Data sets such as
COGS (Kim & Linzen 2020, arXiv 2010.05465), CFQ (Keysers et al. 2020, arXiv 1912.09713) and SIGMORPHON are read as they
are published.

A file or a split is for training or validation by its name (`train`; `dev`, `valid`, `validation`); any other is a
test set of its own name, such as `test` and `gen`. Columns beyond the source and the target are tags, by which results
can be shown (`--by category`). Tokens are what spaces separate; a model knows those of train.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from tfstudy.errors import UserError, nearest, one_of, quoted
from tfstudy.tasks.base import Example, Splits, Task, TaskConfig, Tokens, unknown_tokens, unknown_warnings
from tfstudy.tasks.reading import (
    OTHER_FILES,
    SCAN_LINE,
    SOURCE_NAMES,
    TARGET_NAMES,
    VALIDATION,
    Table,
    Tables,
    extension,
    folder_files,
    from_hub,
    lines,
    read_files,
    stem,
)

SPACE = "␣"  # a space, where tokens are characters
MOST_VALUES = 200  # of a column that is a tag: more would be a row of a table for almost every example
NAMED = dict.fromkeys(SOURCE_NAMES, "source") | dict.fromkeys(TARGET_NAMES, "target")  # columns by their usual names
NAMED |= dict.fromkeys(("features", "feats", "msd"), "features")
SIDES = (("src", "tgt"), ("src", "trg"), ("source", "target"), ("in", "out"), ("input", "output"))  # of parallel files
NAMES = {  # of files and splits, in part: the role
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys((*VALIDATION, "development"), "validation"),
    **dict.fromkeys(("test", "tst", "gold"), "test"),
}


class Columns(NamedTuple):
    """The numbers of the columns of a table, by what they are for."""

    source: int
    target: int
    features: int | None
    tags: dict[str, int]


class Pairs(Task):
    """Map the source of a pair to its target; how files are read is at the top of this file."""

    schemes: ClassVar = {"given": "the splits of the files or of the data set"}

    class Config(TaskConfig):
        split: str = Field("given", description="given: the splits of the files or of the data set")
        root: str = Field("", description="folder with the files")
        hub: str = Field("", description="id of a data set on the Hugging Face hub, or a local folder of parquet files")
        hub_config: str = Field("", description="configuration of the data set on the hub")
        revision: str = Field("", description="branch or commit of the data set on the hub")
        columns: str = Field(
            "",
            description="names of the columns, such as source,target,category; with a purpose where the name does not "
            "tell: question=source,query=target,id=none; NAME=features joins a column to the source",
        )
        roles: str = Field(
            "", description="roles that names do not tell, such as a.tsv=train,b.tsv=none,c.tsv=my_test_set"
        )
        tokens: Literal["words", "characters"] = Field(
            "words", description="tokens: what spaces separate, or characters"
        )

    def __init__(self, config: Config) -> None:
        self.check_config(config)
        self.config = config
        tables = self._from_folder() if config.root else self._from_hub()
        self._unused, self._commit = {**tables.unused}, tables.commit
        columns = {split: self._columns(table) for split, table in tables.splits.items()}
        self._has_features = columns["train"].features is not None
        tags = [name for name in columns["train"].tags if self._is_tag(name, tables, columns)]
        order = sorted(columns, key=lambda split: (split != "train", split != "validation", split != "test", split))
        self._examples = {split: self._read(tables.splits[split], columns[split], tags, split) for split in order}
        self._vocabulary = super().vocabulary()

    @classmethod
    def check_config(cls, config: TaskConfig) -> None:
        super().check_config(config)
        assert isinstance(config, cls.Config)  # noqa: S101 - always true; for the type checker
        if bool(config.root) == bool(config.hub):
            raise UserError("pairs needs exactly one of data.root (a folder of files) and data.hub (an id)")
        for key in ("hub_config", "revision") if config.root else ():
            if getattr(config, key):
                raise UserError(f"data.{key} cannot be set with data.root")
        for key in ("columns", "roles"):
            _settings(getattr(config, key), f"data.{key}")

    def splits(self) -> Splits:
        tests = tuple(name for name in self._examples if name not in ("train", "validation"))
        return Splits("train", "validation" if "validation" in self._examples else None, tests)

    def examples(self, split: str) -> Sequence[Example]:
        return self._examples[one_of("split", split, self._examples)]

    def vocabulary(self) -> tuple[set[str], set[str]]:
        return self._vocabulary

    def corpus(self) -> str:
        return Path(self.config.root).resolve().name if self.config.root else self.config.hub

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
        return tuple(token for token in text.split(" ") if token)

    def text(self, tokens: Tokens) -> str:
        if self.config.tokens == "characters":
            return "".join(tokens).replace(SPACE, " ")
        return " ".join(tokens)

    def _read(self, table: Table, columns: Columns, tags: Sequence[str], split: str) -> list[Example]:
        """Return the examples of a split; `UserError` for an empty side."""
        sources, targets = table.texts(columns.source), table.texts(columns.target)
        for column, texts, what in ((columns.source, sources, "source"), (columns.target, targets, "target")):
            if empty := [number for number, text in enumerate(texts) if not text.strip(" ")]:
                place = f"{table.places[column]}{table.first + empty[0]}"
                raise UserError(f"{place}: the {what} is empty ({len(empty):,} of {len(texts):,} pairs of {split})")
        if columns.features is not None:
            sources = [f"{a}\t{b}" for a, b in zip(sources, table.texts(columns.features), strict=True)]
        values = zip(*(table.texts(columns.tags[name]) for name in tags), strict=True) if tags else [()] * len(sources)
        examples = []
        for source, target, own in zip(sources, targets, values, strict=True):
            tokens = self.target_tokens(target)
            examples.append(
                Example(self.tokens(source), tokens, {"length": len(tokens), **dict(zip(tags, own, strict=True))})
            )
        return examples

    # Which files are which split

    def _from_folder(self) -> Tables:
        folder, paths = folder_files(self.config.root)
        roles = _settings(self.config.roles, "data.roles")
        names = [path.name for path in paths]
        for name in roles.keys() - {*names}:
            raise UserError(f"data.roles: {folder} has no file {quoted(name)}{nearest(name, names)}")
        found: dict[str, list[Path]] = {}
        unused: dict[str, str] = {}
        for path in paths:
            role = roles.get(path.name) or role_of(path.name.removesuffix(".gz"))
            if reason := _not_read(path, path.name in roles, role):
                unused[path.name] = reason
            else:
                found.setdefault(role, []).append(path)
        splits = {role: used for role, own in found.items() if (used := self._files_of(role, own, unused))}
        if missing := "train" if "train" not in splits else "test" if not {*splits} - {"train", "validation"} else "":
            reasons = [f"{name} ({unused[name]})" if name in unused else name for name in names]
            raise UserError(
                f"data.root: {folder} has no {missing} file; name one with data.roles=FILE={missing}. The folder "
                f"contains {', '.join(reasons[:20]) or 'nothing'}"
            )
        return Tables({role: read_files(used, [*map(extension, used)]) for role, used in splits.items()}, unused)

    def _files_of(self, role: str, paths: list[Path], unused: dict[str, str]) -> list[Path]:
        """Return the file of a role, or its two parallel files, the source first; `unused` gets what is neither."""
        if len(paths) == 2 and stem(paths[0]) == stem(paths[1]) and not {"tsv", "jsonl"} & {*map(extension, paths)}:
            return self._in_order(paths)
        exact = [path for path in paths if stem(path) in NAMES]
        if len(paths) > 1 and len(exact) == 1:  # such as train.tsv beside train_100.tsv
            unused |= {path.name: f"{exact[0].name} is the {role} split" for path in paths if path != exact[0]}
            paths = exact
        if len(paths) > 1:
            found = " and ".join(path.name for path in paths)
            raise UserError(f"data.root: {found} are both for '{role}'; give one another role: data.roles=FILE=none")
        first = next(lines(paths[0]), "")
        if "\t" in first or SCAN_LINE.fullmatch(first) or extension(paths[0]).endswith("jsonl"):
            return paths
        unused[paths[0].name] = "one column, and no parallel file"
        return []

    def _in_order(self, paths: list[Path]) -> list[Path]:
        """Return two parallel files, the source first, as `data.columns` says or as usual names do."""
        ends = {extension(path): path for path in paths}
        for sides in (tuple(_settings(self.config.columns, "data.columns")), *SIDES):
            if {*sides} == ends.keys():
                return [ends[side] for side in sides]
        raise UserError(
            f"data.root: {paths[0].name} and {paths[1].name} are parallel; name the source first, such as "
            f"data.columns={','.join(ends)}"
        )

    def _from_hub(self) -> Tables:
        roles = _settings(self.config.roles, "data.roles")

        def name_of(split: str) -> str:
            role = roles.get(split) or role_of(split)
            return "" if role == "none" else role

        config = self.config
        return from_hub(config.hub, config.hub_config, config.revision, name_of)

    # What the columns are for

    def _columns(self, table: Table) -> Columns:
        """Return what the columns are for, by `data.columns`, by the names that the file gives, or by their order."""
        settings, names = _settings(self.config.columns, "data.columns"), table.columns
        where = f"{table.places[0]}{table.first}"
        if not settings.keys() <= {*names}:  # then they name all columns in their order
            if len(settings) != len(table.places) or (names and any(settings.values())):
                missing = next(name for name in settings if name not in names)
                has = f"the columns {', '.join(names)}" if names else f"{len(table.places)} columns without names"
                raise UserError(f"{where} has {has}, but data.columns names {quoted(missing)}{nearest(missing, names)}")
            names = tuple(settings)
        names = names or tuple(f"column_{number}" for number in range(1, len(table.places) + 1))
        purposes = {name: settings.get(name) or NAMED.get(name, "tag") for name in names}
        purposes |= dict.fromkeys([name for name in names if settings and name not in settings], "none")
        if not {"source", "target"} & {*purposes.values()} and (settings or not table.columns):
            chosen = [name for name in names if purposes[name] == "tag"]
            purposes |= dict(zip(chosen, ("source", "target"), strict=False))
        numbers: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            numbers.setdefault(purposes[name], []).append(number)
        for purpose in ("source", "target"):
            if len(numbers.get(purpose, ())) != 1:
                count = "more than one" if purpose in numbers else "no"
                raise UserError(
                    f"{where}: {count} {purpose} among the columns {', '.join(names)}; say which, such as "
                    f"data.columns={names[0]}=source,{names[-1]}=target"
                )
        tags = {names[number]: number for number in numbers.get("tag", ())}
        return Columns(numbers["source"][0], numbers["target"][0], numbers.get("features", [None])[0], tags)

    def _is_tag(self, name: str, tables: Tables, columns: Mapping[str, Columns]) -> bool:
        """Return whether a column of train is a tag: all splits have it, with few values. Others are noted."""
        if lacking := [split for split in columns if name not in columns[split].tags]:
            self._unused[f"column {name}"] = f"not in {', '.join(lacking)}"
            return False
        values = {row[columns[split].tags[name]] for split, table in tables.splits.items() for row in table.rows}
        if len(values) > MOST_VALUES:
            self._unused[f"column {name}"] = f"{len(values):,} values; a tag has at most {MOST_VALUES}"
        return len(values) <= MOST_VALUES


def role_of(name: str) -> str:
    """Return the split that a file or a hub split is for, by its name: one of `NAMES`, or else its own name."""
    whole = re.sub(r"\W", "_", name.partition(".")[0].lower())
    if whole in NAMES or whole.startswith("test"):
        return NAMES.get(whole, whole)
    parts = re.split(r"[\W_]", name.lower())
    return next((NAMES[part] for part in parts if part in NAMES), whole)


def _not_read(path: Path, asked_for: bool, role: str) -> str:
    """Return why a file is not read; empty if it is."""
    if role == "none":
        return "data.roles"
    if path.is_dir():
        return "a folder"
    return "no format that is read" if not asked_for and OTHER_FILES.fullmatch(path.name) else ""


def _settings(text: str, key: str) -> dict[str, str]:
    """Return `a=b,c` as `{"a": "b", "c": ""}`; `UserError` if a name is empty or occurs twice.

    A colon separates like a comma, which separates the values of an axis on the command line of a grid.
    """
    parts = [part.strip().partition("=") for part in re.split("[,:]", text)] if text.strip() else []
    settings = {name.strip(): value.strip() for name, _, value in parts}
    if len(settings) < len(parts) or "" in settings:
        raise UserError(f"{key} must be names separated by commas or colons, each of them once, but is {quoted(text)}")
    for value in settings.values():
        if key == "data.columns" and value:
            one_of("purpose", value, ("source", "target", "features", "tag", "none"), key)
        elif key == "data.roles" and not re.fullmatch(r"\w+", value):
            raise UserError(
                f"{key} must be FILE=ROLE, the role train, validation, none or a name, but is {quoted(text)}"
            )
    return settings

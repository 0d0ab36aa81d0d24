"""The base class of tasks whose examples are read from files or from the Hugging Face hub, and their settings.

A run keeps the vocabularies and the lengths of its data (`data.json`), so that its model can be used without them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, ValidationError

from tfstudy.errors import UserError, one_of
from tfstudy.tasks.base import Example, Splits, Task, TaskConfig
from tfstudy.tasks.reading import settings

Count = Annotated[int, Field(ge=0, le=10**6)]


class FilesConfig(TaskConfig):
    """Settings of tasks that read pairs (section `data`)."""

    root: str = Field("", description="folder with the files: .tsv, .jsonl, parallel files or lines of SCAN (or .gz)")
    hub: str = Field("", description="id of a data set on the Hugging Face hub, or a local folder of parquet files")
    hub_config: str = Field("", description="configuration of the data set on the hub, such as de-en")
    revision: str = Field("", description="branch or commit of the data set on the hub")
    columns: str = Field(
        "",
        description="names of the columns, such as source,target,category; with a purpose where the name does not "
        "tell: question=source,query=target,id=none",
    )
    roles: str = Field("", description="roles that names do not tell, such as a.tsv=train,b.tsv=none,c.tsv=my_test_set")


class DataRecord(BaseModel):
    """What a trained model needs to know of data that may be elsewhere: vocabularies and lengths, as `data.json`."""

    source: list[str]
    target: list[str]
    lengths: dict[str, list[tuple[Count, Count, Count]]]  # by split: of source and target, and how many examples
    facts: dict[str, bool] = {}  # further ones of the task


class CorpusTask(Task):
    """A task that reads its examples. A subclass sets these attributes; `read_pairs` returns what they are made of."""

    Config: ClassVar[type[FilesConfig]] = FilesConfig
    config: FilesConfig
    _examples: dict[str, list[Example]]  # by split
    _vocabulary: tuple[set[str], set[str]]
    _unused: dict[str, str]  # files, splits and columns that are not used, with the reason
    _facts: Mapping[str, bool] = MappingProxyType({})  # further ones for the record of the data
    _commit = ""  # of a data set on the hub

    @classmethod
    def check_config(cls, config: TaskConfig) -> None:
        """Raise `UserError` if the settings of the files do not fit together."""
        super().check_config(config)
        assert isinstance(config, FilesConfig)  # noqa: S101 - always true; for the type checker
        if bool(config.root) == bool(config.hub):
            raise UserError(
                f"--split {config.split} needs exactly one of data.root (a folder of files) and data.hub (an id)"
            )
        for key in ("hub_config", "revision") if config.root else ():
            if getattr(config, key):
                raise UserError(f"data.{key} cannot be set with data.root")
        for key in ("columns", "roles"):
            settings(getattr(config, key), f"data.{key}")

    def splits(self) -> Splits:
        tests = tuple(name for name in self._examples if name not in ("train", "validation"))
        return Splits("train", "validation" if "validation" in self._examples else None, tests)

    def examples(self, split: str) -> Sequence[Example]:
        return self._examples[one_of("split", split, self._examples)]

    def vocabulary(self) -> tuple[set[str], set[str]]:
        return self._vocabulary

    def corpus(self) -> str:
        """Return the name of the folder, or the id of the data set on the hub."""
        name = self.config.root or self.config.hub
        return Path(name).resolve().name if self.config.root or (name and Path(name).is_dir()) else name

    def remarks(self) -> Sequence[str]:
        unused = ", ".join(f"{name} ({reason})" for name, reason in self._unused.items())
        return [f"not used: {unused}"] if unused else []

    def files(self) -> dict[str, str]:
        """Return what `restored` needs: the record of the data."""
        source, target = map(sorted, self.vocabulary())
        counts = {name: Counter((len(e.source), len(e.target)) for e in own) for name, own in self._examples.items()}
        lengths = {name: [(*size, n) for size, n in sorted(found.items())] for name, found in counts.items()}
        record = DataRecord(source=source, target=target, lengths=lengths, facts=dict(self._facts))
        return {"data.json": record.model_dump_json()}

    @classmethod
    def restored(cls, config: TaskConfig, files: Mapping[str, str]) -> Self | None:
        try:
            record = DataRecord.model_validate_json(files.get("data.json", ""))
        except ValidationError:
            return None
        if "train" not in record.lengths:
            return None
        task = cls.__new__(cls)
        task.config = config  # type: ignore[assignment]
        task._unused, task._facts = {}, record.facts
        task._vocabulary = {*record.source}, {*record.target}
        task._examples = {
            split: [example for a, b, n in sizes for example in [Example(("",) * a, ("",) * b, {})] * n]
            for split, sizes in record.lengths.items()
        }
        return task if task.restore(files) else None

    def restore(self, files: Mapping[str, str]) -> bool:
        """Set what a subclass needs beyond the record; return whether the files have all of it."""
        return True

    def notes(self) -> dict[str, Any]:
        return {"unused": self._unused}

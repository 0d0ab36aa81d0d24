"""The interface of an instrument: it measures a finished run, and says how its numbers are drawn."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from tfstudy.config.schema import RunConfig, Section
from tfstudy.data.encoding import TaskEncoder
from tfstudy.models.base import Model
from tfstudy.runs.schema import Chart, Row
from tfstudy.tasks.base import Task

__all__ = ["Chart", "Instrument", "Row", "Settings", "Subject"]


class Settings(Section):
    """The settings that an instrument has (`--set key=value`): numbers, texts and truth values, each with a default."""


class Subject(NamedTuple):
    """A finished run that is measured. The model is in eval mode, and must be left as it was."""

    model: Model
    task: Task
    data: TaskEncoder  # the vocabularies
    config: RunConfig


class Instrument(ABC):
    """A measurement of a trained model. Each instrument is a subclass in a file of its own, with a nested `Config`.

    All rows of an instrument have the same keys: the columns that `chart` names, and any others.
    """

    summary: ClassVar[str]  # one line for `tfstudy list instruments`
    chart: ClassVar[Chart]
    version: ClassVar[int] = 1  # raise it when the same model and settings lead to other numbers
    Config: ClassVar[type[Settings]] = Settings

    def __init__(self, config: Settings) -> None:
        self.config = config

    @abstractmethod
    def measure(self, subject: Subject) -> list[Row]:
        """Return a number per row, with what it belongs to: a layer, a head, a length, ...

        All numbers must be finite. `UserError` if the instrument does not apply to this model or task, with the reason.
        """

"""Instruments that measure while a model is trained: `tfstudy run ... --measure NAME`."""

from abc import abstractmethod
from typing import Any

from lightning.pytorch import Callback

from tfstudy import instruments
from tfstudy.config.schema import RunConfig
from tfstudy.errors import UserError
from tfstudy.instruments.base import Instrument, Row, Subject
from tfstudy.runs.schema import Measurement


class Listener(Callback):
    """A callback that collects rows. It changes nothing in training, and draws no random numbers.

    Its rows are part of every checkpoint, so a resumed run has the rows of an uninterrupted one.
    """

    state_key = "measure "  # followed by the name of the instrument

    def __init__(self, instrument: str) -> None:
        self.instrument = instrument
        self.state_key = f"{Listener.state_key}{instrument}"
        self.rows: list[Row] = []

    def state_dict(self) -> dict[str, Any]:
        return {"rows": list(self.rows)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows = list(state_dict["rows"])


class TrainingInstrument(Instrument):
    """An instrument that listens to training. Its file says `during_training = True`, so that it is listed as one."""

    def measure(self, subject: Subject) -> list[Row]:
        raise UserError(f"{type(self).__name__} measures during training, not a finished run")

    @abstractmethod
    def listener(self, name: str, config: RunConfig) -> Listener:
        """Return what collects the rows of a run. `name` is that of the instrument."""


def listener(name: str, config: RunConfig) -> Listener:
    """Return the listener of the instrument with this name; `UserError` if it does not listen to training."""
    cls = instruments.find(instruments.known_in_training(name))
    instrument = cls(cls.Config())
    if not isinstance(instrument, TrainingInstrument):
        raise UserError(f"{cls.__name__} says during_training, but is no TrainingInstrument")
    return instrument.listener(name, config)


def measurement(found: Listener, run: str) -> Measurement:
    """Return the rows of a listener as the record of the run with this hash."""
    cls = instruments.find(found.instrument)
    return Measurement.of(found.rows, run, found.instrument, cls.version, cls.Config().model_dump(), cls.chart)

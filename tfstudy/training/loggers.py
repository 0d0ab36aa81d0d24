"""Loggers: the metrics file, and TensorBoard and W&B in `<run>/logs/<kind>`. None of them can stop a run."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from tfstudy.config.schema import RunConfig
from tfstudy.runs.store import HEADER
from tfstudy.runs.writer import RunFolder


class NamedLogger(Logger):
    """A logger of metrics only: `config.yaml` has the settings."""

    def __init__(self, name: str, version: str = "") -> None:
        super().__init__()
        self._name, self._version = name, version

    @property
    def name(self) -> str:
        return self._name

    @property
    def version(self) -> str:
        return self._version

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


class MetricsFile(NamedLogger):
    """A Lightning logger that appends rows `step,metric,value` to a file."""

    def __init__(self, path: Path) -> None:
        super().__init__("metrics")
        self._path = path

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        rows = "".join(f"{step},{name},{value!r}\n" for name, value in metrics.items())
        with self._path.open("a") as file:
            file.write(rows if file.tell() else f"{HEADER}\n{rows}")


class LogTarget(NamedTuple):
    """Where and under which name a run is logged. It is the same when a run resumes, so that the log continues."""

    folder: Path  # of this logger
    run: str  # hash of the run
    name: str  # such as `scan-length/lstm/s0-1a2b3c4d`
    step: int  # after which the run continues; 0 at the start


def build(names: Sequence[str], record: RunFolder, config: RunConfig, step: int) -> list[Logger]:
    """Return the started loggers of a run that continues after `step`.

    They start here, since that can take seconds, which would otherwise count as training.
    """
    name, hyperparameters = "/".join(record.path.parts[-3:]), config.model_dump(mode="json")
    targets = {kind: LogTarget(record.path / "logs" / kind, record.run, name, step) for kind in names}
    return [GuardedLogger(kind, target, hyperparameters, record.log) for kind, target in targets.items()]


class GuardedLogger(NamedLogger):
    """A logger that is dropped with one line to `report` when it fails, in its start or in any method."""

    def __init__(
        self, kind: str, target: LogTarget, hyperparameters: dict[str, Any], report: Callable[[str], None]
    ) -> None:
        super().__init__(kind, target.run)
        self._report = report
        self._inner: Logger | None = None

        def start() -> None:
            target.folder.mkdir(parents=True, exist_ok=True)
            self._inner = FACTORIES[kind](target)
            self._inner.log_hyperparams(hyperparameters)

        self._attempt(start)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        self._call("log_metrics", dict(metrics), step)

    def save(self) -> None:
        self._call("save")

    def finalize(self, status: str) -> None:
        self._call("finalize", status)

    def _call(self, method: str, *arguments: Any) -> None:
        if self._inner:
            self._attempt(partial(getattr(self._inner, method), *arguments))

    def _attempt(self, call: Callable[[], None]) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # advice of a package to its own users
                call()
        except Exception as error:  # results do not depend on loggers
            self._inner = None
            text = " ".join(str(error).split())[:200]
            with suppress(OSError):  # such as a full disk
                self._report(f"logger {self.name} dropped, the run continues: {type(error).__name__}: {text}")


def tensorboard(target: LogTarget) -> Logger:
    """TensorBoard event files. For a resumed run, readers drop what was logged after the step that it resumes from."""
    from lightning.pytorch.loggers import TensorBoardLogger

    class FlushingLogger(TensorBoardLogger):
        def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
            super().log_metrics(metrics, step)
            self.experiment.flush()  # otherwise a killed run loses what it logged before its last checkpoint

    purge = target.step + 1 if target.step else None
    return FlushingLogger(target.folder, name="", version="", default_hp_metric=False, purge_step=purge)


def wandb(target: LogTarget) -> Logger:
    """A W&B run with the run's hash as its id. It is offline (see `wandb sync`) unless WANDB_MODE is set."""
    from lightning.pytorch.loggers import WandbLogger
    from wandb import Settings

    class FinishingLogger(WandbLogger):
        def finalize(self, status: str) -> None:
            super().finalize(status)
            self.experiment.finish(int(status != "success"))  # Lightning leaves it open for the next training

    return FinishingLogger(
        name=target.name,
        save_dir=target.folder,
        id=target.run,
        project=os.environ.get("WANDB_PROJECT", "tfstudy"),
        group=target.name.rpartition("/")[0],
        mode=os.environ.get("WANDB_MODE", "offline"),
        settings=Settings(console="off", silent=True, reinit="create_new", init_timeout=30),
    )


FACTORIES: dict[str, Callable[[LogTarget], Logger]] = {"tensorboard": tensorboard, "wandb": wandb}

"""TensorBoard, W&B and MLflow beside the metrics file. They write to `<run>/logs/<kind>`, and none can end a run."""

import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from tfstudy.config.schema import RunConfig
from tfstudy.runs.writer import HEADER, RunFolder


class MetricsFile(Logger):
    """A Lightning logger that appends rows `step,metric,value` to a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    @property
    def name(self) -> str:
        return "metrics"

    @property
    def version(self) -> str:
        return ""

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Nothing: `config.yaml` holds them."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        rows = "".join(f"{step},{name},{value!r}\n" for name, value in metrics.items())
        with self._path.open("a") as file:
            file.write(rows if file.tell() else f"{HEADER}\n{rows}")


class Place(NamedTuple):
    """Where a run is logged. The same run has the same place again, so a resumed run goes on in it."""

    folder: Path  # the logger's own
    run: str  # the run's hash
    name: str  # `scan-length/lstm/s0-1a2b3c4d`
    step: int  # that the run goes on after; 0 at its start


def build(names: Sequence[str], record: RunFolder, config: RunConfig, step: int, rank: int) -> list[Logger]:
    """The loggers of a run that goes on after `step`, begun; none in a process that is not the first.

    They begin here, since it can take seconds that would else count as training.
    """
    name, hyperparameters = "/".join(record.path.parts[-3:]), config.model_dump(mode="json")
    places = {kind: Place(record.path / "logs" / kind, record.run, name, step) for kind in names if not rank}
    return [Guarded(kind, place, hyperparameters, record.log) for kind, place in places.items()]


class Guarded(Logger):
    """A logger that is dropped with one line to `say` when any of its methods fails, its beginning too."""

    def __init__(self, kind: str, place: Place, hyperparameters: dict[str, Any], say: Callable[[str], None]) -> None:
        super().__init__()
        self._kind, self._place, self._say = kind, place, say
        self._inner: Logger | None = None
        self._do(lambda: self._begin(hyperparameters))

    @property
    def name(self) -> str:
        return self._kind

    @property
    def version(self) -> str:
        return self._place.run

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Nothing: the run's config is told at the start."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        if inner := self._inner:
            self._do(lambda: inner.log_metrics(dict(metrics), step))

    def save(self) -> None:
        if inner := self._inner:
            self._do(inner.save)

    def finalize(self, status: str) -> None:
        if inner := self._inner:
            self._do(lambda: inner.finalize(status))

    def _begin(self, hyperparameters: dict[str, Any]) -> None:
        self._place.folder.mkdir(parents=True, exist_ok=True)
        self._inner = MAKERS[self._kind](self._place)
        self._inner.log_hyperparams(hyperparameters)

    def _do(self, work: Callable[[], None]) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a package's advice to its own users
                work()
        except Exception as error:  # whatever it is, the numbers do not depend on it
            self._inner = None
            text = " ".join(str(error).split())[:200]
            with suppress(OSError):  # such as a full disk
                self._say(f"logger {self._kind} dropped, the run goes on: {type(error).__name__}: {text}")


def tensorboard(place: Place) -> Logger:
    """Event files. What was logged after the step that a resumed run goes on from is purged by its reader."""
    from lightning.pytorch.loggers import TensorBoardLogger

    class Flushing(TensorBoardLogger):
        def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
            super().log_metrics(metrics, step)
            self.experiment.flush()  # else a killed run loses what it logged before its last checkpoint

    purge = place.step + 1 if place.step else None
    return Flushing(place.folder, name="", version="", default_hp_metric=False, purge_step=purge)


def wandb(place: Place) -> Logger:
    """A W&B run whose id is the run's hash; offline (`wandb sync` sends it) unless WANDB_MODE says otherwise."""
    from lightning.pytorch.loggers import WandbLogger
    from wandb import Settings

    class Finishing(WandbLogger):
        def finalize(self, status: str) -> None:
            super().finalize(status)
            self.experiment.finish(int(status != "success"))  # Lightning's leaves it open for the next training

    return Finishing(
        name=place.name,
        save_dir=place.folder,
        id=place.run,
        project=os.environ.get("WANDB_PROJECT", "tfstudy"),
        group=place.name.rpartition("/")[0],
        mode=os.environ.get("WANDB_MODE", "offline"),
        settings=Settings(console="off", silent=True, reinit="create_new", init_timeout=30),
    )


def mlflow(place: Place) -> Logger:
    """An MLflow run with the tag `tfstudy.run`, in a database of its own unless MLFLOW_TRACKING_URI names a server."""
    for key, value in MLFLOW_PATIENCE.items():
        os.environ.setdefault(key, value)
    from lightning.pytorch.loggers import MLFlowLogger
    from mlflow import MlflowClient

    for package in ("mlflow", "alembic"):  # it tells every table of its database
        logging.getLogger(package).setLevel(logging.WARNING)

    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{place.folder.resolve()}/mlflow.db"
    client, experiment = MlflowClient(uri), os.environ.get("MLFLOW_EXPERIMENT_NAME", "tfstudy")
    known = client.get_experiment_by_name(experiment)
    wanted = f"tags.`tfstudy.run` = '{place.run}'"
    earlier = client.search_runs([known.experiment_id], wanted, max_results=1) if known else []
    run = earlier[0].info.run_id if earlier else None
    if run:
        client.set_terminated(run, "RUNNING")
    artifacts = None if os.environ.get("MLFLOW_TRACKING_URI") else (place.folder.resolve() / "artifacts").as_uri()
    return MLFlowLogger(
        experiment, place.name, uri, {"tfstudy.run": place.run}, run_id=run, artifact_location=artifacts
    )


MLFLOW_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}  # else minutes a call
MAKERS: dict[str, Callable[[Place], Logger]] = {"tensorboard": tensorboard, "wandb": wandb, "mlflow": mlflow}

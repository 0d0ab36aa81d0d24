"""Loggers: the metrics file, and TensorBoard, W&B and MLflow in `<run>/logs/<kind>`. None of them can stop a run."""

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from tfstudy.config.schema import RunConfig
from tfstudy.runs.store import HEADER
from tfstudy.runs.writer import RunFolder


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
        """Do nothing: `config.yaml` has them."""

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


def build(names: Sequence[str], record: RunFolder, config: RunConfig, step: int, rank: int) -> list[Logger]:
    """Return the started loggers of a run that continues after `step`; none in processes other than the first.

    They start here, since that can take seconds, which would otherwise count as training.
    """
    name, hyperparameters = "/".join(record.path.parts[-3:]), config.model_dump(mode="json")
    targets = {kind: LogTarget(record.path / "logs" / kind, record.run, name, step) for kind in names if not rank}
    return [GuardedLogger(kind, target, hyperparameters, record.log) for kind, target in targets.items()]


class GuardedLogger(Logger):
    """A logger that is dropped with one line to `report` when it fails, in its start or in any method."""

    def __init__(
        self, kind: str, target: LogTarget, hyperparameters: dict[str, Any], report: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._kind, self._target, self._report = kind, target, report
        self._inner: Logger | None = None
        with self._dropped_on_error():
            target.folder.mkdir(parents=True, exist_ok=True)
            self._inner = FACTORIES[kind](target)
            self._inner.log_hyperparams(hyperparameters)

    @property
    def name(self) -> str:
        return self._kind

    @property
    def version(self) -> str:
        return self._target.run

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Do nothing: the config is logged at the start."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        self._call("log_metrics", dict(metrics), step)

    def save(self) -> None:
        self._call("save")

    def finalize(self, status: str) -> None:
        self._call("finalize", status)

    def _call(self, method: str, *arguments: Any) -> None:
        if self._inner:
            with self._dropped_on_error():
                getattr(self._inner, method)(*arguments)

    @contextmanager
    def _dropped_on_error(self) -> Iterator[None]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # advice of a package to its own users
                yield
        except Exception as error:  # results do not depend on loggers
            self._inner = None
            text = " ".join(str(error).split())[:200]
            with suppress(OSError):  # such as a full disk
                self._report(f"logger {self._kind} dropped, the run continues: {type(error).__name__}: {text}")


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


def mlflow(target: LogTarget) -> Logger:
    """An MLflow run with the tag `tfstudy.run`, in a database in its folder unless MLFLOW_TRACKING_URI is set."""
    for key, value in MLFLOW_TIMEOUTS.items():
        os.environ.setdefault(key, value)
    from lightning.pytorch.loggers import MLFlowLogger
    from mlflow import MlflowClient

    for package in ("mlflow", "alembic"):  # they log every table of the database
        logging.getLogger(package).setLevel(logging.WARNING)

    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{target.folder.resolve()}/mlflow.db"
    client, experiment = MlflowClient(uri), os.environ.get("MLFLOW_EXPERIMENT_NAME", "tfstudy")
    existing = client.get_experiment_by_name(experiment)
    query = f"tags.`tfstudy.run` = '{target.run}'"
    runs = client.search_runs([existing.experiment_id], query, max_results=1) if existing else []
    run = runs[0].info.run_id if runs else None
    if run:
        client.set_terminated(run, "RUNNING")
    artifacts = None if os.environ.get("MLFLOW_TRACKING_URI") else (target.folder.resolve() / "artifacts").as_uri()
    return MLFlowLogger(
        experiment, target.name, uri, {"tfstudy.run": target.run}, run_id=run, artifact_location=artifacts
    )


# By default a call may take minutes.
MLFLOW_TIMEOUTS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
FACTORIES: dict[str, Callable[[LogTarget], Logger]] = {"tensorboard": tensorboard, "wandb": wandb, "mlflow": mlflow}

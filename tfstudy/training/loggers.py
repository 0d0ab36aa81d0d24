"""Loggers: the metrics file, and TensorBoard and W&B in `<run>/logs/<kind>`."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger

from tfstudy.config.schema import RunConfig
from tfstudy.runs.store import HEADER, RunFolder


class MetricsFile(Logger):
    """A Lightning logger that appends rows `step,metric,value` to a file."""

    name, version = "metrics", ""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        rows = "".join(f"{step},{name},{value!r}\n" for name, value in metrics.items())
        with self._path.open("a") as file:
            file.write(rows if file.tell() else f"{HEADER}\n{rows}")

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Do nothing: `config.yaml` has the settings."""


def build(names: Sequence[str], record: RunFolder, config: RunConfig, step: int) -> list[Logger]:
    """Return the started loggers of a run that continues after `step`.

    They start here, since that can take seconds, which would otherwise count as training. Folder, hash and name, such
    as `scan-length/lstm/s0-1a2b3c4d`, are the same when a run resumes, so that its log continues.
    """
    loggers = []
    for kind in names:
        folder = record.path / "logs" / kind
        folder.mkdir(parents=True, exist_ok=True)
        loggers.append(FACTORIES[kind](folder, record.run, "/".join(record.path.parts[-3:]), step))
        loggers[-1].log_hyperparams(config.model_dump(mode="json"))
    return loggers


def tensorboard(folder: Path, run: str, name: str, step: int) -> Logger:
    """TensorBoard event files. For a resumed run, readers drop what was logged after the step that it resumes from."""
    from lightning.pytorch.loggers import TensorBoardLogger

    class FlushingLogger(TensorBoardLogger):
        def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
            super().log_metrics(metrics, step)
            self.experiment.flush()  # otherwise a killed run loses what it logged before its last checkpoint

    purge = step + 1 if step else None
    return FlushingLogger(folder, name="", version="", default_hp_metric=False, purge_step=purge)


def wandb(folder: Path, run: str, name: str, step: int) -> Logger:
    """A W&B run with the run's hash as its id. It is offline (see `wandb sync`) unless WANDB_MODE is set."""
    from lightning.pytorch.loggers import WandbLogger
    from wandb import Settings

    class FinishingLogger(WandbLogger):
        def finalize(self, status: str) -> None:
            super().finalize(status)
            self.experiment.finish(int(status != "success"))  # Lightning leaves it open for the next training

    return FinishingLogger(
        name=name,
        save_dir=folder,
        id=run,
        project=os.environ.get("WANDB_PROJECT", "tfstudy"),
        group=name.rpartition("/")[0],
        mode=os.environ.get("WANDB_MODE", "offline"),
        settings=Settings(console="off", silent=True, reinit="create_new", init_timeout=30),
    )


FACTORIES: dict[str, Callable[[Path, str, str, int], Logger]] = {"tensorboard": tensorboard, "wandb": wandb}

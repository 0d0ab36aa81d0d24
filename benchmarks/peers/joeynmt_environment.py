"""JoeyNMT in a virtual environment of its own: how it is run, and what its files say of a training."""

import os
import re
import subprocess
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import torch

PACKAGES = ("joeynmt", "importlib-metadata")  # JoeyNMT 2.3.0 imports the second without requiring it
TIME = "%Y-%m-%d %H:%M:%S,%f"  # of a line of the log


class Training(NamedTuple):
    """What JoeyNMT reports of a training."""

    parameters: int
    updates: int
    tokens: int  # target tokens trained on, with EOS
    seconds: float  # without loading data and building the model


def joeynmt(python: Path, mode: str, config: Path, *options: str, threads: int) -> None:
    """Run JoeyNMT's command `mode` (train or test) with a config; its messages go to a file beside the config."""
    log = config.with_suffix(f".{mode}.out")
    command = [str(python), "-m", "joeynmt", mode, str(config), *options]
    variables = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with log.open("w", encoding="utf-8") as file:
        ended = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=variables, cwd=config.parent)
    if ended.returncode:
        last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:])
        raise RuntimeError(f"joeynmt {mode} failed with exit code {ended.returncode} ({log}):\n{last}")


def read_training(model: Path) -> Training:
    """Return what the log and the last checkpoint of a model folder say of its training."""
    log = (model / "train.log").read_text(encoding="utf-8")
    state = torch.load(model / "latest.ckpt", map_location="cpu", weights_only=True)["stats_state"]
    started, ended = (_time_of(log, text) for text in ("EPOCH 1\n", "Training ended"))
    return Training(
        parameters=int(_found(r"Total params: (\d+)", log)),
        updates=int(state["steps"]),
        tokens=int(state["total_tokens"]),
        seconds=(ended - started).total_seconds(),
    )


def read_decoding_seconds(model: Path) -> float:
    """Return the seconds that the last decoding took, without loading the model."""
    log = (model / "test.log").read_text(encoding="utf-8")
    return float(re.findall(r"Generation took ([\d.]+)\[sec\]", log)[-1])


def _time_of(log: str, text: str) -> datetime:
    """Return the time of the first line whose message begins with `text`."""
    return datetime.strptime(_found(rf"(?m)^(\S+ \S+) - \w+ - \S+ - {re.escape(text)}", log), TIME)


def _found(pattern: str, log: str) -> str:
    match = re.search(pattern, log)
    if match is None:
        raise RuntimeError(f"JoeyNMT's log has no line that matches {pattern!r}")
    return match[1]

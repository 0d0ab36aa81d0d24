"""How a run is executed, as opposed to what is run."""

from pathlib import Path
from typing import NamedTuple

import torch

from tasks.errors import UserError, one_of


class RunOptions(NamedTuple):
    """How a run is made; of this only the devices touch its numbers, by rounding and the draws of dropout."""

    preset: str = ""  # the name that the config was made from, to be recorded
    fresh: bool = False
    resume: bool = False
    devices: int = 1
    accelerator: str = "auto"
    folder: Path | None = None  # where the run was planned to be, if it was
    loggers: tuple[str, ...] = ()  # beside the metrics file: see `tfstudy.loggers`
    tuning: bool = False  # a trial of `tfstudy.tune`: no test split is scored


OPTIONS = RunOptions()


def device_of(options: RunOptions) -> torch.device:
    """Where evaluation runs; `UserError` if the devices that are asked for are not there."""
    one_of("--accelerator", options.accelerator, ("auto", "cpu", "cuda"))
    there = torch.cuda.device_count()
    if options.accelerator == "cuda" and not there:
        raise UserError("--accelerator cuda: torch sees no CUDA device here")
    device = torch.device("cuda" if options.accelerator != "cpu" and there else "cpu")
    if device.type == "cuda" and options.devices > there:
        raise UserError(f"--devices must be at most {there} here, but is {options.devices}")
    return device

"""How a run is executed, as opposed to what is run. Imports torch only to look for devices."""

import os
import platform
from typing import TYPE_CHECKING, NamedTuple

from tfstudy.errors import UserError, one_of

if TYPE_CHECKING:
    import torch

ACCELERATORS = ("auto", "cpu", "cuda")
EXECUTIONS = ("eager", "graphed")


class RunOptions(NamedTuple):
    """How a run is executed: plain values, the same from the command line to the job of a cluster.

    Only `devices`, `accelerator` and `execution` affect the numbers, by rounding and by the draws of dropout.
    """

    preset: str = "default"  # the name of the preset that the config comes from, for the record
    restart: bool = False  # archive the existing run and start again
    devices: int = 1  # that one run trains on
    accelerator: str = "auto"  # one of ACCELERATORS
    loggers: tuple[str, ...] = ()  # in addition to metrics.csv: see `tfstudy.training.loggers`
    measure: tuple[str, ...] = ()  # instruments that listen to training
    tuning: bool = False  # a trial of a search: no test set is evaluated
    execution: str = "eager"  # of training steps, one of EXECUTIONS: see `tfstudy.training.graphs`


DEFAULTS = RunOptions()


def device_of(options: RunOptions) -> "torch.device":
    """The device of this process, set to full float32; `UserError` if the requested devices are missing."""
    import torch

    if options.accelerator == "gpu":
        raise UserError("--accelerator gpu: a GPU is called cuda; expected one of: " + ", ".join(ACCELERATORS))
    one_of("accelerator", options.accelerator, ACCELERATORS)
    count = torch.cuda.device_count() if options.accelerator != "cpu" else 0
    if options.accelerator == "cuda" and not count:
        raise UserError("--accelerator cuda: torch finds no CUDA device on this machine")
    if options.devices > (available := count or os.cpu_count() or 1):  # on a CPU, a device is a process
        raise UserError(f"--devices must be at most {available} on this machine, but is {options.devices}")
    if count:  # by default convolutions round their inputs to ten bits, and products of matrices do not
        torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda" if count else "cpu")


def device_name(device: "torch.device") -> str:
    """The name of the processor, for the record."""
    import torch

    return torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()


def process_rank() -> int:
    """The rank of this process among those of a run on several devices, as Lightning numbers them; 0 is the first."""
    return int(os.environ.get("LOCAL_RANK", 0))

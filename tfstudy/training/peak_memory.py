"""The highest memory use of this process, or of its tensors on a CUDA device, since the last reset."""

import contextlib
import re
import resource
import sys
from pathlib import Path

import torch

MIB = 2**20
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak(device: torch.device) -> None:
    """Measure from now on. Where the system can't reset its peak, that of the whole process remains."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with contextlib.suppress(OSError):
            CLEAR.write_text("5")  # proc(5): resets VmHWM to the memory used now


def peak_mib(device: torch.device) -> float:
    """Return the highest memory use in MiB: resident memory of the process, or memory of tensors on CUDA."""
    if device.type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / MIB, 1)
    try:
        if found := re.search(r"^VmHWM:\s*(\d+) kB", STATUS.read_text(), re.MULTILINE):
            return round(int(found[1]) * 1024 / MIB, 1)
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB, 1)

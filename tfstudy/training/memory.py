"""Memory: what is computed in halves where it runs out, and the highest use of this process. Imports no Lightning."""

import contextlib
import re
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from tfstudy.data.encoding import PaddedRows
from tfstudy.errors import UserError

T = TypeVar("T")
BUDGET = 512 * 2**20  # bytes that an evaluation or a validation may use at a time, as estimated
MIB = 2**20
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Of RuntimeErrors: the allocators of CPU and CUDA, cuBLAS, oneDNN
PHRASES = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED", "not create a memory object")


class OutOfMemoryError(UserError):
    """Even a single example does not fit into the memory."""


def attempt(compute: Callable[[], T]) -> T | None:
    """Return the result of `compute`; None if memory ran out, after the memory that it used has been released."""
    try:
        return compute()
    except (MemoryError, torch.OutOfMemoryError):
        pass
    except RuntimeError as error:
        if not any(phrase in str(error) for phrase in PHRASES):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # only now: the error held the tensors
    return None


def in_memory(
    compute: Callable[[Sequence[PaddedRows]], object],
    micro_batch: Sequence[PaddedRows],
    bytes_of: Callable[[Sequence[PaddedRows]], int],
) -> None:
    """Compute a micro-batch in parts of at most `BUDGET` bytes, in smaller ones where memory runs out."""
    fits = row_count(micro_batch) < 2 or bytes_of(micro_batch) <= BUDGET
    if not fits or attempt(lambda: (compute(micro_batch),)) is None:
        for part in halves(micro_batch):
            in_memory(compute, part, bytes_of)


def halves(micro_batch: Sequence[PaddedRows]) -> tuple[Sequence[PaddedRows], Sequence[PaddedRows]]:
    """Return a micro-batch as two with about half the rows each; `OutOfMemoryError` for a single row."""
    rows = row_count(micro_batch)
    if rows < 2:
        size = " and ".join(f"{len(ids[0])}" for rectangle in micro_batch for ids in rectangle)
        raise OutOfMemoryError(f"not enough memory for a single example (source and target of {size} tokens)")
    first: list[PaddedRows] = []
    second: list[PaddedRows] = []
    left = rows // 2
    for rectangle in micro_batch:
        here = min(left, len(rectangle.source))
        left -= here
        first += [PaddedRows(*(ids[:here] for ids in rectangle))] * bool(here)
        second += [PaddedRows(*(ids[here:] for ids in rectangle))] * (here < len(rectangle.source))
    return first, second


def row_count(micro_batch: Sequence[PaddedRows]) -> int:
    """Return the number of rows of all rectangles."""
    return sum(len(rectangle.source) for rectangle in micro_batch)


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

"""Recognise errors for lack of memory, after which less can be computed at a time. Imports no Lightning."""

from collections.abc import Callable
from typing import TypeVar

import torch

from tfstudy.errors import UserError

T = TypeVar("T")
BUDGET = 512 * 2**20  # bytes that an evaluation or a validation may use at a time, as estimated
PHRASES = (  # of RuntimeErrors: the allocators of CPU and CUDA, cuBLAS, oneDNN
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "ALLOC_FAILED",
    "could not create a memory object",
)


class OutOfMemoryError(UserError):
    """Even a single example does not fit into the memory."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of torch or Python means that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in PHRASES)


def attempt(compute: Callable[[], T]) -> T | None:
    """Return the result of `compute`; None if memory ran out, after the memory that it used has been released."""
    try:
        return compute()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # only now: the error held the tensors
    return None

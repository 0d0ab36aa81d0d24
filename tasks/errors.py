"""The error for input that a user can correct, and the check of a name against those allowed."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


class UserError(Exception):
    """Input that a user can put right: one message, exit code 2, no traceback."""


def one_of(what: str, given: str, allowed: Iterable[str]) -> str:
    """`given` if it is allowed, else `UserError` with the allowed values and the nearest of them."""
    allowed = list(allowed)
    if given in allowed:
        return given
    near = difflib.get_close_matches(given, allowed, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    some = ", ".join(allowed[:40]) + (f", ... ({len(allowed)} in all)" if len(allowed) > 40 else "")
    raise UserError(f"{what} must be one of {some}, but is '{given}'{hint}")

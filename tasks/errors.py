"""`UserError`, the error for input that a user can correct, and the check of a name against the allowed names."""

import difflib
from collections.abc import Iterable

SHOWN = 40  # allowed names that a message lists


class UserError(Exception):
    """Invalid input. The CLI prints its message without a traceback and exits with code 2."""


def one_of(what: str, name: str, allowed: Iterable[str], where: str = "") -> str:
    """Return `name` if it is allowed; otherwise raise `UserError` with the allowed names and the nearest match.

    `what` is a noun such as "task"; `where` is the file or the section that contains `name`.
    """
    allowed = list(allowed)
    if name in allowed:
        return name
    shown = ", ".join(allowed[:SHOWN]) + (f", ... ({len(allowed)} in total)" if len(allowed) > SHOWN else "")
    near = difflib.get_close_matches(name, allowed, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    prefix = f"{where}: " if where else ""
    raise UserError(f"{prefix}unknown {what} '{name}'; expected one of: {shown}{hint}")

"""`UserError`, the error for input that a user can correct; how messages quote values and list names; paths."""

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

SHOWN = 40  # allowed names that a message lists
SIMILAR = 0.65  # least share of characters that a near match has in common with a name, such as `dmi` with `dim`
SHORTEST = 3  # characters of the start of a name that is a near match
QUOTED = 60  # characters of a value that a message quotes
# Characters that a terminal obeys rather than shows: C0 and C1 without tab and newline, bidirectional overrides, line
# and paragraph separators, and surrogates, which can't be encoded.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class UserError(Exception):
    """Invalid input. The CLI prints its message without a traceback and exits with code 2."""

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show: the message alone."""
        return [f"{type(self).__name__}: {printable(str(self))}"]


def printable(text: str) -> str:
    """Return the text with control characters as escapes such as `\\x1b`; tabs and newlines stay."""
    return CONTROLS.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def quoted(value: object, limit: int = QUOTED, marks: str = "'") -> str:
    """Return a value for a message: in quotation marks, on one line, and cut at `limit` characters."""
    text = printable(str(value)[: limit + 1]).replace("\n", "\\n").replace("\t", "\\t")
    return f"{marks}{text[:limit]}...{marks}" if len(text) > limit else f"{marks}{text}{marks}"


def one_of(what: str, name: str, allowed: Iterable[str], where: str = "") -> str:
    """Return `name` if it is allowed; otherwise raise `UserError` with the nearest match and the allowed names.

    `what` is a noun such as "task"; `where` is the file or the section that contains `name`.
    """
    allowed = list(allowed)
    if name in allowed:
        return name
    shown = ", ".join(allowed[:SHOWN]) + (f", ... ({len(allowed)} in total)" if len(allowed) > SHOWN else "")
    prefix = f"{where}: " if where else ""
    if not allowed:
        raise UserError(f"{prefix}unknown {what} {quoted(name)}; there is none")
    raise UserError(f"{prefix}unknown {what} {quoted(name)}{expected(name, allowed, f'one of: {shown}')}")


def some(texts: Sequence[str], most: int, separator: str = ", ", last: str = " and ") -> str:
    """Return the first of these texts, and how many more there are: `a, b and 7 more`."""
    more = f"{last}{len(texts) - most} more" if len(texts) > most else ""
    return separator.join(texts[:most]) + more


def expected(name: str, allowed: Iterable[str], text: str) -> str:
    """Return the end of a message on an unknown name: the nearest match, if there is one, and the text on all."""
    near = nearest(name, allowed)
    return f"{near} Expected {text}" if near else f"; expected {text}"


def nearest(name: str, allowed: Iterable[str], share: float = SIMILAR) -> str:
    """Return the end of a message that asks whether the most similar allowed name was meant; empty if none is near."""
    near = similar(name, allowed, share)
    return f"; did you mean '{near}'?" if near else ""


def similar(name: str, allowed: Iterable[str], share: float = SIMILAR) -> str:
    """Return the allowed name that is most similar, or else the first that continues `name`; empty if none is near.

    Upper and lower case are the same; `dim` is as near to `model.dim` as to `dim`. `share` is the least share of
    characters in common.
    """
    word = name[:QUOTED].casefold()
    forms: dict[str, str] = {}
    for one in allowed:
        for form in (one, one.rpartition(".")[2]):
            forms.setdefault(form.casefold(), one)
    near = difflib.get_close_matches(word, forms, n=1, cutoff=share)
    near += [form for form in forms if len(word) >= SHORTEST and form.startswith(word)]
    return forms[near[0]] if near else ""


def path_of(text: str, what: str = "data.root") -> Path:
    """Return a path, with `~` as the home folder; `UserError` for text that can't be one. `what` names the setting."""
    try:
        path = Path(text).expanduser()
        if b"\0" in os.fsencode(path):
            raise ValueError("it contains a zero byte")
    except (RuntimeError, ValueError) as error:  # an unknown user, or half of a surrogate pair
        raise UserError(f"{what}: {quoted(text)} can't be a path: {error}") from None
    return path

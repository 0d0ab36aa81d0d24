"""Groups of options that commands share: one parameter of a command takes several options and is built from them."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, cast

from typer.models import CommandFunctionType


class Group(NamedTuple):
    """Annotates a parameter of a command with the function that builds its value from the options of the group."""

    make: Callable[..., Any]


def with_groups(function: CommandFunctionType) -> CommandFunctionType:
    """Return the function of a command with the options of its groups, and of groups within them, as parameters."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        marks = getattr(parameter.annotation, "__metadata__", ())
        make = next((with_groups(mark.make) for mark in marks if isinstance(mark, Group)), None)
        own = list(inspect.signature(make).parameters.values()) if make else [parameter]
        parameters += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
        if make:
            groups[name] = make, [one.name for one in own]

    @wraps(function)
    def command(**given: Any) -> Any:
        made = {name: make(**{own: given.pop(own) for own in owns}) for name, (make, owns) in groups.items()}
        return function(**given, **made)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return cast("CommandFunctionType", command)

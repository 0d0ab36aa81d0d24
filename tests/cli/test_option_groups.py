"""A parameter of a command that stands for several options."""

from inspect import signature
from typing import Annotated

from tfstudy.cli.option_groups import Group, with_groups


def inner(a: int = 1) -> str:
    return f"inner {a}"


def outer(*, b: int = 2, within: Annotated[str, Group(inner)]) -> str:
    return f"outer {b}, {within}"


def command(c: int = 3, *, both: Annotated[str, Group(outer)], d: int = 4) -> str:
    return f"{c} {d}: {both}"


def test_a_command_has_the_options_of_its_groups_in_their_place():
    found = with_groups(command)
    assert list(signature(found).parameters) == ["c", "b", "a", "d"]
    assert found(a=5, b=6, c=7, d=8) == "7 8: outer 6, inner 5"


def test_a_command_without_groups_keeps_its_options():
    assert signature(with_groups(inner)).parameters.keys() == {"a"}

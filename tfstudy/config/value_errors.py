"""What is wrong with one value, in plain words: for settings, and for options of the command line."""

from collections.abc import Mapping
from typing import Any

WRONG_KINDS = {  # what pydantic says of values of another kind, in plain words
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "must be a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "must be true or false"),
    "string_type": "must be text",
    "list_type": "must be a list",
}


def rule(problem: Mapping[str, Any]) -> str:
    """Return what a value must be, such as `must be a number`, for one of the errors of pydantic."""
    text: str = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return WRONG_KINDS.get(problem["type"]) or text


def is_whole(text: str) -> bool:
    """Whether no minus stands within a text. Pydantic reads `0-2` as -2: it drops zeros at the start."""
    return "-" not in text.strip()[1:]

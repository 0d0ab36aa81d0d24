"""What is wrong with one value, in plain words: for settings, and for options of the command line."""

import re
from collections.abc import Mapping
from typing import Any

from tfstudy.errors import nearest, quoted

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


def refusal(problem: Mapping[str, Any]) -> str:
    """Return what a value must be and what it is, with the nearest word if only some words are allowed."""
    value, allowed = problem["input"], problem.get("ctx", {}).get("expected", "")
    words = re.findall(r"'([^']*)'", allowed) if problem["type"] == "literal_error" else ()
    hint = nearest(value, words) if isinstance(value, str) else ""
    return f"{rule(problem)}, but is {quoted(value)}{hint}"


def is_whole(text: str) -> bool:
    """Whether no minus stands within a text. Pydantic reads `0-2` as -2: it drops zeros at the start."""
    return "-" not in text.strip()[1:]

"""How a config is shown, and read back."""

import re

import pytest
import yaml
from pydantic import BaseModel

from tfstudy import models
from tfstudy.config.display import annotated, to_yaml
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig


def config(arch: str, **sections) -> RunConfig:
    return resolve({"task": "scan", "arch": arch, **sections})


def leaves(section: BaseModel, prefix: str = ""):
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field, value


@pytest.mark.parametrize("arch", models.names())
def test_the_annotated_config_lists_every_key_with_type_and_meaning_in_80_columns(arch):
    shown = annotated(config(arch))
    assert max(map(len, shown.splitlines())) <= 80
    lines = one_line_each(shown).splitlines()
    for path, field, value in leaves(config(arch)):
        indent = "  " * path.count(".")
        [line] = [
            text for text in lines if text.startswith(f"{indent}{path.split('.')[-1]}: ") and field.description in text
        ]
        comment = line.split(" # ", 1)[1]
        assert comment.endswith(f": {field.description}")
        assert field.is_required() or (value != field.default) == (", changed from " in comment)
        kind = comment.split(":")[0].split(", changed")[0]
        assert kind.split()[0].rstrip(",") in {"int", "float", "str", "bool"} or " | " in kind
        assert yaml.safe_load(line.strip()) is not None or value is None


def one_line_each(shown: str) -> str:
    """A config whose comments were folded, with each in one line."""
    return re.sub(r"\n {34}# ", " ", shown)


def test_the_comment_on_a_changed_value_has_the_default():
    shown = one_line_each(annotated(config("lstm", train={"steps": 7})))
    assert "steps: 7 " in shown
    assert "# int >= 1, changed from 3000: optimiser steps" in shown
    assert shown.count("changed from") == 1


def test_a_key_that_may_be_unset_is_shown_as_others_are():
    lines = one_line_each(annotated(config("transformer")))
    assert "# float | null" in lines
    assert "# sinusoidal | learned | relative | shaw" in lines
    assert "none | null: position scheme" in lines
    assert "class" not in lines
    assert "typing" not in lines


@pytest.mark.parametrize("assignments", [(), ("train.learning_rate=1e-9", "data.root=Zürich: b # c")])
@pytest.mark.parametrize("write", [annotated, to_yaml])
@pytest.mark.parametrize("arch", models.names())
def test_a_config_that_was_shown_or_written_reads_back_as_the_same(arch, write, assignments):
    tree = {"task": "scan", "arch": arch, "data": {}, "train": {}}
    for text in assignments:
        key, _, value = text.partition("=")
        tree[key.split(".")[0]][key.split(".")[1]] = value
    run = resolve(tree)
    assert resolve(yaml.safe_load(write(run))) == run

"""Settings: which source wins, how errors are reported, and how they are read and written as YAML."""

import json
from enum import Enum
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tfstudy import models, tasks
from tfstudy.cli.runs import requested
from tfstudy.config.resolve import RETIRED, overrides, resolve, resolve_section
from tfstudy.config.schema import RunConfig, Section, annotated, to_yaml
from tfstudy.config.trees import flatten, merge, parse_yaml, unflatten
from tfstudy.errors import UserError


def config(*assignments: str, arch: str = "lstm", **tree) -> RunConfig:
    return resolve(merge({"task": "scan", "arch": arch}, tree, overrides(assignments)))


def errors(*assignments: str, arch: str = "lstm", **tree) -> list[str]:
    with pytest.raises(UserError) as error:
        config(*assignments, arch=arch, **tree)
    return str(error.value).splitlines()


def test_defaults_give_way_to_presets_then_files_then_assignments_then_flags(tmp_path):
    file = tmp_path / "mine.yaml"

    def resolved(name="default", text="", assignments=(), split=None, seed=None):
        file.write_text(text or "{}")
        return requested("scan", "lstm", name, file, assignments, split, seed)[0]

    text = "model: {hidden: 7}\nseed: 5\ndata: {split: length}"
    assert resolve({"task": "scan", "arch": "lstm"}).model.hidden == 256
    assert resolved().model.hidden == 144
    assert resolved(text=text).model.hidden == 7
    assert resolved(text=text, assignments=["model.hidden=8"]).model.hidden == 8
    assert resolved(text=text, assignments=["seed=6"], seed=7).seed == 7
    assert resolved(text=text, split="addprim_jump").data.split == "addprim_jump"
    assert resolved(text=text).model.dim == 128, "keys that are not in the file keep the value of the preset"
    assert resolved("lake-2018").model.attention == "none"


def test_keys_that_are_gone_are_read_with_their_last_default_only():
    each = [(key, one) for key, values in RETIRED.items() for one in values]
    for key, value in each:
        assert config(f"{key}={json.dumps(value)}", arch="stack_rnn") == config(arch="stack_rnn")
    assert errors("train.ema_decay=0.9") == [
        "'train.ema_decay' is no longer a setting; a config may only have its last default, 0.0"
    ]


class Mode(Enum):
    FAST, SLOW = "fast", "slow"


class OwnSettings(Section):
    """Settings of types that YAML does not have, as those of a plug-in may be."""

    sizes: tuple[int, ...] = (1, 2)
    folder: Path = Path("here")
    mode: Mode = Mode.FAST


def test_settings_of_any_type_are_read_back_from_a_config_file():
    for settings in ({}, {"sizes": (3,), "folder": Path("there"), "mode": Mode.SLOW}):
        own = OwnSettings(**settings)
        tree = parse_yaml(yaml.safe_dump(own.model_dump(mode="json")), "x")
        assert resolve_section(OwnSettings, tree) == resolve_section(OwnSettings, settings) == own
        assert resolve_section(OwnSettings, parse_yaml(annotated(own), "x")) == own
    with pytest.raises(UserError, match="'sizes' must be a valid tuple, but is"):
        resolve_section(OwnSettings, {"sizes": ["a"]})


def test_numbers_are_read_as_people_write_them():
    for text, value in (("1e-3", 0.001), ("2", 2.0), (".5", 0.5), ("5E-4", 0.0005)):
        assert config(f"train.learning_rate={text}").train.learning_rate == value
    for date in ("2020-02-20", "2020-02-30"):
        assert parse_yaml(date, "x") == date, "no date: text"
    assert parse_yaml("[no, on, true, False]", "x") == ["no", "on", True, False], "Norwegian is no truth value"


def test_every_task_and_architecture_documents_all_its_keys():
    sections = [tasks.find(name).Config for name in tasks.names()] + [models.find(n).Config for n in models.names()]
    for section in [*sections, RunConfig]:
        assert all(field.description for field in section.model_fields.values()), section


WRONG = {  # settings, apart from those of the others, and the line that each is refused with
    "dim=3": "unknown key 'dim'; did you mean 'model.dim'?",
    "model.steps=3": "unknown key 'model.steps'; did you mean 'train.steps'?",
    "model.heads=3": "unknown key 'model.heads'; it belongs to the architectures deltanet, transformer",
    "model.hiden=3": "unknown key 'model.hiden'; did you mean 'model.hidden'?",
    "extra=1": "unknown key 'extra'; expected one of: task, data, arch, model, train, decode, eval, seed, smoke",
    "seed=-1": "'seed' must be greater than or equal to 0, but is '-1'",
    "train.learning_rate=.nan": "'train.learning_rate' must be a finite number, but is 'nan'",
    "train.warmup_steps=yes": "'train.warmup_steps' must be a valid integer, but is 'yes'",
    "train.optimizer=adam": "'train.optimizer' must be 'adamw' or 'sgd', but is 'adam'; did you mean 'adamw'?",
    f"decode.max_length={'9' * 23}": f"'decode.max_length' must be at most {2**63 - 1}, but is '{'9' * 23}'",
    'data.root="a\\0b"': "'data.root' must be text without NUL and without halves of characters, but is 'a\\x00b'",
    "eval=5": "'eval' must be a section of keys, but is '5'",
}


def test_all_errors_are_reported_at_once_each_with_its_key():
    assert sorted(errors(*WRONG)) == sorted(WRONG.values())


def test_settings_that_do_not_fit_each_other_are_refused():
    for settings, message in (
        ("train.validation_interval=75", "validation_interval must be a multiple of log_interval (50), but is 75"),
        ("train.sampling_stops_at_eos=true train.target_eos=false", "train.sampling_stops_at_eos must be false if"),
        ("eval.checkpoint=best train.steps=250", "must be a multiple of train.validation_interval (500), but is 250"),
    ):
        [line] = errors(*settings.split())
        assert message in line


REFUSED = {
    "[" * 3000: "deeply nested: at most 64",
    "{" * 100_000: "deeply nested",
    "".join(" " * i + "a:\n" for i in range(1000)): "deeply nested",
    "a: &a [1]\nb: *a": r"must not have aliases, but has '\*a'",
    "!!python/object/apply:os.system [ls]": "must not have tags",
    "0x" + "f" * 5000: "more than 40 digits",
    "a: [": "is not valid YAML",
    "a: {b: 1, b: 2}": "the key 'b' occurs twice",
    "\udcff": "is not valid YAML",
    "? [a]\n: b": "is not valid YAML",
    "a: 1\n---\nb: 2": "is not valid YAML",
}


def test_yaml_beyond_the_bounds_is_refused_on_one_line():
    for text, message in REFUSED.items():
        with pytest.raises(UserError, match=message) as error:
            parse_yaml(text, "the text")
        assert str(error.value).startswith("the text")
        assert len(str(error.value)) < 300
        assert "\n" not in str(error.value)


@given(st.dictionaries(st.sampled_from(["a", "b.c", "b.d", "e.f.g"]), st.integers() | st.just({}), min_size=1))
def test_unflatten_is_the_inverse_of_flatten(flat):
    assert flatten(unflatten(flat)) == flat


@pytest.mark.parametrize("arch", models.names())
def test_a_config_that_was_shown_or_written_reads_back_as_the_same(arch):
    run = config(arch=arch, train={"learning_rate": 1e-9}, data={"root": "Zürich: b # c"})
    assert max(map(len, annotated(run).splitlines())) <= 80
    assert "# float > 0, changed from 0.001: highest" in " ".join(annotated(run).split())
    for text in (annotated(run), to_yaml(run)):
        assert resolve(parse_yaml(text, "it")) == run

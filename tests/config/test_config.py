"""Settings: which source wins, how errors are reported, and how they are read and written as YAML."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy import models, tasks
from tfstudy.cli.runs import requested
from tfstudy.config.resolve import RETIRED, overrides, resolve
from tfstudy.config.schema import RunConfig, annotated, to_yaml
from tfstudy.config.trees import flatten, merge, parse_yaml, unflatten
from tfstudy.errors import UserError


def config_of(preset="default", file=None, assignments=(), split=None, seed=None):
    """The config that the options of `tfstudy run scan --arch lstm` give."""
    return requested("scan", "lstm", preset, file, assignments, split, seed)[0]


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
        return config_of(name, file, list(assignments), split, seed)

    text = "model: {hidden: 7}\nseed: 5\ndata: {split: length}"
    assert resolve({"task": "scan", "arch": "lstm"}).model.hidden == 256
    assert resolved().model.hidden == 144
    assert resolved(text=text).model.hidden == 7
    assert resolved(text=text, assignments=["model.hidden=8"]).model.hidden == 8
    assert resolved(text=text, assignments=["seed=6"], seed=7).seed == 7
    assert resolved(text=text, split="addprim_jump").data.split == "addprim_jump"
    assert resolved(text=text).model.dim == 128, "keys that are not in the file keep the value of the preset"
    assert resolved("lake-2018").model.attention == "none"


def test_all_errors_are_reported_at_once_with_their_keys():
    found = errors("model.hiden=3", "train.steps=0", "train.speed=1", "decode.method=guess", "seed=-1", "extra=1")
    assert len(found) == 6
    for text in (
        "unknown key 'model.hiden'; did you mean 'model.hidden'?",
        "'train.steps' must be greater than or equal to 1, but is '0'",
        "unknown key 'train.speed'",
        "'decode.method' must be 'greedy' or 'beam', but is 'guess'",
        "'seed' must be greater than or equal to 0, but is '-1'",
        "unknown key 'extra'",
    ):
        assert any(text in line for line in found), (text, found)


def test_keys_that_are_gone_are_read_with_their_last_default_only():
    each = [(key, one) for key, value in RETIRED.items() for one in (value if isinstance(value, tuple) else [value])]
    for key, value in each:
        assert config(f"{key}={json.dumps(value)}", arch="stack_rnn") == config(arch="stack_rnn")
    assert errors("train.ema_decay=0.9") == [
        "'train.ema_decay' is no longer a setting; a config may only have its last default, 0.0"
    ]


def test_a_key_of_another_section_or_architecture_is_found():
    for key, near in (("dim", "model.dim"), ("model.steps", "train.steps"), ("lerning_rate", "train.learning_rate")):
        assert errors(f"{key}=3") == [f"unknown key '{key}'; did you mean '{near}'?"]
    [line] = errors("model.heads=3", arch="cnn")
    assert "'model.heads'" in line
    assert line.endswith("architectures deltanet, transformer")


def test_a_value_out_of_range_is_refused_with_its_path():
    for assignment in (
        "train.learning_rate=0",
        "train.learning_rate=.nan",
        "train.validation_interval=75",  # no multiple of log_interval
        "train.batching=fairsec",
        "train.sampling_stops_at_eos=true train.target_eos=false",
        "eval.checkpoint=best train.steps=250",  # the last step is not validated
        "data.validation_fraction=0.6",
        "decode.max_length=100000000000000000000",
    ):
        [line] = errors(*assignment.split())
        assert all(part in line for part in assignment.split("=")[0].split(".")), line


def test_a_section_given_as_a_single_value_is_refused():
    for section, value in (("data", 5), ("train", [1]), ("eval", None)):
        assert errors(**{section: value}) == [f"'{section}' must be a section of keys, but is '{value}'"]


def test_numbers_are_read_as_people_write_them():
    for text, value in (("1e-3", 0.001), ("2", 2.0), ("'.5'", 0.5), ("5E-4", 0.0005)):
        assert config(f"train.learning_rate={text}").train.learning_rate == value
    for date in ("2020-02-20", "2020-02-30"):
        assert parse_yaml(date, "x") == date, "no date: text"


def test_every_task_and_architecture_documents_all_its_keys():
    sections = [tasks.find(name).Config for name in tasks.names()] + [models.find(n).Config for n in models.names()]
    for section in [*sections, RunConfig]:
        assert all(field.description for field in section.model_fields.values()), section


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("train.steps=yes", "'train.steps' must be a number, but is 'true'"),
        ("train.compile=1", "'train.compile' must be true or false, but is '1'"),
        ("train.steps=0-5", "'train.steps' must be a whole number, but is '0-5'"),
        (f"train.steps={'9' * 23}", f"'train.steps' must be at most 9223372036854775807, but is '{'9' * 23}'"),
        (
            'data.root="a\\0b"',
            "'data.root' must be text without NUL and without halves of characters, but is 'a\\x00b'",
        ),
        ("train.optimizer=adam", "'train.optimizer' must be 'adamw' or 'sgd', but is 'adam'; did you mean 'adamw'?"),
    ],
)
def test_a_value_of_another_kind_is_reported_in_plain_words(assignment, message):
    with pytest.raises(UserError) as error:
        config_of(assignments=[assignment])
    assert str(error.value) == message


REFUSED = {
    "[" * 3000: "deeply nested: at most 64",
    "{" * 100_000: "deeply nested",
    "".join(" " * i + "a:\n" for i in range(1000)): "deeply nested",
    "a: &a [1]\nb: *a": r"must not have aliases, but has '\*a'",
    "!!python/object/apply:os.system [ls]": "must not have tags",
    "0x" + "f" * 5000: "more than 40 digits",
    "a: [": "is not valid YAML",
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

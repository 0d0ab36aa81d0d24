"""One order of settings, every mistake named at once with its path, and an identity that nothing else shares."""

import hashlib

import pytest
import yaml
from pydantic import BaseModel, ValidationError

import tasks
from tasks.errors import UserError
from tfstudy import models
from tfstudy.cli import config_of
from tfstudy.config.display import annotated, to_yaml
from tfstudy.config.files import configs, read_yaml
from tfstudy.config.presets import preset, presets
from tfstudy.config.resolve import merge, overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.models.base import parameter_count
from tfstudy.runs.identity import identify

NONE = {"split": None, "seed": None, "smoke": False}
VERSIONS = {"task": 1, "model": 1, "training": 1, "evaluation": 1}
PRESETS = [
    (path.stem, arch, name)
    for path in sorted((configs() / "presets").glob("*.yaml"))
    for name, archs in yaml.safe_load(path.read_text()).items()
    for arch in archs
]


def made(*assignments: str, arch: str = "lstm", **tree) -> RunConfig:
    return resolve(merge({"task": "scan", "arch": arch}, tree, overrides(assignments)))


def mistakes(*assignments: str, arch: str = "lstm", **tree) -> list[str]:
    with pytest.raises(UserError) as error:
        made(*assignments, arch=arch, **tree)
    return str(error.value).splitlines()


def test_each_source_of_settings_gives_way_to_the_next(tmp_path):
    file = tmp_path / "mine.yaml"

    def learned(name="default", text="", assignments=(), flags=None):
        file.write_text(text or "{}")
        return config_of("scan", "lstm", name, file, list(assignments), {**NONE, **(flags or {})})

    text = "model: {hidden: 7}\nseed: 5\ndata: {split: length}"
    assert resolve({"task": "scan", "arch": "lstm"}).model.hidden == 256
    assert learned().model.hidden == 144
    assert learned(text=text).model.hidden == 7
    assert learned(text=text, assignments=["model.hidden=8"]).model.hidden == 8
    assert learned(text=text, assignments=["seed=6"]).seed == 6
    assert learned(text=text, assignments=["seed=6"], flags={"seed": 7}).seed == 7
    assert learned(text=text, flags={"split": "addprim_jump"}).data.split == "addprim_jump"
    assert learned(text=text).model.dim == 128, "what a file does not name stays the preset's"
    assert learned("lake-2018").model.attention == "none"


def test_the_later_of_two_assignments_wins():
    assert made("model.dim=3", "model.dim=4").model.dim == 4


def test_every_mistake_is_named_at_once_with_its_path():
    found = mistakes("model.hiden=3", "train.steps=0", "train.speed=1", "decode.method=guess", "seed=-1", "extra=1")
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


def test_a_key_that_resembles_none_is_answered_with_all():
    [line] = mistakes("eval.zzz=1")
    assert line == "unknown key 'eval.zzz'; allowed are eval.checkpoint, eval.max_examples, eval.batch_size"


@pytest.mark.parametrize(
    ("key", "arch", "owners"),
    [
        ("kernel", "lstm", "architecture cnn"),
        ("heads", "cnn", "architecture transformer"),
        ("bidirectional", "transformer", "architecture lstm"),
        ("max_positions", "lstm", "architectures cnn, transformer"),
    ],
)
def test_a_key_of_another_architecture_is_named_as_such(key, arch, owners):
    [line] = mistakes(f"model.{key}=3", arch=arch)
    assert line == f"unknown key 'model.{key}'; it belongs to the {owners}"


@pytest.mark.parametrize(
    "assignment",
    [
        "train.learning_rate=0",
        "train.learning_rate=.nan",
        "train.learning_rate=.inf",
        "train.label_smoothing=1",
        "train.teacher_forcing=1.5",
        "train.beta2=1",
        "train.steps=1.5",
        "train.steps=many",
        "train.steps=null",
        "train.precision=32",
        "train.validation_interval=30",  # no multiple of log_interval
        "train.batch_tokens=100",  # without batching by length
        "model.dropout=1",
        "model.dim=0",
        "data.validation=0.6",
        "decode.beam_size=0",
        "eval.max_examples=-1",
        "smoke=perhaps",
    ],
)
def test_a_value_out_of_range_is_refused_with_its_path(assignment):
    [line] = mistakes(assignment)
    key = assignment.split("=")[0]
    assert key.split(".")[0] in line
    assert key.split(".")[-1] in line


def test_a_mistake_within_one_key_and_between_two_are_told_apart():
    [line] = mistakes("train.validation_interval=75")
    assert line == "train.validation_interval must be a multiple of log_interval (50), but is 75"


@pytest.mark.parametrize("section", ["data", "model", "train", "decode", "eval"])
@pytest.mark.parametrize("value", [5, "five", [1], None])
def test_a_section_given_as_a_scalar_is_refused(section, value):
    [line] = mistakes(**{section: value})
    assert line == f"'{section}' must be a section of keys, but is '{value}'"


def test_a_section_that_a_preset_fills_may_not_be_given_as_a_scalar():
    with pytest.raises(UserError, match="'train' must be a section of keys, but is '5'"):
        config_of("scan", "lstm", "default", None, ["train=5"], NONE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"train: [1", "is not YAML"),
        (b"\xff\xfe", "is not YAML"),
        (b"- 1\n- 2", "must hold sections such as 'train:'"),
        (b"", "must hold sections such as 'train:'"),
        (b"train:\n  steps: 1\n steps: 2", "is not YAML"),
    ],
)
def test_a_broken_file_is_refused_by_name(content, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        read_yaml(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(UserError, match=r"can't read .*none\.yaml: No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_a_key_that_is_no_string_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("1: 2\ntrain: {3: 4}")
    found = mistakes(train=read_yaml(path)["train"])
    assert len(found) == 1
    with pytest.raises(UserError):
        resolve(merge({"task": "scan", "arch": "lstm"}, read_yaml(path)))


@pytest.mark.parametrize("text", ["model.dim", "=3", "", "model.dim:3"])
def test_an_assignment_without_key_or_equals_sign_is_refused(text):
    with pytest.raises(UserError, match=r"--set must be KEY=VALUE such as model\.dim=128, but is"):
        overrides([text])


@pytest.mark.parametrize(
    ("text", "value"), [("1e-3", 0.001), ("1.0e-3", 0.001), ("2", 2.0), (".5", 0.5), ("5E-4", 0.0005), ("1e1", 10.0)]
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert made(f"train.learning_rate={text}").train.learning_rate == value


def test_an_empty_value_and_one_with_an_equals_sign_are_strings():
    assert overrides(["data.root=", "data.hub=a=b"]) == {"data": {"root": "", "hub": "a=b"}}


def test_task_and_architecture_are_looked_up_by_name():
    with pytest.raises(UserError, match=r"task 'scam'.*'scan'\?"):
        resolve({"task": "scam", "arch": "lstm"})
    with pytest.raises(UserError, match=r"architecture 'lstn'.*'lstm'\?"):
        resolve({"task": "scan", "arch": "lstn"})
    with pytest.raises(UserError, match=r"scan, lstm.* preset 'lake2018'.*'lake-2018'\?"):
        preset("scan", "lstm", "lake2018")


def test_a_preset_of_another_architecture_is_refused():
    with pytest.raises(UserError, match=r"'dessi-2019'.* default, lake-2018"):
        preset("scan", "lstm", "dessi-2019")


def test_a_config_is_frozen():
    config = made()
    for section, key in ((config, "seed"), (config.train, "steps"), (config.model, "dim"), (config.data, "split")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(section, key, 1)


def hash_of(config: RunConfig, data: str = "d", **versions: int) -> str:
    return identify(config, data, VERSIONS | versions).hash


@pytest.mark.parametrize(
    "assignment",
    [
        "seed=1",
        "model.dim=64",
        "train.steps=1",
        "data.split=length",
        "decode.beam_size=5",
        "eval.max_examples=3",
        "smoke=true",
    ],
)
def test_every_part_of_the_config_is_part_of_the_identity(assignment):
    assert hash_of(made(assignment)) != hash_of(made())


def test_data_and_versions_are_part_of_the_identity():
    same = made()
    hashes = [hash_of(same), hash_of(same, "other"), *(hash_of(same, **{name: 2}) for name in VERSIONS)]
    assert len(set(hashes)) == len(hashes)


def test_places_of_data_are_no_part_of_the_identity():
    assert hash_of(made("data.root=here")) == hash_of(made("data.hub=there")) == hash_of(made())


def test_the_identity_does_not_depend_on_how_a_value_was_written():
    assert hash_of(made("train.learning_rate=1e-3")) == hash_of(made("train.learning_rate=0.001")) == hash_of(made())
    assert hash_of(made("train.gradient_clip_norm=1")) == hash_of(made("train.gradient_clip_norm=1.0"))


def test_the_identity_is_a_sha256():
    assert len(bytes.fromhex(hash_of(made()))) == hashlib.sha256().digest_size


def leaves(section: BaseModel, prefix: str = ""):
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field, value


@pytest.mark.parametrize("arch", models.names())
def test_show_lists_every_key_with_type_default_and_meaning(arch):
    lines = annotated(made(arch=arch)).splitlines()
    for path, field, value in leaves(made(arch=arch)):
        indent = "  " * path.count(".")
        [line] = [
            text for text in lines if text.startswith(f"{indent}{path.split('.')[-1]}: ") and field.description in text
        ]
        comment = line.split(" # ", 1)[1]
        assert comment.endswith(f": {field.description}")
        assert field.is_required() or ", default " in comment
        kind = comment.split(":")[0].split(", default")[0]
        assert kind.split()[0].rstrip(",") in {"int", "float", "str", "bool"} or " | " in kind
        assert yaml.safe_load(line.strip()) is not None or value is None


@pytest.mark.parametrize("assignments", [(), ("train.learning_rate=1e-9", "data.root=a: b # c", "data.hub=Zürich")])
@pytest.mark.parametrize("write", [annotated, to_yaml])
@pytest.mark.parametrize("arch", models.names())
def test_what_is_shown_or_kept_reads_back_as_the_same_config(arch, write, assignments):
    tree = {"task": "scan", "arch": arch, "data": {}, "train": {}}
    for text in assignments:
        key, _, value = text.partition("=")
        tree[key.split(".")[0]][key.split(".")[1]] = value
    config = resolve(tree)
    assert resolve(yaml.safe_load(write(config))) == config


@pytest.mark.parametrize("preset_of", PRESETS, ids="-".join)
def test_every_preset_resolves_and_says_what_it_is_about(preset_of):
    task, arch, name = preset_of
    tree = preset(task, arch, name)
    assert "about" not in tree
    assert presets(task)[name][arch]["about"]
    config = resolve({"task": task, "arch": arch, **tree})
    assert config.train.warmup_steps <= config.train.steps
    assert config.train.steps % config.train.validation_interval == 0


def test_there_is_a_default_preset_of_scan_for_every_architecture():
    assert set(presets("scan")["default"]) == set(models.names())


def test_default_models_of_scan_have_equal_parameters_within_five_per_cent():
    counts = {}
    for arch in models.names():
        config = resolve({"task": "scan", "arch": arch, **preset("scan", arch)})
        counts[arch] = parameter_count(models.find(arch)(config.model, 17, 10))
    assert max(counts.values()) <= 1.05 * min(counts.values()), counts


def test_every_task_and_architecture_documents_all_its_keys():
    configs_of = [tasks.find(name).Config for name in tasks.names()] + [models.find(n).Config for n in models.names()]
    for config in [*configs_of, RunConfig]:
        assert all(field.description for field in config.model_fields.values()), config

"""Settings: which source wins, and how errors are reported."""

import pytest
import yaml
from pydantic import ValidationError

from tfstudy import models, tasks
from tfstudy.cli.runs import requested
from tfstudy.config.files import configs, read_yaml
from tfstudy.config.presets import preset, presets
from tfstudy.config.resolve import RETIRED, overrides, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import merge
from tfstudy.errors import UserError
from tfstudy.models.base import parameter_count

PRESETS = [
    (path.stem, arch, name)
    for path in sorted((configs() / "presets").glob("*.yaml"))
    for name, archs in yaml.safe_load(path.read_text()).items()
    for arch in archs
]


def config_of(preset="default", file=None, assignments=(), split=None, seed=None):
    """The config that the options of `tfstudy run scan --arch lstm` give."""
    return requested(
        "scan", "lstm", preset=preset, file=file, assignments=assignments, split=split, seed=seed, smoke=False
    ).resolve()


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
    assert resolved(text=text, assignments=["seed=6"]).seed == 6
    assert resolved(text=text, assignments=["seed=6"], seed=7).seed == 7
    assert resolved(text=text, split="addprim_jump").data.split == "addprim_jump"
    assert resolved(text=text).model.dim == 128, "keys that are not in the file keep the value of the preset"
    assert resolved("lake-2018").model.attention == "none"


def test_the_later_of_two_assignments_wins():
    assert config("model.dim=3", "model.dim=4").model.dim == 4


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
    gone = [f"{key}={value}" for key, value in RETIRED.items()]
    assert config(*gone, arch="transformer") == config(arch="transformer")
    assert errors("train.ema_decay=0.9") == [
        "'train.ema_decay' is no longer a setting; a config may only have its last default, 0.0"
    ]


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("dim", "model.dim"),
        ("train.dim", "model.dim"),
        ("model.steps", "train.steps"),
        ("lerning_rate", "train.learning_rate"),
    ],
)
def test_the_last_part_of_a_key_finds_it_in_another_section(key, near):
    assert errors(f"{key}=3") == [f"unknown key '{key}'; did you mean '{near}'?"]


def test_an_unknown_key_without_a_near_match_is_answered_with_all_keys():
    assert "did you mean" not in errors("eval.speed=1")[0]  # it is near to the key seed
    [line] = errors("eval.zzz=1")
    assert all(key in line for key in ("eval.zzz", "eval.checkpoint", "eval.max_examples", "eval.batch_size"))


@pytest.mark.parametrize(
    ("key", "arch", "owners"),
    [
        ("kernel", "lstm", "architecture cnn"),
        ("heads", "cnn", "architectures mingru, transformer"),
        ("bidirectional", "transformer", "architectures lstm, mingru"),
        ("max_positions", "lstm", "architectures cnn, transformer"),
    ],
)
def test_a_key_of_another_architecture_is_reported_with_its_architecture(key, arch, owners):
    [line] = errors(f"model.{key}=3", arch=arch)
    assert f"'model.{key}'" in line
    assert line.endswith(owners)


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
        "train.batching=fairsec",
        "train.resampled_examples=-1",
        "train.adam_epsilon=0",
        "train.loss_reduction=total",
        "train.target_eos=perhaps",
        "model.dropout=1",
        "model.dim=0",
        "data.validation_fraction=0.6",
        "decode.beam_size=0",
        "decode.length_penalty=1000",
        "decode.max_length=100000000000000000000",
        "eval.max_examples=-1",
        "smoke=perhaps",
    ],
)
def test_a_value_out_of_range_is_refused_with_its_path(assignment):
    [line] = errors(assignment)
    key = assignment.split("=")[0]
    assert key.split(".")[0] in line
    assert key.split(".")[-1] in line


def test_two_keys_that_do_not_fit_together_are_reported_with_both_values():
    [line] = errors("train.validation_interval=75")
    assert all(fact in line for fact in ("train.validation_interval", "log_interval", "50", "75"))


def test_the_best_checkpoint_is_refused_if_the_last_step_is_not_validated():
    [line] = errors("eval.checkpoint=best", "train.steps=250")
    assert all(fact in line for fact in ("train.steps", "train.validation_interval", "500", "250"))


def test_a_loss_can_not_stop_at_an_eos_that_is_not_trained():
    [line] = errors("train.sampling_stops_at_eos=true", "train.target_eos=false")
    assert all(key in line for key in ("train.sampling_stops_at_eos", "target_eos"))


@pytest.mark.parametrize("section", ["data", "model", "train", "decode", "eval"])
@pytest.mark.parametrize("value", [5, "five", [1], None])
def test_a_section_given_as_a_single_value_is_refused(section, value):
    [line] = errors(**{section: value})
    assert f"'{section}'" in line
    assert f"'{value}'" in line


def test_a_section_of_a_preset_may_not_be_replaced_by_a_single_value():
    with pytest.raises(UserError, match=r"'train' .*'5'"):
        config_of(assignments=["train=5"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"train: [1", "not valid YAML"),
        (b"\xff\xfe", "not valid YAML"),
        (b"- 1\n- 2", "sections"),
        (b"", "sections"),
        (b"train:\n  steps: 1\n steps: 2", "not valid YAML"),
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
    found = errors(train=read_yaml(path)["train"])
    assert len(found) == 1
    with pytest.raises(UserError):
        resolve(merge({"task": "scan", "arch": "lstm"}, read_yaml(path)))


@pytest.mark.parametrize("text", ["model.dim", "=3", "", "model.dim:3"])
def test_an_assignment_without_key_or_equals_sign_is_refused(text):
    with pytest.raises(UserError, match=r"--set must be KEY=VALUE"):
        overrides([text])


@pytest.mark.parametrize(
    ("text", "value"), [("1e-3", 0.001), ("1.0e-3", 0.001), ("2", 2.0), (".5", 0.5), ("5E-4", 0.0005), ("1e1", 10.0)]
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert config(f"train.learning_rate={text}").train.learning_rate == value


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
    with pytest.raises(UserError, match=r"'dessi-2019'.* default, untuned, lake-2018"):
        preset("scan", "lstm", "dessi-2019")


def test_a_config_is_frozen():
    run = config()
    for section, key in ((run, "seed"), (run.train, "steps"), (run.model, "dim"), (run.data, "split")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(section, key, 1)


@pytest.mark.parametrize("preset_of", PRESETS, ids="-".join)
def test_every_preset_resolves_and_says_what_it_is_about(preset_of):
    task, arch, name = preset_of
    tree = preset(task, arch, name)
    assert "about" not in tree
    assert presets(task)[name][arch]["about"]
    config = resolve({"task": task, "arch": arch, **tree})
    train, validation_fraction = config.train, getattr(config.data, "validation_fraction", 1)
    assert train.warmup_steps <= train.steps
    assert not validation_fraction or train.steps % train.validation_interval == 0


def test_the_default_presets_of_scan_are_of_known_architectures():
    assert {"transformer", "lstm", "cnn"} <= set(presets("scan")["default"]) <= set(models.names())


@pytest.mark.parametrize(
    ("task", "name", "vocabularies"),
    [
        ("scan", "default", (17, 10)),
        ("translation", "default", (500, 500)),
        ("translation", "small", (2000, 2000)),
        ("translation", "small", (8000, 8000)),
        ("translation", "medium", (2000, 2000)),
    ],
)
def test_networks_of_a_preset_have_equal_parameters_within_five_per_cent(task, name, vocabularies):
    counts = {}
    for arch in presets(task)[name]:
        run = resolve({"task": task, "arch": arch, **preset(task, arch, name)})
        counts[arch] = parameter_count(models.find(arch)(run.model, *vocabularies))
    assert max(counts.values()) <= 1.05 * min(counts.values()), counts


def test_every_task_and_architecture_documents_all_its_keys():
    sections = [tasks.find(name).Config for name in tasks.names()] + [models.find(n).Config for n in models.names()]
    for section in [*sections, RunConfig]:
        assert all(field.description for field in section.model_fields.values()), section


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train.steps=yes", "'train.steps' must be a number, but is 'true'"),
        ("train.learning_rate=on", "'train.learning_rate' must be a number, but is 'true'"),
        ("model.dim=no", "'model.dim' must be a number, but is 'false'"),
        ("seed=true", "'seed' must be a number, but is 'true'"),
        ("train.compile=1", "'train.compile' must be true or false, but is '1'"),
        ("train.compile='yes'", "'train.compile' must be true or false, but is 'yes'"),
        ("train.steps=99999999999999999999999", "'train.steps' must be at most 9223372036854775807, but is '9{23}'"),
    ],
)
def test_a_value_of_another_kind_is_not_converted(text, message):
    with pytest.raises(UserError, match=f"^{message}$"):
        config(text)


def test_whole_numbers_may_be_written_with_a_point_or_as_text():
    assert config("train.steps=600.0", "train.batch_size='32'").train.model_dump().items() >= {
        ("steps", 600),
        ("batch_size", 32),
    }


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("train.steps=abc", "'train.steps' must be a whole number, but is 'abc'"),
        (
            'data.root="a\\0b"',
            "'data.root' must be text without NUL and without halves of characters, but is 'a\\x00b'",
        ),
        (
            "data.root=a\udcff",
            "'data.root' must be text without NUL and without halves of characters, but is 'a\\udcff'",
        ),
        ("train.steps=0-5", "'train.steps' must be a whole number, but is '0-5'"),
        ("train.steps=1.5", "'train.steps' must be a whole number, but is '1.5'"),
        ("train.learning_rate=fast", "'train.learning_rate' must be a number, but is 'fast'"),
        ("data.root=[1]", "'data.root' must be text, but is '[1]'"),
        ("train.optimizer=adam", "'train.optimizer' must be 'adamw' or 'sgd', but is 'adam'; did you mean 'adamw'?"),
        ("train.optimizer=lion", "'train.optimizer' must be 'adamw' or 'sgd', but is 'lion'"),
        ("train.optimizer=[adam]", "'train.optimizer' must be 'adamw' or 'sgd', but is '['adam']'"),
    ],
)
def test_a_value_of_another_kind_is_reported_in_plain_words(assignment, message):
    with pytest.raises(UserError) as error:
        config_of(assignments=[assignment])
    assert str(error.value) == message

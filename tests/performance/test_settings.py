"""Settings: sizes, variants, and what the user may change."""

import pytest

from tfstudy.errors import UserError
from tfstudy.performance.settings import AXES, Request, check_overrides, config_of, parse_axes


def request(*archs, measures=("training",), variants=("default",), overrides=None, **axes):
    return Request(archs, {**AXES, "length": (8,), **axes}, measures, variants, overrides or {})


def configs(asked):
    return [config_of(setting, asked) for setting in asked.settings()]


def test_axes_that_are_given_replace_the_defaults_and_come_first():
    assert parse_axes(["batch=2,4,2"]) == {"batch": (2, 4), "length": AXES["length"], "width": AXES["width"]}
    assert next(iter(parse_axes(["batch=2"]))) == "batch"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lenght=4"], "did you mean 'length'?"),
        (["length"], "--vary must be AXIS=VALUE"),
        (["length=0"], "must be a whole number from 1"),
        (["length=4,"], "but is ''"),
        (["batch=9999999"], "to 1,048,576"),
        (["batch=2", "batch=4"], "twice"),
    ],
)
def test_an_invalid_axis_is_refused(texts, message):
    with pytest.raises(UserError) as error:
        parse_axes(texts)
    assert message in str(error.value)


def test_all_widths_are_scaled_together():
    small, large = configs(request("transformer", width=(64, 256)))
    assert (small.model.dim, small.model.feedforward, small.model.heads) == (64, 128, 4)
    assert (large.model.dim, large.model.feedforward, large.model.heads) == (256, 512, 4)


def test_variants_change_the_config_of_training():
    default, checkpointing, bf16 = configs(request("lstm", variants=("default", "checkpointing", "bf16")))
    assert [one.train.gradient_checkpointing for one in (default, checkpointing, bf16)] == [False, True, False]
    assert bf16.train.precision == "bf16-mixed"


def test_a_setting_applies_to_the_architectures_that_have_it():
    first, second = configs(request("transformer", "lstm", overrides=check_overrides({"model": {"heads": 8}})))
    assert (first.model.heads, second.arch) == (8, "lstm")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"model": {"headz": 8}}, "did you mean 'model.heads'?"),
        ({"model": {"heads": 3}}, "heads must divide dim"),
        ({"model": {"dim": 64}}, "--vary width="),
        ({"model": 3}, "'model' must be a section"),
        ({"train": {"steps": 5}}, "unknown section 'train'"),
    ],
)
def test_an_invalid_setting_is_refused(overrides, message):
    with pytest.raises(UserError) as error:
        configs(request("transformer", overrides=check_overrides(overrides)))
    assert message in str(error.value)

"""Architectures are found by name, and wrong architectures and configs are refused."""

import importlib
import inspect
import math
import pkgutil
import sys

import pytest
from jaxtyping import TypeCheckError

from tfstudy import models
from tfstudy.data.encoding import PAD
from tfstudy.errors import UserError
from tfstudy.models.base import Model
from tfstudy.models.cnn import CNN
from tfstudy.models.lstm import LSTM
from tfstudy.models.transformer import Transformer


def test_architectures_are_found_by_name():
    assert {"cnn", "lstm", "transformer"} <= set(models.names())
    assert [models.find(name) for name in ("cnn", "lstm", "transformer")] == [CNN, LSTM, Transformer]


def test_an_unknown_architecture_is_refused_with_the_nearest_name():
    with pytest.raises(UserError, match="did you mean 'transformer'"):
        models.find("transfomer")


def test_a_subclass_of_an_architecture_is_refused():
    with pytest.raises(TypeError, match="architectures are final"):
        type("Larger", (LSTM,), {})


def test_a_model_without_decode_is_refused():
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Model,), {"encode": lambda *_: None})(None, 5, 5)


def test_heads_must_divide_dim():
    with pytest.raises(ValueError, match=r"heads must divide dim \(16\), but is 3"):
        Transformer.Config(dim=16, heads=3)


def test_shared_embeddings_need_one_vocabulary():
    with pytest.raises(ValueError, match="share_embeddings needs one vocabulary, but there are 7 and 8"):
        Transformer(Transformer.Config(dim=16, share_embeddings=True), 7, 8)


@pytest.mark.parametrize("wrong", [{"dim": 0}, {"dropout": 1.0}, {"dropout": math.nan}, {"width": 3}], ids=str)
@pytest.mark.parametrize("cls", [CNN, LSTM, Transformer])
def test_values_out_of_range_and_unknown_keys_are_refused(cls, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        cls.Config(**wrong)


def test_shapes_are_checked_while_tests_run(transformer, source):
    with pytest.raises(TypeCheckError):
        transformer.encode(source, source[:2] != PAD)


def test_every_module_is_an_architecture_or_shared():
    modules = {module.name for module in pkgutil.iter_modules(models.__path__)}
    assert modules - models.SHARED == set(models.names())
    assert modules >= models.SHARED
    for name in models.names():
        assert issubclass(models.find(name), Model)


def test_shared_modules_define_no_architecture():
    for name in models.SHARED:
        module = importlib.import_module(f"tfstudy.models.{name}")
        own = [v for v in vars(module).values() if inspect.isclass(v) and v.__module__ == module.__name__]
        assert [cls for cls in own if issubclass(cls, Model) and not inspect.isabstract(cls)] == []


@pytest.mark.parametrize("name", models.names())
def test_what_is_declared_is_read_without_importing_the_architecture(name, monkeypatch):
    cls = models.find(name)
    monkeypatch.delitem(sys.modules, f"tfstudy.models.{name}")
    assert models.declared(name, "widths", ()) == cls.widths
    assert models.declared(name, "version", 1) == cls.version
    assert models.declared(name, "missing", 7) == 7
    assert f"tfstudy.models.{name}" not in sys.modules


@pytest.mark.parametrize("name", models.names())
def test_declared_widths_and_variants_are_valid(name):
    cls = models.find(name)
    assert set(cls.widths) <= set(cls.Config.model_fields)
    assert set(cls.bags) <= {"", *cls.variants}
    for changes in ({}, *cls.variants.values()):
        cls.Config(**{**cls.small, **changes})

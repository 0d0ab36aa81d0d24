"""Small models for all tests; the shapes written in tfstudy.models and tfstudy.decoding are checked while tests run."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

pytest_plugins = ("tests.interrupted_runs",)  # the fixture `undisturbed`
install_import_hook(["tfstudy.models", "tfstudy.evaluation.decoding"], "beartype.beartype")
torch.set_num_threads(1)
settings.register_profile("tests", deadline=None, database=None, derandomize=True, max_examples=50)
settings.load_profile("tests")

SMALL: dict[str, dict[str, Any]] = {
    "transformer": {"dim": 16, "heads": 2, "feedforward": 24, "max_positions": 64},
    "lstm": {"dim": 16, "hidden": 20},
    "cnn": {"dim": 16, "channels": 20, "layers": 2, "max_positions": 64},
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "transformer": ("transformer", {}),
    "transformer-postnorm": ("transformer", {"norm": "post"}),
    "transformer-relative": ("transformer", {"positions": "relative"}),
    "transformer-learned": ("transformer", {"positions": "learned"}),
    "transformer-none": ("transformer", {"positions": "none"}),
    "transformer-share_layers": ("transformer", {"share_layers": True, "decoder_layers": 3}),
    "transformer-tie_output": ("transformer", {"tie_output": True}),
    "transformer-share_embeddings": ("transformer", {"share_embeddings": True, "tie_output": True}),
    "lstm": ("lstm", {}),
    "lstm-deep-forwards": ("lstm", {"layers": 2, "bidirectional": False}),
    "lstm-deep-both-ways": ("lstm", {"layers": 2}),
    "lstm-general": ("lstm", {"attention": "general"}),
    "lstm-additive": ("lstm", {"attention": "additive"}),
    "lstm-none": ("lstm", {"attention": "none"}),
    "lstm-input_feeding": ("lstm", {"input_feeding": True, "layers": 2}),
    "cnn": ("cnn", {}),
    "cnn-kernel4": ("cnn", {"kernel": 4}),
    "cnn-kernel1": ("cnn", {"kernel": 1}),
    "cnn-bag": ("cnn", {"kernel": 1, "positions": "none"}),
    "cnn-plain-weights": ("cnn", {"weight_norm": False}),
    "cnn-sinusoidal": ("cnn", {"positions": "sinusoidal"}),
}
BAGS = {"transformer-none", "cnn-bag"}  # what sees its source as a bag of tokens, by theory
SOURCE_VOCAB, TARGET_VOCAB = 11, 9


@pytest.fixture
def build() -> Callable[..., Any]:
    """`build(variant, vocabs, **config)`: a small model as its initialisation leaves it, in training mode."""
    from tfstudy import models

    def build(variant: str, vocabs: tuple[int, int] = (SOURCE_VOCAB, TARGET_VOCAB), **changes: Any) -> Any:
        arch, config = VARIANTS[variant]
        torch.manual_seed(0)
        cls = models.find(arch)
        source = vocabs[1] if config.get("share_embeddings") else vocabs[0]
        return cls(cls.Config(**SMALL[arch] | config | changes), source, vocabs[1])

    return build


def shaken(model: Any) -> Any:
    """In eval mode, with noise on every parameter: zeros of the initialisation must not hide a mistake."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    """The name of every architecture and variant."""
    return request.param


@pytest.fixture
def model(variant: str, build: Callable[..., Any]) -> Any:
    """Every architecture and variant."""
    return shaken(build(variant))


@pytest.fixture
def transformer(build: Callable[..., Any]) -> Any:
    """A pre-norm Transformer with sinusoids."""
    return shaken(build("transformer"))


@pytest.fixture
def lstm(build: Callable[..., Any]) -> Any:
    """A bidirectional LSTM with multiplicative attention."""
    return shaken(build("lstm"))


@pytest.fixture
def cnn(build: Callable[..., Any]) -> Any:
    """A convolutional network with learned positions."""
    return shaken(build("cnn"))


@pytest.fixture
def source() -> torch.Tensor:
    """Source ids of unequal lengths (6, 3 and 5), ended by EOS and padded."""
    return torch.tensor([[4, 5, 6, 7, 8, 2], [8, 4, 2, 0, 0, 0], [5, 8, 6, 4, 2, 0]])


@pytest.fixture
def tokens() -> torch.Tensor:
    """Decoder inputs, which start with BOS."""
    return torch.tensor([[1, 4, 5, 6, 7, 8, 4], [1, 8, 7, 6, 5, 4, 5], [1, 6, 6, 4, 8, 5, 7]])

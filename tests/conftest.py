"""For all tests: small models of all architectures, the check of shapes in signatures, an empty folder, a task."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import jaxtyping
import pytest
import torch
from hypothesis import settings

from tests.example_task import TASK, added
from tfstudy import plugins, tasks

pytest_plugins = ("tests.interrupted_runs",)  # the fixture `undisturbed`
jaxtyping.install_import_hook(["tfstudy.models", "tfstudy.evaluation.decoding"], "beartype.beartype")
jaxtyping.config.update("jaxtyping_disable", True)  # a small model is three times as slow with them: see `shapes`
torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; tests interrupt themselves
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("tests", deadline=None, database=None, derandomize=True, max_examples=50)
settings.load_profile("tests")


@pytest.fixture(autouse=True)
def _clean_environment() -> None:
    """No plug-ins of the tests before on the same worker, and no width: xdist sets that of its terminal."""
    os.environ.pop(plugins.VARIABLE, None)
    os.environ.pop("COLUMNS", None)


@pytest.fixture
def shapes() -> Iterator[None]:
    """Check the shapes in signatures while the test runs; those of the properties of models ask for it."""
    jaxtyping.config.update("jaxtyping_disable", False)
    yield
    jaxtyping.config.update("jaxtyping_disable", True)


@pytest.fixture
def empty_folder(tmp_path, monkeypatch) -> None:
    """The working folder of the test is its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def reverse(empty_folder, tmp_path) -> Iterator[None]:
    """There is the task `reverse` too."""
    with added(tasks, "reverse", TASK, tmp_path / "more"):
        yield


def variants() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return every variant of every architecture: its name such as `cnn-bag`, its architecture and its small config."""
    from tfstudy import models

    return {
        f"{arch}-{name}" if name else arch: (arch, {**cls.small, **changes})
        for arch, cls in ((arch, models.find(arch)) for arch in models.names())
        for name, changes in {"": {}, **cls.variants}.items()
    }


VARIANTS = variants()
SOURCE_VOCAB, TARGET_VOCAB = 11, 9


@pytest.fixture
def build() -> Callable[..., Any]:
    """`build(variant, vocabs, **config)`: a small model with its initial weights, in training mode."""
    from tfstudy import models

    def build(variant: str, vocabs: tuple[int, int] = (SOURCE_VOCAB, TARGET_VOCAB), **changes: Any) -> Any:
        arch, config = VARIANTS[variant]
        torch.manual_seed(0)
        cls = models.find(arch)
        source = vocabs[1] if config.get("share_embeddings") else vocabs[0]
        return cls(cls.Config(**config | changes), source, vocabs[1])

    return build


def perturbed(model: Any) -> Any:
    """The model in eval mode with noise on every parameter, so that initial zeros do not hide an error."""
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
    return perturbed(build(variant))


@pytest.fixture
def transformer(build: Callable[..., Any]) -> Any:
    """A pre-norm Transformer with sinusoids."""
    return perturbed(build("transformer"))


@pytest.fixture
def source() -> torch.Tensor:
    """Source ids of unequal lengths (6, 3 and 5), ended by EOS and padded."""
    return torch.tensor([[4, 5, 6, 7, 8, 2], [8, 4, 2, 0, 0, 0], [5, 8, 6, 4, 2, 0]])


@pytest.fixture
def tokens() -> torch.Tensor:
    """Decoder inputs, which start with BOS."""
    return torch.tensor([[1, 4, 5, 6, 7, 8, 4], [1, 8, 7, 6, 5, 4, 5], [1, 6, 6, 4, 8, 5, 7]])

"""The interface of an architecture: `encode` a source, then `decode` tokens from a state that is a value.

A first architecture is simplest as a `PaddedModel`, on padded tensors. A `Model` computes several rectangles of rows in
one pass (see `models.tokens`), which is faster in training.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from inspect import isabstract
from typing import Any, ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.errors import UserError
from tfstudy.models.config import ModelConfig
from tfstudy.models.tokens import Tokens, flat

State = Any  # a NamedTuple of tensors with the rows first, of tuples of them, of integers and objects like `Tokens`


class HiddenStates(nn.Module):
    """Hidden states pass through here unchanged: the embeddings as layer 0, and the output of each layer.

    Instruments hook it (`register_forward_hook`) to read hidden states, or to replace them.
    """

    def forward(self, x: Float[Tensor, "*tokens width"], layer: int) -> Float[Tensor, "*tokens width"]:
        return x


class Model(nn.Module, ABC):
    """An encoder-decoder over token ids. Each architecture is a subclass in a file of its own, with a nested `Config`.

    The class attributes hold what the tests, the matching of sizes and the tables need to know of an architecture, so
    that adding one is adding one file. Padding never changes a result: the mask hides that of the source, and that of
    the target comes after all tokens that are scored.
    """

    # Raise it when the same config leads to another distribution of results: another layer or formula, another
    # initialisation, another default of `Config`. Not for rounding or another order of random draws.
    version: ClassVar[int] = 1
    parallel: ClassVar[bool] = False  # True if only `Dropout` draws random numbers: micro-batches may run on threads
    widths: ClassVar[tuple[str, ...]] = ("dim",)  # keys of the config that are scaled to reach a number of parameters
    small: ClassVar[Mapping[str, Any]] = {"dim": 16}  # a config for quick tests
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # named changes to `small`, each tested too
    bags: ClassVar[tuple[str, ...]] = ()  # variants ("" is `small`) for which the order of the source must not matter
    Config: ClassVar[type[ModelConfig]] = ModelConfig

    def __init__(self, config: ModelConfig, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        if config.needs_one_vocabulary and source_vocab != target_vocab:
            raise UserError(
                f"model.share_embeddings must be false, since there are two vocabularies, of {source_vocab:,} and "
                f"{target_vocab:,} tokens"
            )
        self.arguments = (config, source_vocab, target_vocab)  # with which another one like it is built
        self.dim = config.dim
        self.source_states, self.target_states = HiddenStates(), HiddenStates()

    @property
    def max_positions(self) -> int | None:
        """The number of positions that the model has learned embeddings for; None if any position is allowed."""
        return None

    @abstractmethod
    def encode(self, source: Tokens) -> State:
        """Return the state from which decoding starts."""

    @abstractmethod
    def decode(self, target: Tokens, state: State) -> tuple[Float[Tensor, "tokens target_vocab"], State]:
        """Return the logits after each token of `target`, which follow those already in the state, and the new state.

        Only generation continues a state, and has one rectangle; that after several need not be complete.
        """

    def forward(self, source: Tokens, target: Tokens) -> Float[Tensor, "tokens target_vocab"]:
        """Return the logits after each token of `target`, whose rows start with BOS (teacher forcing)."""
        logits: Tensor = self.decode(target, self.encode(source))[0]
        return logits

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters that weight decay leaves unchanged: by default all vectors (biases and gains)."""
        return (parameter for parameter in self.parameters() if parameter.ndim < 2)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in cls.__bases__:
            if issubclass(base, Model) and not isabstract(base):
                raise TypeError(
                    f"{cls.__name__} must not be a subclass of {base.__name__}: architectures are final, because the "
                    f"version of {base.__name__} says nothing about runs of {cls.__name__}; add a key to its Config, "
                    f"or copy its file under another name"
                )


class PaddedModel(Model):
    """A `Model` on padded tensors, which is called once for each rectangle. Subclasses define two methods.

    `encode` and `decode` serve generation, which has one rectangle; only `forward` takes several.
    """

    @abstractmethod
    def encode_padded(self, source: Int[Tensor, "rows source"], mask: Bool[Tensor, "rows source"]) -> State:
        """Return the state from which decoding starts. The mask is True where there is a token."""

    @abstractmethod
    def decode_padded(
        self, tokens: Int[Tensor, "rows length"], state: State
    ) -> tuple[Float[Tensor, "rows length target_vocab"], State]:
        """Return the logits after each of `tokens`, which follow those already in the state, and the new state."""

    def encode(self, source: Tokens) -> State:
        if len(source.shapes) != 1:
            raise ValueError(f"encode of a PaddedModel takes one rectangle, got {len(source.shapes)}; call forward")
        [(ids, mask)] = source.rectangles(source.ids, source.mask)
        return self.encode_padded(ids, mask)

    def decode(self, target: Tokens, state: State) -> tuple[Float[Tensor, "tokens target_vocab"], State]:
        [(tokens,)] = target.rectangles(target.ids)
        logits, state = self.decode_padded(tokens, state)
        return logits.flatten(0, 1), state

    def forward(self, source: Tokens, target: Tokens) -> Float[Tensor, "tokens target_vocab"]:
        pairs = zip(source.rectangles(source.ids, source.mask), target.rectangles(target.ids), strict=True)
        return flat([self.decode_padded(tokens, self.encode_padded(*padded))[0] for padded, (tokens,) in pairs])


def select_rows(state: State, rows: Int[Tensor, " rows"]) -> State:
    """Return the state of these rows of the batch, in this order. Rows may repeat (beams) or be left out (finished)."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if hasattr(state, "select_rows"):
        return state.select_rows(rows)
    if isinstance(state, tuple):
        parts = [select_rows(part, rows) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if isinstance(state, int | None):  # the same for all rows
        return state
    raise TypeError(f"a state must consist of tensors and tuples, got {type(state).__name__}")


def select_hypotheses(
    state: State, hypotheses: Int[Tensor, " hypotheses"], sources: Int[Tensor, " sources"] | None = None
) -> State:
    """Return the state of these rows, as `select_rows` does, except that of `source` the rows `sources` (None: all).

    A state without a field `source` is selected as a whole.
    """
    if "source" not in getattr(state, "_fields", ()):
        return select_rows(state, hypotheses)
    parts = {name: select_rows(part, hypotheses) for name, part in state._asdict().items() if name != "source"}
    return state._replace(**parts | ({} if sources is None else {"source": select_rows(state.source, sources)}))


def parameter_count(model: nn.Module) -> int:
    """Return the number of trainable scalars."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)

"""The interface of an architecture: `encode` a source, then `decode` tokens from a state that is a value."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from inspect import isabstract
from typing import Any, ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfstudy.models.config import ModelConfig
from tfstudy.models.parts.tokens import RaggedGroup, flatten_groups

State = Any  # a NamedTuple of tensors with the batch first, of tuples of them, or of objects with `select_rows`


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
    source_only: ClassVar[
        tuple[str, ...]
    ] = ()  # variants whose logits depend on the source alone, not on target tokens
    Config: ClassVar[type[ModelConfig]] = ModelConfig

    def __init__(self, config: ModelConfig, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.arguments = (config, source_vocab, target_vocab)  # with which another one like it is built
        self.dim = config.dim

    @property
    def max_positions(self) -> int | None:
        """The number of positions that the model has learned embeddings for; None if any position is allowed."""
        return None

    @abstractmethod
    def encode(self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"]) -> State:
        """Return the state from which decoding starts. The mask is True where there is a token."""

    @abstractmethod
    def decode(
        self, tokens: Int[Tensor, "batch length"], state: State
    ) -> tuple[Float[Tensor, "batch length target_vocab"], State]:
        """Return the logits after each of `tokens`, which follow those already in the state, and the new state."""

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"],
        tokens: Int[Tensor, "batch length"],
    ) -> Float[Tensor, "batch length target_vocab"]:
        """Return the logits after each of `tokens`, which start with BOS (teacher forcing)."""
        logits: Tensor = self.decode(tokens, self.encode(source, source_mask))[0]
        return logits

    def forward_groups(self, groups: Sequence[RaggedGroup]) -> Float[Tensor, "positions target_vocab"]:
        """Return the logits of `forward` for each group, flattened and concatenated."""
        return flatten_groups([self(*group) for group in groups])

    def parameters_without_decay(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters that weight decay leaves unchanged: by default all vectors (biases and gains)."""
        return (parameter for parameter in self.parameters() if parameter.ndim < 2)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in cls.__bases__:
            if issubclass(base, Model) and not isabstract(base):
                raise TypeError(f"{cls.__name__} must not be a subclass of {base.__name__}: architectures are final")


class RaggedModel(Model):
    """A `Model` that computes several ragged groups in one pass (see `models.parts.tokens`).

    Subclasses define `encode_groups` and `decode_groups` in place of `encode` and `decode`. Each group has its own
    state, and groups may have decoded different numbers of tokens so far.
    """

    @abstractmethod
    def encode_groups(self, sources: Sequence[Tensor], masks: Sequence[Tensor]) -> list[State]:
        """Return the state of each group of sources (batch, source). A mask is True where there is a token."""

    @abstractmethod
    def decode_groups(self, tokens: Sequence[Tensor], states: Sequence[State]) -> tuple[Tensor, list[State]]:
        """Return the logits (positions, vocab) after all groups' tokens (batch, length), and each group's state."""

    def encode(self, source: Int[Tensor, "batch source"], source_mask: Bool[Tensor, "batch source"]) -> State:
        return self.encode_groups([source], [source_mask])[0]

    def decode(
        self, tokens: Int[Tensor, "batch length"], state: State
    ) -> tuple[Float[Tensor, "batch length target_vocab"], State]:
        logits, [state] = self.decode_groups([tokens], [state])
        return logits.view(*tokens.shape, logits.shape[1]), state

    def forward_groups(self, groups: Sequence[RaggedGroup]) -> Float[Tensor, "positions target_vocab"]:
        sources, masks, tokens = zip(*groups, strict=True)
        return self.decode_groups(tokens, self.encode_groups(sources, masks))[0]


def select_rows(state: State, rows: Int[Tensor, " rows"]) -> State:
    """Return the state of these rows of the batch, in this order. Rows may repeat (beams) or be left out (finished)."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if hasattr(state, "select_rows"):
        return state.select_rows(rows)
    if isinstance(state, tuple):
        parts = [select_rows(part, rows) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
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

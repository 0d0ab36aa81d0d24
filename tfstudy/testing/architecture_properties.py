"""Properties that every architecture has in each of its variants: one function for each."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized
from torch.testing import assert_close

from tfstudy.data.encoding import PAD
from tfstudy.evaluation.decoding import greedy
from tfstudy.models.attention import Cache
from tfstudy.models.base import Model, select_hypotheses, select_rows
from tfstudy.models.tokens import Tokens
from tfstudy.testing import require

SOURCE_VOCAB, TARGET_VOCAB = 11, 9
# Ids of sources of unequal lengths (6, 3 and 5), ended by EOS and padded; decoder inputs, which start with BOS
SOURCE = torch.tensor([[4, 5, 6, 7, 8, 2], [8, 4, 2, 0, 0, 0], [5, 8, 6, 4, 2, 0]])
TOKENS = torch.tensor([[1, 4, 5, 6, 7, 8, 4], [1, 8, 7, 6, 5, 4, 5], [1, 6, 6, 4, 8, 5, 7]])
STEPS = 200  # of Adam, within which one batch is memorised


class ArchitectureVariant(NamedTuple):
    """A variant of an architecture; "" is its config `small`."""

    cls: type[Model]
    name: str

    def __str__(self) -> str:
        return f", variant {self.name}" if self.name else ""

    def build(self, **changes: Any) -> Model:
        """A small model with its initial weights, in training mode."""
        torch.manual_seed(0)
        config = self.cls.Config(**{**self.cls.small, **self.cls.variants.get(self.name, {}), **changes})
        return self.cls(config, TARGET_VOCAB if config.needs_one_vocabulary else SOURCE_VOCAB, TARGET_VOCAB)

    def perturbed(self) -> Model:
        """A small model in eval mode with noise on every parameter, so that initial zeros do not hide an error."""
        model = self.build()
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        return model.eval()


def architecture_variants(cls: type[Model]) -> list[ArchitectureVariant]:
    """Return an architecture with its config `small` and in each of its variants."""
    return [ArchitectureVariant(cls, name) for name in ("", *cls.variants)]


def encode(model: Model, source: Tensor) -> Any:
    """Return the state of padded sources (rows, source)."""
    return model.encode(Tokens.of(source))


def decode(model: Model, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
    """Return the logits (rows, length, vocab) after `tokens` (rows, length), and the new state."""
    logits, state = model.decode(Tokens.of(tokens), state)
    return logits.view(*tokens.shape, TARGET_VOCAB), state


def forward(model: Model, source: Tensor, tokens: Tensor) -> Tensor:
    """Return the logits (rows, length, vocab) with teacher forcing."""
    logits: Tensor = model(Tokens.of(source), Tokens.of(tokens))
    return logits.view(*tokens.shape, TARGET_VOCAB)


@torch.no_grad()
def decoded(model: Model, tokens: Tensor, state: Any, sizes: Sequence[int]) -> Tensor:
    """Return the logits after all tokens, decoded in pieces of these sizes."""
    out = []
    for piece in torch.split(tokens, list(sizes), 1):
        logits, state = decode(model, piece, state)
        out.append(logits)
    return torch.cat(out, 1)


def leaves(state: Any) -> list[Tensor]:
    """Return the tensors of a state that have the rows first."""
    if isinstance(state, Tokens):
        return [ids for (ids,) in state.rectangles(state.ids)]
    if isinstance(state, Cache):
        return [state.keys, state.values]
    if isinstance(state, Tensor):
        return [state]
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple | list) else []


def check_close(found: Any, expected: Any) -> None:
    """`AssertionError` unless the tensors are equal up to the rounding of float32 in another order of addition."""
    assert_close(found, expected, atol=3e-5, rtol=1e-4)


PROPERTIES: dict[str, Callable[[ArchitectureVariant], None]] = {}


def named(check: Callable[[ArchitectureVariant], None]) -> Callable[[ArchitectureVariant], None]:
    """Add a property to `PROPERTIES`, by its name in words."""
    PROPERTIES[check.__name__.replace("_", " ")] = check
    return check


@named
def decoding_in_pieces_equals_teacher_forcing(variant: ArchitectureVariant) -> None:
    """Whether tokens are decoded at once, one by one or in pieces, the logits are the same."""
    model = variant.perturbed()
    for sizes in ([1] * 7, [2, 2, 2, 1], [3, 3, 1], [1, 4, 2]):
        check_close(decoded(model, TOKENS, encode(model, SOURCE), sizes), forward(model, SOURCE, TOKENS))


@named
def no_logit_depends_on_a_later_token(variant: ArchitectureVariant) -> None:
    """Changing tokens from a position on changes the logits from there on, and none before."""
    model = variant.perturbed()
    for place in (1, 3, 6):
        changed = TOKENS.clone()
        changed[:, place:] = 12 - changed[:, place:]  # 4..8 becomes 8..4
        changed[:, place] = torch.where(changed[:, place] == TOKENS[:, place], 4, changed[:, place])
        before, after = (forward(model, SOURCE, tokens) for tokens in (TOKENS, changed))
        check_close(before[:, :place], after[:, :place])
        difference = (before[:, place] - after[:, place]).abs().amax(-1).min()
        require(difference > 1e-3, f"a token changes no logit after it by more than {difference:.1e}, expected 1e-3")


@named
def rectangles_of_any_shapes_have_the_logits_of_each_alone(variant: ArchitectureVariant) -> None:
    """A batch of several rectangles has the logits of each of them alone, empty ones included."""
    model = variant.perturbed()
    sources = [SOURCE[:1, :4], SOURCE, SOURCE[1:], SOURCE[:0]]
    given = [TOKENS[:1], TOKENS[:, :3], TOKENS[1:, :1], TOKENS[:0]]
    expected = [model(Tokens.of(source), Tokens.of(tokens)) for source, tokens in zip(sources, given, strict=True)]
    check_close(model(Tokens.of(*sources), Tokens.of(*given)), torch.cat(expected))


@named
def padding_changes_nothing(variant: ArchitectureVariant) -> None:
    """Neither the number of padded positions nor the ids at them change a logit."""
    model = variant.perturbed()
    for filler in (PAD, 7):
        longer = nn.functional.pad(SOURCE, (0, 4))
        mask = longer != PAD
        padded = Tokens.of(longer.masked_fill(~mask, filler))._replace(mask=mask.flatten())
        check_close(model(padded, Tokens.of(TOKENS)).view(3, 7, -1), forward(model, SOURCE, TOKENS))


@named
def a_batch_of_one_equals_its_row_of_a_larger_batch(variant: ArchitectureVariant) -> None:
    """A row without its padding, as a batch of its own, has the same logits."""
    model = variant.perturbed()
    whole = forward(model, SOURCE, TOKENS)
    for row in range(3):
        alone = SOURCE[row : row + 1, : int((SOURCE[row] != PAD).sum())]
        check_close(forward(model, alone, TOKENS[row : row + 1])[0], whole[row])


@named
def an_empty_batch_gives_no_logits(variant: ArchitectureVariant) -> None:
    """The logits of no rows have shape (0, vocabulary)."""
    shape = variant.perturbed()(Tokens.of(SOURCE[:0]), Tokens.of(TOKENS[:0])).shape
    require(shape == (0, TARGET_VOCAB), f"the shape must be {(0, TARGET_VOCAB)}, but is {tuple(shape)}")


@named
def source_order_matters_except_to_bags(variant: ArchitectureVariant) -> None:
    """Swapping two source tokens changes the logits, except of the variants in `bags`."""
    model = variant.perturbed()
    swapped = SOURCE[:1, [3, 1, 2, 0, 4, 5]]
    difference = (forward(model, swapped, TOKENS[:1]) - forward(model, SOURCE[:1], TOKENS[:1])).abs().max()
    if variant.name in variant.cls.bags:
        require(
            difference < 3e-5, f"the order of the source matters ({difference:.1e}); remove the variant from `bags`"
        )
    else:
        reason = f"the order of the source does not matter ({difference:.1e})"
        require(difference > 1e-3, f"{reason}; if that is meant, name the variant in `bags`")


@named
@torch.no_grad()
def select_rows_reorders_repeats_and_drops_rows(variant: ArchitectureVariant) -> None:
    """A state whose rows were selected continues as those rows do."""
    model, rows = variant.perturbed(), torch.tensor([2, 0, 2, 2])
    _, state = decode(model, TOKENS[:, :3], encode(model, SOURCE))
    logits, _ = decode(model, TOKENS[rows, 3:], select_rows(state, rows))
    check_close(logits, forward(model, SOURCE, TOKENS)[rows, 3:])


@named
@torch.no_grad()
def hypotheses_of_one_source_share_its_state(variant: ArchitectureVariant) -> None:
    """Several rows of tokens can follow each row of a field `source`, and be reordered within it."""
    model, sources, first = variant.perturbed(), torch.tensor([2, 0]), torch.tensor([2, 2, 2, 0, 0, 0])
    prefixes = torch.stack([TOKENS.roll(k, 0) for k in range(3)], 1)[sources]  # (sources, hypotheses, tokens)
    state = select_hypotheses(encode(model, SOURCE), first, sources)
    _, state = decode(model, prefixes[..., :2].flatten(0, 1), state)
    order = torch.tensor([1, 0, 0, 5, 4, 5])
    logits, _ = decode(model, prefixes[..., 2:].flatten(0, 1)[order], select_hypotheses(state, order))
    expected = forward(model, SOURCE[first], prefixes.flatten(0, 1)[order])[:, 2:]
    check_close(logits, expected)


@named
@torch.no_grad()
def a_state_is_a_value(variant: ArchitectureVariant) -> None:
    """Decoding from a state leaves it as it is, so that it can be continued twice."""
    model = variant.perturbed()
    _, state = decode(model, TOKENS[:, :2], encode(model, SOURCE))
    before = [leaf.clone() for leaf in leaves(state)]
    first, _ = decode(model, TOKENS[:, 2:4], state)
    decode(model, TOKENS[:, 4:], state)
    second, _ = decode(model, TOKENS[:, 2:4], state)
    require(torch.equal(first, second), "the same tokens after the same state have other logits the second time")
    unchanged = all(torch.equal(a, b) for a, b in zip(before, leaves(state), strict=True))
    require(unchanged, "decode() changes the state that it is given")


@named
def every_tensor_of_a_state_has_the_batch_first(variant: ArchitectureVariant) -> None:
    """The first dimension of all tensors of a state is the batch."""
    model = variant.perturbed()
    state = encode(model, SOURCE)
    sizes = {len(leaf) for leaf in leaves(state) + leaves(decode(model, TOKENS, state)[1])}
    require(sizes == {3}, f"first dimensions of tensors of the state of 3 rows: {sorted(sizes)}")


@named
def gradients_reach_every_parameter(variant: ArchitectureVariant) -> None:
    """Each parameter has a gradient that is not zero."""
    model = variant.build(dropout=0.0)
    logits = forward(model, SOURCE, TOKENS).flatten(0, 1)
    nn.functional.cross_entropy(logits, TOKENS.roll(-1).flatten()).backward()  # type: ignore[no-untyped-call]
    missed = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 1e-9]
    require(not missed, f"parameters without a gradient: {', '.join(missed)}")


@named
def one_batch_can_be_memorised(variant: ArchitectureVariant) -> None:
    """Within 200 steps the loss of one batch is below 0.01, and greedy decoding returns its targets."""
    model = variant.build(dropout=0.0)
    target = torch.tensor([[1, 4, 5, 6, 7, 2], [1, 8, 2, 0, 0, 0], [1, 6, 7, 4, 2, 0]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    for _ in range(STEPS):
        logits = model(Tokens.of(SOURCE), Tokens.of(target[:, :-1]))
        loss = nn.functional.cross_entropy(logits, target[:, 1:].flatten(), ignore_index=PAD)
        if loss < 0.01:
            break
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    require(loss < 0.01, f"the loss after {STEPS} steps must be below 0.01, but is {loss.item():.3f}")
    generated = greedy(model.eval(), Tokens.of(SOURCE), torch.full((3,), 9))
    expected = [[4, 5, 6, 7], [8], [6, 7, 4]]
    require(generated == expected, f"greedy decoding must return {expected}, but returns {generated}")


@named
def dropout_acts_in_training_only(variant: ArchitectureVariant) -> None:
    """Two passes in training differ, and two in eval mode are equal."""
    model = variant.build(dropout=0.3)
    difference = (forward(model, SOURCE, TOKENS) - forward(model, SOURCE, TOKENS)).abs().max()
    require(difference > 1e-4, "dropout changes nothing in training")
    model.eval()
    require(
        torch.equal(forward(model, SOURCE, TOKENS), forward(model, SOURCE, TOKENS)), "two passes in eval mode differ"
    )


@named
def a_model_works_in_double_precision(variant: ArchitectureVariant) -> None:
    """In double precision the logits are double and close to those in single precision."""
    model = variant.perturbed()
    single = forward(model, SOURCE, TOKENS)
    double = forward(model.double(), SOURCE, TOKENS)
    require(double.dtype == torch.float64, f"the logits must have type torch.float64, but have {double.dtype}")
    check_close(double.float(), single)


@named
def weights_can_be_saved_and_loaded(variant: ArchitectureVariant) -> None:
    """A model with the `state_dict` of another one computes the same."""
    model, other = variant.perturbed(), variant.build().eval()
    other.load_state_dict(model.state_dict())
    same = torch.equal(forward(other, SOURCE, TOKENS), forward(model, SOURCE, TOKENS))
    require(same, "a copy of the weights has other logits")


@named
def weight_decay_spares_vectors_and_no_weight_of_a_layer(variant: ArchitectureVariant) -> None:
    """`parameters_without_decay` holds all vectors, and no matrix of a linear layer, an embedding or an LSTM."""
    model = variant.perturbed()
    spared = {id(parameter) for parameter in model.parameters_without_decay()}
    foreign = len(spared - {id(parameter) for parameter in model.parameters()})
    require(not foreign, f"parameters_without_decay() returns {foreign} tensors that are no parameters of the model")
    decayed = [name for name, p in model.named_parameters() if p.ndim < 2 and id(p) not in spared]
    require(not decayed, f"vectors that parameters_without_decay() must return, but does not: {', '.join(decayed)}")
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear | nn.Embedding | nn.LSTM) and not is_parametrized(layer):
            matrices = [key for key, p in layer.named_parameters(name, False) if p.ndim > 1 and id(p) in spared]
            require(not matrices, f"weights of layers that parameters_without_decay() returns: {', '.join(matrices)}")


@named
def what_it_declares_is_valid(variant: ArchitectureVariant) -> None:
    """`widths` are keys of the config, `bags` are variants; it has a version and a docstring."""
    cls = variant.cls
    unknown = sorted(set(cls.widths) - set(cls.Config.model_fields))
    require(not unknown, f"widths must be keys of the config, but these are not: {', '.join(unknown)}")
    unknown = sorted(set(cls.bags) - {"", *cls.variants})
    require(not unknown, f"bags must be variants, but these are not: {', '.join(unknown)}")
    require(isinstance(cls.version, int), f"the version must be a whole number, but is {cls.version!r}")
    require((cls.__doc__ or "").strip(), "the class has no docstring, which `tfstudy list architectures` shows")

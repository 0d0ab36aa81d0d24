"""Properties of the states, the parameters and the training of an architecture: one function for each."""

import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from tfstudy.data.encoding import PAD
from tfstudy.evaluation.decoding import greedy
from tfstudy.models.base import select_hypotheses, select_rows
from tfstudy.testing.architecture_variant import MASK, SOURCE, TOKENS, ArchitectureVariant, check_close, leaves
from tfstudy.testing.expect import expect

STEPS = 200  # of Adam, within which one batch is memorised


def select_rows_reorders_repeats_and_drops_rows(variant: ArchitectureVariant) -> None:
    """A state whose rows were selected continues as those rows do."""
    model, rows = variant.perturbed(), torch.tensor([2, 0, 2, 2])
    _, state = model.decode(TOKENS[:, :3], model.encode(SOURCE, MASK))
    logits, _ = model.decode(TOKENS[rows, 3:], select_rows(state, rows))
    check_close(logits, model(SOURCE, MASK, TOKENS)[rows, 3:])


def hypotheses_of_one_source_share_its_state(variant: ArchitectureVariant) -> None:
    """Several rows of tokens can follow each row of a field `source`, and be reordered within it."""
    model, sources, first = variant.perturbed(), torch.tensor([2, 0]), torch.tensor([2, 2, 2, 0, 0, 0])
    prefixes = torch.stack([TOKENS.roll(k, 0) for k in range(3)], 1)[sources]  # (sources, hypotheses, tokens)
    state = select_hypotheses(model.encode(SOURCE, MASK), first, sources)
    _, state = model.decode(prefixes[..., :2].flatten(0, 1), state)
    order = torch.tensor([1, 0, 0, 5, 4, 5])
    logits, _ = model.decode(prefixes[..., 2:].flatten(0, 1)[order], select_hypotheses(state, order))
    expected = model(SOURCE[first], MASK[first], prefixes.flatten(0, 1)[order])[:, 2:]
    check_close(logits, expected)


def a_state_is_a_value(variant: ArchitectureVariant) -> None:
    """Decoding from a state leaves it as it is, so that it can be continued twice."""
    model = variant.perturbed()
    _, state = model.decode(TOKENS[:, :2], model.encode(SOURCE, MASK))
    before = [leaf.clone() for leaf in leaves(state)]
    first, _ = model.decode(TOKENS[:, 2:4], state)
    model.decode(TOKENS[:, 4:], state)
    second, _ = model.decode(TOKENS[:, 2:4], state)
    expect(torch.equal(first, second), "the same tokens after the same state have other logits the second time")
    unchanged = all(torch.equal(a, b) for a, b in zip(before, leaves(state), strict=True))
    expect(unchanged, "decode() changes the state that it is given")


def every_tensor_of_a_state_has_the_batch_first(variant: ArchitectureVariant) -> None:
    """The first dimension of all tensors of a state is the batch."""
    model = variant.perturbed()
    state = model.encode(SOURCE, MASK)
    sizes = {len(leaf) for leaf in leaves(state) + leaves(model.decode(TOKENS, state)[1])}
    expect(sizes == {3}, f"first dimensions of tensors of the state of 3 rows: {sorted(sizes)}")


def gradients_reach_every_parameter(variant: ArchitectureVariant) -> None:
    """Each parameter has a gradient that is not zero."""
    model = variant.build(dropout=0.0)
    logits = model(SOURCE, MASK, TOKENS).flatten(0, 1)
    nn.functional.cross_entropy(logits, TOKENS.roll(-1).flatten()).backward()  # type: ignore[no-untyped-call]
    missed = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 1e-9]
    expect(not missed, f"parameters without a gradient: {', '.join(missed)}")


def one_batch_can_be_memorised(variant: ArchitectureVariant) -> None:
    """Within 200 steps the loss of one batch is below 0.01, and greedy decoding returns its targets."""
    model = variant.build(dropout=0.0)
    target = torch.tensor([[1, 4, 5, 6, 7, 2], [1, 8, 2, 0, 0, 0], [1, 6, 7, 4, 2, 0]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    for _ in range(STEPS):
        logits = model(SOURCE, MASK, target[:, :-1]).flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, target[:, 1:].flatten(), ignore_index=PAD)
        if loss < 0.01:
            break
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    expect(loss < 0.01, f"the loss after {STEPS} steps must be below 0.01, but is {loss.item():.3f}")
    generated = greedy(model.eval(), SOURCE, MASK, torch.full((3,), 9))
    expected = [[4, 5, 6, 7], [8], [6, 7, 4]]
    expect(generated == expected, f"greedy decoding must return {expected}, but returns {generated}")


def dropout_acts_in_training_only(variant: ArchitectureVariant) -> None:
    """Two passes in training differ, and two in eval mode are equal."""
    model = variant.build(dropout=0.3)
    difference = (model(SOURCE, MASK, TOKENS) - model(SOURCE, MASK, TOKENS)).abs().max()
    expect(difference > 1e-4, "dropout changes nothing in training")
    model.eval()
    expect(torch.equal(model(SOURCE, MASK, TOKENS), model(SOURCE, MASK, TOKENS)), "two passes in eval mode differ")


def a_model_works_in_double_precision(variant: ArchitectureVariant) -> None:
    """In double precision the logits are double and close to those in single precision."""
    model = variant.perturbed()
    single = model(SOURCE, MASK, TOKENS)
    double = model.double()(SOURCE, MASK, TOKENS)
    expect(double.dtype == torch.float64, f"the logits must have type torch.float64, but have {double.dtype}")
    check_close(double.float(), single)


def weights_can_be_saved_and_loaded(variant: ArchitectureVariant) -> None:
    """A model with the `state_dict` of another one computes the same."""
    model, other = variant.perturbed(), variant.build().eval()
    other.load_state_dict(model.state_dict())
    same = torch.equal(other(SOURCE, MASK, TOKENS), model(SOURCE, MASK, TOKENS))
    expect(same, "a copy of the weights has other logits")


def weight_decay_spares_vectors_and_no_weight_of_a_layer(variant: ArchitectureVariant) -> None:
    """`parameters_without_decay` holds all vectors, and no matrix of a linear layer, an embedding or an LSTM."""
    model = variant.perturbed()
    spared = {id(parameter) for parameter in model.parameters_without_decay()}
    foreign = len(spared - {id(parameter) for parameter in model.parameters()})
    expect(not foreign, f"parameters_without_decay() returns {foreign} tensors that are no parameters of the model")
    decayed = [name for name, p in model.named_parameters() if p.ndim < 2 and id(p) not in spared]
    expect(not decayed, f"vectors that parameters_without_decay() must return, but does not: {', '.join(decayed)}")
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear | nn.Embedding | nn.LSTM) and not is_parametrized(layer):
            matrices = [key for key, p in layer.named_parameters(name, False) if p.ndim > 1 and id(p) in spared]
            expect(not matrices, f"weights of layers that parameters_without_decay() returns: {', '.join(matrices)}")

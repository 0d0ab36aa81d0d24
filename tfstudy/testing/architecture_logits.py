"""Properties of the logits of an architecture: one function for each."""

import torch

from tfstudy.data.encoding import PAD
from tfstudy.models.base import RaggedModel
from tfstudy.models.parts.tokens import RaggedGroup
from tfstudy.testing.architecture_variant import (
    MASK,
    SOURCE,
    TARGET_VOCAB,
    TOKENS,
    ArchitectureVariant,
    check_close,
    decoded,
    leaves,
)
from tfstudy.testing.expect import expect


def decoding_in_pieces_equals_teacher_forcing(variant: ArchitectureVariant) -> None:
    """Whether tokens are decoded at once, one by one or in pieces, the logits are the same."""
    model = variant.perturbed()
    for sizes in ([1] * 7, [2, 2, 2, 1], [3, 3, 1], [1, 4, 2]):
        check_close(decoded(model, TOKENS, model.encode(SOURCE, MASK), sizes), model(SOURCE, MASK, TOKENS))


def no_logit_depends_on_a_later_token(variant: ArchitectureVariant) -> None:
    """Changing tokens from a position on changes the logits from there on, unless they depend on the source only.

    It changes none before.
    """
    model = variant.perturbed()
    for place in (1, 3, 6):
        changed = TOKENS.clone()
        changed[:, place:] = 12 - changed[:, place:]  # 4..8 becomes 8..4
        changed[:, place] = torch.where(changed[:, place] == TOKENS[:, place], 4, changed[:, place])
        before, after = (model(SOURCE, MASK, tokens) for tokens in (TOKENS, changed))
        check_close(before[:, :place], after[:, :place])
        if variant.name in variant.cls.source_only:
            check_close(before, after)
            continue
        difference = (before[:, place] - after[:, place]).abs().amax(-1).min()
        expect(difference > 1e-3, f"a token changes no logit after it by more than {difference:.1e}, expected 1e-3")


def groups_of_any_shapes_have_the_logits_of_each_alone(variant: ArchitectureVariant) -> None:
    """`forward_groups` returns what `forward` returns for each group, empty ones included."""
    model = variant.perturbed()
    sources = [SOURCE[:1, :4], SOURCE, SOURCE[1:], SOURCE[:0]]
    given = [TOKENS[:1], TOKENS[:, :3], TOKENS[1:, :1], TOKENS[:0]]
    groups = [RaggedGroup(s, s != PAD, t) for s, t in zip(sources, given, strict=True)]
    expected = [model(*group).flatten(0, 1) for group in groups]
    check_close(model.forward_groups(groups), torch.cat(expected))
    check_close(model.forward_groups(groups[1:2]), expected[1])


def groups_with_states_of_different_length_decode_as_each_alone(variant: ArchitectureVariant) -> None:
    """`decode_groups` continues groups that have decoded different numbers of tokens."""
    model = variant.perturbed()
    if not isinstance(model, RaggedModel):
        return  # it decodes one group at a time
    sources, decoded_before = (SOURCE[:1], SOURCE[1:]), (TOKENS[:1, :4], TOKENS[1:, :1])
    following = [TOKENS[:1, 4:6], TOKENS[1:, 1:4]]
    states = [model.decode(t, model.encode(s, s != PAD))[1] for s, t in zip(sources, decoded_before, strict=True)]
    logits, after = model.decode_groups(following, states)
    alone = [model.decode(t, state) for t, state in zip(following, states, strict=True)]
    check_close(logits, torch.cat([single.flatten(0, 1) for single, _ in alone]))
    for together, (_, single) in zip(after, alone, strict=True):
        check_close(leaves(together), leaves(single))


def padding_changes_nothing(variant: ArchitectureVariant) -> None:
    """Neither the number of padded positions nor the ids at them change a logit."""
    model = variant.perturbed()
    for filler in (PAD, 7):
        longer = torch.cat([SOURCE.masked_fill(~MASK, filler), torch.full((3, 4), filler)], 1)
        longer_mask = torch.cat([MASK, torch.zeros(3, 4, dtype=torch.bool)], 1)
        check_close(model(longer, longer_mask, TOKENS), model(SOURCE, MASK, TOKENS))


def a_batch_of_one_equals_its_row_of_a_larger_batch(variant: ArchitectureVariant) -> None:
    """A row without its padding, as a batch of its own, has the same logits."""
    model = variant.perturbed()
    whole = model(SOURCE, MASK, TOKENS)
    for row in range(3):
        alone = SOURCE[row : row + 1, : int(MASK[row].sum())]
        check_close(model(alone, alone != PAD, TOKENS[row : row + 1])[0], whole[row])


def an_empty_batch_gives_no_logits(variant: ArchitectureVariant) -> None:
    """The logits of no rows have shape (0, length, vocabulary)."""
    shape = variant.perturbed()(SOURCE[:0], MASK[:0], TOKENS[:0]).shape
    expect(shape == (0, 7, TARGET_VOCAB), f"the shape must be {(0, 7, TARGET_VOCAB)}, but is {tuple(shape)}")


def source_order_matters_except_to_bags(variant: ArchitectureVariant) -> None:
    """Swapping two source tokens changes the logits, except of the variants in `bags`."""
    model = variant.perturbed()
    swapped = SOURCE[:1, [3, 1, 2, 0, 4, 5]]
    difference = (model(swapped, MASK[:1], TOKENS[:1]) - model(SOURCE[:1], MASK[:1], TOKENS[:1])).abs().max()
    if variant.name in variant.cls.bags:
        expect(difference < 3e-5, f"the order of the source matters ({difference:.1e}); remove the variant from `bags`")
    else:
        reason = f"the order of the source does not matter ({difference:.1e})"
        expect(difference > 1e-3, f"{reason}; if that is meant, name the variant in `bags`")

"""All properties that an architecture has in each of its variants, by name."""

from collections.abc import Callable

from tfstudy.testing.architecture_logits import (
    a_batch_of_one_equals_its_row_of_a_larger_batch,
    an_empty_batch_gives_no_logits,
    decoding_in_pieces_equals_teacher_forcing,
    groups_of_any_shapes_have_the_logits_of_each_alone,
    groups_with_states_of_different_length_decode_as_each_alone,
    no_logit_depends_on_a_later_token,
    padding_changes_nothing,
    source_order_matters_except_to_bags,
)
from tfstudy.testing.architecture_training import (
    a_model_works_in_double_precision,
    a_state_is_a_value,
    dropout_acts_in_training_only,
    every_tensor_of_a_state_has_the_batch_first,
    gradients_reach_every_parameter,
    hypotheses_of_one_source_share_its_state,
    one_batch_can_be_memorised,
    select_rows_reorders_repeats_and_drops_rows,
    weight_decay_spares_vectors_and_no_weight_of_a_layer,
    weights_can_be_saved_and_loaded,
)
from tfstudy.testing.architecture_variant import ArchitectureVariant, architecture_variants
from tfstudy.testing.expect import expect

__all__ = ["PROPERTIES", "ArchitectureVariant", "architecture_variants"]


def what_it_declares_is_valid(variant: ArchitectureVariant) -> None:
    """`widths` are keys of the config, `bags` and `source_only` are variants; it has a version and a docstring."""
    cls = variant.cls
    unknown = sorted(set(cls.widths) - set(cls.Config.model_fields))
    expect(not unknown, f"widths must be keys of the config, but these are not: {', '.join(unknown)}")
    for name, declared in (("bags", cls.bags), ("source_only", cls.source_only)):
        unknown = sorted(set(declared) - {"", *cls.variants})
        expect(not unknown, f"{name} must be variants, but these are not: {', '.join(unknown)}")
    expect(isinstance(cls.version, int), f"the version must be a whole number, but is {cls.version!r}")
    expect((cls.__doc__ or "").strip(), "the class has no docstring, which `tfstudy list architectures` shows")


PROPERTIES: dict[str, Callable[[ArchitectureVariant], None]] = {
    check.__name__.replace("_", " "): check
    for check in (
        a_batch_of_one_equals_its_row_of_a_larger_batch,
        an_empty_batch_gives_no_logits,
        decoding_in_pieces_equals_teacher_forcing,
        groups_of_any_shapes_have_the_logits_of_each_alone,
        groups_with_states_of_different_length_decode_as_each_alone,
        no_logit_depends_on_a_later_token,
        padding_changes_nothing,
        source_order_matters_except_to_bags,
        what_it_declares_is_valid,
        a_model_works_in_double_precision,
        a_state_is_a_value,
        dropout_acts_in_training_only,
        every_tensor_of_a_state_has_the_batch_first,
        gradients_reach_every_parameter,
        hypotheses_of_one_source_share_its_state,
        one_batch_can_be_memorised,
        select_rows_reorders_repeats_and_drops_rows,
        weight_decay_spares_vectors_and_no_weight_of_a_layer,
        weights_can_be_saved_and_loaded,
    )
}

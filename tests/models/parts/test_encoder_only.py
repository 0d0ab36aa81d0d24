"""The encoder-only layout: output t is read off position t of the source, and those after its end are all the same."""

import torch
from torch.testing import assert_close

from tfstudy.models.parts.hidden_states import record_states
from tfstudy.models.parts.listening import Site
from tfstudy.models.parts.ragged import RaggedGroup

SOURCE = torch.tensor([[4, 5, 6, 7], [8, 4, 0, 0]])
TOKENS = torch.tensor([[1, 4, 5, 6, 7, 8]] * 2)


def test_an_output_is_that_of_the_source_at_its_place_and_of_the_end_after_it(build):
    model = build("transformer-encoder_only").eval()
    with torch.no_grad():
        model.end.end.normal_()
        logits = model(SOURCE, SOURCE > 0, TOKENS)
        states = record_states(model, RaggedGroup(SOURCE, SOURCE > 0, TOKENS)).states()
        read = model.output(model.encoder.norm(states[Site("encoder", 4)]))
        end = model.output(model.end.end)
    assert_close(logits[0, :4], read[0])
    assert_close(logits[1, :2], read[1, :2])
    for after in (logits[0, 4:], logits[1, 2:]):
        assert_close(after, end.expand_as(after))


def test_all_layers_are_in_one_stack_and_the_target_has_no_embedding(build):
    model = build("transformer-encoder_only", encoder_layers=1, decoder_layers=2)
    assert len(model.encoder.layers) == 3
    assert {name.split(".")[0] for name in model.state_dict()} == {"source_embedding", "encoder", "end", "output"}

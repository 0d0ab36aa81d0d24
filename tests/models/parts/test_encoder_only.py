"""The encoder-only layout: output t is read off position t of the source, and a target ends after it at the latest."""

import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from tests.conftest import perturbed
from tfstudy.data.encoding import EOS
from tfstudy.evaluation.decoding import greedy
from tfstudy.models.parts.observing import Site, record_states
from tfstudy.models.parts.tokens import RaggedGroup

SOURCE = torch.tensor([[4, 5, 6, 2], [8, 2, 0, 0]])
TOKENS = torch.tensor([[1, 4, 5, 6, 7, 8]] * 2)


def test_an_output_is_that_of_the_source_at_its_place_and_the_end_after_it(build):
    model = perturbed(build("transformer-encoder_only"))
    with torch.no_grad():
        logits = model(SOURCE, SOURCE > 0, TOKENS)
        states = record_states(model, RaggedGroup(SOURCE, SOURCE > 0, TOKENS)).states()
        read = model.output(model.encoder.norm(states[Site("encoder", 4)]))
    assert_close(logits[0, :4], read[0])
    assert_close(logits[1, :2], read[1, :2])
    for after in (logits[0, 4:], logits[1, 2:]):
        assert_close(after.softmax(-1)[:, EOS], torch.ones(len(after)))


def test_every_parameter_is_trained_by_targets_as_long_as_their_sources(build):
    model = build("transformer-encoder_only")
    logits = model(SOURCE[:1], SOURCE[:1] > 0, TOKENS[:1, :4])
    cross_entropy(logits[0], torch.tensor([4, 5, 6, EOS])).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_a_target_ends_after_its_source_and_the_loss_of_a_longer_one_is_finite(build):
    model = perturbed(build("transformer-encoder_only"))
    with torch.no_grad():
        model.output.bias[7] = 100.0
        outputs = greedy(model, SOURCE, SOURCE > 0, torch.tensor([9, 9]))
        logits = model(SOURCE, SOURCE > 0, TOKENS)
    assert outputs == [[7] * 4, [7] * 2]
    assert cross_entropy(logits.flatten(0, 1), TOKENS.flatten()).isfinite()


def test_all_layers_are_in_one_stack_and_the_target_has_no_embedding(build):
    model = build("transformer-encoder_only", encoder_layers=1, decoder_layers=2)
    assert len(model.encoder.layers) == 3
    assert {name.split(".")[0] for name in model.state_dict()} == {"source_embedding", "encoder", "output"}

"""Copying from the source: the mixed distribution against one that is computed by hand, in each architecture."""

import pytest
import torch
from torch.nn.functional import one_hot
from torch.testing import assert_close

from tests.conftest import VARIANTS, perturbed
from tests.models.reference import CLOSE
from tfstudy.instruments.hooks import logits_of
from tfstudy.models.copying import CopyOutput, match_tokens
from tfstudy.models.source_attention import Source

COPYING = [name for name, (_, config) in VARIANTS.items() if config.get("copy_output")]


def test_the_distribution_is_that_of_the_paper_in_a_case_computed_by_hand():
    copy = CopyOutput(2, 1, source_vocab=6, target_vocab=5)
    for parameter in copy.parameters():
        torch.nn.init.zeros_(parameter)
    copy.generate.bias.data.fill_(torch.tensor(3.0).log())  # generates with a probability of 3/4
    copy.query.weight.data[0, 0] = 1.0
    match_tokens(copy, [0, 1, 2, 3, 4, 3])  # the last token is not in the target vocabulary
    scores = torch.tensor([[0.1, 0.2, 0.3, 0.4, 9.0]]).log()[..., None]  # the last place is padding
    ids = copy.target_ids[torch.tensor([[4, 5, 4, 2, 2]])]
    source = Source(scores[..., :0], scores, torch.tensor([[True] * 4 + [False]]), ids)
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # the second query finds all places alike
    found = copy(features, torch.zeros(2, 5), [(1, 2)], [source]).exp()
    first = [0.15, 0.15, 0.15 + 0.25 * 0.4, 0.15 + 0.25 * 0.2, 0.15 + 0.25 * (0.1 + 0.3)]
    second = [0.15, 0.15, 0.15 + 0.25 / 4, 0.15 + 0.25 / 4, 0.15 + 0.25 / 2]
    assert_close(found, torch.tensor([first, second]))
    logits = torch.full((2, 5), -200.0, requires_grad=True)
    copy(features, logits * torch.eye(5)[0], [(1, 2)], [source])[:, 0].sum().backward()
    assert logits.grad.isfinite().all(), "where nothing is copied"


@pytest.mark.parametrize("name", COPYING)
def test_a_model_mixes_its_output_with_pointers_to_the_source(build, name, source, tokens):
    model, read = perturbed(build(name)), []
    ids = torch.arange(3, 3 + len(model.copy.target_ids)) % 9
    match_tokens(model, ids.tolist())
    model.copy.register_forward_hook(lambda _, inputs, mixed: read.append(inputs))
    found = logits_of(model, source, tokens).exp()
    [(features, logits, shapes, [encoded])] = read
    generate = model.copy.generate(features).sigmoid()
    scores = (model.copy.query(features).view(*shapes[0], -1) @ encoded.values.mT) / encoded.values.shape[2] ** 0.5
    weights = scores.masked_fill(source[:, None] == 0, -torch.inf).softmax(-1)
    copied = (weights @ one_hot(ids[source], 9).float()).flatten(0, 1)
    assert_close(found, (generate * logits.softmax(-1) + (1 - generate) * copied).view(found.shape), **CLOSE)

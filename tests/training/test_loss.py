"""The loss, its gradient and scheduled sampling."""

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot
from torch.testing import assert_close

from tests.training.small_training import ARCHITECTURES, same, small_training, trained
from tfstudy.data.encoding import BOS, EOS, PAD, UNK, PaddedRows
from tfstudy.evaluation.decoding import greedy, greedy_of_lengths
from tfstudy.instruments.hooks import logits_of
from tfstudy.models.tokens import Tokens
from tfstudy.training import loss as training
from tfstudy.training.fit import fit
from tfstudy.training.loss import model_inputs, predicted_inputs, summed_loss, target_tokens, validate


def test_accumulating_two_batches_equals_one_batch_of_both():
    """Equal weight for each batch: with as many targets in both, the mean of both gradients is the whole's."""
    settings = {"optimizer": "sgd", "learning_rate": 0.1, "gradient_clip_norm": 0, "weight_decay": 0}
    settings |= {"schedule": "constant"}
    one = trained(batch_size=8, accumulate_grad_batches=2, steps=1, **settings)
    other, data = small_training(batch_size=8)
    loss = torch.zeros(())
    for number in range(2):
        batch = data.encoded["train"].batch(data.batches.index(number))
        [[rows]] = batch.micro_batches
        logits = other.model(*model_inputs([rows]))
        loss = loss + summed_loss(logits, rows.target[:, 1:].flatten()) / batch.tokens / 2
    loss.backward()
    with torch.no_grad():
        for parameter in other.model.parameters():
            parameter -= 0.1 * (1 + 0.9) * parameter.grad  # the first step of Nesterov's momentum
    assert same(one.model, other.model, atol=1e-5)


@pytest.mark.parametrize("count", [(2, 1), (1, 4), (2, 3), (5, 2)], ids=str)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_loss_and_gradient_of_a_batch_do_not_depend_on_how_it_is_divided(arch, count, monkeypatch):
    monkeypatch.setattr("tfstudy.data.encoding.RECTANGLE_OVERHEAD", 0)
    module, data = small_training(arch)
    encoded, index = data.encoded["train"], torch.arange(40)

    def computed(batch):
        module.zero_grad()
        losses = [summed_loss(module.model(*model_inputs(p)), target_tokens(p)) for p in batch.micro_batches]
        loss = torch.stack(losses).sum() / batch.tokens
        loss.backward()
        return loss.detach(), [p.grad.clone() for p in module.parameters() if p.grad is not None]

    whole, divided = encoded.batch(index), encoded.batch(index, *count)
    assert len(divided.micro_batches) == count[0]
    assert (max(map(len, divided.micro_batches)) > 1) == (count[1] > 1)
    (loss, gradient), (loss_divided, gradient_divided) = computed(whole), computed(divided)
    assert_close(loss, loss_divided, atol=1e-5, rtol=0)
    for a, b in zip(gradient, gradient_divided, strict=True):
        assert_close(a, b, atol=1e-5, rtol=0)


def test_label_smoothing_spreads_probability_over_all_tokens():
    torch.manual_seed(0)
    logits, targets = torch.randn(8, 7), torch.tensor([4, 5, 2, PAD, 6, 2, PAD, PAD])
    spread = 0.3 / 7 + 0.7 * one_hot(targets, 7)
    expected = -(spread * logits.log_softmax(-1)).sum(-1)[targets != PAD].sum()
    assert_close(summed_loss(logits, targets, 0.3), expected)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_inputs_of_scheduled_sampling_are_what_greedy_decoding_predicts(arch):
    module, data = small_training(arch)
    model = module.model.eval()
    source = data.encoded["train"].rows(torch.arange(20)).source
    length = 6
    inputs = predicted_inputs(model, source, length)
    assert inputs.shape == (20, length)
    assert (inputs[:, 0] == BOS).all()
    greedy_ids = greedy_of_lengths(model, Tokens.of(source), torch.full((20,), length - 1))
    for sampled, greedy_row in zip(inputs[:, 1:].tolist(), greedy_ids, strict=True):
        end = sampled.index(EOS) if EOS in sampled else len(sampled)  # oracle-length decoding never chooses EOS
        assert sampled[:end] == greedy_row[:end]


def test_without_teacher_forcing_the_model_gets_its_own_predictions(monkeypatch):
    sampled = []
    monkeypatch.setattr(training, "predicted_inputs", lambda *args: sampled.append(1) or predicted_inputs(*args))
    trained(teacher_forcing=0.0, micro_batches=1)
    assert len(sampled) == 4
    sampled.clear()
    trained(teacher_forcing=1.0, micro_batches=1)
    assert not sampled
    trained(teacher_forcing=0.5, micro_batches=1, steps=20)
    assert 3 < len(sampled) < 17


def test_a_summed_loss_has_the_gradient_of_the_mean_times_the_target_tokens():
    settings = {"steps": 1, "optimizer": "sgd", "beta1": 0, "weight_decay": 0, "gradient_clip_norm": 0}
    _, data = small_training()
    tokens = data.encoded["train"].batch(data.batches.index(0)).tokens
    summed = trained(loss_reduction="sum", learning_rate=0.01, **settings)
    assert same(summed, trained(learning_rate=0.01 * tokens, **settings), atol=1e-6)


def test_what_follows_a_predicted_eos_can_be_left_out_of_the_loss(monkeypatch):
    monkeypatch.setattr(training, "predicted_inputs", lambda *_: torch.tensor([[BOS, 4, EOS, 5], [BOS, 4, 5, 6]]))
    rows = PaddedRows(torch.tensor([[4, 2], [5, 2]]), torch.tensor([[BOS, 4, 5, 6, EOS], [BOS, 6, 5, EOS, PAD]]))
    losses = {}
    for stops in (False, True):
        module, _ = small_training(sampling_stops_at_eos=stops)
        loss_of = module.compute_gradients.loss_of
        losses[stops] = loss_of([rows], teacher_forcing=False), loss_of([rows], teacher_forcing=True)
    logits = logits_of(module.model, rows.source, training.predicted_inputs())
    each = cross_entropy(logits.transpose(1, 2), rows.target[:, 1:], ignore_index=PAD, reduction="none")
    assert_close(losses[False][0], each.sum())
    assert_close(losses[True][0], each.sum() - each[0, 2:].sum())
    assert_close(losses[True][1], losses[False][1])  # gold decoder inputs have no EOS before the last token


def test_training_without_eos_neither_has_nor_counts_it():
    (_, with_eos), (_, without) = small_training(), small_training(target_eos=False)
    for name in ("train", "validation"):
        rows = torch.arange(6)
        [[plain]], [[ended]] = (data.encoded[name].batch(rows).micro_batches for data in (without, with_eos))
        assert torch.equal(plain.target, ended.target.masked_fill(ended.target == EOS, PAD)[:, :-1])
        assert torch.equal(plain.source, ended.source)
        assert with_eos.encoded[name].batch(rows).tokens - without.encoded[name].batch(rows).tokens == 6
    examples = without.task.examples("test")
    assert (without.encode(examples).target == EOS).sum() == len(examples)


def test_an_unknown_token_is_never_right_in_a_validation():
    module, _ = small_training("lstm")
    model = module.model.eval()
    source, target = torch.tensor([[5, 6, EOS]]), torch.tensor([[BOS, UNK, EOS]])
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            parameter.zero_()
        model.output.bias[UNK] = 1.0
    _, correct, counted, matches, rows = validate(model, [PaddedRows(source, target)])
    assert (int(correct), int(counted), int(matches), rows) == (0, 2, 0, 1)


@pytest.mark.parametrize("arch", ["transformer", "lstm"])
def test_validation_is_that_of_all_target_tokens_and_of_greedy_decoding(arch):
    """Every target token counts the same, in whatever batch it is.

    A decoder that has made no error so far has seen the targets, so exact match is the same with teacher forcing.
    """
    module, data = small_training(arch, steps=120, batch_size=48, learning_rate=0.01, validation_interval=120)
    fit(module, data, accelerator="cpu")
    kept = {name: float(value) for name, value in module.trainer.callback_metrics.items()}
    encoded, model = data.encoded["validation"], module.model.eval()
    assert len(encoded) % 48, "the last batch is smaller"
    rows = encoded.rows(torch.arange(len(encoded)))
    gold = rows.target[:, 1:]
    with torch.no_grad():
        logits = logits_of(model, rows.source, rows.target[:, :-1])
        decoded = greedy(model, Tokens.of(rows.source), torch.full((len(encoded),), 20))
    loss = float(cross_entropy(logits[gold != PAD], gold[gold != PAD]))
    assert kept["validation_loss"] == pytest.approx(loss, abs=1e-5)
    accuracy = (logits.argmax(-1) == gold)[gold != PAD].float().mean()
    assert kept["validation_accuracy"] == pytest.approx(float(accuracy), abs=1e-6)
    targets = [[token for token in target if token not in (PAD, BOS, EOS)] for target in rows.target.tolist()]
    matches = sum(map(list.__eq__, decoded, targets))
    assert kept["validation_exact_match"] == pytest.approx(matches / len(targets))
    assert matches

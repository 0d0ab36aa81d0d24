"""Attention maps of a model: labelled with its tokens, and equal to what it computes."""

import pytest
import torch
from torch.testing import assert_close

from tfstudy.config.schema import DecodeConfig
from tfstudy.errors import UserError
from tfstudy.instruments.attention import measure_attention

SOURCE, TARGET = ("a", "b", "b", "c"), ("c", "b", "a")
SHORT = DecodeConfig(max_length=5)


def short(subject):
    """The same with at most five tokens in an output."""
    return subject._replace(config=subject.config.model_copy(update={"decode": SHORT}))


@pytest.mark.parametrize(
    ("variant", "layers", "heads", "kinds"),
    [
        ("transformer", 2, 2, ["encoder", "decoder", "cross"]),
        ("lstm-additive", 1, 1, ["cross"]),
        ("cnn", 2, 1, ["cross"]),
    ],
)
def test_there_is_a_map_of_each_layer_and_head(subject, variant, layers, heads, kinds):
    attention = measure_attention(subject(variant), SOURCE, TARGET)
    sizes = {"encoder": (5, 5), "decoder": (4, 4), "cross": (4, 5)}
    assert {kind: w.shape for kind, w in attention.weights.items()} == {k: (layers, heads, *sizes[k]) for k in kinds}
    assert attention.source == (*SOURCE, "<eos>")
    assert attention.output == (*TARGET, "<eos>")
    assert repr(attention).startswith("Attention(a b b c <eos> -> c b a <eos>: ")


@pytest.mark.parametrize(("token", "output"), [("c", ("c",) * 5), ("<eos>", ("<eos>",))])
def test_an_output_that_ends_has_a_row_for_eos_and_one_that_is_cut_off_has_none(subject, token, output):
    one = short(subject("lstm"))
    with torch.no_grad():
        one.model.output.bias[one.data.target_vocab.tokens.index(token)] = 100.0  # the model generates it always
    attention = measure_attention(one, SOURCE)
    assert attention.output == output
    assert attention.weights["cross"].shape == (1, 1, len(output), 5)


def test_maps_have_the_weights_to_three_decimals_and_are_selected_by_layer_and_head(subject):
    attention = measure_attention(subject("transformer"), SOURCE, TARGET)
    found = attention.maps()
    assert [(m.layer, m.head) for m in found.maps] == [(i, j) for i in (1, 2) for j in (1, 2)]
    assert_close(torch.tensor(found.maps[2].weights), attention.weights["cross"][1, 0], atol=5.1e-4, rtol=0)
    assert all(round(weight, 3) == weight for m in found.maps for row in m.weights for weight in row)
    assert attention.maps("cross", layer=2, head=1).maps == [found.maps[2]]
    assert found == attention.maps("cross")


def test_the_instrument_has_a_row_for_each_weight(subject, measure):
    model = subject("transformer")
    given = measure("attention", model, source="a b", target="b a", kind="decoder")
    assert [row["read"] for row in given[:3]] == ["1 <bos>", "2 b", "3 a"]
    assert [row["token"] for row in given[::3][:3]] == ["1 b", "2 a", "3 <eos>"]
    assert len(given) == 2 * 2 * 3 * 3
    assert given[0] == {"kind": "decoder", "map": "layer 1, head 1", "token": "1 b", "read": "1 <bos>", "weight": 1.0}
    first = measure("attention", model)
    assert first[0]["kind"] == "cross"
    source = model.task.examples("validation")[0].source
    assert [row["read"] for row in first[: len(source)]] == [f"{i} {token}" for i, token in enumerate(source, 1)]


@pytest.mark.parametrize(
    ("name", "variant", "settings", "facts"),
    [
        ("attention", "transformer", {"target": "c <pad>"}, ["target token '<pad>'", "a, b, c"]),
        ("attention", "cnn", {"target": "c " * 600}, ["the target must have fewer than", "has 600"]),
        *((name, "lstm-none", {}, ["needs attention", "(LSTM)"]) for name in ("attention", "entropy", "head_roles")),
        *((name, "lstm", {}, ["multi-head attention, which LSTM"]) for name in ("pruning", "head_importance")),
        ("probe", "transformer", {}, ["labels"]),
        ("patching", "transformer", {"source": "a b", "other": "a b c"}, ["2 and 3"]),
        ("patching", "transformer", {"source": "a b"}, ["other is missing"]),
        ("patching", "transformer", {"source": "a b", "other": "a d"}, ["'d'"]),
        ("patching", "transformer", {"source": "a b", "other": "a b"}, ["the same"]),
        *(
            ("patching", variant, {"source": "a b", "other": "a c"}, ["model.copy_output=false"])
            for variant in ("transformer-share_embeddings", "lstm-copy", "cnn-share_embeddings")
        ),
    ],
)
def test_what_can_not_be_measured_is_refused(subject, measure, name, variant, settings, facts):
    with pytest.raises(UserError) as error:
        measure(name, subject(variant), **settings)
    assert all(fact in str(error.value) for fact in facts)

"""Attention maps: which tokens a trained model attends to while it reads a source and writes its output."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, get_args

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.utils.parametrize import cached

from tfstudy.data.encoding import BOS, EOS, SPECIAL
from tfstudy.errors import UserError, one_of
from tfstudy.evaluation.decoding import greedy, search_limits
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, chosen_examples, given_source, no_attention
from tfstudy.instruments.hooks import joined, logits_of, recorded_attention
from tfstudy.models.tokens import Tokens as TokenBatch
from tfstudy.tasks.base import Example, Tokens

Kind = Literal["encoder", "decoder", "prefix", "cross"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DECIMALS = 3
FIRST = "<bos>"  # the first input of the decoder


class AttentionMaps(Instrument):
    """The weight of each token on each token that it may attend to, in each layer and head, for one source.

    A row belongs to the output token that is predicted from it, or in the encoder to a source token, and sums to 1.
    """

    summary = "attention maps of one source: the weights of each layer and head"
    chart = Chart(
        "heatmap", x="read", y="token", hue="weight", facet="map", x_label="token that is attended to",
        y_label="token", hue_label="attention weight",
    )  # fmt: skip

    class Config(ExampleSettings):
        examples: int = Field(1, ge=1, le=1, description="the example whose source is read, unless one is given")
        source: str = Field("", description="source, as it would be typed (default: that of the first example)")
        target: str = Field("", description="output to read (default: the model's own greedy output)")
        kind: str = Field("", description="encoder, decoder, prefix or cross (default: the last that the model has)")
        layer: int = Field(0, ge=0, description="layer, from 1 (0: all)")
        head: int = Field(0, ge=0, description="head, from 1 (0: all)")

    config: Config

    def maps(self, subject: Subject) -> "Maps":
        """Return the maps that the settings ask for; `UserError` if the model has none."""
        config, task = self.config, subject.task
        text = config.source
        source = given_source(subject, text) if text else chosen_examples(subject, config)[0].source
        found = measure_attention(subject, source, task.target_tokens(config.target) if config.target else None)
        return found.readable(task.readable).maps(config.kind, config.layer, config.head)

    def measure(self, subject: Subject) -> list[Row]:
        found = self.maps(subject)
        texts = [[f"{n} {token}"[:100] for n, token in enumerate(own, 1)] for own in (found.rows, found.columns)]
        return [
            {
                "kind": found.kind, "map": f"layer {one.layer}, head {one.head}", "token": token, "read": column,
                "weight": weight,
            }
            for one in found.maps
            for token, weights in zip(texts[0], one.weights, strict=True)
            for column, weight in zip(texts[1], weights, strict=True)
        ]  # fmt: skip


class Map(NamedTuple):
    """The weights of one head: a row for each query, which sums to 1 but for rounding."""

    layer: int  # from 1
    head: int  # from 1
    weights: list[list[float]]  # to 3 decimals


class Maps(NamedTuple):
    """Some of the attention maps of one kind of a model for one source and one output, as they are shown."""

    kind: Kind
    source: Tokens
    output: Tokens
    maps: list[Map]

    @property
    def rows(self) -> Tokens:
        """The tokens of the rows of a map."""
        return self.source if self.kind == "encoder" else self.output

    @property
    def columns(self) -> Tokens:
        """The tokens of the columns of a map."""
        before = (FIRST, *self.output[:-1])
        return {"decoder": before, "prefix": (*self.source, *before)}.get(self.kind, self.source)


class Attention(NamedTuple):
    """The attention weights of a model for one source and one output.

    `weights` has a tensor (layers, heads, rows, columns) for each kind of attention that the architecture has; each row
    sums to 1. `encoder`: source tokens attend to source tokens. `decoder`: each output token attends to the tokens
    before it, of which the first is `<bos>`. `prefix`: each output token attends to both. `cross`: each
    output token attends to source tokens. A row belongs to the output token that is predicted from it.
    """

    source: Tokens  # with the `<eos>` that the encoder reads
    output: Tokens  # with the final `<eos>`, unless the output reached its maximum length
    weights: Mapping[Kind, Tensor]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{kind} {tuple(weights.shape)}" for kind, weights in self.weights.items())
        return f"Attention({' '.join(self.source)} -> {' '.join(self.output)}: {shapes})"

    def readable(self, text: Callable[[str], str]) -> "Attention":
        """Return the same with each token as people read it."""
        return self._replace(source=tuple(map(text, self.source)), output=tuple(map(text, self.output)))

    def maps(self, kind: str = "", layer: int = 0, head: int = 0) -> Maps:
        """Return the maps of a kind (default: cross-attention, or the last that there is), layer and head (0: all).

        `UserError` if there are none.
        """
        if kind and one_of("kind of attention", kind, KINDS) not in self.weights:
            prefix = "; its one stack reads source and output, so outputs attend to both: prefix"
            only = f"this run has no {kind} attention, only {' and '.join(self.weights)}"
            raise UserError(only + (prefix if "prefix" in self.weights else ""))
        shown = next(own for own in reversed(KINDS) if own in self.weights and kind in ("", own))
        found = [
            Map(at, number, [[round(weight, DECIMALS) for weight in row] for row in rows])
            for at, heads in enumerate(self.weights[shown].double().clamp(0, 1).tolist(), 1)
            for number, rows in enumerate(heads, 1)
        ]
        for what, wanted in (("layer", layer), ("head", head)):
            known = sorted({getattr(one, what) for one in found})
            if wanted and wanted not in known:
                raise UserError(f"{what} must be one of {', '.join(map(str, known))}, but is {wanted}")
            found = [one for one in found if wanted in (0, getattr(one, what))]
        return Maps(shown, self.source, self.output, found)


class Read(NamedTuple):
    """A source and an output as a model reads them: each token of the output is predicted from the input before it."""

    source: Tensor  # ids (1, source), with EOS
    inputs: Tensor  # ids (1, target), of which the first is BOS
    output: Tokens  # (target), with the final EOS unless the output reached its maximum length


@torch.no_grad()
def read(subject: Subject, source: Tokens, target: Tokens | None = None) -> Read:
    """Return a source with the output `target`, or by default with what the model generates greedily.

    Generation ends at the limit of `subject.config.decode`. `UserError` if the model cannot read the target.
    """
    model, vocab = subject.model, subject.data.target_vocab
    ids = subject.data.encode([Example(source, (), {})]).source.to(next(model.parameters()).device)
    if target is None:
        limits = search_limits(model, subject.task, subject.config.decode, torch.tensor([len(source)]))
        [output] = greedy(model, TokenBatch.of(ids), limits.to(ids.device))
        ended = len(output) < int(limits)
    else:
        for token in target:
            one_of("target token", token, vocab.tokens[len(SPECIAL) :])
        if model.max_positions is not None and len(target) >= model.max_positions:
            raise UserError(f"the target must have fewer than {model.max_positions} tokens, but has {len(target)}")
        output, ended = vocab.encode(target), True
    inputs = ids.new_tensor([[BOS, *output]])[:, : len(output) + ended]
    return Read(ids, inputs, (*vocab.decode(output), *([SPECIAL[EOS]] if ended else [])))


@torch.no_grad()
@cached()
def measure_attention(subject: Subject, source: Tokens, target: Tokens | None = None) -> Attention:
    """Return the attention of a model on a source, as `read` reads it. The model stays in eval mode.

    `UserError` if the model has no attention weights, or cannot read the target.
    """
    model = subject.model.eval()
    given = read(subject, source, target)
    with recorded_attention(model) as recorded:
        logits_of(model, given.source, given.inputs)
    if not (maps := joined(recorded)):
        raise no_attention(model)
    kinds = {kind: sorted(site for site in maps if site.kind == kind) for kind in KINDS}
    weights = {kind: torch.stack([maps[s][0] for s in sites]).cpu() for kind, sites in kinds.items() if sites}
    return Attention((*source, SPECIAL[EOS]), given.output, weights)

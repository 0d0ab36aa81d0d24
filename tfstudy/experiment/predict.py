"""The outputs and the attention of a trained model for any sources, given as text."""

import re
from collections.abc import Sequence

import torch

from tfstudy.data.encoding import PAD, SPECIAL
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.evaluation.decoding import generate, generation_limit, limits_of
from tfstudy.evaluation.evaluate import MemoryUse, in_batches
from tfstudy.experiment.prepare import Prepared
from tfstudy.instruments.attention import Attention, measure_attention
from tfstudy.tasks.base import Example


def source_tokens(prepared: Prepared, source: str) -> tuple[str, ...]:
    """Return the tokens of a source; `UserError` if it is empty, too long, or has an unknown token."""
    task, data = prepared.task, prepared.data
    if not isinstance(source, str):
        raise UserError(f"a source must be text, but is {quoted(source)}")
    if re.search("[\ud800-\udfff]", source):
        raise UserError(f"a source must be text of whole characters in UTF-8, but is {quoted(source)}")
    tokens = task.tokens(source)
    if not tokens:
        raise UserError("the source must have at least one token")
    for token in tokens if task.text(tokens) == " ".join(tokens) else ():  # words, not subwords
        one_of("source token", token, data.source_vocab.tokens[len(SPECIAL) :], f"task {prepared.config.task}")
    limit = prepared.model.max_positions
    if limit is not None and len(tokens) >= limit:
        raise UserError(f"the source must have fewer than {limit} tokens, but has {len(tokens)}")
    return tuple(tokens)


def predict_all(prepared: Prepared, sources: Sequence[Sequence[str]]) -> list[str]:
    """Return the generated target of each source, given as tokens; computed in batches of similar length."""
    task, data, config, model = prepared.task, prepared.data, prepared.config, prepared.model
    encoded = data.encode([Example(tuple(source), (), {}) for source in sources])
    lengths, device = encoded.source_lengths, next(model.parameters()).device
    limits = limits_of(generation_limit(task, config.decode), lengths - 1)  # without EOS
    if model.max_positions is not None:
        limits = limits.clamp(max=model.max_positions - 1)
    memory = MemoryUse.of(model, len(data.target_vocab), config.decode.hypotheses)

    def compute(index: torch.Tensor) -> list[list[int]]:
        source = encoded.rows(index).source.to(device)
        return generate(model, source, source != PAD, limits[index].to(device), config.decode)

    out: dict[int, str] = {}
    order = lengths.sort(stable=True).indices
    for index, rows in in_batches(compute, order, lengths, limits, memory.decoding, config.eval.batch_size):
        texts = [str(task.text(data.target_vocab.decode(row))) for row in rows]
        out |= zip(index.tolist(), texts, strict=True)
    return [out[number] for number in range(len(sources))]


def attention_of(prepared: Prepared, source: str, target: str | None = None) -> Attention:
    """Return the attention of the model for a source, on its own greedy output or on a target, both given as text.

    Its tokens are as people read them. `UserError` if the model has no attention, or can't read one of the texts.
    """
    given = None if target is None else prepared.task.target_tokens(target)
    tokens = source_tokens(prepared, source)
    found = measure_attention(prepared.model, prepared.data, prepared.config.decode, tokens, given)
    return found.readable(prepared.task.readable)

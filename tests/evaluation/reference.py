"""Greedy and beam search as they were written first: one limit for all rows, and states copied as a whole."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tfstudy.data.encoding import BOS, EOS, PAD
from tfstudy.models.base import Model, select_rows

INFINITY = float("inf")

Hypotheses = list[tuple[float, list[int]]]  # (score, token ids)


@torch.no_grad()
def greedy(
    model: Model,
    source: Tensor,
    source_mask: Tensor,
    max_length: int,
    lengths: Tensor | None = None,
) -> list[list[int]]:
    """Return the ids chosen greedily for each row, up to EOS (which is left out) or `max_length` tokens.

    With `lengths` each row gets that many tokens instead, and EOS is never chosen (the oracle length of Lake & Baroni
    2018 and Newman et al. 2020). PAD and BOS are never chosen.
    """
    state = model.encode(source, source_mask)
    limit = torch.full((len(source),), max_length, device=source.device) if lengths is None else lengths.clone()
    banned = torch.tensor([PAD, BOS] if lengths is None else [PAD, BOS, EOS], device=source.device)
    out = torch.full((len(source), int(limit.max())), EOS, device=source.device)
    rows = torch.arange(len(source), device=source.device)
    tokens = torch.full_like(rows, BOS)
    for step in range(out.shape[1]):
        logits, state = model.decode(tokens[:, None], state)
        tokens = logits[:, -1].index_fill(1, banned, -INFINITY).argmax(-1)
        out[rows, step] = torch.where(limit[rows] > step, tokens, EOS)
        unfinished = (tokens != EOS) & (limit[rows] > step + 1)
        count = int(unfinished.sum())
        if not count:
            break
        limit[rows] = torch.where(unfinished, limit[rows], 0)
    return [ids[: ids.index(EOS)] if EOS in ids else ids for ids in out.tolist()]


@torch.no_grad()
def beam(
    model: Model,
    source: Tensor,
    source_mask: Tensor,
    max_length: int,
    beam_size: int,
    length_penalty: float = 0.0,
) -> list[list[int]]:
    """Return, for each row, the finished hypothesis of beam search with the best score / length^length_penalty.

    The score is the sum of log-probabilities; EOS counts in score and length. The search of a row ends with `beam_size`
    finished hypotheses or at `max_length` tokens, where the best unfinished one counts as it is.
    """
    batch, device = len(source), source.device
    first_rows = torch.arange(batch, device=device) * beam_size
    state = select_rows(
        model.encode(source, source_mask), torch.arange(batch, device=device).repeat_interleave(beam_size)
    )
    tokens = torch.full((batch * beam_size,), BOS, device=device)
    scores = torch.full((batch, beam_size), -INFINITY, device=device)
    scores[:, 0] = 0.0  # at first, all hypotheses of a row are equal
    prefixes = tokens.new_zeros(batch, beam_size, 0)
    finished: list[Hypotheses] = [[] for _ in range(batch)]
    for step in range(1, max_length + 1):
        logits, state = model.decode(tokens[:, None], state)
        best, origin, token = _candidates(logits[:, -1], scores)
        _collect_finished(finished, best, origin, token, prefixes, step**length_penalty)
        scores, chosen = best.masked_fill(token == EOS, -INFINITY).topk(beam_size)
        origin, token = origin.gather(1, chosen), token.gather(1, chosen)
        prefixes = torch.cat([prefixes.gather(1, origin[..., None].expand(-1, -1, step - 1)), token[..., None]], -1)
        if all(len(hypotheses) >= beam_size for hypotheses in finished):
            break
        state = select_rows(state, (origin + first_rows[:, None]).flatten())
        tokens = token.flatten()
    for row, hypotheses in enumerate(finished):
        if len(hypotheses) < beam_size:
            last = int(scores[row].argmax())
            hypotheses.append(
                (float(scores[row, last]) / max(1, max_length) ** length_penalty, prefixes[row, last].tolist())
            )
    return [max(hypotheses)[1] for hypotheses in finished]


def _candidates(logits: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores of each row's best continuations, the hypotheses that they continue, and their tokens.

    There are 2 * beam of them, so at least `beam` remain unfinished: each hypothesis has one continuation with EOS.
    """
    log_probabilities = logits.log_softmax(-1).view(*scores.shape, -1)
    log_probabilities[..., [PAD, BOS]] = -INFINITY
    beam_size, vocab = log_probabilities.shape[1:]
    best, flat = (scores[..., None] + log_probabilities).flatten(1).topk(min(2 * beam_size, beam_size * vocab))
    return best, flat // vocab, flat % vocab


def _collect_finished(
    finished: Sequence[Hypotheses], best: Tensor, origin: Tensor, token: Tensor, prefixes: Tensor, divisor: float
) -> None:
    """Append to each row's list the hypotheses that end within the beam, until the list is as long as the beam."""
    beam_size = prefixes.shape[1]
    for row, ends in enumerate((token == EOS).tolist()):
        for rank, end in enumerate(ends[:beam_size]):
            if end and best[row, rank].isfinite() and len(finished[row]) < beam_size:
                prefix = prefixes[row, origin[row, rank]].tolist()
                finished[row].append((float(best[row, rank]) / divisor, prefix))

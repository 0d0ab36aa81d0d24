"""Greedy and beam search over any model's `decode`, one token at a time."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tfstudy.data.vocabulary import BOS, EOS, PAD
from tfstudy.models.base import Model, select_rows

COMPACT = 0.8  # rows are dropped once no more than this share of them is unfinished


@torch.no_grad()
def greedy(
    model: Model,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"],
    max_length: int,
    lengths: Int[Tensor, " batch"] | None = None,
) -> list[list[int]]:
    """For every row the most probable next token, again and again, until EOS or `max_length` tokens; EOS is left out.

    With `lengths` each row ends after that many tokens instead, and EOS is never chosen (the oracle length of Lake &
    Baroni 2018 and Newman et al. 2020). PAD and BOS are never chosen.
    """
    state = model.encode(source, source_mask)
    limit = torch.full((len(source),), max_length, device=source.device) if lengths is None else lengths.clone()
    banned = torch.tensor([PAD, BOS] if lengths is None else [PAD, BOS, EOS], device=source.device)
    out = torch.full((len(source), int(limit.max())), EOS, device=source.device)
    rows = torch.arange(len(source), device=source.device)
    tokens = torch.full_like(rows, BOS)
    for step in range(out.shape[1]):
        logits, state = model.decode(tokens[:, None], state)
        tokens = logits[:, -1].index_fill(1, banned, float("-inf")).argmax(-1)
        out[rows, step] = torch.where(limit[rows] > step, tokens, EOS)
        going = (tokens != EOS) & (limit[rows] > step + 1)
        left = int(going.sum())
        if not left:
            break
        if left <= COMPACT * len(rows):
            keep = going.nonzero()[:, 0]
            rows, tokens, state = rows[keep], tokens[keep], select_rows(state, keep)
        else:
            limit[rows] = torch.where(going, limit[rows], 0)
    return _until_end(out.tolist())


@torch.no_grad()
def beam(
    model: Model,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"],
    max_length: int,
    width: int,
    length_penalty: float = 0.0,
) -> list[list[int]]:
    """Beam search of `width` hypotheses a row; of the finished ones the best by score / length^length_penalty.

    The score is the sum of log-probabilities, EOS included in score and length. A row ends when it has `width`
    finished hypotheses or at `max_length` tokens, where what is unfinished counts as it stands.
    """
    batch = len(source)
    state = select_rows(
        model.encode(source, source_mask), torch.arange(batch, device=source.device).repeat_interleave(width)
    )
    tokens = torch.full((batch * width,), BOS, device=source.device)
    scores = torch.full((batch, width), float("-inf"), device=source.device)
    scores[:, 0] = 0.0  # at first all hypotheses of a row are the same
    prefixes = tokens.new_zeros(batch, width, 0)
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in range(batch)]
    for step in range(1, max_length + 1):
        logits, state = model.decode(tokens[:, None], state)
        log_probabilities = logits[:, -1].log_softmax(-1).view(batch, width, -1)
        log_probabilities[..., [PAD, BOS]] = float("-inf")
        vocab = log_probabilities.shape[-1]
        # 2 * width candidates hold at least `width` that do not end, whatever ends
        best, flat = (scores[..., None] + log_probabilities).flatten(1).topk(min(2 * width, width * vocab))
        origin, token = flat // vocab, flat % vocab
        for row, ends in enumerate((token == EOS).tolist()):
            for rank, end in enumerate(ends[:width]):
                if end and best[row, rank].isfinite() and len(finished[row]) < width:
                    score = float(best[row, rank]) / step**length_penalty
                    finished[row].append((score, prefixes[row, origin[row, rank]].tolist()))
        scores, place = best.masked_fill(token == EOS, float("-inf")).topk(width)
        origin, token = origin.gather(1, place), token.gather(1, place)
        prefixes = torch.cat([prefixes.gather(1, origin[..., None].expand(-1, -1, step - 1)), token[..., None]], -1)
        if all(len(done) >= width for done in finished):
            break
        state = select_rows(state, (origin + torch.arange(batch, device=source.device)[:, None] * width).flatten())
        tokens = token.flatten()
    for row, done in enumerate(finished):
        if len(done) < width:  # the best of what is unfinished is enough
            last = int(scores[row].argmax())
            score = float(scores[row, last]) / max(1, max_length) ** length_penalty
            done.append((score, prefixes[row, last].tolist()))
    return [max(done)[1] for done in finished]


def _until_end(rows: Sequence[list[int]]) -> list[list[int]]:
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]

"""What heads attend to: the mean weight on the previous, the next and the same token, delimiters, and equal tokens.

The roles by position are those of Clark et al. 2019 (arXiv 1906.04341, section 3.1) and Voita et al. 2019 (arXiv
1905.09418, section 4), where the score is a mean weight as in Clark et al. A query i of self-attention is the token at
position i; a query of cross-attention is the output token that is predicted from it.

    previous, next, same  the key at position i - 1, i + 1 or i
    delimiter             keys that are `<bos>`, `<eos>` or one of . , ; : ! ?
    content               keys with the same string as the query, at other positions, without delimiters

A mean is over the queries that see a key of the role. `uniform` is the score of uniform attention.
"""

from collections import defaultdict
from typing import NamedTuple

import torch
from torch import Tensor

from tfstudy.data.encoding import BOS, EOS, TaskEncoder
from tfstudy.errors import UserError
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, TeacherForced, recorded_weights
from tfstudy.instruments.hooks import Site

OFFSETS = {"previous": -1, "next": 1, "same": 0}  # of the key from the query
ROLES = (*OFFSETS, "delimiter", "content")
PUNCTUATION = (".", ",", ";", ":", "!", "?")


class Keys(NamedTuple):
    """Ids of the queries and keys of a site, in one vocabulary: (batch, queries) and (batch, keys)."""

    queries: Tensor
    keys: Tensor


class HeadRoles(Instrument):
    """The mean weight of each head on the keys of each role."""

    summary = "what heads attend to: previous, next, same token, delimiters, equal tokens"
    chart = Chart(
        "heatmap", x="role", y="layer", hue="score", facet="kind", ranked="head", y_label="layer.head",
        hue_label="mean weight",
    )  # fmt: skip
    Config = ExampleSettings
    config: ExampleSettings

    def measure(self, subject: Subject) -> list[Row]:
        sums: dict[tuple[Site, str], Tensor] = defaultdict(lambda: torch.zeros(1))
        counts: dict[tuple[Site, str], float] = defaultdict(float)
        for site, weights, visible, batch in recorded_weights(subject, self.config):
            before = batch.source.shape[1] if site.kind == "prefix" else 0
            for role, keys in roles(tokens_of(site, batch, subject.data), delimiters(subject.data), before).items():
                scores, uniform, count = role_sums(weights, visible, keys)
                sums[site, role] = sums[site, role] + torch.cat([scores, uniform[None]])
                counts[site, role] += count
        rows: list[Row] = []
        for (site, role), total in sorted(sums.items(), key=lambda item: (item[0][0], ROLES.index(item[0][1]))):
            means: list[float] = (total / max(1.0, counts[site, role])).tolist()
            rows += [
                {
                    "kind": site.kind, "layer": site.layer, "head": head, "role": role, "score": score,
                    "uniform": means[-1],
                }
                for head, score in enumerate(means[:-1], 1) if counts[site, role]
            ]  # fmt: skip
        return rows


def tokens_of(site: Site, batch: TeacherForced, data: TaskEncoder) -> Keys:
    """Return the queries and keys of a site as ids of the target vocabulary; other source tokens follow it."""
    known = {token: number for number, token in enumerate(data.target_vocab.tokens)}
    more = len(known)
    ids = [known.get(token, more + number) for number, token in enumerate(data.source_vocab.tokens)]
    source = torch.tensor(ids, device=batch.source.device)[batch.source]
    queries = {"encoder": source, "cross": batch.gold}.get(site.kind, batch.tokens)
    keys = {"decoder": batch.tokens, "prefix": torch.cat([source, batch.tokens], 1)}.get(site.kind, source)
    return Keys(queries, keys)


def delimiters(data: TaskEncoder) -> set[int]:
    """Return the ids of the delimiters, as `tokens_of` has them."""
    more, text = len(data.target_vocab), data.task.readable  # a subword may begin with a space
    target = {number for number, token in enumerate(data.target_vocab.tokens) if text(token).lstrip("▁") in PUNCTUATION}
    source = {n for n, token in enumerate(data.source_vocab.tokens, more) if text(token).lstrip("▁") in PUNCTUATION}
    return {BOS, EOS} | target | source


def roles(tokens: Keys, delimiters: set[int], before: int = 0) -> dict[str, Tensor]:
    """Return which keys have each role for each query: (batch, queries, keys).

    The first query is at the position after `before` keys.
    """
    queries, keys = tokens
    at, among = (torch.arange(x.shape[1], device=x.device) for x in (queries, keys))
    position = among - at[:, None] - before
    delimiter = torch.isin(keys, torch.tensor(sorted(delimiters), device=keys.device))[:, None]
    shape = (len(keys), *position.shape)
    found = {role: (position == offset).expand(shape) for role, offset in OFFSETS.items()}
    found["delimiter"] = delimiter.expand(shape)
    found["content"] = (queries[:, :, None] == keys[:, None]) & (position != 0) & ~delimiter
    return found


def role_sums(weights: Tensor, visible: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return the weight of each head on these keys (heads,) and that of uniform attention, both summed over queries.

    The queries are those that see such a key, and the last value is their number. The weights, and which keys are
    visible, are (batch, heads, queries, keys); a key that is visible to any head is seen.
    """
    if weights.shape[-2:] != keys.shape[-2:]:
        raise UserError("head_roles needs attention between source and output tokens, which this layout does not have")
    seen = visible.any(1)
    keys = keys & seen
    queries = keys.any(-1)
    scores = (weights * keys[:, None]).sum((0, 2, 3)).double()
    uniform = (keys.sum(-1) / seen.sum(-1).clamp(min=1)).sum().double()
    return scores.cpu(), uniform.cpu(), float(queries.sum())

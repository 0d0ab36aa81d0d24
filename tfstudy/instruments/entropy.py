"""The entropy of attention, by layer, head and length.

A query that sees T keys with the weights w has the entropy -sum w log w, which is between 0 (one key) and log T (all
keys alike). A key that is masked is not seen.
"""

from collections import defaultdict

import torch
from torch import Tensor

from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, recorded_weights


class Entropy(Instrument):
    """Mean entropy of attention weights, as a share of log T. Queries that see a single key are left out.

    `length` is the number of keys at the site: tokens of the source for encoder and cross-attention, otherwise of the
    output. The chart has means over heads.
    """

    summary = "attention entropy by layer and length, mean over heads, as a share of log T"
    chart = Chart("line", x="length", y="entropy", hue="layer", facet="kind", y_label="entropy / log T")
    Config = ExampleSettings
    config: ExampleSettings

    def measure(self, subject: Subject) -> list[Row]:
        shares: dict[tuple[str, int, int], list[Tensor]] = defaultdict(list)  # of each example and head
        for site, weights, visible, _ in recorded_weights(subject, self.config):
            if weights.shape[-1] > 1:
                shares[site.kind, site.layer, weights.shape[-1]].append(entropy_share(weights, visible))
        return [
            {"kind": kind, "layer": layer, "head": head, "length": length, "entropy": share}
            for (kind, layer, length), parts in sorted(shares.items())
            for head, share in enumerate(torch.cat(parts).mean(0).tolist(), 1)
        ]


def entropy_share(weights: Tensor, visible: Tensor) -> Tensor:
    """Return the entropy of heads (batch, heads) as a share of log T, averaged over queries that see several keys.

    The weights, and which keys are visible, are (batch, heads, queries, keys).
    """
    weights, keys = weights.double(), visible.sum(-1)
    entropy = torch.special.entr(weights).sum(-1)
    several = keys > 1
    share = torch.where(several, entropy / keys.clamp(min=2).log(), 0)
    return share.sum(-1) / several.sum(-1).clamp(min=1)

"""The size of hidden states by depth: that of the residual stream, where an architecture has one."""

from collections import defaultdict

import torch
from torch import Tensor
from torch.nn.utils.parametrize import cached

from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import WeightSettings, in_batches, measured_model
from tfstudy.instruments.gradient_by_distance import SEQUENCES
from tfstudy.instruments.hooks import Site, record_states


class RepresentationNorm(Instrument):
    """The Euclidean norm of hidden states divided by the square root of their width, averaged over all tokens.

    Layer 0 is the embeddings. A final layer normalisation is not included.
    """

    summary = "norm of hidden states by layer"
    chart = Chart("line", x="layer", y="norm", facet="sequence", y_label="norm / sqrt(width)")
    Config = WeightSettings
    config: WeightSettings

    @torch.no_grad()
    @cached()
    def measure(self, subject: Subject) -> list[Row]:
        model = measured_model(subject, self.config)
        norms: dict[Site, list[Tensor]] = defaultdict(list)
        for batch in in_batches(subject, self.config):
            states = record_states(model, batch.source, batch.tokens).states()
            for site, x in states.items():
                norms[site].append(x.double().square().mean(-1).sqrt().flatten())
        return [
            {"sequence": SEQUENCES[site.kind], "layer": site.layer, "norm": float(torch.cat(parts).mean())}
            for site, parts in sorted(norms.items(), reverse=True)
        ]

"""The load of the experts of a mixture: the share of the choices of the router that each of them gets."""

from collections import defaultdict

import torch
from torch import Tensor

from tfstudy.errors import UserError
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, in_batches
from tfstudy.models.parts.feedforward import recorded_routing
from tfstudy.models.parts.listening import Site


class ExpertLoad(Instrument):
    """The share of the choices of an expert among all choices of a layer, with teacher forcing.

    A token has `experts_per_token` choices. If all n experts are used alike, each has the load 1/n.
    """

    summary = "share of the choices of the router that each expert gets, by layer"
    chart = Chart("bar", x="expert", y="load", hue="layer", facet="kind")
    Config = ExampleSettings
    config: ExampleSettings

    @torch.no_grad()
    def measure(self, subject: Subject) -> list[Row]:
        counts: dict[Site, list[Tensor]] = defaultdict(list)
        for batch in in_batches(subject, self.config):
            with recorded_routing() as routings:
                subject.model(batch.source, batch.mask, batch.tokens)
            for routing in routings:
                counts[routing.site].append(routing.load.double() * routing.positions)
        if not counts:
            raise UserError("this instrument needs a mixture of experts, which this model does not have")
        rows: list[Row] = []
        for site, parts in sorted(counts.items()):
            total = torch.stack(parts).sum(0)
            for expert, load in enumerate((total / total.sum()).tolist(), 1):
                rows.append({"kind": site.kind, "layer": site.layer, "expert": expert, "load": load})
        return rows

"""The importance of heads: how much the loss changes with a mask on each (Michel et al. 2019, arXiv 1905.10650)."""

from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings
from tfstudy.instruments.heads import importances, normalised


class HeadImportance(Instrument):
    """Mean over examples of |dL / d mask| (eq. 2), in nats; `normalised` is divided by the L2 norm of the layer."""

    summary = "importance of heads: gradient of the loss to a mask on each (Michel et al. 2019)"
    chart = Chart(
        "heatmap",
        x="head",
        y="layer",
        hue="importance",
        facet="kind",
        ranked="head",
        hue_label="importance |dL / d mask| (nats)",
    )
    Config = ExampleSettings
    config: ExampleSettings

    def measure(self, subject: Subject) -> list[Row]:
        found = importances(subject, self.config)
        shares = normalised(found)
        return [
            {
                "kind": head.kind, "layer": head.layer, "head": head.head, "importance": value,
                "normalised": shares[head],
            }
            for head, value in sorted(found.items(), key=lambda item: item[0][1:])
        ]  # fmt: skip

"""The entropy of each attention head, by layer and length: `entropy` without the mean over heads."""

from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.entropy import head_entropies
from tfstudy.instruments.examples import ExampleSettings
from tfstudy.instruments.recorded import linear_note


class HeadEntropy(Instrument):
    """Mean entropy of the attention weights of each head, as a share of log T, with the same rows as `entropy`."""

    summary = "attention entropy of each head by layer and length, as a share of log T"
    chart = Chart(
        "heatmap",
        x="length",
        y="layer",
        hue="entropy",
        facet="kind",
        ranked="head",
        y_label="layer.head",
        hue_label="entropy / log T",
    )
    Config = ExampleSettings
    config: ExampleSettings

    def measure(self, subject: Subject) -> list[Row]:
        return head_entropies(subject, self.config)

    def note(self, subject: Subject) -> str:
        return linear_note(subject.model)

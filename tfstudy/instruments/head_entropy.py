"""The entropy of each attention head, by layer and length: `entropy` without the mean over heads."""

from tfstudy.instruments.base import Chart
from tfstudy.instruments.entropy import Entropy


class HeadEntropy(Entropy):
    """Mean entropy of the attention weights of each head, as a share of log T: the rows of `entropy`, drawn apart."""

    summary = "attention entropy of each head by layer and length, as a share of log T"
    chart = Chart(
        "heatmap", x="length", y="layer", hue="entropy", facet="kind", ranked="head", y_label="layer.head",
        hue_label="entropy / log T",
    )  # fmt: skip

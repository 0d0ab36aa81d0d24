"""The gradient of the last output that reaches each position of the source and of the target, by distance.

A recurrence multiplies a gradient by its Jacobian at every step, so it shrinks or grows exponentially with distance
(Bengio et al. 1994; Pascanu et al. 2013, arXiv 1211.5063, section 2.1). Attention connects all positions directly.
"""

from collections import defaultdict

import torch
from pydantic import Field
from torch import Tensor

from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, in_batches, untrained
from tfstudy.instruments.hooks import Site, record_states
from tfstudy.models.base import Model

SEQUENCES = {"encoder": "source", "decoder": "target"}


class GradientByDistance(Instrument):
    """The norm of the gradient of the last output's logit, divided by that at the nearest position: the median.

    The gradient is that with respect to the embedding of a token. `distance` is the number of tokens from the last one
    of the source (EOS), or from the last input of the decoder. The last output is the EOS of the gold target. Examples
    in which no gradient reaches the nearest position are left out.
    """

    summary = "gradient that reaches each position, by its distance"
    chart = Chart(
        "line", x="distance", y="gradient", facet="sequence", log_y=True, x_label="distance (tokens)",
        y_label="gradient norm / nearest",
    )  # fmt: skip

    class Config(ExampleSettings):
        untrained: bool = Field(False, description="measure the initial weights instead of the trained ones")

    config: Config

    def measure(self, subject: Subject) -> list[Row]:
        model = untrained(subject) if self.config.untrained else subject.model
        found: dict[tuple[str, int], list[Tensor]] = defaultdict(list)
        for batch in in_batches(subject, self.config):
            with torch.backends.cudnn.flags(enabled=False):  # which needs training mode
                norms = gradient_norms(model, batch.source, batch.tokens, batch.gold[:, -1])
            for sequence, by_distance in norms.items():
                reached = by_distance[by_distance[:, 0] > 0]
                for distance, ratios in enumerate((reached / reached[:, :1]).unbind(1)):
                    found[sequence, distance].append(ratios)
        return [
            {"sequence": sequence, "distance": distance, "gradient": float(torch.cat(parts).median())}
            for (sequence, distance), parts in sorted(found.items())
            if any(map(len, parts))
        ]


def gradient_norms(model: Model, source: Tensor, tokens: Tensor, output: Tensor) -> dict[str, Tensor]:
    """Return the norm of the gradient of the last logit at each position of source and target: (batch, distance).

    The logit is that of the tokens `output` (batch,), after the last decoder input. No row may have padding.
    """
    with torch.enable_grad():
        recorded = record_states(model, source, tokens)
        logit = recorded.logits[:, -1].gather(1, output[:, None]).sum()  # rows do not depend on each other
        return {
            sequence: recorded.gradients(logit, Site(kind, 0)).norm(dim=-1).flip(1).double()
            for kind, sequence in SEQUENCES.items()
        }

"""Feed-forward networks of the Transformer: plain or gated."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from tfstudy.models.parts.layers import Dropout
from tfstudy.models.parts.transformer_config import TransformerConfig

GATES: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": functional.silu, "geglu": functional.gelu}


class Gate(nn.Module):
    """The product g(x) * y of the two halves of a vector (Shazeer 2020, arXiv 2002.05202, eq. 6)."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.function = GATES[activation]

    def forward(self, x: Float[Tensor, "*shape twice"]) -> Tensor:
        gate, value = x.chunk(2, -1)
        return self.function(gate) * value


def feedforward(config: TransformerConfig) -> nn.Sequential:
    """Return W2 g(W1 x + b1) + b2, with dropout behind the activation g. Gated ones have a second matrix beside W1."""
    gated = config.activation in GATES
    inner = nn.Linear(config.dim, config.feedforward * (2 if gated else 1))
    outer = nn.Linear(config.feedforward, config.dim)
    activation = Gate(config.activation) if gated else nn.GELU() if config.activation == "gelu" else nn.ReLU()
    dropout = config.dropout if config.activation_dropout is None else config.activation_dropout
    for weight in (*inner.weight.chunk(2 if gated else 1), outer.weight):
        nn.init.xavier_uniform_(weight)
    for layer in (inner, outer):
        nn.init.zeros_(layer.bias)
    return nn.Sequential(inner, activation, Dropout(dropout), outer)

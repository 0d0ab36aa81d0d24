"""Position schemes: how a model knows where a token is. Each is a `PositionScheme`, found by its name."""

from tfstudy.models.positions.absolute import Learned, Sinusoidal
from tfstudy.models.positions.base import PositionScheme
from tfstudy.models.positions.transformer_xl import TransformerXL

__all__ = ["SCHEMES", "PositionScheme", "embedded", "relative"]

SCHEMES: dict[str, type[PositionScheme]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "relative": TransformerXL,
    "none": PositionScheme,
}


def embedded(name: str, dim: int, max_positions: int, std: float, scale: float) -> PositionScheme:
    """Return the scheme if it acts on embeddings; otherwise one that does nothing.

    Learned positions start with the standard deviation `std`; sinusoids are multiplied by `scale`.
    """
    scheme = SCHEMES[name]
    if issubclass(scheme, Learned):
        return scheme(dim, max_positions, std)
    return scheme(dim, scale) if issubclass(scheme, Sinusoidal) else PositionScheme()


def relative(name: str, dim: int, heads: int) -> PositionScheme | None:
    """Return the scheme if it acts on attention, for one layer; otherwise None."""
    scheme = SCHEMES[name]
    return scheme(dim, heads) if issubclass(scheme, TransformerXL) else None

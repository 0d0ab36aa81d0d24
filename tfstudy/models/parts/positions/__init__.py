"""Position schemes: how a model knows where a token is. Each is a `PositionScheme`, found by its name."""

from tfstudy.models.parts.positions.absolute import Learned, Sinusoidal
from tfstudy.models.parts.positions.base import PositionScheme, Setup
from tfstudy.models.parts.positions.contextual import Contextual
from tfstudy.models.parts.positions.distance import ALiBi, KerpleLog, KerplePower, T5Buckets
from tfstudy.models.parts.positions.fire import FIRE
from tfstudy.models.parts.positions.rotary import Rotary
from tfstudy.models.parts.positions.shaw import Shaw
from tfstudy.models.parts.positions.transformer_xl import TransformerXL

__all__ = ["SCHEMES", "PositionScheme", "Setup", "acts_on_attention", "embedded", "relative"]

SCHEMES: dict[str, type[PositionScheme]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "relative": TransformerXL,
    "shaw": Shaw,
    "rotary": Rotary,
    "t5": T5Buckets,
    "alibi": ALiBi,
    "kerple": KerpleLog,
    "kerple_power": KerplePower,
    "fire": FIRE,
    "contextual": Contextual,
    "none": PositionScheme,
}


def acts_on_attention(name: str) -> bool:
    """Whether attention with this scheme depends on positions."""
    return SCHEMES[name].acts_on == "attention"


def embedded(name: str, setup: Setup) -> PositionScheme:
    """Return the scheme if it acts on embeddings; otherwise one that does nothing."""
    scheme = SCHEMES[name]
    return scheme(setup) if scheme.acts_on == "embeddings" else PositionScheme(setup)


def relative(name: str, setup: Setup) -> PositionScheme | None:
    """Return the scheme if it acts on attention, for one layer; otherwise None."""
    return SCHEMES[name](setup) if acts_on_attention(name) else None

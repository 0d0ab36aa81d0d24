"""Position schemes: how a model knows where a token is. Each is a `PositionScheme`, found by its name."""

from tfstudy.models.parts.positions.base import PositionScheme, Setup
from tfstudy.models.parts.positions.schemes import SCHEMES, acts_on_attention, embedded, relative

__all__ = ["SCHEMES", "PositionScheme", "Setup", "acts_on_attention", "embedded", "relative"]

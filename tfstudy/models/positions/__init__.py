"""Position schemes: how a model knows where a token is. Each is a `PositionScheme`, found by its name."""

from tfstudy.models.positions.base import Places, PositionScheme, Setup
from tfstudy.models.positions.schemes import SCHEMES, acts_on_attention, embedded, on_attention, sinusoids

__all__ = ["SCHEMES", "Places", "PositionScheme", "Setup", "acts_on_attention", "embedded", "on_attention", "sinusoids"]

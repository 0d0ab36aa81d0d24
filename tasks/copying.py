"""Strings copied, reversed or repeated: the plainest probes of length (Graves et al. 2014, arXiv 1410.5401, sec. 4.1).

    c a b  ->  c a b        (copy)
    c a b  ->  b a c        (reverse)
    c a b  ->  c a b c a b  (repeat twice)

Symbols are drawn uniformly from an alphabet. Nothing but the string's length and content varies, so that what fails out
of length is the architecture's way of finding its place.
"""

from random import Random
from string import ascii_lowercase

from pydantic import Field

from tasks.generated import Drawn, Generated, GeneratedConfig

SPLIT_SCHEMES = {
    "copy": "the same string",
    "reverse": "the string from its end to its start",
    "repeat": "the string `data.repeats` times over",
}


class Copying(Generated):
    """A random string to itself, changed in its order alone; see the module's text for examples."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("copy", description="copy, reverse or repeat")
        symbols: int = Field(10, ge=2, le=26, description="size of the alphabet")
        repeats: int = Field(2, ge=2, le=10, description="how often `repeat` says the string")

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return SPLIT_SCHEMES

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        source = tuple(random.choices(ascii_lowercase[: self.config.symbols], k=length))
        if self.config.split == "reverse":
            return Drawn(source, source[::-1])
        return Drawn(source, source * (self.config.repeats if self.config.split == "repeat" else 1))

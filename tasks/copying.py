"""Copy, reverse or repeat a string (Graves et al. 2014, arXiv 1410.5401, sec. 4.1).

    c a b  ->  c a b        (copy)
    c a b  ->  b a c        (reverse)
    c a b  ->  c a b c a b  (repeat twice)

Symbols are drawn uniformly from an alphabet. These are the simplest tests of length generalisation: only length and
content vary, so a model that fails on longer strings has failed to locate its position.
"""

from random import Random
from string import ascii_lowercase

from pydantic import Field

from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig

SPLIT_SCHEMES = {
    "copy": "the same string",
    "reverse": "the string in reverse order",
    "repeat": "the string, `data.repeats` times in a row",
}


class Copying(Generated):
    """Map a random string to its copy, reverse or repetition; examples are at the top of this file."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("copy", description="copy, reverse or repeat")
        symbols: int = Field(10, ge=2, le=26, description="number of letters in the alphabet")
        repeats: int = Field(2, ge=2, le=10, description="number of times that `repeat` repeats the string")

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return SPLIT_SCHEMES

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        source = tuple(random.choices(ascii_lowercase[: self.config.symbols], k=length))
        if self.config.split == "reverse":
            return Drawn(source, source[::-1])
        return Drawn(source, source * (self.config.repeats if self.config.split == "repeat" else 1))

"""Copy or reverse a string (Graves et al. 2014, arXiv 1410.5401, sec. 4.1).

    c a b  ->  c a b        (copy)
    c a b  ->  b a c        (reverse)

Symbols are drawn uniformly from an alphabet. These are the simplest tests of length generalisation: only length and
content vary, so a model that fails on longer strings has failed to locate its position.
"""

from random import Random
from string import ascii_lowercase
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig


class Copying(Generated):
    """Map a random string to its copy or reverse; examples are at the top of this file."""

    schemes: ClassVar = {
        "copy": "the same string",
        "reverse": "the string in reverse order",
    }
    steps = 1500

    class Config(GeneratedConfig):
        split: str = "copy"
        symbols: int = Field(10, ge=2, le=26, description="number of letters in the alphabet")

    config: Config

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        source = tuple(random.choices(ascii_lowercase[: self.config.symbols], k=length))
        return Drawn(source, source[::-1] if self.config.split == "reverse" else source)

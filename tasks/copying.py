"""Copy or reverse a string (Graves et al. 2014, arXiv 1410.5401, sec. 4.1).

    c a b  ->  c a b        (copy)
    c a b  ->  b a c        (reverse)

Symbols are drawn uniformly from an alphabet. These are the simplest tests of length generalisation: only length and
content vary, so a model that fails on longer strings has failed to locate its position. With index hints (Zhou et al.
2023, arXiv 2310.16028) each symbol follows a token that says its place in the source, counted from a random start:

    #4 c #5 a #6 b  ->  #6 b #5 a #4 c        (reverse, `data.index_hints` 6 or more)
"""

from itertools import chain
from random import Random
from string import ascii_lowercase
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig


class Copying(Generated):
    """Map a random string to its copy or reverse; examples are at the top of this file."""

    schemes: ClassVar = {"copy": "the same string", "reverse": "the string in reverse order"}
    steps = 1500

    class Config(GeneratedConfig):
        split: str = "copy"
        symbols: int = Field(10, ge=2, le=26, description="number of letters in the alphabet")
        index_hints: int = Field(
            0, ge=0, le=9999, description="number of different tokens that say a symbol's place; 0: none"
        )

    config: Config

    def lengths(self) -> range:
        return range(1, self.config.index_hints + 1) if self.config.index_hints else super().lengths()

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        source: list[Tokens] = [(one,) for one in random.choices(ascii_lowercase[: self.config.symbols], k=length)]
        if self.config.index_hints:
            start = random.randint(1, self.config.index_hints - length + 1)
            source = [(f"#{place}", *symbol) for place, symbol in enumerate(source, start)]
        target = source[::-1] if self.config.split == "reverse" else source
        return Drawn(tuple(chain(*source)), tuple(chain(*target)))

    def group(self, source: Tokens) -> Tokens:
        """Keep the same string with other hints together."""
        return source[1::2] if self.config.index_hints else source

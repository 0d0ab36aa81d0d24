"""Replace each letter by the one that follows it in the alphabet (a Caesar cipher).

    a c z  ->  b d a

Each target token depends on one source token at the same position, so only the position has to be found.
"""

from random import Random
from string import ascii_lowercase
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig


class Shift(Generated):
    """Shift each letter in the alphabet; an example is at the top of this file."""

    version = 1
    schemes: ClassVar = {"length": "test on strings that are longer than all of training"}

    class Config(GeneratedConfig):
        split: str = Field("length", description="length")
        shift: int = Field(1, ge=1, le=25, description="places in the alphabet")

    config: Config

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        numbers = random.choices(range(26), k=length)
        shifted = [(number + self.config.shift) % 26 for number in numbers]
        return Drawn(tuple(ascii_lowercase[n] for n in numbers), tuple(ascii_lowercase[n] for n in shifted))

"""Word problems of finite groups: the product of a sequence of elements, which tests state tracking.

    213 132 213  ->  213 312 321      (s3)
    213 132 213  ->  321              (s3, `data.output=final`)
    17 50 3      ->  17 7 10          (cyclic of order 60)

A permutation is written as the images of 1, 2, ..., n: 312 maps 1 to 3, 2 to 1 and 3 to 2. Products are read from left
to right: the first element acts first. Every element is equally likely, so every answer is too.

The groups differ in what they demand (Liu et al. 2023, arXiv 2210.10749; Merrill et al. 2024, arXiv 2404.08819). The
word problem of a solvable group (cyclic, S3) has shallow parallel solutions. That of A5 or S5 is complete for NC1
(Barrington 1989), so a Transformer or a linear recurrence of constant depth cannot solve it at every length unless
TC0 = NC1; a recurrence whose state depends on it non-linearly can. The cyclic group of order 60 has as many elements as
A5, so that the two differ in the group only.

The target contains the product of every prefix, as in both papers. A decoder that generates them one after the other
has to do only one multiplication a step. With `data.output=final`, the target is only the product of the whole
sequence, and `data.scratchpad` writes the others before it. `length` is the number of elements.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import accumulate, combinations, permutations
from random import Random
from typing import ClassVar, Literal

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths

OBJECTS = {"s3": 3, "s5": 5, "a5": 5}


@cache
def elements(split: str, order: int) -> dict[str, int]:
    """Return the elements of a group and their numbers, from 0, the identity; permutations in lexicographic order."""
    if split == "cyclic":
        return {str(number): number for number in range(order)}
    names = list(map("".join, permutations("12345"[: OBJECTS[split]])))
    if split == "a5":  # those that put an even number of pairs out of order
        names = [name for name in names if sum(left > right for left, right in combinations(name, 2)) % 2 == 0]
    return {name: number for number, name in enumerate(names)}


@lru_cache(maxsize=2**18)
def product(left: str, right: str, order: int) -> str:
    """Return the permutation that acts like `left` and then `right`, or the sum modulo `order`, if that is not 0."""
    if order:
        return str((int(left) + int(right)) % order)
    return "".join(right[int(image) - 1] for image in left)


class Groups(Generated):
    """Map a sequence of group elements to its product; examples are at the top of this file."""

    schemes: ClassVar = {
        "cyclic": "integers under addition modulo `data.order`: commutative",
        "s3": "the 6 permutations of 3 objects: solvable, not commutative",
        "s5": "the 120 permutations of 5 objects: not solvable",
        "a5": "the 60 even permutations of 5 objects: the smallest group that is not solvable",
    }
    steps_of: ClassVar = {"lstm": 6000}
    with_steps = ("cyclic", "s3", "s5", "a5")

    class Config(GeneratedConfig):
        split: str = "s3"
        train_length: Lengths = "1-10"
        output: Literal["all", "final"] = Field(
            "all", description="target: the products of all prefixes, or only the product of the whole sequence"
        )
        order: int = Field(60, ge=2, le=1000, description="number of elements of the cyclic group (cyclic)")

    config: Config

    def check(self) -> None:
        super().check()
        if self.config.split != "cyclic" and self.config.order != 60:
            raise UserError(f"data.order needs data.split=cyclic, but it is {self.config.split}")
        if self.config.scratchpad and self.config.output == "all":
            raise UserError("data.scratchpad needs data.output=final: with 'all', the target is the scratchpad")

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        source = tuple(random.choices([*elements(self.config.split, self.config.order)], k=length))
        states = self.states(source)
        return Drawn(source, states if self.config.output == "all" else states[-1:], steps=states)

    def states(self, source: Tokens) -> Tokens:
        """Return the products of all prefixes."""
        order = self.config.order if self.config.split == "cyclic" else 0
        return tuple(accumulate(source, partial(product, order=order)))

    def labels(self, example: Example) -> Mapping[str, Sequence[int | None]]:
        """Return the product up to each source token as `state`, a number of an element."""
        number = elements(self.config.split, self.config.order)
        return {"state": [number[state] for state in self.states(example.source)]}

"""Word problems of finite groups: the product of a sequence of elements, which tests state tracking.

    213 132 213  ->  213 312 321      (s3)
    213 132 213  ->  321              (s3, `data.output=final`)
    17 50 3      ->  17 7 10          (cyclic of order 60)

A permutation is written as the images of 1, 2, ..., n: 312 maps 1 to 3, 2 to 1 and 3 to 2. Products are read from left
to right: the first element acts first. Every element is equally likely, so every answer is too.

The groups differ in what they demand (Liu et al. 2023, arXiv 2210.10749; Merrill et al. 2024, arXiv 2404.08819). The
word problem of a solvable group (cyclic, S3) has shallow parallel solutions. That of a group that is not solvable (A5,
S5) is complete for NC1 (Barrington 1989), so a Transformer or a linear recurrence of constant depth cannot solve it at
every length unless TC0 = NC1; a recurrence whose state depends on it non-linearly can. The cyclic group of order 60 has
as many elements as A5, so that the two differ in the group only.

The target contains the product of every prefix, as in both papers. A decoder that generates them one after the other
has to do only one multiplication a step. With `data.output=final`, the target is only the product of the whole
sequence, and `data.scratchpad` writes the others before it. `length` is the number of elements.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate, combinations, permutations
from random import Random
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, LengthRange

OBJECTS = {"s3": 3, "s5": 5, "a5": 5}


class Group(NamedTuple):
    """A finite group; its elements are the numbers from 0, which is the identity."""

    names: Tokens
    table: list[list[int]]  # the Cayley table: table[a][b] is a, then b


@cache
def cyclic(order: int) -> Group:
    """Return the integers modulo `order`."""
    return Group(tuple(map(str, range(order))), [[(a + b) % order for b in range(order)] for a in range(order)])


@cache
def symmetric(objects: int, even: bool = False) -> Group:
    """Return the group of all permutations of some objects, or of the even ones, in lexicographic order."""
    elements = [p for p in permutations(range(objects)) if not (even and inversions(p) % 2)]
    number = {element: i for i, element in enumerate(elements)}
    table = [[number[tuple(second[image] for image in first)] for second in elements] for first in elements]
    return Group(tuple("".join(str(image + 1) for image in element) for element in elements), table)


def inversions(permutation: Sequence[int]) -> int:
    """Return the number of pairs that a permutation puts out of order; it is even for an even permutation."""
    return sum(left > right for left, right in combinations(permutation, 2))


class Groups(Generated):
    """Map a sequence of group elements to its product; examples are at the top of this file."""

    schemes: ClassVar = {
        "cyclic": "integers under addition modulo `data.order`: commutative",
        "s3": "the 6 permutations of 3 objects: solvable, not commutative",
        "s5": "the 120 permutations of 5 objects: not solvable",
        "a5": "the 60 even permutations of 5 objects: the smallest group that is not solvable",
    }
    steps_of: ClassVar = {"lstm": 6000}
    scheme_settings: ClassVar = {"order": ("cyclic",)}
    with_steps = ("cyclic", "s3", "s5", "a5")

    class Config(GeneratedConfig):
        split: str = "s3"
        train_length: LengthRange = "1-10"
        output: Literal["all", "final"] = Field(
            "all", description="target: the products of all prefixes, or only the product of the whole sequence"
        )
        order: int = Field(60, ge=2, le=1000, description="number of elements of the cyclic group (cyclic)")

    config: Config

    def check(self) -> None:
        super().check()
        if self.config.scratchpad and self.config.output == "all":
            raise UserError("data.scratchpad needs data.output=final: with 'all', the target is the scratchpad")

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        group = self._group()
        elements = random.choices(range(len(group.names)), k=length)
        states = products(group, elements)
        source = tuple(group.names[element] for element in elements)
        return Drawn(source, states if self.config.output == "all" else states[-1:], steps=states)

    def labels(self, example: Example) -> Mapping[str, Sequence[int | None]]:
        """Return the product up to each source token as `state`, a number of an element."""
        group = self._group()
        number = {name: i for i, name in enumerate(group.names)}
        return {"state": [number[name] for name in products(group, [number[token] for token in example.source])]}

    def _group(self) -> Group:
        split = self.config.split
        return cyclic(self.config.order) if split == "cyclic" else symmetric(OBJECTS[split], even=split == "a5")


def products(group: Group, elements: Sequence[int]) -> Tokens:
    """Return the names of the products of all prefixes."""
    return tuple(group.names[state] for state in accumulate(elements, lambda state, next_: group.table[state][next_]))

"""ListOps: the value of nested operations on lists of digits (Nangia & Bowman 2018, arXiv 1804.06028).

    [MAX 2 9 [MIN 4 7 ] 0 ]  ->  9

The operations are the maximum, the minimum, the median (rounded down) and the sum modulo 10 (SM), of 2 to 5 arguments.
The result does not show the structure of the source: a model has to find which bracket closes which operation, at any
depth. `length` is the number of source tokens; a bracket and its operation are one token. Sources of 2 and 3 tokens do
not exist. The longer ones of the Long Range Arena (Tay et al. 2021, arXiv 2011.04006) have 500 to 2,000 tokens.

What differs from the published data: lengths are drawn uniformly, while there they follow from the probability that an
argument is an operation; so there is no limit of the depth, which is a tag.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from random import Random
from statistics import median
from typing import ClassVar

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths

OPERATIONS: dict[str, Callable[[Sequence[int]], int]] = {
    "[MAX": max,
    "[MIN": min,
    "[MED": lambda values: int(median(values)),
    "[SM": lambda values: sum(values) % 10,
}
ARGUMENTS = range(2, 6)  # numbers of arguments
SHORTEST = 4  # tokens of an operation: its bracket, two digits, and the closing bracket
LONGEST = 2000


def draw_expression(random: Random, length: int) -> tuple[Tokens, int, int]:
    """Draw an expression of this number of tokens: a digit, or an operation of at least `SHORTEST` tokens.

    With its tokens are returned its value and the number of operations within each other.
    """
    if length == 1:
        digit = random.randrange(10)
        return (str(digit),), digit, 0
    inside = length - 2  # without the brackets
    count = random.choice([n for n in ARGUMENTS if inside == n or inside >= n + SHORTEST - 1])
    name = random.choice(tuple(OPERATIONS))
    parts = [draw_expression(random, size) for size in _sizes(random, inside, count)]
    arguments, values, depths = zip(*parts, strict=True)
    return (name, *chain(*arguments), "]"), OPERATIONS[name](values), 1 + max(depths)


def _sizes(random: Random, total: int, count: int) -> list[int]:
    """Divide a number of tokens among the arguments: a random number of them are operations, the others digits."""
    rest = total - count
    sizes = [1] * count
    if not rest:
        return sizes
    operations = random.sample(range(count), random.randint(1, min(count, rest // (SHORTEST - 1))))
    rest -= len(operations) * (SHORTEST - 1)
    cuts = sorted(random.randint(0, rest) for _ in operations[1:])
    for place, first, last in zip(operations, [0, *cuts], [*cuts, rest], strict=True):
        sizes[place] = SHORTEST + last - first
    return sizes


class ListOps(Generated):
    """Map an expression to its value; an example is at the top of this file."""

    schemes: ClassVar = {"value": "the value of the expression"}
    steps = 6000

    class Config(GeneratedConfig):
        split: str = "value"
        train_length: Lengths = "4-40"
        test_length: Lengths = "41-60,61-100"

    config: Config

    def lengths(self) -> range:
        return range(SHORTEST, LONGEST + 1)

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        tokens, value, depth = draw_expression(random, length)
        return Drawn(tokens, (str(value),), {"depth": depth, "operation": tokens[0][1:]})

"""Nine tasks of the Chomsky hierarchy, which test a network's memory (Deletang et al. 2022, arXiv 2207.02098).

    regular (finite memory)
        even_pairs                   0 1 1 0                  ->  even
        parity                       0 1 1 0 1                ->  odd
        cycle_navigation             +1 -1 0 -1 -1            ->  3
        modular_arithmetic           1 + 2 * 3                ->  2
    deterministic context-free (a stack)
        reverse_string               0 0 1                    ->  1 0 0
        stack_manipulation           0 1 1 push0 pop pop      ->  1 0
    context-sensitive (a tape)
        duplicate_string             0 0 1                    ->  0 0 1 0 0 1
        odds_first                   0 1 1 0 1                ->  0 1 1 1 0
        bucket_sort                  4 1 0 4 2                ->  0 1 2 4 4

`length` is the number of source tokens, as in the paper, which trains on lengths 1-40 and tests on 41-500
(`--set data.test_length=41-500`). `modular_arithmetic` has odd lengths only; others are skipped. Unlike in the paper,
targets contain no padding and no end symbol, an empty stack is an empty target, and no source occurs twice, so short
lengths, which have few sources, are rarer in training (`data.repeat_sources` draws them as often).
One function draws the examples of each problem (app. A of the paper), given the number of source tokens.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar

from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths

BITS = "01"
MODULUS = 5  # of the arithmetic; also the length of the cycle and the size of the alphabet of bucket_sort
MOVES = {"+1": 1, "-1": -1, "0": 0}
POP, PUSH = "pop", {"push0": "0", "push1": "1"}
REGULAR, CONTEXT_FREE, CONTEXT_SENSITIVE = "regular", "deterministic context-free", "context-sensitive"

Draw = Callable[[Random, int], Drawn]


def of_string(answer: Callable[[str], Sequence[str]], alphabet: str = BITS) -> Draw:
    """Return the function that draws a uniform string and its answer."""

    def draw(random: Random, length: int) -> Drawn:
        source = "".join(random.choices(alphabet, k=length))
        return Drawn(tuple(source), tuple(answer(source)))

    return draw


def parity(odd: bool) -> Sequence[str]:
    """Return the target of problems that ask for odd or even."""
    return ("odd",) if odd else ("even",)


def cycle_navigation(random: Random, length: int) -> Drawn:
    """Draw moves on a cycle; the target is the final position."""
    moves = tuple(random.choices(tuple(MOVES), k=length))
    return Drawn(moves, (str(sum(map(MOVES.__getitem__, moves)) % MODULUS),))


def modular_arithmetic(random: Random, length: int) -> Drawn:
    """Draw alternating digits and operators; `*` binds more tightly than `+` and `-`."""
    digits, operators = random.choices(range(MODULUS), k=length // 2 + 1), random.choices("+-*", k=length // 2)
    total, term = 0, digits[0]  # `term` is the current product with its sign
    source = [str(digits[0])]
    for sign, digit in zip(operators, digits[1:], strict=True):
        source += sign, str(digit)
        if sign == "*":
            term = term * digit % MODULUS
        else:
            total, term = total + term, digit if sign == "+" else -digit
    return Drawn(tuple(source), (str((total + term) % MODULUS),))


def stack_manipulation(random: Random, length: int) -> Drawn:
    """Draw a stack from bottom to top, then actions; the target is the final stack from top to bottom.

    All lengths except 1 have an action. Popping an empty stack changes nothing.
    """
    height = random.randint(1, max(1, length - 1))
    stack = random.choices(BITS, k=height)
    actions = random.choices((POP, *PUSH), k=length - height)
    source = (*stack, *actions)
    for action in actions:
        if action != POP:
            stack.append(PUSH[action])
        elif stack:
            stack.pop()
    return Drawn(source, tuple(reversed(stack)))


PROBLEMS: dict[str, tuple[str, str, Draw]] = {  # the level in the hierarchy, what the target is, and the examples
    # the symbol changes an odd number of times if and only if the last differs from the first
    "even_pairs": (REGULAR, "whether 01 and 10 together occur an even number of times",
                   of_string(lambda bits: parity(bits[0] != bits[-1]))),
    "parity": (REGULAR, "whether the number of 1s is even or odd",
               of_string(lambda bits: parity(bits.count("1") % 2 == 1))),
    "cycle_navigation": (REGULAR, "the final position after moves on a cycle of five positions", cycle_navigation),
    "modular_arithmetic": (REGULAR, "the value modulo 5 of a sum without brackets, of odd length", modular_arithmetic),
    "reverse_string": (CONTEXT_FREE, "the string in reverse order", of_string(lambda bits: bits[::-1])),
    "stack_manipulation": (CONTEXT_FREE, "the stack after some actions, from top to bottom", stack_manipulation),
    "duplicate_string": (CONTEXT_SENSITIVE, "the string, written twice", of_string(lambda bits: bits * 2)),
    # first the first, third, ... symbol, as in the paper's text; its code starts with the second
    "odds_first": (CONTEXT_SENSITIVE, "the symbols at odd positions, then those at even positions",
                   of_string(lambda bits: bits[::2] + bits[1::2])),
    "bucket_sort": (CONTEXT_SENSITIVE, "a string of five symbols in sorted order", of_string(sorted, "01234")),
}  # fmt: skip


class Chomsky(Generated):
    """One problem of the paper; its level in the hierarchy is a tag. Examples are at the top of this file."""

    schemes: ClassVar = {name: f"{about} ({level})" for name, (level, about, _) in PROBLEMS.items()}

    class Config(GeneratedConfig):
        split: str = "parity"
        train_length: Lengths = "1-40"
        test_length: Lengths = "41-60,61-100"

    config: Config

    def lengths(self) -> range:
        return range(1, 10_000, 2 if self.config.split == "modular_arithmetic" else 1)

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        level, _, draw = PROBLEMS[self.config.split]
        return draw(random, length)._replace(tags={"level": level})

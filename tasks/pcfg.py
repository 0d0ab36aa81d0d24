"""String edits composed in nested expressions: PCFG SET (Hupkes et al. 2020, JAIR 67, arXiv 1908.08351).

    repeat A1 B1 C1                                  ->  A1 B1 C1 A1 B1 C1
    echo remove_first D1 K1 , E1 F1                  ->  E1 F1 F1
    append swap_first_last F1 G1 H1 , repeat I1 J1   ->  H1 G1 F1 I1 J1 I1 J1

An expression is a string of 2 to 5 symbols, or a function of one expression or of two that are separated by a comma.
There are no brackets, since each function has a fixed number of arguments. `length` is the number of functions.

The tests are those of the paper. systematicity: four pairs of functions never follow one another in training, and every
expression of the test set `test_pairs` has at least one of them; the tag `pair` says which. As in the published data, a
pair counts if the functions are neighbours in the source, so the second argument of a binary function does not.
productivity: train on `data.train_length` and test on `data.test_length` functions; the other schemes train on both
ranges. The tests that compare outputs with each other (substitutivity, localism, overgeneralisation) are left out.

The data are drawn by the grammar, with the published distributions of the number of functions (log-normal), of lengths
of strings, of functions and of depth, so the paper's figures are no direct comparison. What differs: a string may occur
in several expressions, a value has at most 256 tokens (there up to 736), validation and test are in distribution for
each scheme, and a test set has 1,000 examples, a tenth of the paper's.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from math import exp, log
from random import Random
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths, Span

PAIRS = (
    ("swap_first_last", "repeat"),
    ("append", "remove_second"),
    ("repeat", "remove_second"),
    ("append", "swap_first_last"),
)
WITH_PAIRS = "test_pairs"
MAX_VALUE = 256  # tokens
MAX_FUNCTIONS = 200
EDITS: dict[str, Callable[..., Tokens]] = {  # the last four have two arguments
    "copy": lambda x: x,
    "reverse": lambda x: x[::-1],
    "shift": lambda x: x[1:] + x[:1],
    "echo": lambda x: x + x[-1:],
    "swap_first_last": lambda x: x[-1:] + x[1:-1] + x[:1],
    "repeat": lambda x: x + x,
    "append": lambda x, y: x + y,
    "prepend": lambda x, y: y + x,
    "remove_first": lambda x, y: y,
    "remove_second": lambda x, y: x,
}
FUNCTIONS = tuple(EDITS)
UNARY, BINARY = FUNCTIONS[:6], FUNCTIONS[6:]
COMMA = ","  # between the arguments of a binary function
P_UNARY = len(UNARY) / len(FUNCTIONS)  # all functions are equally frequent, as in the published data
MAX_NUMBER = 20  # A1 to Z20: 520 symbols

# Measured on the 9,721 test examples of the published corpus: the lengths of strings with their percentages, and the
# number of functions, which is log-normal up to a total variation distance of .02.
STRING_LENGTHS, STRING_WEIGHTS = (2, 3, 4, 5), (16, 30, 27, 27)
LOG_MEAN, LOG_SD = 1.48, 0.54
Expression = tuple[Tokens, Tokens]  # a source and its value


@cache
def alphabet(symbols: int) -> Tokens:
    """Return the first symbols of A1, B1, ..., Z1, A2, ..., Z20."""
    every = [f"{chr(ord('A') + letter)}{number}" for number in range(1, MAX_NUMBER + 1) for letter in range(26)]
    return tuple(every[:symbols])


def draw_expression(random: Random, functions: int, symbols: int) -> Expression:
    """Draw an expression with this number of functions; with none, a string.

    Each number of functions up to all others is equally likely in the first argument of a binary function. So the mean
    depth is within 0.3 of that of published expressions with as many functions, up to 15 functions.
    """
    if not functions:
        (length,) = random.choices(STRING_LENGTHS, STRING_WEIGHTS)
        string = tuple(random.choices(alphabet(symbols), k=length))
        return string, string
    if random.random() < P_UNARY:
        return apply(random.choice(UNARY), draw_expression(random, functions - 1, symbols))
    first = random.randrange(functions)
    left = draw_expression(random, first, symbols)
    return apply(random.choice(BINARY), left, draw_expression(random, functions - 1 - first, symbols))


def apply(function: str, *arguments: Expression) -> Expression:
    """Return the expression of a function with its arguments."""
    sources, values = zip(*arguments, strict=True)
    joined = (*sources[0], COMMA, *sources[1]) if function in BINARY else sources[0]
    return (function, *joined), EDITS[function](*values)


@cache
def function_weights(first: int, last: int) -> tuple[float, ...]:
    """Return the relative frequencies of expressions with `first` to `last` functions."""
    counts = (max(1, n) for n in range(first, last + 1))  # a range may start at 0, which is drawn and then not taken
    return tuple(exp(-((log(n) - LOG_MEAN) ** 2) / (2 * LOG_SD**2)) / n for n in counts)


class Pcfg(Generated):
    """Map an expression of string edits to its value; examples are at the top of this file."""

    schemes: ClassVar = {
        "random": "train and test on the same distribution",
        "systematicity": "four pairs of functions that never follow one another in training",
        "productivity": "expressions with more functions than any in training",
    }
    steps = 4000

    class Config(GeneratedConfig):
        split: str = "random"
        train_length: Lengths = "1-8"
        test_length: Lengths = Field(
            "9-35",
            description="more functions: a test split for each range (productivity), else trained on, with all between",
        )
        train_examples: int = Field(82000, ge=1, le=10**8)
        symbols: int = Field(520, ge=2, le=520, description="number of symbols that strings consist of")

    config: Config

    def lengths(self) -> range:
        return range(1, MAX_FUNCTIONS + 1)

    @property
    def train_span(self) -> Span:
        """The train lengths: those of `data.train_length` for productivity, else all from the shortest on."""
        spans = [super().train_span, *super().test_spans]
        every = Span(min(span.first for span in spans), max(span.last for span in spans))
        return spans[0] if self.config.split == "productivity" else every

    @property
    def test_spans(self) -> list[Span]:
        return super().test_spans if self.config.split == "productivity" else []

    def extra_tests(self) -> Sequence[str]:
        return (WITH_PAIRS,) if self.config.split == "systematicity" else ()

    def vocabulary(self) -> tuple[set[str], set[str]]:
        """Return all functions, the comma and all symbols."""
        symbols = set(alphabet(self.config.symbols))
        return symbols | {*FUNCTIONS, COMMA}, symbols

    def draw_length(self, random: Random, span: Span) -> int:
        """Draw the number of functions from the distribution of the published corpus, within the span."""
        return random.choices(range(span.first, span.last + 1), function_weights(*span))[0]

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        source, value = draw_expression(random, length, self.config.symbols)
        if len(value) > MAX_VALUE:
            return None
        if self.config.split != "systematicity":
            return Drawn(source, value)
        neighbours = {*pairwise(source)}
        pairs = [pair for pair in PAIRS if pair in neighbours]
        if bool(pairs) != (split == WITH_PAIRS):
            return None
        return Drawn(source, value, {"pair": " ".join(pairs[0]) if len(pairs) == 1 else "several"} if pairs else {})

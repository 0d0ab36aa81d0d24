"""Counting in its plainest forms: what a model keeps of a number that grows with the string.

    a b a c ? a  ->  2          (occurrences)
    a a a a      ->  4          (length)
    4            ->  a a a a    (unary)
    a b b a b    ->  odd        (parity)
    a c a b      ->  a          (majority)

A Transformer can count by averaging (Bhattamishra et al. 2020, arXiv 2009.11264), but no fixed one settles parity at
every length (Hahn 2020, TACL), and where recurrence learns parity beyond the lengths trained on, attention does not
(Deletang et al. 2022, arXiv 2207.02098). `length` is the number of symbols without the query, for `unary` the target's.

In `occurrences` all compositions of a string are as likely, so that counts spread from none to all of it, and the
query is drawn apart, so that the string says nothing of it. No answer of `parity` or `majority` is more frequent than
another, and there are no ties.
"""

from random import Random
from string import ascii_lowercase

from pydantic import Field

from tasks.base import Tokens
from tasks.generated import Drawn, Generated, GeneratedConfig, One, Several

SPLIT_SCHEMES = {
    "occurrences": "how often a symbol occurs in a string",
    "length": "how long a string of one symbol is; one source a length",
    "unary": "a string of one symbol as long as a number says; one source a length",
    "parity": "whether a string of two symbols has an odd or an even number of b",
    "majority": "which symbol of a string is the most frequent",
}


def spread(random: Random, symbols: str, length: int) -> Tokens:
    """A string whose composition is drawn uniformly from all that there are, and its order uniformly from all orders.

    Exponential weights are, but for their sum, a uniform point of the simplex; draws by it are a Polya urn's.
    """
    return tuple(random.choices(symbols, [random.expovariate(1) for _ in symbols], k=length))


class Counting(Generated):
    """A string to a fact about its counts; see the module's text for examples."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field("occurrences", description="occurrences, length, unary, parity or majority")
        train_length: One = Field("1-40", description="symbols of a string that are trained on, drawn uniformly")
        test_length: Several = Field("41-50,51-60", description="other lengths: each range is a test split")
        symbols: int = Field(3, ge=2, le=26, description="size of the alphabet of `occurrences` and `majority`")

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return SPLIT_SCHEMES

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        symbols = ascii_lowercase[: self.config.symbols]
        match self.config.split:
            case "occurrences":
                return occurrences(spread(random, symbols, length), random.choice(symbols))
            case "length":
                return Drawn(("a",) * length, tuple(str(length)))
            case "unary":
                return Drawn(tuple(str(length)), ("a",) * length)
            case "parity":
                return parity(tuple(random.choices("ab", k=length)))
            case _:
                return majority(random, symbols, length)


def occurrences(string: Tokens, query: str) -> Drawn:
    """How often the query is in the string, in decimal digits."""
    count = string.count(query)
    return Drawn((*string, "?", query), tuple(str(count)), {"count": count})


def parity(string: Tokens) -> Drawn:
    """Of all strings of a length, half have an odd number of b."""
    count = string.count("b")
    answer = "odd" if count % 2 else "even"
    return Drawn(string, (answer,), {"count": count, "answer": answer})


def majority(random: Random, symbols: str, length: int) -> Drawn | None:
    """The most frequent symbol, and by how many it leads (`margin`); None of a tie.

    Half of the strings have symbols of equal chances, so that close counts are common; the others have any composition.
    """
    close = random.random() < 0.5
    string = tuple(random.choices(symbols, k=length)) if close else spread(random, symbols, length)
    (second, _), (first, answer) = sorted((string.count(symbol), symbol) for symbol in symbols)[-2:]
    return Drawn(string, (answer,), {"margin": first - second, "answer": answer}) if first > second else None

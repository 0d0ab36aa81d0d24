"""Fifteen tasks of the Chomsky hierarchy, which test a network's memory (Deletang et al. 2022, arXiv 2207.02098).

    regular (finite memory)
        even_pairs                   0 1 1 0                  ->  even
        parity                       0 1 1 0 1                ->  odd
        cycle_navigation             +1 -1 0 -1 -1            ->  3
        modular_arithmetic           1 + 2 * 3                ->  2
    deterministic context-free (a stack)
        reverse_string               0 0 1                    ->  1 0 0
        stack_manipulation           0 1 1 push0 pop pop      ->  1 0
        modular_arithmetic_brackets  ( 2 * ( 1 - - 3 ) )      ->  3
        solve_equation               ( x - ( 4 ) ) = 2        ->  1
    context-sensitive (a tape)
        duplicate_string             0 0 1                    ->  0 0 1 0 0 1
        missing_duplicate            0 1 1 0 1 _              ->  1
        odds_first                   0 1 1 0 1                ->  0 1 1 1 0
        binary_addition              0 0 1 + 0 1 1 0 1        ->  0 1 0 1 1
        binary_multiplication        0 0 1 * 0 1 1 0 1        ->  0 0 0 1 1 0 1
        compute_sqrt                 1 0 0 1 0 1              ->  1 1 0
        bucket_sort                  4 1 0 4 2                ->  0 1 2 4 4

`length` is the number of source tokens, as in the paper. The paper trains on lengths 1-40 and tests on 41-500
(`--set data.test_length=41-500`); the default here tests 41-100. Lengths that do not exist are skipped: even lengths of
`modular_arithmetic`, lengths below 3 of the binary operations and `solve_equation`, and below 2 of `missing_duplicate`.

Two things differ from the paper. First, targets contain no padding and no end symbol, since models here generate an end
symbol themselves; an empty stack is an empty target, and token accuracy divides by the longer of prediction and target.
Second, no source occurs twice, so short lengths, which have few sources, are rarer in training than under a uniform
distribution.
"""

from random import Random

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.chomsky.problems import PROBLEMS
from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, LengthRange, LengthRanges, parse_spans


class Chomsky(Generated):
    """One problem of the paper; its level in the hierarchy is a tag. Examples are at the top of this file."""

    version = 1

    class Config(GeneratedConfig):
        split: str = Field(
            "parity", description="which of the fifteen problems (listed by `tfstudy list splits chomsky`)"
        )
        train_length: LengthRange = Field("1-40", description="range of source lengths in training, drawn uniformly")
        test_length: LengthRanges = Field(
            "41-60,61-100", description="further test lengths; each range is a test split (paper: 41-500)"
        )

    config: Config

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return {name: f"{problem.description} ({problem.level})" for name, problem in PROBLEMS.items()}

    def check(self) -> None:
        super().check()
        problem = PROBLEMS[self.config.split]
        for key in ("train_length", "test_length"):
            for first, last in parse_spans(getattr(self.config, key)):
                if not any(map(problem.has, range(first, last + 1))):
                    raise UserError(
                        f"data.{key} {first}-{last} contains no length of '{self.config.split}', "
                        f"whose lengths are {problem.lengths}"
                    )

    def draw(self, random: Random, length: int, split: str) -> Drawn | None:
        problem = PROBLEMS[self.config.split]
        if not problem.has(length):
            return None
        source, target = problem.draw(random, length)
        return Drawn(source, target, {"level": problem.level})

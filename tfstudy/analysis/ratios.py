"""Judge statements about ratios of what `tfstudy bench` measured: one setting over another.

Speeds are compared round by round, and their ratio is judged by the interval of its median. All such statements of
all claims are one family of their own: each interval has the level 1 - .05/m. Memory and FLOPs are the same in every
repeat, so that their ratios are exact. Both settings must have been measured by one command.
"""

import math
from collections.abc import Iterable

from tfstudy.analysis.benchmarks import TIME, Pair, values_of
from tfstudy.analysis.estimates import Estimate, side_of
from tfstudy.analysis.intervals import Interval
from tfstudy.analysis.medians import EXACT, fewest_values, median_interval, ratios
from tfstudy.analysis.significance import ALPHA
from tfstudy.analysis.statements import Claim, Statement


def timed_ratios(claims: Iterable[Claim]) -> int:
    """Return the number of statements about ratios of speeds: the size of their family."""
    statements = (statement for claim in claims for statement in claim.statements)
    return max(1, sum(bool(one.over) and is_timed(one) for one in statements))


def is_timed(statement: Statement) -> bool:
    """Whether a statement about a ratio is about a speed."""
    return TIME in (statement.of["quantity"], statement.over["quantity"])


def estimate_ratio(statement: Statement, pair: Pair, tests: int) -> Estimate:
    """Return the ratio of a pair beside the bounds of a statement; `tests` is the size of the family."""
    first, second = values_of(pair.of, statement.of["quantity"]), values_of(pair.over, statement.over["quantity"])
    each, level = ratios(first, second), 1 - ALPHA / tests
    if is_timed(statement):
        measured = median_interval(each, level)
        more = max(0, fewest_values(level) - measured.n) or None
    else:
        measured, more, tests = Interval(each[0], each[0], each[0], 1, EXACT), None, 1
    bounds = [bound for bound in statement.bounds if math.isfinite(bound)]
    violated = [b for b in bounds if (measured.mean < b) is (b == statement.bounds[0])]
    bound = min(violated or bounds, key=lambda b: abs(b - measured.mean))
    return Estimate(measured, bound, math.nan, "", side_of(measured, statement.bounds), more, tests)

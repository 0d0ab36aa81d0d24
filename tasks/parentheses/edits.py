"""The edit distance from a string of brackets to the nearest balanced string, and strings at a given distance.

The distance is Levenshtein's: the least number of symbols to insert, delete or replace (Backurs & Onak 2016). A
distance d says how far a string is from the language: with d = 1, one wrong symbol must be found.
"""

from collections.abc import Sequence
from random import Random

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.parentheses.brackets import CLOSING, OPENING, PARTNER

MAX_TRIES = 100  # replacements to try for each edit


def edit_distance(string: Sequence[str]) -> int:
    """Return the least number of edits that balance a string, in time cubic in what `reduced` leaves of it.

    Either the last symbol of a span is deleted, or it becomes the partner of an earlier one. No insertion is needed: to
    delete a bracket costs as much as to insert its partner.
    """
    rest = reduced(string)
    cost = [[0] * (len(rest) + 1) for _ in range(len(rest) + 1)]  # cost[i][j] of rest[i:j]
    for width in range(1, len(rest) + 1):
        for start in range(len(rest) - width + 1):
            end = start + width
            row = cost[start]
            best = 1 + row[end - 1]  # the last symbol is deleted
            for middle in range(start, end - 1):
                paired = row[middle] + cost[middle + 1][end - 1] + pair_cost(rest[middle], rest[end - 1])
                best = min(best, paired)
            row[end] = best
    return cost[0][len(rest)]


def pair_cost(left: str, right: str) -> int:
    """Return the least number of replacements that turn two symbols into an opening bracket and its partner."""
    if left in PARTNER:
        return int(PARTNER[left] != right)
    return 1 if right in CLOSING else 2


def reduced(string: Sequence[str]) -> list[str]:
    """Return what is left of a string when neighbours that are a pair are removed; its edit distance is the same."""
    rest: list[str] = []
    for symbol in string:
        if rest and PARTNER.get(rest[-1]) == symbol:
            rest.pop()
        else:
            rest.append(symbol)
    return rest


def at_distance(random: Random, string: Tokens, distance: int, types: int) -> Tokens | None:
    """Return a string of the same length at exactly this distance; None if not enough tries succeed.

    Symbols of the balanced `string` are replaced by other brackets of the first `types` types, one after another. A
    replacement that decreases the distance is undone.
    """
    symbols = OPENING[:types] + CLOSING[:types]
    other, reached = list(string), 0
    for _ in range(MAX_TRIES * distance):
        position = random.randrange(len(other))
        before = other[position]
        other[position] = random.choice(symbols.replace(before, ""))
        changed = edit_distance(other)
        if changed < reached:
            other[position] = before
            continue
        reached = changed  # one replacement adds at most one
        if reached == distance:
            return tuple(other)
    return None

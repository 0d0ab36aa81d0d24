"""What the finished runs say: conditions, statistics, comparisons, claims and published figures. Imports no torch."""

"""Accuracy by length: the thresholds L90 and L50, and means over lengths."""

from tfstudy.evaluation.breakdown import MIN_EXAMPLES, accuracy_by_length, mean_over_lengths
from tfstudy.runs.schema import SplitScores


def slices(n: int = 100, **accuracies: float) -> dict:
    """Slices of `n` examples of each length, such as `n7=0.9`."""
    return {"length": {k[1:]: {"n": n, "metrics": {"exact_match": v}} for k, v in accuracies.items()}}


def scores(n: int = 100, **accuracies: float) -> SplitScores:
    """The scores of a split with these slices."""
    return SplitScores.create("test", {"n": n * len(accuracies), "slices": slices(n, **accuracies)})


def test_l90_is_the_longest_length_before_accuracy_first_falls_below_90_per_cent():
    found = accuracy_by_length([scores(n9=0.9, n10=0.89, n11=0.95, n12=0.5, n2=1.0), scores(n13=0.49, n20=0.6)])
    assert (found.L90, found.L50, found.longest_tested) == (9, 12, 20)


def test_a_length_with_few_examples_does_not_count():
    rare = scores(n=MIN_EXAMPLES - 1, n1=0.0)
    assert accuracy_by_length([rare, scores(n2=1.0)]).L90 == 2
    assert accuracy_by_length([rare]).longest_tested == 1, "where all lengths have few examples, all count"


def test_without_lengths_there_is_no_threshold():
    assert not accuracy_by_length([SplitScores.create("test", {"n": 0})])


def test_a_threshold_is_none_if_not_even_the_shortest_length_reaches_it():
    assert accuracy_by_length([scores(n1=0.4, n2=1.0)]).L50 is None


def test_examples_of_one_length_are_counted_over_all_splits():
    found = accuracy_by_length([scores(n3=1.0), scores(n3=0.5)])
    assert found.exact_match["3"] == {"n": 200, "exact_match": 0.75}


def test_every_length_has_the_same_weight_in_the_mean_over_lengths():
    unequal = slices(n1=1.0, n2=0.5, n3=0.0)
    unequal["length"]["3"]["n"] = 1
    assert mean_over_lengths(unequal) == {"mean_over_lengths": {"exact_match": 0.5}}
    assert mean_over_lengths({}) == {}


def test_a_metric_without_cases_at_some_length_has_no_mean_over_lengths():
    parts = {"1": {"metrics": {"exact_match": 1.0, "recall": 0.5}}, "2": {"metrics": {"exact_match": 0.0}}}
    assert mean_over_lengths({"length": parts}) == {"mean_over_lengths": {"exact_match": 0.5}}
    parts = {"1": parts["2"], "2": parts["1"]}
    assert mean_over_lengths({"length": parts}) == {"mean_over_lengths": {"exact_match": 0.5}}

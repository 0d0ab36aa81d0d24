"""The task contract: finding tasks, overlap, hashes, checksums, fingerprints and scores."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tests.example_task import added
from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Splits, Task, fingerprint, hold_out, overlap
from tfstudy.tasks.scoring import exact_match, mean, token_accuracy, wilson


class Toy(Task):
    """A task of whatever examples it is given: one list a split; the first is train, the second validation."""

    def __init__(self, **splits):
        self.parts = splits

    def splits(self):
        train, validation, *tests = self.parts
        return Splits(train, validation, tuple(tests))

    def examples(self, split):
        return self.parts[split]


def example(source, target, **tags):
    return Example(tuple(source.split()), tuple(target.split()), tags)


A, B, C, D, E = (example(f"{x} {x}{x}", f"{x.upper()} ä", length=2, kind=f"of {x}") for x in "abcde")


def toy():
    return Toy(train=[A, B], validation=[C], near=[D], far=[E])


def test_a_task_is_a_file_with_one_class_and_no_other_module(tmp_path):
    for name in ("base", "tasks.scan"):
        with pytest.raises(UserError, match=rf"task '{name}'.*scan"):
            tasks.find(name)
    for count in (0, 2):
        text = "from tfstudy.tasks import Task\n" + "".join(f"class T{n}(Task): 'A task.'\n" for n in range(count))
        message = rf"tasks/task{count}\.py must define one subclass .* defines {count}"
        with added(tasks, f"task{count}", text, tmp_path), pytest.raises(UserError, match=message):
            tasks.find(f"task{count}")


def test_overlap_counts_held_out_sources_that_occur_in_train():
    task = Toy(train=[A, A, B], validation=[C], near=[A, A._replace(target=("other",)), D], far=[B])
    assert overlap(task) == {"validation": 0, "near": 2, "far": 1}


EXAMPLES = st.lists(st.integers(0, 30).map(lambda n: example(f"word {n}", "x")), max_size=40)
FRACTION = st.floats(0, 0.5)


@given(EXAMPLES, FRACTION, FRACTION, st.integers(0, 99), st.randoms(use_true_random=False))
def test_holding_out_keeps_all_examples_takes_none_that_repeats_and_depends_on_no_order(train, a, b, seed, random):
    stays, out = hold_out(train, max(a, b), seed)
    held, count = {e.source for e in out}, Counter(e.source for e in train)
    assert stays == [e for e in train if e.source not in held]
    assert out == [e for e in train if e.source in held]
    assert all(count[source] == 1 for source in held)
    assert sorted(hold_out(random.sample(train, len(train)), max(a, b), seed)[1]) == sorted(out)
    assert {e.source for e in hold_out(train, min(a, b), seed)[1]} <= held, "a larger share contains the smaller"


def test_a_fingerprint_changes_with_any_content_order_name_or_role_of_a_split(monkeypatch):
    before = fingerprint(toy())
    others = [
        Toy(train=[B, A], validation=[C], near=[D], far=[E]),
        Toy(train=[A], validation=[B, C], near=[D], far=[E]),
        Toy(train=[A, B], near=[D], validation=[C], far=[E]),
        Toy(train=[A, B], validation=[C], near=[D], further=[E]),
        Toy(train=[A, B], validation=[C], near=[D]),
    ]
    for split in ("train", "validation", "near", "far"):
        for change in ({"source": ("z",)}, {"target": ()}, {"tags": {"length": 3}}):
            others.append(toy())
            others[-1].parts[split] = [*others[-1].parts[split][:-1], others[-1].parts[split][-1]._replace(**change)]
    assert before == fingerprint(toy())
    assert before not in map(fingerprint, others)
    monkeypatch.setattr(Toy, "splits", lambda _: Splits("train", None, ("validation", "near", "far")))
    assert fingerprint(toy()) != before


def test_known_predictions_have_their_known_scores_either_way_round():
    for a, b, exact, share in (
        ("a b c", "a b c", 1.0, 1.0),
        ("a b", "a b c d", 0.0, 0.5),
        ("b c d", "a b c d", 0.0, 0.0),
        ("", "a", 0.0, 0.0),
        ("", "", 1.0, 1.0),
    ):
        for prediction, gold in ((a.split(), tuple(b.split())), (b.split(), tuple(a.split()))):
            assert (exact_match(prediction, gold), token_accuracy(prediction, gold)) == (exact, share), (a, b)
    scores = toy().score([("A", "ä"), ("x", "ä")], [A, B])
    assert list(scores.items()) == [("exact_match", 0.5), ("token_accuracy", 0.75)]
    assert math.isnan(mean([]))


@given(st.integers(1, 50_000).flatmap(lambda n: st.tuples(st.sampled_from([0, n]) | st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy_and_never_has_zero_width(counts):
    low, high = wilson(*counts)
    assert (low, high) == pytest.approx(tuple(binomtest(*counts).proportion_ci(method="wilson")), abs=1e-9)
    assert 0 <= low < high <= 1

"""The task contract: finding tasks, overlap, hashes, checksums, fingerprints and scores."""

import math
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tests.example_task import write
from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.tasks.base import (
    Example,
    Splits,
    Task,
    fingerprint,
    hold_out,
    overlap,
    warnings,
)
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


def test_an_unknown_task_is_refused_with_the_nearest_name():
    with pytest.raises(UserError, match=r"'scna'.*did you mean 'scan'"):
        tasks.find("scna")
    for name in ("base", "tasks.scan"):
        with pytest.raises(UserError, match=rf"task '{name}'.*scan"):
            tasks.find(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A second folder in which tasks are found, forgotten afterwards."""
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("tfstudy.tasks."):
            del sys.modules[name]
            delattr(tasks, name.removeprefix("tfstudy.tasks."))


def test_adding_a_task_takes_one_file_with_one_class(folder):
    write(folder, "extra_task")
    assert "extra_task" in tasks.names()
    assert tasks.find("extra_task").__name__ == "Letters"
    for count in (0, 2):
        classes = "".join(f"class T{n}(Task):\n    'A task.'\n" for n in range(count))
        write(folder, f"task{count}", f"from tfstudy.tasks import Task\n{classes}")
        with pytest.raises(UserError, match=rf"tasks/task{count}\.py must define one subclass .* defines {count}"):
            tasks.find(f"task{count}")


def test_overlap_counts_held_out_sources_that_occur_in_train_and_warns_of_them():
    task = Toy(train=[A, A, B], validation=[C], near=[A, A._replace(target=("other",)), D], far=[B])
    assert overlap(task) == {"validation": 0, "near": 2, "far": 1}
    end = "have a source that is also in train"
    shared = [line for line in warnings(task, overlap(task)) if line.startswith("WARNING")]
    assert shared == [f"WARNING: {own} {end}" for own in ("2 of 3 examples of near", "1 of 1 examples of far")]


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


def test_holding_out_takes_about_the_fraction_and_another_seed_takes_others():
    train = [example(f"word {n}", "x") for n in range(5000)]
    first, second = (hold_out(train, 0.1, seed)[1] for seed in (0, 1))
    assert abs(len(first) / 5000 - 0.1) < 0.02
    assert first != second


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

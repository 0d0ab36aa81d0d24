"""What every task shares: finding it, its splits, its scores, its sums, and its export."""

import hashlib
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import tasks
from tasks.base import (
    Example,
    Splits,
    Task,
    TaskConfig,
    hold_out,
    checksum,
    fingerprint,
    stable_hash,
    as_lines,
    overlap,
    to_datasets,
    write_datasets,
)
from tasks.errors import UserError, one_of
from tasks.scan import Scan
from tasks.scoring import exact_match, mean, token_accuracy, wilson

HERE = Path(__file__).resolve().parents[2]
quick = settings(deadline=None, database=None)


class Toy(Task):
    """A task of whatever examples it is given: one list a split; the first is train, the second validation."""

    def __init__(self, **splits):
        self.parts = splits

    @classmethod
    def split_schemes(cls):
        return {}

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


# Finding a task


def test_every_file_of_the_folder_is_a_task_but_for_the_shared_ones():
    folders = {path.parent.name for path in (HERE / "tasks").glob("*/__init__.py")}
    files = {path.stem for path in (HERE / "tasks").glob("*.py")} | folders
    assert set(tasks.names()) == files - {"__init__"} - tasks.NOT_TASKS
    assert tasks.names() == sorted(tasks.names())


def test_every_task_is_found_by_its_name():
    assert tasks.find("scan") is Scan
    for name in tasks.names():
        assert issubclass(tasks.find(name), Task)
        assert issubclass(tasks.find(name).Config, TaskConfig)


@pytest.mark.parametrize("name", ["scam", "base", "scoring", "tasks.scan"])
def test_an_unknown_task_is_refused_with_the_known_ones(name):
    with pytest.raises(UserError, match=rf"task '{name}'.*scan"):
        tasks.find(name)


def test_a_misspelt_task_is_met_with_the_nearest():
    with pytest.raises(UserError, match="'scna'.*did you mean 'scan'"):
        tasks.find("scna")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A second folder in which tasks are found, forgotten afterwards."""
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("tasks."):
            del sys.modules[name]
            delattr(tasks, name.removeprefix("tasks."))


def test_a_file_is_all_that_it_takes_to_add_a_task(folder):
    (folder / "extra_task.py").write_text("from tasks import Task\n\nclass Extra(Task):\n    'A task.'\n")
    assert "extra_task" in tasks.names()
    assert tasks.find("extra_task").__name__ == "Extra"


@pytest.mark.parametrize("count", [0, 2])
def test_a_file_must_define_one_task(folder, count):
    classes = "".join(f"class T{n}(Task):\n    'A task.'\n" for n in range(count))
    (folder / "other_task.py").write_text(f"from tasks import Task\n{classes}")
    with pytest.raises(UserError, match=rf"tasks/other_task\.py must define one subclass of Task, but defines {count}"):
        tasks.find("other_task")


def test_tasks_import_no_torch_no_datasets_and_nothing_of_tfstudy():
    code = (
        "import sys, tasks\n"
        "for name in tasks.names():\n    tasks.find(name)\n"
        "tops = {name.split('.')[0] for name in sys.modules}\n"
        "print('tasks' in tops, sorted(tops & {'torch', 'lightning', 'datasets', 'tfstudy'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"


def test_the_imported_tasks_are_of_this_repository():
    assert Path(tasks.__file__).resolve().parent == HERE / "tasks"


# Messages


def test_an_allowed_value_comes_back():
    assert one_of("x", "b", "abc") == "b"


def test_a_value_near_nothing_gets_no_suggestion():
    with pytest.raises(UserError) as caught:
        one_of("split scheme", "zzz", ["length", "simple"])
    assert str(caught.value) == "unknown split scheme 'zzz'; expected one of: length, simple"


# Splits


def test_roles_of_splits_are_told_apart():
    splits = Splits("train", "validation", ("near", "far"))
    assert splits.held_out == ("validation", "near", "far")
    assert splits.all == ("train", "validation", "near", "far")
    assert Splits("train", None, ("test",)).all == ("train", "test")


@pytest.mark.parametrize("validation", [0, 0.05])
def test_each_split_of_scan_has_one_role(validation):
    task = Scan(Scan.Config(validation_fraction=validation))
    splits = task.splits()
    assert len(set(splits.all)) == len(splits.all)
    assert splits.train not in splits.held_out
    assert splits.validation not in splits.tests
    assert all(task.examples(name) for name in splits.all)


def test_overlap_counts_the_held_out_sources_that_are_trained_on():
    other = A._replace(target=("other",))
    assert overlap(Toy(train=[A, A, B], validation=[C], near=[A, other, D], far=[])) == {
        "validation": 0,
        "near": 2,
        "far": 0,
    }


# Scores

TOKENS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=6)


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "share"),
    [
        ("a b c", "a b c", 1.0, 1.0),
        ("a b", "a b c d", 0.0, 0.5),
        ("a b c d", "a b", 0.0, 0.5),
        ("b c d", "a b c d", 0.0, 0.0),
        ("", "a", 0.0, 0.0),
        ("", "", 1.0, 1.0),
    ],
)
def test_known_predictions_have_their_known_scores(prediction, gold, exact, share):
    assert exact_match(prediction.split(), gold.split()) == exact
    assert token_accuracy(prediction.split(), gold.split()) == share


@given(TOKENS, TOKENS)
@quick
def test_scores_are_1_if_and_only_if_the_two_are_equal(a, b):
    assert (exact_match(a, b) == 1.0) == (a == b)
    assert (token_accuracy(a, b) == 1.0) == (a == b)


@given(TOKENS, TOKENS)
@quick
def test_scores_are_symmetric_and_within_0_and_1(a, b):
    for score in (exact_match, token_accuracy):
        assert score(a, b) == score(b, a)
        assert 0.0 <= score(a, b) <= 1.0


@given(TOKENS)
@quick
def test_a_list_and_a_tuple_of_the_same_tokens_match(a):
    assert exact_match(a, tuple(a)) == token_accuracy(tuple(a), a) == 1.0


def test_the_mean_of_nothing_is_nan():
    assert math.isnan(mean([]))
    assert mean(iter([0.0, 1.0, 0.5])) == 0.5


def test_a_task_scores_exact_match_first():
    scores = toy().score([("A", "ä"), ("x", "ä")], [A, B])
    assert list(scores.items()) == [("exact_match", 0.5), ("token_accuracy", 0.75)]


# Wilson's interval


def agrees(right, n, level=0.95):
    interval = binomtest(right, n).proportion_ci(level, method="wilson")
    return pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 101])
def test_wilson_agrees_with_scipy_at_every_count(n):
    for right in range(n + 1):
        assert wilson(right, n) == agrees(right, n)


@given(st.integers(1, 50_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@quick
def test_wilson_agrees_with_scipy_at_any_count(counts):
    assert wilson(*counts) == agrees(*counts)


def test_wilson_at_another_level_agrees_with_scipy():
    assert wilson(3, 10, z=2.5758293035489004) == agrees(3, 10, 0.99)


@given(st.integers(2, 10**6))
@quick
def test_an_interval_is_never_plus_minus_zero(n):
    low, high = wilson(0, n)
    assert low == pytest.approx(0, abs=1e-12)
    assert high > 1 / n
    low, high = wilson(n, n)
    assert high == pytest.approx(1, abs=1e-12)
    assert low < 1 - 1 / n


@given(st.integers(1, 10**4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@quick
def test_an_interval_is_mirrored_and_within_0_and_1(counts):
    right, n = counts
    low, high = wilson(right, n)
    assert 0 <= low < high <= 1
    assert wilson(n - right, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_nothing_seen_is_nothing_known():
    assert wilson(0, 0) == (0.0, 1.0)


# Draws by hash


def numbered(count):
    return [example(f"word {n}", "x") for n in range(count)]


def test_a_draw_is_the_same_on_every_machine():
    digest = hashlib.sha256(b"validation\t0\tjump twice").digest()
    assert stable_hash("validation", 0, ("jump", "twice")) == int.from_bytes(digest[:8], "big") == 12744994395943979143


@given(st.sampled_from(["validation", "simple", ""]), st.integers(0, 2**40), TOKENS)
@quick
def test_a_draw_is_a_number_of_64_bits(purpose, seed, source):
    assert 0 <= stable_hash(purpose, seed, tuple(source)) < 2**64


@pytest.mark.parametrize("other", [("simple", 0), ("validation", 1)])
def test_draws_for_another_purpose_or_seed_are_independent(other):
    low = [[stable_hash(*draw, e.source) < 2**63 for e in numbered(4000)] for draw in (("validation", 0), other)]
    assert 0.45 < sum(low[0]) / 4000 < 0.55
    assert 0.45 < sum(a == b for a, b in zip(*low, strict=True)) / 4000 < 0.55


EXAMPLES = st.lists(st.integers(0, 30).map(lambda n: example(f"word {n}", "x")), max_size=40)
FRACTION = st.floats(0, 0.5)
SEED = st.integers(0, 99)


@given(EXAMPLES, FRACTION, SEED)
@quick
def test_carving_loses_nothing_and_keeps_the_order(train, fraction, seed):
    stays, out = hold_out(train, fraction, seed)
    held = {e.source for e in out}
    assert stays == [e for e in train if e.source not in held]
    assert out == [e for e in train if e.source in held]


@given(EXAMPLES, FRACTION, SEED)
@quick
def test_carving_never_takes_an_example_that_is_repeated(train, fraction, seed):
    count = Counter(e.source for e in train)
    assert all(count[e.source] == 1 for e in hold_out(train, fraction, seed)[1])


@given(EXAMPLES, FRACTION, SEED, st.randoms(use_true_random=False))
@quick
def test_carving_knows_no_order(train, fraction, seed, random):
    shuffled = random.sample(train, len(train))
    assert sorted(hold_out(train, fraction, seed)[1]) == sorted(hold_out(shuffled, fraction, seed)[1])


@given(EXAMPLES, FRACTION, FRACTION, SEED)
@quick
def test_a_larger_validation_contains_the_smaller(train, a, b, seed):
    small, large = (hold_out(train, fraction, seed)[1] for fraction in sorted((a, b)))
    assert {e.source for e in small} <= {e.source for e in large}


def test_new_examples_leave_the_old_where_they_were():
    few, more = numbered(500), numbered(1000)
    assert hold_out(few, 0.2, 0)[1] == [e for e in hold_out(more, 0.2, 0)[1] if e in few]


def test_carving_takes_about_the_fraction_and_another_seed_takes_others():
    train = numbered(5000)
    first, second = (hold_out(train, 0.1, seed)[1] for seed in (0, 1))
    assert abs(len(first) / 5000 - 0.1) < 0.02
    assert first != second
    assert hold_out(train, 0, 0) == (train, [])


# Sums


def test_lines_join_tokens_by_blanks_and_sides_by_a_tab():
    assert as_lines([A, D]) == ["a aa\tA ä", "d dd\tD ä"]


def test_a_checksum_is_of_the_sorted_lines():
    assert checksum([B, A, B]) == hashlib.sha256("a aa\tA ä\nb bb\tB ä\nb bb\tB ä".encode()).hexdigest()


@given(EXAMPLES, st.randoms(use_true_random=False))
@quick
def test_a_checksum_knows_no_order_but_counts_repeats(examples, random):
    assert checksum(random.sample(examples, len(examples))) == checksum(examples)
    assert checksum([*examples, A]) != checksum([*examples, A, A])


def test_the_same_task_has_the_same_fingerprint():
    assert fingerprint(toy()) == fingerprint(toy())


@pytest.mark.parametrize("split", ["train", "validation", "near", "far"])
@pytest.mark.parametrize("change", [{"source": ("z",)}, {"target": ("Z",)}, {"target": ()}], ids=str)
def test_a_fingerprint_changes_with_the_content_of_any_split(split, change):
    task = toy()
    task.parts[split] = [*task.parts[split][:-1], task.parts[split][-1]._replace(**change)]
    assert fingerprint(task) != fingerprint(toy())


@pytest.mark.parametrize(
    "other",
    [
        Toy(train=[B, A], validation=[C], near=[D], far=[E]),
        Toy(train=[A], validation=[B, C], near=[D], far=[E]),
        Toy(train=[A, B, B], validation=[C], near=[D], far=[E]),
        Toy(train=[A, B], validation=[C], near=[E], far=[D]),
        Toy(train=[A, B], near=[D], validation=[C], far=[E]),
        Toy(train=[A, B], validation=[C], near=[D], further=[E]),
        Toy(train=[A, B], validation=[C], near=[D]),
    ],
    ids=["order", "moved", "repeated", "swapped", "exchanged", "name", "dropped"],
)
def test_a_fingerprint_changes_with_order_and_names(other):
    assert fingerprint(other) != fingerprint(toy())


def test_a_fingerprint_changes_with_the_role_of_a_split(monkeypatch):
    before = fingerprint(toy())
    monkeypatch.setattr(Toy, "splits", lambda _: Splits("train", None, ("validation", "near", "far")))
    assert fingerprint(toy()) != before


# Export


def test_an_export_has_a_row_an_example_and_a_column_a_tag():
    exported = to_datasets(toy())
    assert list(exported) == ["train", "validation", "near", "far"]
    assert all(rows.column_names == ["source", "target", "length", "kind"] for rows in exported.values())
    assert exported["train"].to_list() == [
        {"source": "a aa", "target": "A ä", "length": 2, "kind": "of a"},
        {"source": "b bb", "target": "B ä", "length": 2, "kind": "of b"},
    ]


def test_an_export_of_scan_holds_all_its_examples():
    task = Scan(Scan.Config(split="simple_p1"))
    exported = to_datasets(task)
    assert {split: len(rows) for split, rows in exported.items()} == {
        split: len(task.examples(split)) for split in ("train", "validation", "test")
    }
    first = task.examples("train")[0]
    row = {"source": " ".join(first.source), "target": " ".join(first.target), **first.tags}
    assert exported["train"][0] == row


@pytest.mark.parametrize(("form", "reader"), [("jsonl", "json"), ("parquet", "parquet")])
def test_what_is_written_is_read_back_by_datasets(form, reader, tmp_path):
    written = write_datasets(toy(), tmp_path / "new" / "out", form)
    assert [path.name for path in written] == [f"{split}.{form}" for split in ("far", "near", "train", "validation")]
    back = datasets.load_dataset(
        reader, data_files={path.stem: str(path) for path in written}, cache_dir=str(tmp_path / "cache")
    )
    assert {split: rows.to_list() for split, rows in back.items()} == {
        split: rows.to_list() for split, rows in to_datasets(toy()).items()
    }
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["out"]


def test_jsonl_is_written_as_utf_8(tmp_path):
    write_datasets(toy(), tmp_path / "out", "jsonl")
    assert '"E ä"' in (tmp_path / "out" / "far.jsonl").read_text(encoding="utf-8")


def test_an_export_refuses_a_folder_that_is_there(tmp_path):
    (tmp_path / "mine").write_text("keep me")
    for out in (tmp_path, tmp_path / "mine"):
        with pytest.raises(UserError, match=f"{out} already exists"):
            write_datasets(toy(), out, "jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine").read_text() == "keep me"


def test_an_export_refuses_an_unknown_format(tmp_path):
    with pytest.raises(
        UserError, match="'parket'.*jsonl, parquet.*did you mean 'parquet'"
    ):
        write_datasets(toy(), tmp_path / "out", "parket")
    assert list(tmp_path.iterdir()) == []


def failing_after_the_first(monkeypatch, error):
    """`to_json` writes the first split, and half of the second."""
    write, calls = datasets.Dataset.to_json, []

    def to_json(self, path, **options):
        calls.append(path)
        write(self, path, **options)
        if len(calls) == 2:
            raise error

    monkeypatch.setattr(datasets.Dataset, "to_json", to_json)
    return calls


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    calls = failing_after_the_first(monkeypatch, OSError(28, "No space left on device"))
    with pytest.raises(UserError, match=r"can't write to .*out: No space left on device"):
        write_datasets(toy(), tmp_path / "out", "jsonl")
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing_half_written(tmp_path, monkeypatch):
    failing_after_the_first(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_datasets(toy(), tmp_path / "out", "jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_not_be_made_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"can't write to .*file/out: "):
        write_datasets(toy(), tmp_path / "file" / "out", "parquet")

"""SCAN: the grammar against a second interpreter and the official checksums, split schemes, validation, tags, files."""

import gc
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pytest

from tfstudy.errors import UserError
from tfstudy.tasks.base import as_lines, checksum, overlap, stable_hash
from tfstudy.tasks.scan import RULES, SHARES, Scan, _example, all_pairs, official

OFFICIAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "scan"  # part of the official repository
# Splits that are drawn by a rule and have checksums of the official files
REGENERATED = sorted(name for name in RULES.keys() & official()["train"].keys() if not name.startswith("simple"))


@lru_cache(maxsize=16)
def scan(split="simple", seed=0, validation=0.05):
    return Scan(Scan.Config(split=split, seed=seed, validation_fraction=validation))


@pytest.fixture(scope="module", autouse=True)
def without_garbage_collection():
    """Pause the garbage collector: examples form no cycles, but searching so many takes a third of the time."""
    gc.disable()
    yield
    scan.cache_clear()
    gc.enable()


def commands(split, seed=0):
    """The commands of train and of test before any validation is taken; quick, for no examples are built."""
    return RULES[split][1](seed)


def sources(task, split):
    return [example.source for example in task.examples(split)]


def test_all_pairs_are_the_official_ones_and_have_tags():
    assert checksum(_example(*pair) for pair in all_pairs().items()) == (
        "b3e98e121df6eabee1c885fb0b3d890e755af1e3d0807be31e28087b37051d84"
    )
    command = "look around right after jump left"
    expected = {"length": 10, "command_length": 6, "template": "around right + left", "connective": "after"}
    assert _example(command, all_pairs()[command]).tags == expected


def is_official(task, split):
    return all(checksum(task.examples(side)) == official()[side][split] for side in ("train", "test"))


@pytest.mark.parametrize("split", REGENERATED)
def test_regenerated_splits_are_the_official_ones(split):
    assert len(REGENERATED) == 11
    assert is_official(scan(split, validation=0), split)


def test_simple_has_the_official_sizes_every_pair_once_and_another_order_for_another_seed():
    (train, test), (_, other) = commands("simple"), commands("simple", seed=1)
    assert (len(train), len(test)) == (16728, 4182)
    assert set(train + test) == set(all_pairs())
    assert 0.15 < len({*test} & {*other}) / len(test) < 0.25  # a fifth of all pairs, as by chance
    for smaller, larger in pairwise([*(f"simple_p{share}" for share in SHARES), "simple"]):
        small, large = commands(smaller)[0], commands(larger)[0]
        assert large[: len(small)] == small
        assert len(large) > len(small)
    train, test = commands("length_30")
    lengths = [len(all_pairs()[command]) for command in (*train, *test)]
    assert max(lengths[: len(train)]) == 30 < min(lengths[len(train) :])
    assert len(lengths) == 20910


def test_validation_is_taken_from_train_and_only_from_there():
    whole, task = scan("addprim_jump", validation=0), scan("addprim_jump")
    assert Counter(sources(task, "train")) + Counter(sources(task, "validation")) == Counter(sources(whole, "train"))
    assert 0.04 < len(task.examples("validation")) / len(whole.examples("train")) < 0.05  # of these, a tenth are `jump`
    assert sources(scan("addprim_jump", seed=1), "validation") != sources(task, "validation")
    assert overlap(task) == {"validation": 0, "test": 0}, "a repeated line stays in train"
    assert whole.splits().all == ("train", "test")
    assert as_lines(task.examples("test")) == as_lines(whole.examples("test"))


FOLDERS = {"length": "length_split", "addprim_jump": "add_prim_split", "fewshot_num1_rep4": "few_shot_split"}


def read(root, split, validation=0.0):
    return Scan(Scan.Config(split=split, root=str(root), validation_fraction=validation))


def official_lines(examples):
    return [f"IN: {' '.join(e.source)} OUT: {' '.join(e.target)}" for e in examples]


def write_folder(root, split, train, test, end="\n"):
    for side, text in (("train", train), ("test", test)):
        path = root / FOLDERS[split] / f"tasks_{side}_{split}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(text) + end)


@pytest.mark.skipif(not OFFICIAL.is_dir(), reason="no copy of the official files beside the repository")
@pytest.mark.parametrize("split", ["simple", "mcd1"])
def test_official_files_are_read_whole(split):
    assert is_official(read(OFFICIAL, split), split)


@pytest.mark.parametrize(("split", "end"), [("length", ""), ("addprim_jump", " \r\n\n")])
def test_a_split_read_from_files_is_the_one_regenerated_whatever_its_last_lines(split, end, tmp_path):
    task = scan(split, validation=0)
    first, *train = official_lines(task.examples("train"))
    write_folder(tmp_path, split, ["\ufeff" + first, *train], official_lines(task.examples("test")), end=end)
    assert is_official(read(tmp_path, split), split)
    test = official_lines(task.examples("test"))[1:]
    for lines, message in ((test, r" \([\d,]+ lines\) is not the official data"), ([], " has no pairs")):
        write_folder(tmp_path, split, [first, *train], lines)
        with pytest.raises(UserError, match=rf"tasks_test_{split}.txt{message}"):
            read(tmp_path, split)


def test_the_examples_that_a_few_shot_split_adds_are_trained_on_and_never_held_out(tmp_path):
    added = "walk left and look around right"
    assert stable_hash("validation", 0, tuple(added.split())) < 0.05 * 2**64, "it would be in validation by its hash"
    base = scan("filler_num0", validation=0)
    lines = [*official_lines(base.examples("train")), f"IN: {added} OUT: {' '.join(all_pairs()[added])}"]
    write_folder(tmp_path, "fewshot_num1_rep4", lines, official_lines(base.examples("test")))
    task = read(tmp_path, "fewshot_num1_rep4", 0.05)
    assert [*map(" ".join, sources(task, "train"))].count(added) == 1
    assert sources(task, "validation") == sources(scan("filler_num0"), "validation")
    assert f"train has 1 commands that are not in train of filler_num0, such as '{added}'" in task.remarks()[0]


def test_a_split_scheme_that_is_not_there_is_refused_with_where_to_get_it(tmp_path):
    path = "few_shot_split/tasks_train_fewshot_num1024_rep5.txt"  # as in the official repository
    for root, split, message in (
        ("", "mcd1", r"'mcd1' .* data.root to a copy of \S+/SCAN at .* pull request 2"),
        (tmp_path, "fewshot_num1_rep9", r"'fewshot_num1_rep9'.*did you mean 'fewshot_num1_rep\d'"),
        (tmp_path, "fewshot_num1024_rep5", f"can't read {re.escape(str(tmp_path / path))}: No such file"),
    ):
        with pytest.raises(UserError, match=message):
            read(root, split)
    with pytest.raises(UserError, match=r"'validation'.* train, test"):
        scan(validation=0).examples("validation")

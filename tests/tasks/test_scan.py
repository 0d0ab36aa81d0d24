"""SCAN: the grammar against a second interpreter and the official checksums, split schemes, validation, tags, files."""

import gc
import hashlib
import re
from collections import Counter
from functools import lru_cache
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from tfstudy.errors import UserError
from tfstudy.tasks.base import as_lines, checksum, overlap
from tfstudy.tasks.scan import CUTOFFS, RULES, SHARES, Scan, all_pairs, official, tags

OFFICIAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "scan"  # part of the official repository
# Number of lines and first digits of the sha256 of the sorted lines `command<TAB>actions` of the official files.
SUMS = {
    "length": ((16990, "b449c787a4c2e816"), (3920, "e9bd0b06cb972a4a")),
    "addprim_jump": ((14670, "e60be8fa7fd88b42"), (7706, "af971a314cdeda91")),
    "addprim_turn_left": ((21890, "7a87330ea22b31b5"), (1208, "871b1eb91236d07b")),
    "template_jump_around_right": ((18528, "68c243923cfe25bc"), (1173, "1dc10f0027f064f4")),
    "template_right": ((15225, "26625d4787e54df2"), (4476, "f7559991d2f94613")),
    "template_opposite_right": ((15225, "91791f93dda8fe40"), (4476, "4403926c0eacc812")),
    "template_around_right": ((15225, "5d47ce1eb8a7f896"), (4476, "b64b5b28fc48416b")),
    "filler_num0": ((15225, "5d47ce1eb8a7f896"), (1173, "1dc10f0027f064f4")),
    "filler_num1": ((16290, "83610a2afbd8fd10"), (1173, "1dc10f0027f064f4")),
    "filler_num2": ((17391, "246567d75def2598"), (1173, "1dc10f0027f064f4")),
    "filler_num3": ((18528, "68c243923cfe25bc"), (1173, "1dc10f0027f064f4")),
}


@lru_cache(maxsize=16)
def scan(split="simple", seed=0, validation=0.05):
    return Scan(Scan.Config(split=split, seed=seed, validation_fraction=validation))


def sums(task):
    return tuple((len(task.examples(side)), checksum(task.examples(side))[:16]) for side in ("train", "test"))


@pytest.fixture(scope="module", autouse=True)
def without_garbage_collection():
    """Pause the garbage collector: examples form no cycles, but searching so many takes a third of the time."""
    gc.disable()
    yield
    scan.cache_clear()
    gc.enable()


COUNTS = {  # at most, and more than, so many actions
    22: (16990, 3920),
    24: (17326, 3584),
    25: (17774, 3136),
    26: (18286, 2624),
    27: (18734, 2176),
    28: (19182, 1728),
    30: (19758, 1152),
    32: (20206, 704),
    33: (20462, 448),
    36: (20526, 384),
    40: (20782, 128),
}


def commands(split, seed=0):
    """The commands of train and of test before any validation is taken; quick, for no examples are built."""
    return RULES[split][1](seed)


def sources(task, split):
    return [example.source for example in task.examples(split)]


# The grammar


def verb_actions(verb):
    return [] if verb == "turn" else [f"I_{verb.upper()}"]


def interpret(command):
    """Another reading of a command than the task's: it takes the string apart, from its loosest word inwards."""
    for connective, backwards in ((" and ", False), (" after ", True)):
        first, found, second = command.partition(connective)
        if found:
            a, b = interpret(first), interpret(second)
            return b + a if backwards else a + b
    head, _, last = command.rpartition(" ")
    if last in ("twice", "thrice"):
        return interpret(head) * {"twice": 2, "thrice": 3}[last]
    if last not in ("left", "right"):
        return verb_actions(command)
    turn = [f"I_TURN_{last.upper()}"]
    match head.split():
        case [verb, "opposite"]:
            return turn + turn + verb_actions(verb)
        case [verb, "around"]:
            return (turn + verb_actions(verb)) * 4
        case [verb]:
            return turn + verb_actions(verb)
    raise AssertionError(f"not a command: {command}")


def test_an_interpreter_agrees_on_every_pair():
    assert [command for command, actions in all_pairs().items() if list(actions) != interpret(command)] == []


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("jump", "I_JUMP"),
        ("turn left", "I_TURN_LEFT"),
        ("jump twice and walk left", "I_JUMP I_JUMP I_TURN_LEFT I_WALK"),
        ("run after turn opposite right thrice", "I_TURN_RIGHT " * 6 + "I_RUN"),
        ("look around right", "I_TURN_RIGHT I_LOOK " * 4),
    ],
)
def test_known_commands_have_their_known_actions(command, actions):
    assert list(all_pairs()[command]) == actions.split()


def test_all_pairs_are_the_official_ones():
    commands = sorted(all_pairs())
    pairs = [f"{command}\t{' '.join(all_pairs()[command])}" for command in commands]
    assert len(pairs) == 20910
    assert sha256(pairs) == "b3e98e121df6eabee1c885fb0b3d890e755af1e3d0807be31e28087b37051d84"
    assert sha256(commands) == "05ac20c5d4e1d9235be18930ea05c37a800cd8e0d9b71da1cdcd6e88757c32bf"


def sha256(text):
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


# Splits by rules


@pytest.mark.parametrize("split", SUMS)
def test_regenerated_splits_are_the_official_ones(split):
    task = scan(split, validation=0)
    assert sums(task) == SUMS[split]
    assert all(checksum(task.examples(side)) == official()[side][split] for side in ("train", "test"))


@pytest.mark.parametrize("cutoff", COUNTS)
def test_a_cutoff_trains_on_the_short_and_tests_on_the_long(cutoff):
    train, test = commands(f"length_{cutoff}")
    assert (len(train), len(test)) == COUNTS[cutoff]
    assert max(len(all_pairs()[command]) for command in train) <= cutoff
    assert min(len(all_pairs()[command]) for command in test) > cutoff


def test_the_length_split_tests_the_lengths_of_the_official_one():
    assert set(CUTOFFS) == set(COUNTS)
    found = Counter(len(all_pairs()[command]) for command in commands("length")[1])
    official = {24: 336, 25: 448, 26: 512, 27: 448, 28: 448, 30: 576, 32: 448, 33: 256, 36: 64, 40: 256, 48: 128}
    assert found == official


@pytest.mark.parametrize(
    ("split", "primitive", "copies"), [("addprim_jump", "jump", 1467), ("addprim_turn_left", "turn left", 2189)]
)
def test_a_primitive_is_a_tenth_of_the_train_lines_and_occurs_only_in_isolation(split, primitive, copies):
    train, _ = commands(split)
    containing = [command for command in train if f" {primitive} " in f" {command} "]
    assert containing == [primitive] * copies
    assert copies * 10 == len(train)


def test_the_seed_changes_the_validation_of_a_rule_but_not_its_test():
    a, b = scan("length"), scan("length", seed=1)
    assert as_lines(a.examples("test")) == as_lines(b.examples("test"))
    assert set(sources(a, "validation")) != set(sources(b, "validation"))


# The random splits


def test_simple_has_the_official_sizes_and_every_pair_once():
    train, test = commands("simple")
    assert (len(train), len(test)) == (16728, 4182)
    assert set(train + test) == set(all_pairs())


def test_each_share_of_simple_is_a_prefix_of_the_next():
    chain = [commands(split)[0] for split in [*(f"simple_p{share}" for share in SHARES), "simple"]]
    for small, large in pairwise(chain):
        assert large[: len(small)] == small
        assert len(large) > len(small)


def test_another_seed_draws_another_split():
    first, second = (set(commands("simple", seed)[1]) for seed in (0, 1))
    assert first != second
    assert 0.15 < len(first & second) / len(first) < 0.25  # a fifth of all pairs, as by chance


@pytest.mark.parametrize("split", ["simple", "length", "addprim_jump"])
def test_no_held_out_command_occurs_in_train(split):
    assert overlap(scan(split)) == {"validation": 0, "test": 0}
    assert not set(sources(scan(split), "validation")) & set(sources(scan(split), "test"))


# Validation


@pytest.mark.parametrize("split", ["simple", "addprim_jump"])
def test_validation_is_taken_from_train_and_only_from_there(split):
    whole, task = scan(split, validation=0), scan(split)
    assert Counter(sources(task, "train")) + Counter(sources(task, "validation")) == Counter(sources(whole, "train"))
    assert as_lines(task.examples("test")) == as_lines(whole.examples("test"))


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_validation_has_about_the_share_that_was_asked_for(share):
    task = scan(validation=share)
    assert abs(len(task.examples("validation")) / 16728 - share) < 0.01


def test_validation_leaves_repeated_lines_in_train():
    task = scan("addprim_jump", validation=0.5)
    assert sources(task, "train").count(("jump",)) == 1467
    assert ("jump",) not in sources(task, "validation")


def test_without_validation_train_has_all_examples():
    task = scan(validation=0)
    assert task.splits().validation is None
    assert task.splits().all == ("train", "test")
    with pytest.raises(UserError, match=r"'validation'.* train, test"):
        task.examples("validation")


@pytest.mark.parametrize("wrong", [{"validation_fraction": 0.6}, {"seed": -1}, {"splt": "simple"}])
def test_a_config_out_of_range_is_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Scan.Config(**wrong)


# Tags


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("jump", (1, 1, "plain", "none")),
        ("walk left twice", (4, 3, "left", "none")),
        ("turn opposite left and run", (3, 5, "opposite left", "and")),
        ("look around right after jump left", (10, 6, "around right + left", "after")),
        ("look left and jump left", (4, 5, "left", "and")),
        ("run right after run opposite right", (5, 6, "opposite right + right", "after")),
    ],
)
def test_tags_are_length_template_and_connective(command, expected):
    names = ("length", "command_length", "template", "connective")
    assert tags(tuple(command.split()), tuple(interpret(command))) == dict(zip(names, expected, strict=True))


def test_a_template_does_not_depend_on_the_order_of_its_patterns():
    patterns = [f"{how}{side}" for how in ("", "opposite ", "around ") for side in ("left", "right")]
    for a, b in combinations(patterns, 2):
        first, second = (tags(tuple(f"run {x} and run {y}".split()), ()) for x, y in ((a, b), (b, a)))
        assert first["template"] == second["template"] == " + ".join(sorted((a, b)))


# Official files

SUMS_OF_COPIES = {
    "simple": ((16728, "27b5523f423fb7d4"), (4182, "fbf1f87122f48f4d")),
    "mcd1": ((8365, "ae420eea242bf32f"), (1045, "737b91e16e838c39")),
}
FOLDERS = {
    "simple": "simple_split",
    "length": "length_split",
    "addprim_jump": "add_prim_split",
}


def read(root, split="simple", validation=0.0):
    return Scan(Scan.Config(split=split, root=str(root), validation_fraction=validation))


def official_lines(examples):
    return [f"IN: {' '.join(e.source)} OUT: {' '.join(e.target)}" for e in examples]


def write_folder(root, split, train=("IN: jump OUT: I_JUMP",), test=("IN: run OUT: I_RUN",), end="\n"):
    for side, text in (("train", train), ("test", test)):
        path = root / FOLDERS[split] / f"tasks_{side}_{split}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(text) + end)
    return root


# Official files


@pytest.mark.parametrize("split", SUMS_OF_COPIES)
def test_official_files_are_read_whole(split):
    if not OFFICIAL.is_dir():
        pytest.skip("no copy of the official files beside the repository")
    assert sums(read(OFFICIAL, split)) == SUMS_OF_COPIES[split]


@pytest.mark.parametrize(("split", "end"), [("length", ""), ("addprim_jump", "\n")])
def test_a_split_read_from_files_is_the_one_regenerated_with_or_without_a_last_newline(split, end, tmp_path):
    task = scan(split, validation=0)
    write_folder(tmp_path, split, *(official_lines(task.examples(side)) for side in ("train", "test")), end=end)
    assert sums(read(tmp_path, split)) == SUMS[split]


@pytest.mark.parametrize(
    "path",
    [
        "simple_split/tasks_train_simple.txt",
        "length_split/tasks_train_length.txt",
        "add_prim_split/tasks_train_addprim_turn_left.txt",
        "add_prim_split/with_additional_examples/tasks_train_addprim_complex_jump_num32_rep5.txt",
        "filler_split/tasks_train_filler_num3.txt",
        "few_shot_split/tasks_train_fewshot_num1024_rep5.txt",
        "mcd_split/tasks_train_mcd3.txt",
    ],
)
def test_a_split_is_read_from_the_path_of_the_official_repository(path, tmp_path):
    split = Path(path).stem.removeprefix("tasks_train_")
    with pytest.raises(UserError, match=re.escape(f"data.root: can't read {tmp_path / path}: No such file")):
        read(tmp_path, split)


@pytest.mark.parametrize(
    "line",
    [
        "jump I_JUMP",
        "IN: jump OUT:",
        "IN: OUT: I_JUMP",
        "",
        "IN:  jump OUT: I_JUMP",
        "IN: jump OUT: I_JUMP ",
        "jump\tI_JUMP",
    ],
)
def test_a_malformed_line_is_named_by_file_and_number(line, tmp_path):
    write_folder(tmp_path, "simple", test=["IN: run OUT: I_RUN", "IN: look OUT: I_LOOK", line, "IN: walk OUT: I_WALK"])
    with pytest.raises(UserError, match=r"tasks_test_simple\.txt:3: expected 'IN: <command> OUT: <actions>'"):
        read(tmp_path)


@pytest.mark.parametrize("line", ["IN: jump OUT: I_WALK", "IN: hop OUT: I_HOP", "IN: jump twice OUT: I_JUMP"])
def test_a_pair_that_is_not_of_the_grammar_is_named_by_file_and_number(line, tmp_path):
    write_folder(tmp_path, "simple", train=["IN: jump OUT: I_JUMP", line])
    with pytest.raises(UserError, match=r"tasks_train_simple\.txt:2: .* SCAN grammar"):
        read(tmp_path)


def test_a_file_that_is_not_utf_8_is_named_with_the_byte(tmp_path):
    write_folder(tmp_path, "simple")
    (tmp_path / "simple_split/tasks_train_simple.txt").write_bytes(b"IN: jump\xff OUT: I_JUMP\n")
    with pytest.raises(UserError, match=r"tasks_train_simple\.txt: byte 8 is not UTF-8"):
        read(tmp_path)


@pytest.mark.parametrize(("side", "count"), [("train", 14669), ("test", 7705)])
def test_a_split_that_lacks_a_line_is_refused(side, count, tmp_path):
    task = scan("addprim_jump", validation=0)
    sides = {name: official_lines(task.examples(name)) for name in ("train", "test")}
    sides[side].pop()
    write_folder(tmp_path, "addprim_jump", **sides)
    with pytest.raises(UserError, match=rf"'addprim_jump' \({side}, {count} lines\) is not the official"):
        read(tmp_path, "addprim_jump")


def test_our_random_split_is_not_accepted_as_the_official_simple(tmp_path):
    task = scan(validation=0)
    write_folder(tmp_path, "simple", *(official_lines(task.examples(side)) for side in ("train", "test")))
    with pytest.raises(UserError, match=r"'simple' \(train, 16728 lines\).* expected 27b5523f423f"):
        read(tmp_path)


# Unknown names


@pytest.mark.parametrize(
    ("split", "near"), [("lenght", "length"), ("addprim_jmp", "addprim_jump"), ("simple_p66", "simple_p64")]
)
def test_an_unknown_split_scheme_gets_the_nearest_name(split, near):
    with pytest.raises(UserError, match=rf"'{split}'.*'{near}'.* simple, "):
        scan(split)


def test_a_split_of_official_files_says_where_to_get_them():
    with pytest.raises(UserError, match=r"'mcd1' .* data.root to a copy of \S+/SCAN at .* pull request 2"):
        scan("mcd1")


def test_an_unknown_split_of_a_folder_gets_the_nearest_official_name(tmp_path):
    with pytest.raises(UserError, match=r"'fewshot_num1_rep9'.*did you mean 'fewshot_num1_rep\d'"):
        read(tmp_path, "fewshot_num1_rep9")

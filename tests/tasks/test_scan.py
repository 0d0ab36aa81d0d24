"""SCAN: the grammar, the official sums, the drawn splits, and reading official files."""

import gc
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from itertools import combinations, pairwise
from pathlib import Path

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.base import checksum, as_lines, overlap
from tasks.errors import UserError
from tasks.scan import CUTOFFS, RULES, SHARES, Scan, all_pairs, tags

HERE = Path(__file__).resolve().parents[2]
OFFICIAL = HERE.parent / "shared" / "data" / "scan"  # part of the official repository, where there is a copy

# Number of lines and sha256 of the sorted lines `command<TAB>actions` of the official files, repeated lines kept.
SUMS = {
    "length": (
        (16990, "b449c787a4c2e816cdb3b7fcf78e58176c17dac200a3f6304ae58d86a2bda3ab"),
        (3920, "e9bd0b06cb972a4a83fb4a6014c9d4755a6b5b2e6de74f905986a6d79f34af46"),
    ),
    "addprim_jump": (
        (14670, "e60be8fa7fd88b429d29e6feb660b5cee8c7b4fcfe686c54207f14e785c3bdb7"),
        (7706, "af971a314cdeda91bcbefc0a931252a88c56cefca71ba61b0b6f76d35471b64a"),
    ),
    "addprim_turn_left": (
        (21890, "7a87330ea22b31b5a44c33264f42ef8ebdf8bce06cd9a3f380475a366177dca5"),
        (1208, "871b1eb91236d07b343a61071fddcd9a37a50f508c0d20ac77d4887b5dec8bf0"),
    ),
    "template_jump_around_right": (
        (18528, "68c243923cfe25bc97605a91bd25d86d435a313dfc7ac8247707bd5963d552f6"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
    "template_right": (
        (15225, "26625d4787e54df29005222fae941b9ca34c8c0d9e25709132e1062c79d2c7f2"),
        (4476, "f7559991d2f94613ea2e5dce0767c37c4633d43d9efa2219f07d7afa42bcf215"),
    ),
    "template_opposite_right": (
        (15225, "91791f93dda8fe40e91e72350d48cbe4e67501ded356c71888cb874e9844c039"),
        (4476, "4403926c0eacc812de08054006fc510fb8c3441c94bcb720b4d49a917abcc5fa"),
    ),
    "template_around_right": (
        (15225, "5d47ce1eb8a7f896bdb21a3468a9cfa68854218f5370d8702a96b0fe582679f0"),
        (4476, "b64b5b28fc48416b34c038061234f09c0b92b5ebc2185e75ec18e9d002c71784"),
    ),
    "filler_num0": (
        (15225, "5d47ce1eb8a7f896bdb21a3468a9cfa68854218f5370d8702a96b0fe582679f0"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
    "filler_num1": (
        (16290, "83610a2afbd8fd10416fdcf21fb8db4fa034b629b8db3377b19a6f05c87d7e22"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
    "filler_num2": (
        (17391, "246567d75def2598683f8e2b7655450f52b0fc41e32838695b267f6086162d62"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
    "filler_num3": (
        (18528, "68c243923cfe25bc97605a91bd25d86d435a313dfc7ac8247707bd5963d552f6"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
}
SUMS_OF_COPIES = {
    "simple": (
        (16728, "27b5523f423fb7d40eea086b9ff65e37d71e8f31e9f29f599c610c813bfd4214"),
        (4182, "fbf1f87122f48f4df365ab576c136afb17555772a94c90eda642f63c32af640e"),
    ),
    "mcd1": (
        (8365, "ae420eea242bf32f38811eac00b4ae3e27eae2d4ff5caf44284e2702e738f9e7"),
        (1045, "737b91e16e838c396afb8a2b7329251f62a85470165868bcc2133e9c457ae094"),
    ),
}
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
FOLDERS = {
    "simple": "simple_split",
    "length": "length_split",
    "addprim_jump": "add_prim_split",
}


@pytest.fixture(scope="module", autouse=True)
def _without_collector():
    """Examples form no cycles, but there are so many that looking for some takes a third of the time."""
    gc.disable()
    yield
    scan.cache_clear()
    gc.enable()


@lru_cache(maxsize=16)
def scan(split="simple", seed=0, validation=0.05):
    return Scan(Scan.Config(split=split, seed=seed, validation_fraction=validation))


def commands(split, seed=0):
    """The commands of train and of test before any validation is taken; quick, for no examples are built."""
    return RULES[split][1](seed)


def sources(task, split):
    return [example.source for example in task.examples(split)]


def sums(task):
    return tuple((len(task.examples(side)), checksum(task.examples(side))) for side in ("train", "test"))


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


UNDIRECTED = st.sampled_from(["walk", "look", "run", "jump"])
DIRECTED = st.tuples(
    st.sampled_from(["walk", "look", "run", "jump", "turn"]),
    st.sampled_from(["", "opposite", "around"]),
    st.sampled_from(["left", "right"]),
).map(" ".join)
PHRASES = st.tuples(UNDIRECTED | DIRECTED, st.sampled_from(["", "twice", "thrice"])).map(" ".join)
COMMANDS = (PHRASES | st.tuples(PHRASES, st.sampled_from(["and", "after"]), PHRASES).map(" ".join)).map(
    lambda command: " ".join(command.split())
)


@given(COMMANDS)
@settings(deadline=None, database=None)
def test_every_command_that_the_grammar_builds_has_the_actions_that_an_interpreter_finds(command):
    assert list(all_pairs()[command]) == interpret(command)


def test_no_pair_is_read_otherwise_by_an_interpreter():
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


def test_outputs_have_1_to_48_actions_but_never_23():
    found = {len(actions) for actions in all_pairs().values()}
    assert (min(found), max(found)) == (1, 48)
    assert 23 not in found


def test_there_are_13_words_6_actions_and_at_most_9_words_a_command():
    assert len({word for command in all_pairs() for word in command.split()}) == 13
    assert len({action for actions in all_pairs().values() for action in actions}) == 6
    assert max(len(command.split()) for command in all_pairs()) == 9


# The splits that are rules


@pytest.mark.parametrize("split", SUMS)
def test_regenerated_splits_are_the_official_ones(split):
    assert sums(scan(split, validation=0)) == SUMS[split]


@pytest.mark.parametrize("cutoff", COUNTS)
def test_a_cutoff_trains_on_the_short_and_tests_on_the_long(cutoff):
    train, test = commands(f"length_{cutoff}")
    assert (len(train), len(test)) == COUNTS[cutoff]
    assert max(len(all_pairs()[command]) for command in train) <= cutoff
    assert min(len(all_pairs()[command]) for command in test) > cutoff


def test_every_cutoff_and_share_is_an_experiment():
    wanted = {f"length_{n}" for n in COUNTS} | {f"simple_p{n}" for n in (1, 2, 4, 8, 16, 32, 64)}
    assert wanted <= set(Scan.split_schemes())
    assert set(CUTOFFS) == set(COUNTS)


def test_length_is_the_cutoff_at_22():
    assert commands("length") == commands("length_22")


def test_the_length_split_tests_the_lengths_of_the_official_one():
    found = Counter(len(all_pairs()[command]) for command in commands("length")[1])
    official = {24: 336, 25: 448, 26: 512, 27: 448, 28: 448, 30: 576, 32: 448, 33: 256, 36: 64, 40: 256, 48: 128}
    assert found == official


@pytest.mark.parametrize(
    ("split", "primitive", "copies"), [("addprim_jump", "jump", 1467), ("addprim_turn_left", "turn left", 2189)]
)
def test_a_primitive_is_a_tenth_of_the_train_lines_and_nothing_else_of_it_is_there(split, primitive, copies):
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


@pytest.mark.parametrize(("share", "train", "test"), [(1, 209, 20701), (16, 3345, 17565), (64, 13382, 7528)])
def test_shares_of_simple_have_the_official_sizes(share, train, test):
    assert tuple(map(len, commands(f"simple_p{share}"))) == (train, test)


def test_each_share_of_simple_begins_the_next():
    chain = [commands(split)[0] for split in [*(f"simple_p{share}" for share in SHARES), "simple"]]
    for small, large in pairwise(chain):
        assert large[: len(small)] == small
        assert len(large) > len(small)


def test_the_same_seed_draws_the_same_split():
    assert sources(scan("simple_p1"), "train") == sources(Scan(Scan.Config(split="simple_p1")), "train")


def test_another_seed_draws_another_split():
    first, second = (set(commands("simple", seed)[1]) for seed in (0, 1))
    assert first != second
    assert 0.15 < len(first & second) / len(first) < 0.25  # a fifth of all pairs, as by chance


def test_simple_mixes_the_grammar():
    place = {command: number / 20910 for number, command in enumerate(all_pairs())}
    assert abs(sum(place[command] for command in commands("simple_p4")[0]) / 836 - 0.5) < 0.05


@pytest.mark.parametrize("split", ["simple", "length", "addprim_jump"])
def test_no_held_out_command_is_trained_on(split):
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


def test_validation_is_independent_of_the_order_that_simple_draws():
    assert 0.85 * 209 < len(scan("simple_p1").examples("train")) < 209
    assert set(sources(scan("simple_p1"), "validation")) < set(sources(scan(), "validation"))


def test_no_validation_leaves_everything_to_train():
    task = scan(validation=0)
    assert task.splits().validation is None
    assert task.splits().all == ("train", "test")
    with pytest.raises(UserError, match="'validation'.* train, test"):
        task.examples("validation")


@pytest.mark.parametrize("wrong", [{"validation": 0.6}, {"validation": -0.1}, {"seed": -1}, {"splt": "simple"}])
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
def test_tags_say_length_template_and_connective(command, expected):
    names = ("length", "command_length", "template", "connective")
    assert tags(tuple(command.split()), tuple(interpret(command))) == dict(zip(names, expected, strict=True))


def test_a_template_does_not_depend_on_the_order_of_its_patterns():
    patterns = [f"{how}{side}" for how in ("", "opposite ", "around ") for side in ("left", "right")]
    for a, b in combinations(patterns, 2):
        first, second = (tags(tuple(f"run {x} and run {y}".split()), ()) for x, y in ((a, b), (b, a)))
        assert first["template"] == second["template"] == " + ".join(sorted((a, b)))


def test_every_example_carries_its_own_tags():
    for example in scan("simple_p1").examples("validation"):
        assert example.tags == tags(example.source, example.target)


# Official files


@pytest.mark.parametrize("split", SUMS_OF_COPIES)
def test_official_files_are_read_whole(split):
    if not OFFICIAL.is_dir():
        pytest.skip("no copy of the official files beside the repository")
    assert sums(read(OFFICIAL, split)) == SUMS_OF_COPIES[split]


def test_official_files_give_a_validation_part_too():
    if not OFFICIAL.is_dir():
        pytest.skip("no copy of the official files beside the repository")
    task = read(OFFICIAL, "mcd1", validation=0.05)
    assert len(task.examples("train")) + len(task.examples("validation")) == 8365
    assert 300 < len(task.examples("validation")) < 530


def test_a_copy_of_simple_that_lacks_a_line_is_refused(tmp_path):
    if not OFFICIAL.is_dir():
        pytest.skip("no copy of the official files beside the repository")
    train, test = (
        (OFFICIAL / f"simple_split/tasks_{side}_simple.txt").read_text().splitlines() for side in ("train", "test")
    )
    with pytest.raises(UserError, match=r"'simple' \(test, 4181 lines\)"):
        read(write_folder(tmp_path, "simple", train, test[:-1]))


@pytest.mark.parametrize(("split", "end"), [("length", ""), ("addprim_jump", "\n")])
def test_a_split_read_from_files_is_the_one_regenerated_with_or_without_a_last_newline(split, end, tmp_path):
    task = scan(split, validation=0)
    write_folder(tmp_path, split, *(official_lines(task.examples(side)) for side in ("train", "test")), end=end)
    assert sums(read(tmp_path, split)) == SUMS[split]


@pytest.mark.parametrize(
    "path",
    [
        "simple_split/tasks_train_simple.txt",
        "simple_split/size_variations/tasks_train_simple_p64.txt",
        "length_split/tasks_train_length.txt",
        "add_prim_split/tasks_train_addprim_turn_left.txt",
        "add_prim_split/with_additional_examples/tasks_train_addprim_complex_jump_num32_rep5.txt",
        "template_split/tasks_train_template_jump_around_right.txt",
        "filler_split/tasks_train_filler_num3.txt",
        "few_shot_split/tasks_train_fewshot_num1024_rep5.txt",
        "mcd_split/tasks_train_mcd3.txt",
    ],
)
def test_a_split_is_sought_where_the_official_repository_has_it(path, tmp_path):
    split = Path(path).stem.removeprefix("tasks_train_")
    with pytest.raises(UserError, match=re.escape(f"data.root: can't read {tmp_path / path}: No such file")):
        read(tmp_path, split)


def test_a_folder_below_home_may_be_written_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserError, match=re.escape(f"can't read {tmp_path}/SCAN/length_split/")):
        read("~/SCAN", "length")


def test_a_missing_file_is_named(tmp_path):
    write_folder(tmp_path, "simple")
    (tmp_path / "simple_split/tasks_test_simple.txt").unlink()
    with pytest.raises(UserError, match=r"can't read .*simple_split/tasks_test_simple\.txt: No such file"):
        read(tmp_path)


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


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"tasks_train_simple\.txt:1: expected 'IN: <command>"):
        read(write_folder(tmp_path, "simple", train=()))


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
    with pytest.raises(
        UserError, match=rf"'addprim_jump' \({side}, {count} lines\) is not the official"
    ):
        read(tmp_path, "addprim_jump")


def test_a_random_split_of_our_own_does_not_pass_for_the_official_simple(tmp_path):
    task = scan(validation=0)
    write_folder(tmp_path, "simple", *(official_lines(task.examples(side)) for side in ("train", "test")))
    with pytest.raises(UserError, match=r"'simple' \(train, 16728 lines\).* expected 27b5523f423f"):
        read(tmp_path)


# Wrong names


@pytest.mark.parametrize(
    ("split", "near"), [("lenght", "length"), ("addprim_jmp", "addprim_jump"), ("simple_p66", "simple_p64")]
)
def test_an_unknown_split_is_met_with_the_nearest(split, near):
    with pytest.raises(UserError, match=rf"'{split}'.* simple, .*'{near}'"):
        scan(split)


def test_an_unknown_split_of_a_folder_is_met_with_the_nearest_official_one(tmp_path):
    with pytest.raises(UserError, match=r"'fewshot_num1_rep9'.*did you mean 'fewshot_num1_rep\d'"):
        read(tmp_path, "fewshot_num1_rep9")


def test_a_split_of_ours_that_has_no_official_file_is_not_read_from_a_folder(tmp_path):
    with pytest.raises(UserError, match="'length_40'"):
        read(tmp_path, "length_40")


def test_a_folder_and_a_hub_id_exclude_each_other(tmp_path):
    with pytest.raises(UserError, match=r"data\.root .* data\.hub"):
        Scan(Scan.Config(root=str(tmp_path), hub="scan"))


# The hub


def hub_rows(task, side):
    return [{"commands": " ".join(e.source), "actions": " ".join(e.target)} for e in task.examples(side)]


def from_hub(monkeypatch, answer, split="addprim_turn_left"):
    """The task as read from a hub on which `load_dataset` is `answer(id, config, side)`."""
    monkeypatch.setattr(datasets, "load_dataset", lambda hub, name, *, split, **_: answer(hub, name, split))
    return Scan(Scan.Config(split=split, hub="someone/scan", validation_fraction=0))


def test_rows_of_the_hub_are_the_official_split(monkeypatch):
    asked = []

    def answer(hub, name, side):
        asked.append((hub, name, side))
        return datasets.Dataset.from_list(hub_rows(scan(name, validation=0), side))

    task = from_hub(monkeypatch, answer)
    assert asked == [("someone/scan", "addprim_turn_left", side) for side in ("train", "test")]
    assert sums(task) == SUMS["addprim_turn_left"]
    assert task.examples("test") == scan("addprim_turn_left", validation=0).examples("test")


def test_rows_of_the_hub_that_are_not_the_official_data_are_refused(monkeypatch):
    with pytest.raises(
        UserError, match=r"someone/scan: 'addprim_turn_left' \(train, 21889 lines\) is not the official"
    ):
        from_hub(monkeypatch, lambda _, name, side: hub_rows(scan(name, validation=0), side)[1:])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionError("no route\nand much more"), "no route"),
        (RuntimeError("Dataset scripts are no longer supported"), "Dataset scripts are no longer supported"),
        (ValueError(), "ValueError"),
    ],
)
def test_whatever_fails_on_the_hub_is_one_line_with_a_way_out(monkeypatch, error, reason):
    def answer(*_):
        raise error

    with pytest.raises(UserError) as caught:
        from_hub(monkeypatch, answer, "simple")
    assert str(caught.value) == (
        f"data.hub: can't load 'someone/scan' (simple, train): {reason}. Offline, use data.root"
    )


def test_rows_without_the_columns_are_refused(monkeypatch):
    with pytest.raises(UserError, match=r"data\.hub: can't load 'someone/scan' .*commands"):
        from_hub(monkeypatch, lambda *_: [{"text": "jump"}])


def test_a_hub_that_is_out_of_reach_is_a_user_error(tmp_path):
    code = (
        "from tasks.scan import Scan\nfrom tasks.errors import UserError\n"
        "try:\n    Scan(Scan.Config(split='length', hub='scan'))\nexcept UserError as error:\n    print(error)\n"
    )
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, env=offline, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("data.hub: can't load 'scan' (length, train): ")
    assert done.stdout.endswith("Offline, use data.root\n")
    assert done.stdout.count("\n") == 1

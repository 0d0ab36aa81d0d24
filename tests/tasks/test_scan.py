"""SCAN: grammar, split schemes, validation and tags."""

import hashlib
from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.tasks.scan_examples import (
    SUMS,
    scan,
    sums,
    without_garbage_collection,  # noqa: F401
)
from tfstudy.errors import UserError
from tfstudy.tasks.base import as_lines, overlap
from tfstudy.tasks.scan import CUTOFFS, RULES, SHARES, Scan, all_pairs, tags

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


def test_outputs_have_1_to_48_actions_but_never_23():
    found = {len(actions) for actions in all_pairs().values()}
    assert (min(found), max(found)) == (1, 48)
    assert 23 not in found


def test_there_are_13_words_6_actions_and_at_most_9_words_a_command():
    assert len({word for command in all_pairs() for word in command.split()}) == 13
    assert len({action for actions in all_pairs().values() for action in actions}) == 6
    assert max(len(command.split()) for command in all_pairs()) == 9


# Splits by rules


@pytest.mark.parametrize("split", SUMS)
def test_regenerated_splits_are_the_official_ones(split):
    assert sums(scan(split, validation=0)) == SUMS[split]


@pytest.mark.parametrize("cutoff", COUNTS)
def test_a_cutoff_trains_on_the_short_and_tests_on_the_long(cutoff):
    train, test = commands(f"length_{cutoff}")
    assert (len(train), len(test)) == COUNTS[cutoff]
    assert max(len(all_pairs()[command]) for command in train) <= cutoff
    assert min(len(all_pairs()[command]) for command in test) > cutoff


def test_every_cutoff_and_share_is_a_split_scheme():
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


@pytest.mark.parametrize(("share", "train", "test"), [(1, 209, 20701), (16, 3345, 17565), (64, 13382, 7528)])
def test_shares_of_simple_have_the_official_sizes(share, train, test):
    assert tuple(map(len, commands(f"simple_p{share}"))) == (train, test)


def test_each_share_of_simple_is_a_prefix_of_the_next():
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


def test_validation_is_independent_of_the_order_that_simple_draws():
    assert 0.85 * 209 < len(scan("simple_p1").examples("train")) < 209
    assert set(sources(scan("simple_p1"), "validation")) < set(sources(scan(), "validation"))


def test_without_validation_train_has_all_examples():
    task = scan(validation=0)
    assert task.splits().validation is None
    assert task.splits().all == ("train", "test")
    with pytest.raises(UserError, match=r"'validation'.* train, test"):
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
def test_tags_are_length_template_and_connective(command, expected):
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

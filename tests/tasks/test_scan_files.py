"""SCAN read from the official files and from the hub, and names that do not exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import datasets
import pytest

from tests.tasks.scan_examples import (
    SUMS,
    scan,
    sums,
    without_garbage_collection,  # noqa: F401
)
from tfstudy.errors import UserError
from tfstudy.tasks.scan import Scan

HERE = Path(__file__).resolve().parents[2]
OFFICIAL = HERE.parent / "shared" / "data" / "scan"  # part of the official repository, where there is a copy

# Number of lines and sha256 of the sorted lines `command<TAB>actions` of the official files, repeated lines kept.

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
def test_a_split_is_read_from_the_path_of_the_official_repository(path, tmp_path):
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


def test_a_split_scheme_without_an_official_file_is_not_read_from_a_folder(tmp_path):
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
def test_any_error_of_the_hub_is_one_line_with_a_solution(monkeypatch, error, reason):
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


def test_an_unreachable_hub_is_a_user_error(tmp_path):
    code = (
        "from tfstudy.tasks.scan import Scan\nfrom tfstudy.errors import UserError\n"
        "try:\n    Scan(Scan.Config(split='length', hub='scan'))\nexcept UserError as error:\n    print(error)\n"
    )
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, env=offline, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("data.hub: can't load 'scan' (length, train): ")
    assert done.stdout.endswith("Offline, use data.root\n")
    assert done.stdout.count("\n") == 1

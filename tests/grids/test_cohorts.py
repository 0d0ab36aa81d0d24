"""Which runs can train together."""

import pytest

from tfstudy.config.resolve import resolve
from tfstudy.errors import UserError
from tfstudy.grids.cohorts import check_cohort, cohort_key, describe_groups, grouped

CONFIG = {"task": "copying", "arch": "transformer"}


def key(**sections) -> str:
    return cohort_key(resolve({**CONFIG, **sections}).model_dump(mode="json"))


@pytest.mark.parametrize(
    "sections",
    [
        {"seed": 3},
        {"train": {"learning_rate": 0.01}},
        {"model": {"dropout": 0.5}},
        {"model": {"word_dropout": 0.5}},
    ],
)
def test_seed_learning_rate_and_dropout_may_differ(sections):
    assert key(**sections) == key()


@pytest.mark.parametrize(
    "sections",
    [
        {"arch": "lstm"},
        {"data": {"split": "reverse"}},
        {"model": {"dim": 64}},
        {"train": {"steps": 7}},
        {"train": {"precision": "bf16-mixed"}},
    ],
)
def test_nothing_else_may_differ(sections):
    assert key(**sections) != key()


def test_compiled_runs_train_alone():
    assert key(train={"compile": True}) == ""


def test_groups_keep_the_order_of_their_first_run():
    assert grouped([1, 2, 3, 4, 5], ["b", "", "a", "b", ""]) == [[1, 4], [2], [3], [5]]


def test_one_line_describes_the_groups():
    assert describe_groups([6, 1, 4, 6, 1]) == "cohorts from 2 groups of 6 runs, 1 group of 4; 2 runs alone"
    assert describe_groups([3]) == "cohorts from 1 group of 3 runs"
    assert describe_groups([1]) == "no cohorts; 1 run alone"


@pytest.mark.parametrize(
    ("cohort", "launcher", "devices", "message"),
    [
        ("0", "local", 1, "must be auto or a number from 1 to 64, but is '0'"),
        ("four", "local", 1, "but is 'four'"),
        ("4", "slurm", 1, "--cohort needs --launcher local"),
        ("auto", "ray", 1, "--cohort needs --launcher local"),
        ("4", "local", 2, "--cohort needs --devices 1"),
    ],
)
def test_what_does_not_go_with_cohorts_is_refused(cohort, launcher, devices, message):
    with pytest.raises(UserError, match=message):
        check_cohort(cohort, launcher, devices)

"""Grids: which runs they have, in which order, and what is reported for an invalid one."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.errors import UserError
from tfstudy.grids.expand import expand
from tfstudy.grids.plan import plan
from tfstudy.grids.spec import (
    axis_values,
    grid_names,
    load_grid,
    parse_axes,
    parse_seeds,
    read_grid,
    with_axes,
    with_tier,
)

SORTING = {"base": {"task": "sorting", "data": {"train_examples": 200}}}


def runs(more: dict, smoke: bool = False) -> list[tuple]:
    return [(c.config.arch, c.config.data.split, c.config.seed) for c in expand({**SORTING, **more}, smoke)]


def test_every_combination_is_a_run_and_seeds_are_innermost():
    grid = {"axes": {"data.split": ["symbols", "numbers"], "arch": ["lstm", "cnn"]}, "seeds": "0-1"}
    assert runs(grid) == [
        (arch, split, seed) for split in ("symbols", "numbers") for arch in ("lstm", "cnn") for seed in (0, 1)
    ]


def test_per_overrides_base_and_axes_override_per():
    grid = {
        "base": {"task": "sorting", "train": {"learning_rate": 1e-3, "warmup_steps": 7}},
        "axes": {"arch": ["lstm", "cnn"], "train.learning_rate": [5e-3]},
        "per": [{"when": {"arch": "lstm"}, "base": {"train": {"learning_rate": 2e-3, "warmup_steps": 9}}}],
    }
    lstm, cnn = (run.config.train for run in expand(grid))
    assert (lstm.learning_rate, lstm.warmup_steps) == (5e-3, 9)
    assert (cnn.learning_rate, cnn.warmup_steps) == (5e-3, 7)


def test_an_axis_of_one_architecture_multiplies_only_its_runs():
    grid = {
        "axes": {"arch": ["lstm", "cnn"]},
        "per": [{"when": {"arch": "lstm"}, "axes": {"model.attention": ["additive", "general"]}}],
    }
    assert [arch for arch, *_ in runs(grid)] == ["lstm", "lstm", "cnn"]


def test_a_part_may_have_seeds_of_its_own_which_a_tier_and_the_command_line_replace():
    grid = {
        **SORTING,
        "axes": {"arch": ["lstm", "cnn"]},
        "per": [{"when": {"arch": "lstm"}, "seeds": "0-2"}],
        "seeds": 0,
        "tiers": {"quick": {"seeds": 1}, "small": {"axes": {"arch": ["lstm"]}}},
    }
    assert [(arch, seed) for arch, _, seed in runs(grid)] == [("lstm", 0), ("lstm", 1), ("lstm", 2), ("cnn", 0)]
    assert [seed for *_, seed in runs(with_tier(grid, "quick"))] == [1, 1]
    assert [seed for *_, seed in runs(with_tier(grid, "small"))] == [0, 1, 2]
    assert [seed for *_, seed in runs(with_axes(grid, {}, "7"))] == [7, 7]


def test_an_axis_may_hold_sections():
    grid = {"axes": {"data": [{"split": "symbols"}, {"split": "numbers", "train_examples": 300}]}}
    assert [(c.config.data.split, c.config.data.train_examples) for c in expand({**SORTING, **grid})] == [
        ("symbols", 200),
        ("numbers", 300),
    ]


def test_excluded_combinations_are_left_out():
    axes = {"data.split": ["symbols", "numbers"], "arch": ["lstm", "cnn"]}
    assert ("cnn", "numbers", 0) not in runs({"axes": axes, "exclude": [{"arch": "cnn", "data": {"split": "numbers"}}]})
    assert len(runs({"axes": axes, "exclude": [{"arch": ["cnn", "lstm"], "data.split": "numbers"}]})) == 2


def test_numbers_are_excluded_however_they_are_written():
    """YAML reads 1e-3 as text."""
    axes = {"train.learning_rate": ["1e-3", "2e-3"]}
    rest = expand({"base": {"task": "scan"}, "axes": axes, "exclude": [{"train.learning_rate": 0.001}]})
    assert [run.config.train.learning_rate for run in rest] == [0.002]


def test_equal_runs_are_one_run():
    assert runs({"axes": {"arch": ["lstm", "lstm"], "train.learning_rate": [1e-3, 0.001]}, "seeds": [0, 0]}) == [
        ("lstm", "symbols", 0)
    ]


def test_presets_can_be_an_axis_and_are_recorded():
    grid = {"base": {"task": "scan"}, "axes": {"arch": ["transformer"], "preset": ["default", "csordas-2021"]}}
    assert [run.preset for run in expand(grid)] == ["default", "csordas-2021"]


def test_a_tier_changes_the_grid():
    grid = {
        **SORTING,
        "seeds": "0-4",
        "axes": {"arch": ["lstm", "cnn"]},
        "tiers": {"quick": {"seeds": 0}, "full": None},
    }
    assert len(expand(with_tier(grid, "quick"))) == 2
    assert len(expand(with_tier(grid, "full"))) == len(expand(with_tier(grid, ""))) == 10
    with pytest.raises(UserError, match=r"'quik'.*did you mean 'quick'.*quick, full"):
        with_tier(grid, "quik")


def test_options_replace_axes():
    grid = {
        **SORTING,
        "axes": {"arch": ["lstm", "cnn"]},
        "per": [{"when": {"arch": "lstm"}, "axes": {"model.attention": ["additive", "general"]}}],
    }
    over = with_axes(grid, parse_axes(["model.attention=none", "arch=lstm"]), "3")
    assert [(c.config.model.attention, c.config.seed) for c in expand(over)] == [("none", 3)]


def test_smoke_runs_are_small_and_marked():
    [run] = expand({**SORTING}, smoke=True)
    assert (run.config.smoke, run.config.train.steps) == (True, 20)


def test_all_config_errors_are_reported_at_once_with_their_runs():
    grid = {
        "axes": {
            "task": ["sorting", "copying"],
            "arch": ["lstm", "cnn"],
            "train.step": [3],
            "train.warmup_steps": [-1, 10],
            "model.hidden": [8],
        }
    }
    with pytest.raises(UserError) as error:
        expand(grid)
    lines = str(error.value).splitlines()
    assert "unknown key 'train.step'; did you mean 'train.steps'?" in lines
    assert any(
        line.startswith("'train.warmup_steps'") and "train.warmup_steps=-1" in line and "3 more" in line
        for line in lines
    )
    assert any("'model.hidden'" in line and "arch=cnn" in line for line in lines)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"axis": {}}, "'axis'.*did you mean 'axes'"),
        ({"axes": {"arch": []}}, "has no runs"),
        ({"axes": {"arch": "lstm"}}, "axis 'arch' must be a list"),
        ({"axes": {"arch": ["lstm"]}, "exclude": [{"arch": "lstm"}]}, "has no runs"),
        ({"seeds": "0-x"}, "seeds must be .*0-4 or 0,1,5, but are '0-x'"),
        ({"seeds": "4-0"}, "seeds must be"),
        ({"per": [{"if": {}}]}, "'if'.* when, base, axes, seeds"),
        ({"per": [{"when": {}, "seeds": "0-x"}]}, "seeds must be .*0-4 or 0,1,5, but are '0-x'"),
        ({"base": {"task": "sortin"}}, "task 'sortin'.*did you mean 'sorting'"),
        ({"base": {}}, "a grid needs a task"),
        ({"base": ["task"]}, "'base' must be keys with values"),
        ({"axes": {"train.steps": {"from": 1}}}, "axis 'train.steps' must be a list or {from, to, step or count"),
        ({"axes": {"seed": {"from": 0, "to": 2**40}}}, "at most 1,000,000 runs"),
    ],
)
def test_bad_grids_are_refused(grid, message):
    with pytest.raises(UserError, match=message):
        expand({**SORTING, **grid})


def test_the_name_of_a_task_or_of_another_file_is_answered_with_what_to_type(tmp_path):
    with pytest.raises(UserError, match=r"tfstudy grid --task sorting$"):
        read_grid("sortin")
    (tmp_path / "grid.txt").touch()
    with pytest.raises(UserError, match=r"^the name of a grid file must end in \.yaml, but is "):
        read_grid(str(tmp_path / "grid.txt"))


def test_an_unknown_grid_is_answered_with_the_nearest_match():
    with pytest.raises(UserError, match=r"grid 'scam'.*did you mean 'scan'"):
        read_grid("scam")


GRIDS = [pytest.param(name, marks=pytest.mark.slow if name == "pcfg" else ()) for name in grid_names()]  # large data


@pytest.mark.parametrize("name", GRIDS)
def test_every_grid_of_the_project_expands_in_all_its_tiers(name):
    grid = read_grid(name)
    assert grid["about"]
    for tier in ("", *grid.get("tiers", {})):
        assert expand(with_tier(grid, tier))


@given(st.integers(0, 50), st.integers(0, 20))
def test_seeds_range_over_both_ends(first, more):
    assert parse_seeds(f"{first}-{first + more}") == list(range(first, first + more + 1))
    assert parse_seeds([first, f"{first}-{first + more}"]) == list(range(first, first + more + 1))


@given(st.integers(-5, 5), st.integers(0, 9), st.integers(1, 4))
def test_ranges_hold_both_ends_and_nothing_beyond(low, more, step):
    found = axis_values("x", {"from": low, "to": low + more, "step": step})
    assert found == list(range(low, low + more + 1, step))


@given(st.floats(1e-5, 1.0), st.floats(1.5, 1e4), st.integers(2, 9))
def test_a_log_range_has_equal_ratios(low, factor, count):
    found = axis_values("x", {"from": low, "to": low * factor, "count": count, "scale": "log"})
    ratios = [after / before for before, after in itertools.pairwise(found)]
    assert len(found) == count
    assert found[0] == pytest.approx(low, rel=1e-5)
    assert ratios == pytest.approx([factor ** (1 / (count - 1))] * (count - 1), rel=1e-4)


def test_commas_within_brackets_do_not_separate_values():
    assert parse_axes(["data.test_length=[[11, 15]]", "model.dim=16,32", "train.schedule=cosine"]) == {
        "data.test_length": [[[11, 15]]],
        "model.dim": [16, 32],
        "train.schedule": ["cosine"],
    }


def test_a_plan_has_the_folders_that_runs_use(tmp_path):
    from tfstudy.experiment import prepare
    from tfstudy.runs.writer import run_folder

    runs = expand({**SORTING, "axes": {"arch": ["lstm", "cnn"]}, "seeds": "0-1"}, smoke=True)
    for run in plan(runs, tmp_path, "study"):
        identity = prepare.prepare(run.config).identity
        assert run.path == run_folder(tmp_path, "study", run.config, identity)
        assert not run.finished
    assert not list(tmp_path.iterdir()), "a plan writes nothing"


def test_errors_of_model_and_data_together_are_reported_for_all_runs_at_once(tmp_path):
    axes = {"arch": ["transformer", "cnn"], "decode.max_length": [1]}
    with pytest.raises(UserError) as error:
        plan(expand({**SORTING, "axes": axes}), tmp_path, "study")
    assert "decode.max_length must be 0 or at least" in str(error.value)
    wrong = {"axes": {"arch": ["transformer"], "decode.max_length": [1, 2]}}
    with pytest.raises(UserError) as error:
        plan(expand({**SORTING, **wrong}), tmp_path, "study")
    assert len(str(error.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"axes": ["a"]}, "'axes' must be"),
        ({"per": {}}, ""),
        ({"per": {"when": {}}}, "'per' must be a list"),
        ({"tiers": ["quick"]}, "'tiers' must be"),
        ({"tiers": {"quick": 3}}, "'tiers.quick' must be"),
        ({"exclude": ["lstm"]}, "'exclude' must be"),
        ({"exclude": [{"modle.dim": 3}]}, "modle.dim"),
        ({"per": [{"when": {"arhc": "lstm"}}]}, "did you mean 'arch'?"),
    ],
)
def test_a_part_of_a_wrong_type_or_name_is_refused(part, message):
    grid = {**SORTING, "axes": {"arch": ["lstm", "cnn"]}, **part}
    if not message:
        assert len(expand(grid)) == 2
        return
    with pytest.raises(UserError) as error:
        expand(grid)
    assert message in str(error.value)


def test_single_seeds_can_be_excluded():
    grid = {**SORTING, "axes": {"arch": ["lstm", "cnn"]}, "seeds": "0-2", "exclude": [{"arch": "cnn", "seed": 1}]}
    assert [(run.config.arch, run.config.seed) for run in expand(grid)] == [
        *(("lstm", seed) for seed in (0, 1, 2)),
        *(("cnn", seed) for seed in (0, 2)),
    ]


def test_steps_of_a_range_are_the_numbers_that_one_would_write():
    assert axis_values("x", {"from": 0.1, "to": 0.3, "step": 0.1}) == [0.1, 0.2, 0.3]


def test_all_errors_of_a_grid_file_are_reported_at_once():
    with pytest.raises(UserError) as error:
        expand({"axis": {}, "base": ["task"], "per": [{"if": {}}], "exclude": [3]})
    lines = str(error.value).splitlines()
    assert len(lines) == 4
    assert all(any(word in line for line in lines) for word in ("'axes'", "'base'", "'if'", "'exclude'"))


def test_a_named_grid_takes_the_axes_and_seeds_of_the_command_line():
    grid = load_grid("smoke", axes={"arch": "lstm, cnn", "seed": "3"}, set_=["train.steps=5"])
    assert (grid["axes"]["arch"], grid["axes"]["train.steps"], grid["seeds"]) == (["lstm", "cnn"], [5], ["3"])


AXES = [
    ({"from": 1, "to": float("nan")}, "numbers from"),
    ({"from": 1, "to": float("inf")}, "numbers from"),
    ({"from": float("-inf"), "to": 1, "step": 1}, "numbers from"),
    ({"from": 0.0, "to": 1.0, "step": 1e-320}, "a step of at least 1e-30"),
    ({"from": 1e-320, "to": 1.0, "count": 3, "scale": "log"}, "from >= 1e-30"),
    ({"from": 1, "to": 2, "count": float("nan")}, "numbers from"),
    ({"from": 1, "to": 2, "count": 2.5}, "count of at least 2"),
    ({"from": 1, "to": 2, "count": 1e30}, "at most 1,000,000 runs, but this one has more than"),
    ({"from": 1, "to": 10**20}, "at most 1,000,000 runs, but this one has more than"),
    ({"from": 2, "to": 1}, "from <= to"),
    ({"from": 1, "to": 2, "count": 2, "step": 1}, "either a step or a count"),
    ({"from": True, "to": 2}, "range over numbers"),
]


@pytest.mark.parametrize(("axis", "message"), AXES, ids=range(len(AXES)))
def test_an_axis_of_impossible_numbers_is_refused(axis, message):
    with pytest.raises(UserError, match=message):
        axis_values("train.steps", axis)


@pytest.mark.parametrize(
    "axes",
    [
        {"data": [{"split": "length"}, {"split": "simple"}], "data.split": ["length"]},
        {"model": [3], "model.dim": [8, 16]},
        {"model.dim": [8, 16], "model": [3]},
    ],
)
def test_two_axes_that_set_the_same_key_are_refused(axes):
    with pytest.raises(UserError, match=r"axes '.*' and '.*' both set '(data.split|model.dim)'"):
        expand({"base": {"task": "scan"}, "axes": axes})


def test_two_axes_within_the_same_section_are_combined():
    axes = {"model": [{"layers": 1}, {"layers": 2}], "model.dim": [8, 16]}
    assert len(expand({"base": {"task": "scan", "arch": "lstm"}, "axes": axes})) == 4


@pytest.mark.parametrize("words", [("seed=3",), ("arch=cnn",), ("train.steps=1", "train.steps=2")])
def test_a_key_that_two_options_set_is_refused(words):
    with pytest.raises(UserError, match=r"contradict|given twice"):
        load_grid(None, axes={"seed": "1", "arch": "lstm"}, set_=words)


@pytest.mark.parametrize("seeds", [10**23, str(2**63), "0-99999999999999999999", "9" * 5000, "٣", "1-0", []])
def test_a_seed_that_no_run_can_have_is_refused(seeds):
    with pytest.raises(UserError, match=r"seeds must be numbers below 2\^63"):
        parse_seeds(seeds)

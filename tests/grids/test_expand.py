"""A grid's expansion is a pure function: which runs it has, in which order, and what is wrong with it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import UserError
from tfstudy.grids import expand as grid
from tfstudy.grids.expand import expand, plan, put_over, seeds, values

SORTING = {"base": {"task": "sorting", "data": {"examples": 200}}}


def runs(more: dict, smoke: bool = False) -> list[tuple]:
    return [(c.config.arch, c.config.data.split, c.config.seed) for c in expand({**SORTING, **more}, smoke)]


def test_every_combination_is_a_run_and_seeds_are_innermost():
    told = {"axes": {"data.split": ["symbols", "numbers"], "arch": ["lstm", "cnn"]}, "seeds": "0-1"}
    assert runs(told) == [
        (arch, split, seed) for split in ("symbols", "numbers") for arch in ("lstm", "cnn") for seed in (0, 1)
    ]


def test_base_is_below_per_and_per_is_below_axes():
    told = {
        "base": {"task": "sorting", "train": {"learning_rate": 1e-3, "warmup_steps": 7}},
        "axes": {"arch": ["lstm", "cnn"], "train.learning_rate": [5e-3]},
        "per": [{"when": {"arch": "lstm"}, "base": {"train": {"learning_rate": 2e-3, "warmup_steps": 9}}}],
    }
    lstm, cnn = (cell.config.train for cell in expand(told))
    assert (lstm.learning_rate, lstm.warmup_steps) == (5e-3, 9)
    assert (cnn.learning_rate, cnn.warmup_steps) == (5e-3, 7)


def test_an_axis_of_one_architecture_multiplies_its_runs_alone():
    told = {
        "axes": {"arch": ["lstm", "cnn"]},
        "per": [{"when": {"arch": "lstm"}, "axes": {"model.attention": ["additive", "general"]}}],
    }
    assert [arch for arch, *_ in runs(told)] == ["lstm", "lstm", "cnn"]


def test_an_axis_may_hold_sections():
    told = {"axes": {"data": [{"split": "symbols"}, {"split": "numbers", "examples": 300}]}}
    assert [(c.config.data.split, c.config.data.examples) for c in expand({**SORTING, **told})] == [
        ("symbols", 200),
        ("numbers", 300),
    ]


def test_what_is_excluded_is_no_run():
    axes = {"data.split": ["symbols", "numbers"], "arch": ["lstm", "cnn"]}
    assert ("cnn", "numbers", 0) not in runs({"axes": axes, "exclude": [{"arch": "cnn", "data": {"split": "numbers"}}]})
    assert len(runs({"axes": axes, "exclude": [{"arch": ["cnn", "lstm"], "data.split": "numbers"}]})) == 2


def test_a_run_told_twice_is_one_run():
    assert runs({"axes": {"arch": ["lstm", "lstm"], "train.learning_rate": [1e-3, 0.001]}, "seeds": [0, 0]}) == [
        ("lstm", "symbols", 0)
    ]


def test_presets_are_an_axis_and_are_kept():
    told = {"base": {"task": "scan"}, "axes": {"arch": ["transformer"], "preset": ["default", "csordas-2021"]}}
    assert [cell.preset for cell in expand(told)] == ["default", "csordas-2021"]


def test_a_tier_is_put_over_the_grid():
    told = {
        **SORTING,
        "seeds": "0-4",
        "axes": {"arch": ["lstm", "cnn"]},
        "tiers": {"quick": {"seeds": 0}, "full": None},
    }
    assert len(expand(grid.tier(told, "quick"))) == 2
    assert len(expand(grid.tier(told, "full"))) == len(expand(grid.tier(told, ""))) == 10
    with pytest.raises(UserError, match="'quik'.*quick, full.*did you mean 'quick'"):
        grid.tier(told, "quik")


def test_flags_take_the_place_of_axes():
    told = {
        **SORTING,
        "axes": {"arch": ["lstm", "cnn"]},
        "per": [{"when": {"arch": "lstm"}, "axes": {"model.attention": ["additive", "general"]}}],
    }
    over = put_over(told, grid.assigned(["model.attention=none", "arch=lstm"]), "3")
    assert [(c.config.model.attention, c.config.seed) for c in expand(over)] == [("none", 3)]


def test_smoke_runs_are_small_and_marked():
    [cell] = expand({**SORTING}, smoke=True)
    assert (cell.config.smoke, cell.config.train.steps) == (True, 20)


def test_all_mistakes_are_told_at_once_with_the_runs_that_make_them():
    told = {
        "axes": {
            "task": ["sorting", "copying"],
            "arch": ["lstm", "cnn"],
            "train.step": [3],
            "train.warmup_steps": [-1, 10],
            "model.hidden": [8],
        }
    }
    with pytest.raises(UserError) as error:
        expand(told)
    lines = str(error.value).splitlines()
    assert "unknown key 'train.step'; did you mean 'train.steps'?" in lines
    assert any(
        line.startswith("'train.warmup_steps'") and "train.warmup_steps=-1" in line and "3 more" in line
        for line in lines
    )
    assert any("'model.hidden'" in line and "arch=cnn" in line for line in lines)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"axis": {}}, "'axis'.*did you mean 'axes'"),
        ({"axes": {"arch": []}}, "has no runs"),
        ({"axes": {"arch": "lstm"}}, "axis 'arch' must be a list"),
        ({"axes": {"arch": ["lstm"]}, "exclude": [{"arch": "lstm"}]}, "has no runs"),
        ({"seeds": "0-x"}, "seeds must be such as 0-4 or 0,1,5, but are '0-x'"),
        ({"seeds": "4-0"}, "seeds must be"),
        ({"per": [{"if": {}}]}, "'if'.* when, base, axes"),
        ({"base": {"task": "sortin"}}, "task 'sortin'.*did you mean 'sorting'"),
        ({"base": {}}, "a grid must say its task"),
        ({"base": ["task"]}, "'base' must be keys with values"),
        ({"axes": {"train.steps": {"from": 1}}}, "axis 'train.steps' must be a list or {from, to, step or count"),
        ({"axes": {"seed": {"from": 0, "to": 2**40}}}, "at most 1,000,000 runs"),
    ],
)
def test_bad_grids_are_refused(told, message):
    with pytest.raises(UserError, match=message):
        expand({**SORTING, **told})


def test_a_grid_that_is_not_there_names_those_that_are():
    with pytest.raises(UserError, match=r"grid 'scam'.*did you mean 'scan'"):
        grid.read("scam")


@pytest.mark.parametrize("name", grid.names())
def test_every_grid_of_the_project_expands_in_all_its_tiers(name):
    told = grid.read(name)
    assert told["about"]
    for tier in ("", *told.get("tiers", {})):
        assert expand(grid.tier(told, tier))


@given(st.integers(0, 50), st.integers(0, 20))
def test_seeds_range_over_both_ends(first, more):
    assert seeds(f"{first}-{first + more}") == list(range(first, first + more + 1))
    assert seeds([first, f"{first}-{first + more}"]) == list(range(first, first + more + 1))


@given(st.integers(-5, 5), st.integers(0, 9), st.integers(1, 4))
def test_ranges_hold_both_ends_and_nothing_beyond(low, more, step):
    found = values("x", {"from": low, "to": low + more, "step": step})
    assert found == list(range(low, low + more + 1, step))


@given(st.floats(1e-5, 1.0), st.floats(1.5, 1e4), st.integers(2, 9))
def test_a_log_range_has_equal_ratios(low, factor, count):
    found = values("x", {"from": low, "to": low * factor, "count": count, "scale": "log"})
    ratios = [after / before for before, after in itertools.pairwise(found)]
    assert len(found) == count
    assert found[0] == pytest.approx(low, rel=1e-5)
    assert ratios == pytest.approx([factor ** (1 / (count - 1))] * (count - 1), rel=1e-4)


@given(st.dictionaries(st.sampled_from(["a", "b.c", "b.d", "e.f.g"]), st.integers(), min_size=1))
def test_flat_is_the_inverse_of_nested(point):
    assert grid.flat(grid.nested(point)) == point


def test_commas_within_brackets_are_no_axis():
    assert grid.assigned(["data.test_length=[[11, 15]]", "model.dim=16,32", "train.schedule=cosine"]) == {
        "data.test_length": [[[11, 15]]],
        "model.dim": [16, 32],
        "train.schedule": ["cosine"],
    }


def test_a_plan_has_the_folders_that_runs_choose_for_themselves(tmp_path):
    from tfstudy.experiment import prepare
    from tfstudy.runs.writer import run_folder

    cells = expand({**SORTING, "axes": {"arch": ["lstm", "cnn"]}, "seeds": "0-1"}, smoke=True)
    for cell, path in plan(cells, tmp_path, "study"):
        identity = prepare.prepare(cell.config).identity
        assert path == run_folder(tmp_path, "study", cell.config, identity)
    assert not list(tmp_path.iterdir()), "a plan writes nothing"


def test_what_only_data_and_model_together_forbid_is_told_for_all_runs_at_once(tmp_path):
    axes = {"arch": ["transformer", "cnn"], "model.max_positions": [5]}
    with pytest.raises(UserError) as error:
        plan(expand({**SORTING, "axes": axes}), tmp_path, "study")
    assert "model.max_positions must be at least" in str(error.value)
    wrong = {"axes": {"arch": ["transformer"], "decode.max_length": [1, 2]}}
    with pytest.raises(UserError) as error:
        plan(expand({**SORTING, **wrong}), tmp_path, "study")
    assert len(str(error.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("part", "said"),
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
def test_a_part_of_a_wrong_kind_or_name_is_refused(part, said):
    told = {**SORTING, "axes": {"arch": ["lstm", "cnn"]}, **part}
    if not said:
        assert len(expand(told)) == 2
        return
    with pytest.raises(UserError) as error:
        expand(told)
    assert said in str(error.value)


def test_seeds_can_be_left_out_by_name():
    told = {**SORTING, "axes": {"arch": ["lstm", "cnn"]}, "seeds": "0-2", "exclude": [{"arch": "cnn", "seed": 1}]}
    assert [(cell.config.arch, cell.config.seed) for cell in expand(told)] == [
        *(("lstm", seed) for seed in (0, 1, 2)),
        *(("cnn", seed) for seed in (0, 2)),
    ]


def test_steps_of_a_range_are_the_numbers_that_one_would_write():
    assert values("x", {"from": 0.1, "to": 0.3, "step": 0.1}) == [0.1, 0.2, 0.3]

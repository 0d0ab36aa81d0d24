"""Grids: which runs they have, in which order, in which folders, and what is reported for an invalid one."""

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy.cli.batches import preview_grid
from tfstudy.config.presets import presets
from tfstudy.errors import UserError
from tfstudy.experiment import prepare as preparing
from tfstudy.grids.expand import expand, plan
from tfstudy.grids.spec import grid_names, load_grid, parse_axes, parse_seeds, read_grid, with_axes, with_tier
from tfstudy.launchers import ExecutorSettings
from tfstudy.tasks.base import fingerprint

COPYING = {"base": {"task": "copying", "data": {"train_examples": 200}}}
ARCHS = {"arch": ["lstm", "cnn"]}


def runs(more: dict, smoke: bool = False) -> list[tuple]:
    return [(c.config.arch, c.config.data.split, c.config.seed) for c in expand({**COPYING, **more}, smoke)]


def test_every_combination_is_a_run_seeds_are_innermost_and_equal_runs_are_one():
    grid = {"axes": {"data.split": ["copy", "reverse"], **ARCHS}, "seeds": "0-1"}
    assert runs(grid) == [
        (arch, split, seed) for split in ("copy", "reverse") for arch in ("lstm", "cnn") for seed in (0, 1)
    ]
    equal = {"axes": {"arch": ["lstm", "lstm"], "train.learning_rate": [1e-3, 0.001]}, "seeds": [0, 0]}
    assert runs(equal) == [("lstm", "copy", 0)]
    [run] = expand(COPYING, smoke=True)
    assert (run.config.smoke, run.config.train.steps) == (True, 20)


def test_the_smoke_tier_of_every_grid_is_as_brief_as_any_smoke_run():
    tiers = [load_grid(name, "smoke") for name in grid_names() if "smoke" in read_grid(name)["tiers"]]
    for grid in tiers:
        if grid["base"].get("task") == "pairs":  # whose files are the user's
            grid["base"].setdefault("data", {}).setdefault("root", "files")
    assert max(run.config.train.steps for grid in tiers for run in expand(grid, smoke=True)) == 20
    with pytest.raises(UserError, match="'smoke' is no setting of runs"):
        expand({"base": {**COPYING["base"], "smoke": True}})


def test_per_overrides_base_axes_override_per_and_options_replace_an_axis_of_one_architecture():
    own = {"base": {"train": {"learning_rate": 2e-3, "warmup_steps": 9}}}
    own |= {"axes": {"model.attention": ["additive", "none"]}}
    grid = {
        "base": {"task": "sorting", "train": {"learning_rate": 1e-3, "warmup_steps": 7}},
        "axes": {**ARCHS, "train.learning_rate": [5e-3]},
        "per": [{"when": {"arch": "lstm"}, **own}],
    }
    found = [(c.config.arch, c.config.train.learning_rate, c.config.train.warmup_steps) for c in expand(grid)]
    assert found == [("lstm", 5e-3, 9), ("lstm", 5e-3, 9), ("cnn", 5e-3, 7)]
    over = with_axes(grid, parse_axes(["model.attention=none", "arch=lstm"]), "3")
    assert [(c.config.model.attention, c.config.seed) for c in expand(over)] == [("none", 3)]


def test_a_part_may_have_seeds_of_its_own_which_a_tier_and_the_command_line_replace():
    grid = {
        **COPYING,
        "axes": ARCHS,
        "per": [{"when": {"arch": "lstm"}, "seeds": "0-2"}],
        "seeds": 0,
        "tiers": {"quick": {"seeds": 1}, "small": {"axes": {"arch": ["lstm"]}}, "full": None},
    }
    assert [(arch, seed) for arch, _, seed in runs(grid)] == [("lstm", 0), ("lstm", 1), ("lstm", 2), ("cnn", 0)]
    assert [seed for *_, seed in runs(with_tier(grid, "quick"))] == [1, 1]
    assert [seed for *_, seed in runs(with_tier(grid, "small"))] == [0, 1, 2]
    assert runs(with_tier(grid, "full")) == runs(with_tier(grid, "")) == runs(grid)
    assert [seed for *_, seed in runs(with_axes(grid, {}, "7"))] == [7, 7]
    with pytest.raises(UserError, match=r"'quik'.*did you mean 'quick'.*quick, small, full"):
        with_tier(grid, "quik")


def test_an_axis_may_hold_sections_or_presets():
    grid = {"axes": {"data": [{"split": "copy"}, {"split": "reverse", "train_examples": 300}]}}
    found = [(c.config.data.split, c.config.data.train_examples) for c in expand({**COPYING, **grid})]
    assert found == [("copy", 200), ("reverse", 300)]
    axes = {"model": [{"layers": 1}, {"layers": 2}], "model.dim": [8, 16]}
    assert len(expand({"base": {"task": "scan", "arch": "lstm"}, "axes": axes})) == 4
    grid = {"base": {"task": "scan"}, "axes": {"arch": ["transformer"], "preset": ["default", "csordas-2021"]}}
    assert [run.preset for run in expand(grid)] == ["default", "csordas-2021"]


def test_a_key_of_a_part_may_be_excluded_when_the_command_line_takes_its_runs_away():
    part = {"when": {"arch": "lstm"}, "axes": {"model.attention": ["additive", "none"]}}
    grid = {**COPYING, "axes": ARCHS, "per": [part], "exclude": [{"arch": "lstm", "model.attention": "none"}]}
    assert [run.config.arch for run in expand(with_axes(grid, {"arch": ["cnn"]}))] == ["cnn"]


def test_excluded_combinations_are_left_out():
    axes = {"data.split": ["copy", "reverse"], **ARCHS, "train.learning_rate": [1e-3]}
    for exclude, left in (
        ({"arch": "cnn", "data": {"split": "reverse"}}, 9),
        ({"arch": ["cnn", "lstm"], "data.split": "reverse"}, 6),
        ({"arch": "cnn", "seed": 1}, 10),
    ):
        assert len(runs({"axes": axes, "exclude": [exclude], "seeds": "0-2"})) == left
    with pytest.raises(UserError, match="has no runs"):
        runs({"axes": axes, "exclude": [{"train.learning_rate": 0.001}]})


def test_a_named_grid_takes_the_axes_and_seeds_of_the_command_line():
    grid = load_grid("smoke", axes={"arch": "lstm, cnn", "seed": "3"}, set_=["train.steps=5"])
    assert (grid["axes"]["arch"], grid["axes"]["train.steps"], grid["seeds"]) == (["lstm", "cnn"], [5], ["3"])
    for words in (("seed=3",), ("arch=cnn",), ("train.steps=1", "train.steps=2")):
        with pytest.raises(UserError, match=r"contradict|given twice"):
            load_grid(None, axes={"seed": "1", "arch": "lstm"}, set_=words)
    assert parse_axes(["data.test_length=[[11, 15]]", "model.dim=16,32", "train.schedule=cosine"]) == {
        "data.test_length": [[[11, 15]]],
        "model.dim": [16, 32],
        "train.schedule": ["cosine"],
    }


@given(st.integers(0, 50), st.integers(0, 20))
def test_seeds_range_over_both_ends(first, more):
    assert parse_seeds(f"{first}-{first + more}") == list(range(first, first + more + 1))
    assert parse_seeds([first, f"{first}-{first + more}"]) == list(range(first, first + more + 1))
    for seeds in (10**23, str(2**63), "0-99999999999999999999", "9" * 5000, "٣", f"{first + 1}-{first}", []):
        with pytest.raises(UserError, match=r"seeds must be numbers below 2\^63"):
            parse_seeds(seeds)


SLOW = ["pcfg"]  # whose data are large


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_grid_of_the_project_expands_in_all_its_tiers(slow, tmp_path):
    for name in (name for name in grid_names() if (name in SLOW) == slow):
        grid = read_grid(name)
        assert grid["about"], name
        if "data.root=FOLDER" in grid["about"]:  # expanding does not read the files
            grid["base"]["data"]["root"] = str(tmp_path)
        for tier in ("", *grid.get("tiers", {})):
            assert expand(with_tier(grid, tier)), (name, tier)


def test_all_config_errors_are_reported_at_once_with_their_runs():
    axes = {**ARCHS, "train.step": [3], "train.warmup_steps": [-1, 10], "model.hidden": [8]}
    with pytest.raises(UserError) as error:
        expand({"axes": {"task": ["sorting", "copying"], **axes}})
    lines = str(error.value).splitlines()
    assert "unknown key 'train.step'; did you mean 'train.steps'?" in lines
    [warmup] = [line for line in lines if line.startswith("'train.warmup_steps'")]
    assert "train.warmup_steps=-1" in warmup
    assert "3 more" in warmup
    assert any("'model.hidden'" in line and "arch=cnn" in line for line in lines)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"axes": {"arch": []}}, "has no runs"),
        ({"axes": {"model": [3], "model.dim": [8, 16]}}, "axes 'model' and 'model.dim' both set 'model.dim'"),
        ({"exclude": [{"modle.dim": 3}]}, "modle.dim"),
        ({"seeds": "0-x"}, "seeds must be .*0-4 or 0,1,5, but are '0-x'"),
        ({"seeds": f"0-{2**40}"}, "at most 1,000,000 runs"),
        ({"per": [{"when": {"arhc": "lstm"}}]}, "did you mean 'arch'?"),
        ({"per": [{"when": {"arch": "lstm", "seed": 0}, "base": {"train": {"steps": 9}}}]}, "when: unknown key 'seed'"),
        ({"base": {"task": "sortin"}}, "task 'sortin'.*did you mean 'sorting'"),
        ({"base": {}}, "a grid needs a task"),
    ],
)
def test_a_bad_grid_is_refused(grid, message):
    with pytest.raises(UserError, match=message):
        expand({**COPYING, "axes": ARCHS, **grid})


def test_all_errors_of_a_grid_file_are_reported_at_once():
    with pytest.raises(UserError) as error:
        expand({"axis": {}, "base": ["task"], "per": [{"if": {}}], "exclude": [3]})
    lines = str(error.value).splitlines()
    assert len(lines) == 4
    assert all(any(word in line for line in lines) for word in ("'axes'", "'base'", "'per.if'", "'exclude.0'"))


def test_an_unknown_grid_is_answered_with_the_nearest_match_and_a_file_with_its_ending(tmp_path):
    with pytest.raises(UserError, match=r"grid 'scam'.*did you mean 'scan'"):
        read_grid("scam")
    (tmp_path / "grid.txt").touch()
    with pytest.raises(UserError, match=r"^the name of a grid file must end in \.yaml: unknown grid "):
        read_grid(str(tmp_path / "grid.txt"))


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (
            "exclude: [{arch: [lstm, lstmm]}]",
            "exclude: unknown value of arch 'lstmm'; did you mean 'lstm'?.*lstm, cnn, mingru",
        ),
        ("exclude: [{model.dropout: '0.1'}]", "value of model.dropout ''0.1''; did you mean '0.1'"),
        ("per: [{when: {data: {split: cpy}}, seeds: 1}]", "when: unknown value of data.split 'cpy'.*'copy'"),
        ("  large: {axis: {}}", "'tiers.large.axis'; did you mean 'tiers.large.axes'"),
        ("per: [{when: {arch: mingru, train.steps: 7}, seeds: 1}]", ""),  # of a tier, and of nobody as yet
    ],
)
def test_a_grid_file_with_a_value_that_selects_nothing_or_a_bad_tier_is_refused(selector, message, tmp_path):
    base = "base: {task: copying, data: {split: copy}}\naxes: {arch: [lstm, cnn], model.dropout: [0, 0.1]}\n"
    (tmp_path / "grid.yaml").write_text(f"{base}tiers:\n  small: {{axes: {{arch: [mingru]}}}}\n{selector}\n")
    with pytest.raises(UserError, match=message) if message else nullcontext():
        read_grid(str(tmp_path / "grid.yaml"))


BASE = {"task": "copying", "data": {"train_examples": 20, "eval_examples": 5}, "train": {"steps": 10}}


@pytest.fixture
def built(monkeypatch):
    """The classes of the models that are built, and `data` for each data set."""
    names: list[str] = []
    monkeypatch.setattr(preparing, "parameter_count", lambda model: names.append(type(model).__name__) or 1)
    monkeypatch.setattr("tfstudy.grids.expand.fingerprint", lambda task: names.append("data") or fingerprint(task))
    preparing._sizes.cache_clear()
    yield names
    preparing._sizes.cache_clear()


def test_a_model_is_built_once_for_each_shape_and_data_once_for_all(built, tmp_path):
    axes = {"train.learning_rate": [0.1, 0.01, 0.001], "model.dropout": [0.0, 0.1], "model.dim": [16, 32]}
    planned = plan(expand({"base": BASE, "axes": axes, "seeds": "0-2"}), tmp_path, "study")
    assert len(planned) == len({run.path for run in planned}) == 36
    assert sorted(built) == ["Transformer", "Transformer", "data"]
    built.clear()
    plan(expand({"base": BASE | {"arch": "cnn"}, "axes": {"data.test_length": ["21-30", "600-700"]}}), tmp_path, "s")
    assert sorted(built) == ["CNN", "CNN", "data", "data"], "data of another length are another shape"


def test_settings_that_do_not_fit_model_and_data_are_named_for_all_runs_at_once(built, tmp_path):
    base = BASE | {"model": {"positions": "learned"}}
    with pytest.raises(UserError) as error:
        plan(expand({"base": base, "axes": {"decode.max_length": [3, 4, 600]}, "seeds": "0-1"}), tmp_path, "study")
    lines = str(error.value).splitlines()
    assert [line.partition(" must")[0] for line in lines] == [*["decode.max_length"] * 2, "model.max_positions"]
    assert lines[2].endswith("at least 601 for decode.max_length=600, but is 512")
    assert built.count("Transformer") == 1


@pytest.mark.parametrize("name", ["deletang-2022", "dessi-2019"])  # what differs stands in the grid, or in its preset
def test_a_dry_run_of_a_grid_named_after_a_paper_lists_what_differs_from_it(name, tmp_path):
    notes = preview_grid(load_grid(name, "smoke"), tmp_path / "study", ExecutorSettings("auto"), smoke=True).notes
    grid = read_grid(name)
    expected = [f"unlike the paper, {key}: {text}" for key, text in grid["differences"].items()]
    for preset in filter(None, [grid["base"].get("preset"), *grid["axes"].get("preset", [])]):
        [tree] = presets("scan")[preset].values()
        expected += [f"unlike the paper ({preset}): {text}" for text in tree["differences"]]
    assert [note for note in notes if note.startswith("unlike the paper")] == expected
    assert expected

"""The files of claims: what they may say, and that what they name exists."""

import json
import re
import shlex
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import yaml
from typer.main import get_command

from tests.example_claims import SPLIT
from tfstudy import instruments, tasks
from tfstudy.analysis.claim_files import read_claims
from tfstudy.analysis.claims import matching, select_conditions
from tfstudy.analysis.stats import FEWEST_VALUES
from tfstudy.cli import app
from tfstudy.config.trees import flatten
from tfstudy.errors import UserError
from tfstudy.grids.expand import expand
from tfstudy.grids.spec import grid_names, load_grid
from tfstudy.performance.record import Setting, config_of, parse_request

ROOT = Path(__file__).parents[2]
ALL = read_claims()
OF_RUNS = [one for one in ALL.values() if one.statements and not one.statements[0].over]
OF_RATIOS = [one for one in ALL.values() if any(statement.over for statement in one.statements)]
WHOLE = {"test": "test", "tag": "", "value": ""}
RATIO = {"of": {"arch": "lstm", "work": "training", "length": 8, "width": 16, "batch": 2}, "over": {}, "above": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clam": 1}, "unknown field `clam`"),
        ({"id": "X"}, "Expected `str` matching regex"),
        ({"grid": ""}, "'statements' with 'grid' or 'run'"),
        ({"statements": []}, "or 'tested_by'"),
        ({"statements": [{"of": {"arch": "lstm"}, "above": 1, "below": 2}]}, "exactly one of"),
        ({"statements": [{"of": {}, "above": 1}]}, "a condition needs its arch"),
        ({"statements": [{"of": {"arch": "lstm", "archh": 1}, "above": 1}]}, "did you mean 'arch'?"),
        ({"statements": [{"of": {"arch": "lstm"}, "above": 1, "metric": "exact"}]}, "did you mean 'exact_match'?"),
        ({"statements": [{"of": {"arch": "lstm", "rows.head": 1}, "above": 1}]}, "unknown key of a condition"),
        ({"statements": [{"of": {"arch": "lstm"}, "above": 1, "study": "scan"}]}, "only beside 'published'"),
        ({"where": {}, "statements": [RATIO | {"over": {"lenght": 8}}]}, "did you mean 'length'?"),
    ],
)
def test_a_bad_claim_is_refused(tmp_path, change, message):
    good = {"id": "L1", "claim": "So.", "source": "me", "where": SPLIT, "grid": "scan"}
    good["statements"] = [{"of": {"arch": "lstm", "split": "length_26"}, "above": 1}]
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"claims": [good]}))
    assert list(read_claims(tmp_path)) == ["L1"]
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"claims": [good | change]}))
    with pytest.raises(UserError, match=re.escape(message)) as error:
        read_claims(tmp_path)
    assert "a.yaml, entry 1" in str(error.value)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"claims": [good, good]}))
    with pytest.raises(UserError, match="several claims have the id L1"):
        read_claims(tmp_path)


def test_no_claim_is_missing_and_the_tests_and_scripts_that_they_name_exist():
    assert list(ALL) == [f"L{number}" for number in range(1, 33)] + [f"P{number}" for number in range(1, 23)]
    assert {own.study for one in ALL.values() for own in one.statements} <= {"", *grid_names()}
    texts = " ".join(f"{one.tested_by} {one.untested} {one.run}" for one in ALL.values())
    tests = re.findall(r"(tests/[\w/]+\.py)::(\w+)", texts)
    assert [(file, test) for file, test in tests if f"def {test}(" not in (ROOT / file).read_text()] == []
    assert [script for script in re.findall(r"benchmarks/[\w/]+\.py", texts) if not (ROOT / script).exists()] == []


def runs_of(command):
    """Yield the grid, the config and the preset of each run that a command of a claim starts."""
    for words in (shlex.split(part) for part in command.split("&&")):
        if words[:2] == ["tfstudy", "measure"]:
            continue
        assert words[:2] == ["tfstudy", "grid"]
        options = get_command(app).commands["grid"].make_context("grid", words[2:]).params
        axes = {"task": options["task"], "data.split": options["split"], "arch": options["arch"]}
        axes |= {"preset": options["preset"], "seed": options["seed"]}
        name = options["name"]
        yield from ((name, *own) for own in expand(load_grid(name, "", axes, options["set_"] or [])))


def condition_of(grid, config, preset):
    corpus = Path(config.data.root).name if config.data.split == "corpus" else ""
    settings = flatten(config.model_dump(mode="json"))
    return SimpleNamespace(
        task=config.task, split=config.data.split, arch=config.arch, preset=preset, corpus=corpus, **WHOLE, settings={},
        config=settings, changed=settings, runs=[], diverged=[], study=grid, label=config.arch, key=str(config),
    )  # fmt: skip


def marked_slow(*grids):
    """The claims about runs; those of these grids, whose data take long, are slow."""
    return [pytest.param(one, id=one.id, marks=pytest.mark.slow if one.grid in grids else ()) for one in OF_RUNS]


@pytest.mark.parametrize("one", marked_slow("pcfg", "deletang-2022"))
def test_the_command_of_a_claim_runs_what_it_is_judged_by_on_test_sets_that_exist(one):
    by_seed = {}
    for grid, config, preset in runs_of(one.command):
        by_seed.setdefault(config.seed, []).append((config, condition_of(grid, config, preset)))
    for statement in one.statements:
        of, minus = statement.of | WHOLE, statement.minus and statement.minus | WHOLE
        if statement.published and of["task"] == "translation":  # the figure names a corpus and its test set
            of |= {"split": "corpus", "corpus": of["split"].removesuffix("_test2016").replace("_", "-")}
        asked = msgspec.structs.replace(statement, of=of, minus=minus)
        own = [[c for _, c in runs if statement.study in ("", c.study)] for runs in by_seed.values()]
        selected = [select_conditions(asked, conditions) for conditions in own]
        assert sum(len(found) == 1 + bool(minus) for found in selected) >= one.minimum_seeds, statement
        for side in (side for side in (statement.of, statement.minus) if side and side["test"] not in ("", "test")):
            every = [run for runs in by_seed.values() for run in runs if matching([run[1]], side | WHOLE)]
            data = {(config.task, json.dumps(config.data.model_dump())) for config, _ in every}
            assert all(side["test"] in names_of_test_sets(*own) for own in data), side
    if one.statements[0].metric in instruments.names():
        *_, grid, measure = (shlex.split(part) for part in one.command.split("&&"))
        assert grid[:2] == ["tfstudy", "grid"]
        assert measure == ["tfstudy", "measure", grid[2], one.statements[0].metric, "--save"]


@cache
def names_of_test_sets(task, data):
    return tasks.build(task, tasks.find(task).Config(**json.loads(data))).splits().tests


@pytest.mark.parametrize("one", OF_RATIOS, ids=lambda one: one.id)
def test_the_command_of_a_claim_about_ratios_measures_all_that_it_compares(one):
    program, name, *words = shlex.split(one.command)
    assert (program, name) == ("tfstudy", "bench")
    options = get_command(app).commands["bench"].make_context("bench", words).params
    names = ("arch", "vary", "measure", "variant", "settings", "repeats")
    request = parse_request(*(options[name] or [] for name in names))
    measured = {"tokens_per_second": request.timed, "memory": "memory" in request.measures}
    measured |= {"step_memory": measured["memory"]}
    for selector in (side for statement in one.statements for side in (statement.of, statement.over)):
        setting = Setting(*(selector[name] for name in Setting._fields))
        assert setting in request.settings()
        assert config_of(setting, request).model.dim == setting.width
        assert measured.get(selector["quantity"], "flops" in request.measures)
    assert request.repeats >= FEWEST_VALUES or not request.timed

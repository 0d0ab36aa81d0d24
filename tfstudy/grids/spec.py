"""The specification of a grid: a base configuration, axes to vary, seeds, exclusions and named sizes.

It is a mapping with the keys of `Grid`, such as a file of `configs/grids/`.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from tfstudy.config.resolve import overrides, resolve_section
from tfstudy.config.schema import Section
from tfstudy.config.trees import Tree, configs, flatten, merge, read_yaml
from tfstudy.errors import UserError, one_of, quoted

MAX_RUNS = 1_000_000
Axes = dict[str, list[Any]]


class Part(Section):
    """Settings, axes and seeds of the runs that match `when`: one of `per`."""

    when: Tree = Field({})  # {arch: [lstm, cnn], data.split: length}
    base: Tree = Field({})  # {train: {learning_rate: 2.0e-3}}
    axes: Axes = Field({})  # {model.attention: [additive, general]}
    seeds: Any = None


class Grid(Section):
    """The keys of a grid, with examples of their values."""

    about: Any = ""  # what the grid is for
    differences: Tree = Field({})  # from the paper that it is named after, by key; `--dry-run` lists them
    base: Tree = Field({})  # settings that all runs share: {task: scan, train: {steps: 3000}}
    axes: Axes = Field({})  # a run for each combination: {arch: [lstm, cnn], data: [{split: simple}, {split: length}]}
    per: list[Tree] = Field([])  # see `Part`
    exclude: list[Tree] = Field([])  # combinations to leave out: [{arch: cnn, data.split: length}]
    seeds: Any = None  # 0-4, or a number, or a list
    smoke: bool = False  # whether every run is a quick check, kept out of the results
    tiers: dict[str, Tree | None] = Field({})  # what `--tier NAME` changes: {quick: {seeds: 0}}


def grid_names() -> list[str]:
    """Return the names of the grids in `configs/grids/`."""
    return sorted(path.stem for path in (configs() / "grids").glob("*.yaml"))


def read_grid(name: str) -> Tree:
    """Return the grid of `configs/grids/` with this name, or the one in this YAML file."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        where = "the name of a grid file must end in .yaml" if os.path.isfile(name) else ""
        path = configs() / "grids" / f"{one_of('grid', name, grid_names(), where)}.yaml"
    grid = validated(read_yaml(path))
    _check_values(grid)
    return grid


def settings_of(part: Tree) -> Iterator[tuple[str, Any]]:
    """Yield each key with each value that the base and the axes of a grid, or of a part of one, give it."""
    for key, values in [*([key, [value]] for key, value in part["base"].items()), *part["axes"].items()]:
        for value in values:  # which may be a section
            yield from flatten({key: value}).items()


def alternatives(selector: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values that a `when` or `exclude` selects: of `{data: {split: length}}` `{data.split: [length]}`."""
    return {key: value if isinstance(value, list) else [value] for key, value in flatten(selector).items()}


def _check_values(grid: Tree) -> None:
    """`UserError` for a value of `when` or `exclude` that a grid never gives to a key that it sets."""
    given: dict[str, list[Any]] = {}
    tiers = [validated(tier or {}, f"tiers.{name}.") for name, tier in grid["tiers"].items()]
    for part in (grid, *grid["per"], *tiers):
        for key, value in settings_of(part):
            given.setdefault(key, []).append(value)
    selectors = [("exclude", tree) for tree in grid["exclude"]] + [("when", part["when"]) for part in grid["per"]]
    for where, selector in selectors:
        for key, values in alternatives(selector).items():
            for value in (value for value in values if value not in given.get(key, values)):
                texts = [yaml.safe_dump(one, default_flow_style=True) for one in (value, *given[key])]  # '1' is not 1
                name, *names = (text.partition("\n")[0] for text in texts)
                one_of(f"value of {key}", name, dict.fromkeys(names), where)


def load_grid(name: str | None, tier: str = "", axes: Mapping[str, str | None] = {}, set_: Sequence[str] = ()) -> Tree:
    """Return a named grid (without a name, an empty one) at a tier, with the axes and seeds of the command line.

    `axes` maps a key to its values, separated by commas; `set_` holds `KEY=VALUE,...`. Both replace the grid's axes.
    """
    lists = {key: [word.strip() for word in text.split(",")] for key, text in axes.items() if text is not None}
    assigned = parse_axes(set_)
    for key in lists.keys() & assigned.keys():
        raise UserError(f"--{key.removeprefix('data.')} and --set {key} contradict each other: give one of them")
    lists |= assigned
    seeds = lists.pop("seed", None)
    return with_axes(with_tier(read_grid(name) if name else {}, tier), lists, seeds)


def validated(grid: Tree, at: str = "") -> Tree:
    """Return the grid with all its keys; `UserError` with every part that has a wrong name or type, as of key `at`."""
    parts, problems, found = grid.get("per"), dict[str, None](), list[Tree]()
    own = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    kinds: list[tuple[type[Section], Tree, str]] = [(Grid, grid, at), *((Part, part, f"{at}per.") for part in own)]
    for kind, tree, prefix in kinds:
        try:
            given = {key: value for key, value in tree.items() if value is not None}
            found.append(resolve_section(kind, given, prefix).model_dump())
        except UserError as error:
            problems |= dict.fromkeys(str(error).splitlines())
    if problems:
        raise UserError("\n".join(problems))
    return found[0] | {"per": found[1:]}


def with_tier(grid: Tree, name: str) -> Tree:
    """Return the grid with the changes of one of its tiers; unchanged without a name."""
    grid = validated(grid)
    tiers = grid.pop("tiers")
    if name and not tiers:
        raise UserError(f"--tier {quoted(name, marks='')}: this grid has no tiers")
    changes = (tiers[one_of("tier", name, tiers)] if name else None) or {}
    return validated(merge(with_axes(grid, {}, changes.get("seeds")), changes))


def with_axes(grid: Tree, axes: Mapping[str, Sequence[Any]], seeds: Any = None) -> Tree:
    """Return the grid with these axes, and these seeds if given for all its runs, in place of its own."""
    grid = validated(grid)
    for section in (grid, *grid["per"]):
        section["axes"] = {key: values for key, values in section["axes"].items() if key not in axes}
        section["seeds"] = section["seeds"] if seeds is None else None
    return grid | {"axes": grid["axes"] | axes, "seeds": grid["seeds"] if seeds is None else seeds}


def parse_axes(assignments: Sequence[str]) -> dict[str, list[Any]]:
    """Return `["train.learning_rate=1e-3,3e-4"]` as axes; commas within brackets do not separate values."""
    axes: dict[str, list[Any]] = {}
    for text in assignments:
        overrides([text])  # rejects text that is not KEY=VALUE
        key, _, value = text.partition("=")
        if key in axes:
            raise UserError(f"--set {quoted(key)} is given twice; values are separated by commas")
        listed = flatten(overrides([f"{key}=[{value}]"]))[key]
        axes[key] = listed if isinstance(listed, list) and listed else [value]
    return axes


def parse_seeds(seeds: Any) -> list[int]:
    """Return the seeds of `3`, `0-4`, `0,2,5-7` or a list of these, each once."""
    parts = list(map(str, seeds)) if isinstance(seeds, list) else str(seeds).split(",")
    matched = [re.fullmatch(r"\s*(\d{1,19})(?:\s*-\s*(\d{1,19}))?\s*", part, re.ASCII) for part in parts]
    ranges = [(int(match[1]), int(match[2] or match[1])) for match in matched if match]
    if not parts or not all(matched) or not all(first <= last < 2**63 for first, last in ranges):
        raise UserError(
            f"seeds must be numbers below 2^63 and ranges such as 0-4 or 0,1,5, but are {quoted(','.join(parts))}"
        )
    check_size(sum(last - first + 1 for first, last in ranges))
    return list(dict.fromkeys(seed for first, last in ranges for seed in range(first, last + 1)))


def check_size(count: int) -> None:
    """`UserError` for more runs than a grid may have."""
    if count > MAX_RUNS:
        raise UserError(f"a grid has at most {MAX_RUNS:,} runs, but this one has {quoted(f'{count:,}', 20, '')}")

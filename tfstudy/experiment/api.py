"""The Python interface to running experiments: `tfstudy.run`. Imports torch only when a run starts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfstudy import models, tasks
from tfstudy.config.presets import preset as preset_of
from tfstudy.config.resolve import SMOKE, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge, unflatten
from tfstudy.experiment.options import DEFAULTS, RunOptions
from tfstudy.runs.files import results_folder

if TYPE_CHECKING:
    from tfstudy.experiment.run import Outcome


def run(
    task: str,
    *,
    arch: str | None = None,
    split: str | None = None,
    preset: str = "default",
    seed: int | None = None,
    smoke: bool = False,
    study: str = "runs",
    results: str | Path = "results",
    options: RunOptions = DEFAULTS,
    **settings: Any,
) -> "Outcome":
    """Train and evaluate one model as `tfstudy run` does.

    A finished run is not rerun: its result is returned. An interrupted run is resumed from its last checkpoint.

    Args:
        task: Task, such as `"scan"` (`tfstudy list tasks`).
        arch: Architecture: `"transformer"` (default), `"lstm"`, `"cnn"` or another one of `tfstudy list
            architectures`.
        split: Split scheme of the task, such as `"length"` (`tfstudy list splits`).
        preset: Preset of the config: `"default"`, that of a paper, or `"FILE:NAME"`.
        seed: Seed of weights, dropout and the order of examples; 0 by default.
        smoke: Whether to run a quick end-to-end check, which is kept out of the results.
        study: Study, a folder within the results.
        results: The folder of all results.
        options: How the run is executed: device, loggers, restart.
        **settings: Values of the config by their keys, such as `**{"train.steps": 500}`.

    Returns:
        The `path` of the run folder, the `result`, and whether this call `worked` or found a finished run.

    Raises:
        UserError: For unknown names and impossible values; nothing is written then.

    Examples:
        >>> run = tfstudy.run("scan", arch="lstm", split="length", seed=3, **{"train.steps": 500})
        >>> run.result.splits["test"].metrics["exact_match"]
        >>> tfstudy.load(run.path).predict("jump twice")
    """
    config = compose_config(task, arch, preset, unflatten(settings), split, seed, smoke)
    from tfstudy.experiment.run import run as run_config

    folder = results_folder(Path(results), config.smoke)
    outcome = run_config(config, folder, study, options._replace(preset=preset))
    assert outcome, "only processes of other ranks return no outcome"  # noqa: S101 - always true; for the type checker
    return outcome


def compose_config(
    task: str,
    arch: str | None,
    preset: str,
    given: Tree,
    split: str | None = None,
    seed: int | None = None,
    smoke: bool = False,
) -> RunConfig:
    """Return a config: defaults, then the preset, the smoke settings, the given values, and the named arguments.

    `UserError` for unknown names and impossible values.
    """
    arch = arch or str(given.get("arch", "transformer"))
    tasks.find(task)
    models.known(arch)
    named: Tree = {"task": task, "arch": arch}
    if split is not None:
        named["data"] = {"split": split}
    if seed is not None:
        named["seed"] = seed
    settings = preset_of(task, arch, preset)
    config = resolve(merge(settings, SMOKE if smoke else {}, given, named))
    if settings:
        return config
    from tfstudy.experiment.parameter_matching import with_reference_size

    return with_reference_size(config, given)

"""The Python interface to running experiments: `tfstudy.run`, and how a run is executed.

Imports torch only to look for devices and when a run starts.
"""

import platform
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfstudy import models, tasks
from tfstudy.config.presets import has_size, starting_point
from tfstudy.config.resolve import SMOKE, resolve
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, merge, unflatten
from tfstudy.errors import UserError, one_of
from tfstudy.runs.files import results_folder

if TYPE_CHECKING:
    import torch

    from tfstudy.experiment.run import Outcome

ACCELERATORS = ("auto", "cpu", "cuda")
EXECUTIONS = ("eager", "graphed")
LOGGERS = ("tensorboard", "wandb")  # also the names of their packages


class RunOptions(NamedTuple):
    """How a run is executed: plain values, the same from the command line to the job of a cluster.

    Only `accelerator` and `execution` affect the numbers, by rounding and by the draws of dropout.
    """

    preset: str = "default"  # the name of the preset that the config comes from, for the record
    restart: bool = False  # archive the existing run and start again
    accelerator: str = "auto"  # one of ACCELERATORS
    loggers: tuple[str, ...] = ()  # in addition to metrics.csv: see `tfstudy.training.loggers`
    tuning: bool = False  # a trial of a search: no test set is evaluated
    execution: str = "eager"  # of training steps, one of EXECUTIONS: see `tfstudy.training.graphs`


DEFAULTS = RunOptions()


def check_loggers(names: Sequence[str]) -> None:
    """`UserError` for an unknown logger, or one whose package is not installed. None is imported."""
    for name in names:
        one_of("logger", name, LOGGERS)
    if missing := [name for name in names if not find_spec(name)]:
        packages = " ".join(missing)
        raise UserError(f"logger {','.join(missing)}: not installed; to install it: pip install {packages}")


def device_of(options: RunOptions) -> "torch.device":
    """The device of this process, set to full float32; `UserError` if the requested one is missing."""
    import torch

    if options.accelerator == "gpu":  # as near to cpu as to cuda
        raise UserError(f"unknown accelerator 'gpu'; did you mean 'cuda'? Expected one of: {', '.join(ACCELERATORS)}")
    one_of("accelerator", options.accelerator, ACCELERATORS)
    count = torch.cuda.device_count() if options.accelerator != "cpu" else 0
    if options.accelerator == "cuda" and not count:
        raise UserError("accelerator cuda: torch finds no CUDA device on this machine")
    if count:  # by default convolutions round their inputs to ten bits, and products of matrices do not
        torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda" if count else "cpu")


def device_name(device: "torch.device") -> str:
    """The name of the processor, for the record."""
    import torch

    return torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()


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
        split: Split scheme of the task, such as `"length"` (`tfstudy list tasks TASK`).
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
    return run_config(config, folder, study, options._replace(preset=preset))


def compose_config(
    task: str,
    arch: str | None,
    preset: str,
    given: Tree,
    split: str | None = None,
    seed: int | None = None,
    smoke: bool = False,
) -> RunConfig:
    """Return a config: defaults, then `starting_point`, the smoke settings, the values and the named arguments.

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
    settings = starting_point(task, arch, preset)
    config = resolve(merge(settings, SMOKE if smoke else {}, given, named))
    config.decode.check_given(given.get("decode", {}))
    if has_size(settings):
        return config
    from tfstudy.experiment.parameter_matching import with_reference_size

    return with_reference_size(config, given)

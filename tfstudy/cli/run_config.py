"""The config that options ask for. The names of the task and architecture are checked before anything slow starts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tfstudy.config.schema import RunConfig

WHOLE = {"task", "arch", "data", "model", "train", "decode", "eval"}  # keys of a file that is a complete config


class Request(NamedTuple):
    """What the options ask for; the names of the task and the architecture are known to be valid."""

    task: str
    arch: str
    preset: str
    file: dict[str, Any]
    assigned: dict[str, Any]
    split: str | None
    seed: int | None
    smoke: bool
    path: Path | None = None  # of the file

    @property
    def used_preset(self) -> str:
        """The preset for the record: that of the run whose whole config the file is, or else the one asked for."""
        return recorded_preset(self.path, self.task) if self.is_whole else self.preset

    @property
    def is_whole(self) -> bool:
        """Whether the file is a complete config, such as that of a run, to which no preset adds anything."""
        return self.file.keys() >= WHOLE

    def resolve(self, online: bool = True) -> "RunConfig":
        """Return the config: defaults < preset < file < --set < the other options; a complete file has no preset.

        Data of the Hugging Face hub that the file names, which may be somebody else's, are only loaded with `online`.
        """
        from tfstudy.config.resolve import SMOKE, check_local, resolve
        from tfstudy.config.trees import merge
        from tfstudy.experiment.api import compose_config

        given = merge(self.file, self.assigned)
        if not self.is_whole:
            config = compose_config(self.task, self.arch, self.preset, given, self.split, self.seed, self.smoke)
        else:
            named: dict[str, Any] = {"data": {"split": self.split}} if self.split is not None else {}
            named |= {"seed": self.seed} if self.seed is not None else {}
            config = resolve(merge(self.file, SMOKE if self.smoke else {}, self.assigned, named))
        if self.file and not online and "hub" not in self.assigned.get("data", {}):
            check_local(config)
        return config


def requested(
    task: str | None,
    arch: str | None,
    *,
    preset: str,
    file: Path | None,
    assignments: list[str] | None,
    split: str | None,
    seed: int | None,
    smoke: bool,
) -> Request:
    """Return what the options ask for; `UserError` for unknown names and for options that contradict the file."""
    from tfstudy import models, tasks
    from tfstudy.config.files import read_yaml
    from tfstudy.config.resolve import overrides
    from tfstudy.errors import UserError, one_of
    from tfstudy.runs.reader import read_config

    if arch is not None:
        one_of("architecture", arch, models.names())
    tree: dict[str, Any] = {}
    if file:  # a config.yaml may be that of a packed run
        tree = read_config(file.parent) if file.name == "config.yaml" else read_yaml(file)
    assigned = overrides(assignments or [])
    if not (task or "task" in tree):
        names = ", ".join(tasks.names())
        raise UserError(f"which task? Name one, such as scan; expected one of: {names}")
    whole = tree.keys() >= WHOLE
    task = _agreed("task", "TASK is", task, tree, file)
    chosen = arch or assigned.get("arch")
    arch = _agreed("arch", "--arch is", chosen, tree, file) if whole else chosen or tree.get("arch", "transformer")
    tasks.find(task)
    one_of("architecture", str(arch), models.names())
    if whole and preset != "default":
        raise UserError(f"--preset {preset} does not apply to {file}, which has all settings; leave out one of the two")
    return Request(task, str(arch), preset, tree, assigned, split, seed, smoke, file)


def _agreed(key: str, option: str, given: str | None, tree: dict[str, Any], file: Path | None) -> str:
    """Return the name that an option and the file agree on, or that only one of them has."""
    from tfstudy.errors import UserError, quoted

    named = tree.get(key)
    if given and named is not None and str(named) != given:
        raise UserError(f"{option} {quoted(given)}, but {quoted(file, 300, '')} has {key}: {quoted(named)}")
    return given or str(named)


def recorded_preset(file: Path | None, task: str) -> str:
    """Return the preset of the run whose config this file is, if it is one of the task's; otherwise `default`."""
    from tfstudy.config.presets import presets
    from tfstudy.runs.reader import read_progress

    record = read_progress(file.parent) if file else None
    return record.preset if record and record.preset in presets(task) else "default"

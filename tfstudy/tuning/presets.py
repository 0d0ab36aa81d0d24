"""The result of a search: the best trial of each architecture, as a file of presets."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

import yaml

from tfstudy.config.presets import starting_point
from tfstudy.config.trees import Tree, merge
from tfstudy.errors import UserError, quoted
from tfstudy.plugins import command
from tfstudy.runs.files import archive_name, write_atomically
from tfstudy.tuning.search import Search, Trial, TrialScore
from tfstudy.tuning.space import SEARCHED

NAME = "tuned"  # of the preset


def preset_text(search: Search, best: Mapping[str, TrialScore]) -> str:
    """Return the best trials as the text of a preset file; the same trials give the same text."""
    presets = {arch: {"about": about(search, one), **sections(search, one.trial)} for arch, one in best.items()}
    use = command("run", search.request.task, "--preset", f"FILE:{NAME}")
    head = f"# Found by tfstudy tune. To use it: {use}\n"
    return head + yaml.safe_dump({NAME: presets}, sort_keys=False, allow_unicode=True, width=1000)


def about(search: Search, score: TrialScore) -> str:
    """Return how a preset was found: budget, space and score."""
    request, config = search.request, score.trial.config
    space = ", ".join(f"{key}={kind}" for key, kind in search.spaces[score.trial.arch].items())
    fixed = f" with {', '.join(request.assignments)}" if request.assignments else ""
    match = f", {request.parameters:,} parameters within 5 %" if request.parameters else ""
    return (
        f"trial {score.trial.number} of {request.trials} by random search, {config.train.steps} steps each, "
        f"1 seed ({request.seed}){match}; {space}; validation of {request.task} {config.data.split}{fixed}: "
        f"exact match {100 * score.exact_match:.1f} %, loss {score.loss:.4f}"
    )


def sections(search: Search, trial: Trial) -> Tree:
    """Return the settings of a trial that are not defaults; of data and evaluation only those of its preset."""
    request, full = search.request, trial.config.model_dump(mode="json")
    preset = starting_point(request.task, trial.arch, request.preset)
    tree = merge(
        {key: preset[key] for key in ("data", "eval") if key in preset},
        {key: trial.tree.get(key, {}) for key in SEARCHED},
        {"train": {"steps": trial.config.train.steps}},
    )
    return {section: {key: full[section][key] for key in keys} for section, keys in tree.items() if keys}


def check_out(path: Path) -> None:
    """`UserError` if no preset file can be written to this path; this writes nothing."""
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"--out must be a file, but {quoted(path)} is none")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"--out: can't write {quoted(path)}: {error.strerror}") from None


def save_presets(path: Path, text: str) -> Path | None:
    """Write the preset file. A different file of this name is archived as `NAME.old-1.yaml`, whose path is returned."""
    archived = None
    if path.exists() and path.read_bytes() != text.encode():
        archived = path.rename(archive_name(path))
    write_atomically(path, text.encode())
    return archived

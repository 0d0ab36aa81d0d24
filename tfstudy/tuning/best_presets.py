"""What a search found: the best trial of each architecture, as a file of presets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tfstudy.config.presets import preset as preset_of
from tfstudy.config.trees import merge
from tfstudy.config.trees import Tree
from tfstudy.runs.files import write_whole
from tfstudy.tuning.search import Score, Search, Trial
from tfstudy.tuning.space import SEARCHED

NAME = "tuned"  # of the preset


def best(scores: Sequence[Score]) -> dict[str, Score]:
    """Of each architecture the best trial; none of one whose trials all diverged."""
    out: dict[str, Score] = {}
    for each in sorted(scores, key=lambda each: each.order):
        if each.status == "finished":
            out.setdefault(each.trial.arch, each)
    return {arch: out[arch] for arch in dict.fromkeys(each.trial.arch for each in scores) if arch in out}


def preset_text(search: Search, chosen: Mapping[str, Score]) -> str:
    """The best trials as a file of presets; the same trials give the same text."""
    found = {
        NAME: {arch: {"about": about(search, each), **sections(search, each.trial)} for arch, each in chosen.items()}
    }
    head = f"# Found by tfstudy tune. To use it: tfstudy run {search.words.task} --preset FILE:{NAME}\n"
    return head + yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=1000)


def about(search: Search, chosen: Score) -> str:
    """How a preset was found: budget, space and score."""
    words, config = search.words, chosen.trial.config
    space = ", ".join(f"{key}={kind}" for key, kind in search.spaces[chosen.trial.arch].items())
    fixed = f" with {', '.join(words.assignments)}" if words.assignments else ""
    match = f", {words.parameters:,} parameters within 5 %" if words.parameters else ""
    return (
        f"trial {chosen.trial.number} of {words.trials} by {words.method} search, {config.train.steps} steps each, "
        f"1 seed ({words.seed}){match}; {space}; validation of {words.task} {config.data.split}{fixed}: "
        f"exact match {100 * chosen.exact_match:.1f} %, loss {chosen.loss:.4f}"
    )


def sections(search: Search, trial: Trial) -> Tree:
    """What a trial's config says beside the defaults; of data and evaluation only what its preset says."""
    full, kept = trial.config.model_dump(mode="json"), preset_of(search.words.task, trial.arch, search.words.preset)
    tree = merge(
        {key: kept[key] for key in ("data", "eval") if key in kept}, {key: trial.tree.get(key, {}) for key in SEARCHED}
    )
    tree = merge(tree, {"train": {"steps": trial.config.train.steps}})
    return {section: {key: full[section][key] for key in keys} for section, keys in tree.items() if keys}


def keep(path: Path, text: str) -> None:
    """Writes the file of presets; another one that is there is set aside as `NAME.old-1.yaml`."""
    if path.exists() and path.read_text(encoding="utf-8") != text:
        number = 1
        while (aside := path.with_name(f"{path.stem}.old-{number}{path.suffix}")).exists():
            number += 1
        path.rename(aside)
        print(f"set aside: {aside}")
    write_whole(path, text.encode())

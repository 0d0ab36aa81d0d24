"""What tfstudy has beside a published figure: runs of the same settings, similar runs, or nothing.

The settings are the same if the condition has the preset that the figure names, with none of its settings changed. All
other runs on the same test set are similar, and how they differ is said in words.
"""

from collections.abc import Iterable, Sequence
from textwrap import shorten
from typing import Any

from tfstudy import tasks
from tfstudy.analysis.condition_selection import closest, differing_settings, has_seeds, preset_distance
from tfstudy.analysis.conditions import Condition
from tfstudy.analysis.estimates import metric_by_seed
from tfstudy.analysis.published import Figure, figures_of
from tfstudy.analysis.settings_text import preset_text
from tfstudy.analysis.statements import DIVERGED, METRICS, minimum_seeds
from tfstudy.config.files import configs

ARCHITECTURES = {"transformer": "transformer", "lstm": "lstm", "cnn": "cnn", "gru": "lstm"}  # ours, the nearest
NETWORKS = {"srn": "a simple recurrent network", "other": "another kind of network"}  # that tfstudy lacks
METHODS = {
    "augmentation": "augmented training data",
    "meta_learning": "meta-learning",
    "pretraining": "pre-training",
    "scratchpad": "a scratchpad",
    "pruning": "pruning",
    "modified": "a modified network",
}
SHORT = 110  # characters of a paper's settings


def missing_counterpart(figure: Figure) -> str:
    """Return what tfstudy lacks to run the counterpart of a figure; empty if it lacks nothing."""
    if figure.method != "plain":
        return f"{METHODS[figure.method]}, which tfstudy lacks"
    if figure.family not in ARCHITECTURES:
        return f"{NETWORKS[figure.family]}, which tfstudy lacks"
    if figure.task not in tasks.names():
        return f"tfstudy has no task {figure.task}"
    if figure.split not in tasks.find(figure.task).split_schemes():
        return f"tfstudy has no split scheme {figure.split}"
    if not figure.test:
        return "tfstudy has no such test set"
    if figure.metric not in METRICS or figure.metric == DIVERGED:
        return f"tfstudy has no metric {figure.metric}"
    if figure.value_kind == "max":
        return "the highest of " + (f"{figure.n} settings" if figure.n else "several settings")
    return ""


def has_preset(figure: Figure) -> bool:
    """Whether a preset has the settings of a figure, so that runs can be compared with it."""
    return bool(figure.preset) and not missing_counterpart(figure)


def same_settings(figure: Figure, known: Iterable[Condition]) -> Condition | None:
    """Return the condition with the settings of a figure; of several, a current one with most seeds."""
    if not has_preset(figure):
        return None
    found = [c for c in known if _same_examples(figure, c) and c.arch == figure.family and has_settings(figure, c)]
    return closest(found, lambda condition: preset_distance(condition, {})) if found else None


def nearest(figure: Figure, known: Iterable[Condition]) -> Condition | None:
    """Return the condition on the same test set that is most like a figure's, with any settings; None without one."""
    found = [c for c in known if _same_examples(figure, c) and metric_by_seed(c, figure.metric)]
    return closest(found, lambda condition: _distance(figure, condition)) if found else None


def _same_examples(figure: Figure, condition: Condition) -> bool:
    ours = (condition.task, condition.split, condition.test_set, condition.tag, condition.arch)
    return ours == (figure.task, figure.split, figure.test, "", ARCHITECTURES.get(figure.family, ""))


def has_settings(figure: Figure, condition: Condition) -> bool:
    """Whether a condition has the preset that a figure names, with nothing changed."""
    return condition.preset == figure.preset and not differing_settings(condition)


def _distance(figure: Figure, condition: Condition) -> tuple[Any, ...]:
    """Order by attention, by preset (the figure's own, those of its paper, the default, others), then by seeds.

    A condition with enough seeds for a verdict comes first.
    """
    preset = condition.preset
    other_attention = _attention(figure, condition)
    of_paper = preset.startswith(figure.paper)
    return (
        other_attention != "",
        preset != figure.preset,
        not of_paper,
        preset != "default",
        not has_seeds(condition, minimum_seeds(condition.split)),
        *preset_distance(condition, {}),
    )


def unlike(figure: Figure, condition: Condition) -> str:
    """Return how a condition differs from a figure's settings: kind of network, attention, preset."""
    theirs = shorten(figure.settings, SHORT, placeholder=" ...")
    parts = [
        "an LSTM, theirs a GRU" if figure.family == "gru" else "",
        _attention(figure, condition),
        f"ours: {preset_text(condition)}; theirs: {theirs}",
    ]
    return "; ".join(filter(None, parts))


def _attention(figure: Figure, condition: Condition) -> str:
    """Return how the attention of a recurrent network differs from theirs; empty if it does not."""
    ours = condition.config.get("model.attention")
    if condition.arch != "lstm" or ours is None:
        return ""
    if figure.attention == "unknown":
        return "whether theirs has attention is unknown"
    if (ours == "none") == (figure.attention == "no"):
        return ""
    return "without attention, theirs with" if ours == "none" else "with attention, theirs without"


def command(paper: str) -> str:
    """Return the command that runs the counterparts of a paper's figures; empty if there are none.

    This is the grid of the paper, or else the presets with the settings of its figures, or else the default preset.
    """
    if (configs() / "grids" / f"{paper}.yaml").exists():
        return f"tfstudy grid {paper}"
    figures = [figure for figure in figures_of(paper) if not missing_counterpart(figure)]
    chosen = [figure for figure in figures if figure.preset] or figures
    if not chosen:
        return ""
    task, split = chosen[0].task, _names(figure.split for figure in chosen if figure.task == chosen[0].task)
    archs = _names(ARCHITECTURES[figure.family] for figure in chosen)
    presets = _names(figure.preset for figure in chosen if figure.preset)
    files = " --set data.root=DIR" if "mcd" in split else ""  # a copy of SCAN
    preset = f" --preset {presets}" if presets else ""
    return f"tfstudy grid --task {task} --split {split} --arch {archs}{preset} --seed 0-4{files}"


def _names(values: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(values))


def counts(figures: Sequence[Figure]) -> tuple[int, int, int]:
    """Return how many figures have a preset with their settings, only similar runs, and no counterpart."""
    missing = sum(bool(missing_counterpart(figure)) for figure in figures)
    own = sum(has_preset(figure) for figure in figures)
    return own, len(figures) - own - missing, missing

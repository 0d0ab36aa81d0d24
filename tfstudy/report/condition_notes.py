"""The notes under a table on its conditions: trivial systems, outputs that were cut, sizes, and other settings."""

from collections.abc import Callable, Mapping, Sequence

from tfstudy import models, tasks
from tfstudy.analysis.conditions import Condition, preset_beside_label, preset_text, test_set_label
from tfstudy.config.presets import preset
from tfstudy.runs.metrics import metric_name
from tfstudy.runs.schema import SplitScores

TOLERANCE = 0.05  # relative difference of parameters up to which sizes count as equal
MAX_LISTED = 5  # parts of a note
MAX_TEST_SETS = 8  # that have a note of their own on trivial systems
NOTABLE = 0.01  # share of outputs that were cut


def condition_notes(conditions: Sequence[Condition], metrics: Mapping[str, str]) -> list[str]:
    """Return the notes on these conditions, whose main metrics are given by their tasks."""
    return [
        *_trivial_notes(conditions, metrics),
        *_limit_note(conditions),
        *_size_note(conditions),
        *_preset_notes(conditions),
    ]


def _trivial_notes(conditions: Sequence[Condition], metrics: Mapping[str, str]) -> list[str]:
    """Return the metrics of trivial systems that the runs recorded, for each test set, or their ranges over many."""
    recorded = [
        (test_set_label(condition, conditions), scores.baselines)
        for condition in conditions
        for scores in condition.results_by_seed().values()
        if isinstance(scores, SplitScores) and scores.baselines
    ]
    labels = {label for label, _ in recorded}
    found: dict[str, dict[str, list[Mapping[str, float]]]] = {}
    for label, systems in recorded:
        place = label if len(labels) <= MAX_TEST_SETS else f"{len(labels)} test sets"
        for name, measured in systems.items():
            found.setdefault(place, {}).setdefault(name, []).append(measured)
    shown = list(dict.fromkeys([*metrics.values(), "chrf"]))
    return [
        f"trivial systems on {label}: "
        + "; ".join(f"{name} {_ranges(values, shown)}" for name, values in systems.items())
        for label, systems in found.items()
    ]


def _ranges(measured: Sequence[Mapping[str, float]], metrics: Sequence[str]) -> str:
    """Return each metric in percent, such as `BLEU 1.2, chrF 20.3`; a range where it differs between training sets."""
    texts = []
    for metric in metrics:
        if values := sorted({f"{100 * one[metric]:.1f}" for one in measured if metric in one}, key=float):
            texts.append(f"{metric_name(metric)} {'-'.join(dict.fromkeys((values[0], values[-1])))}")
    return ", ".join(texts)


def _limit_note(conditions: Sequence[Condition]) -> list[str]:
    """Return which conditions had more than 1 % of their outputs cut at the maximum number of tokens."""
    cut = []
    for condition in conditions:
        scores = [scores for scores in condition.results_by_seed().values() if isinstance(scores, SplitScores)]
        share = sum(one.limit_hits for one in scores) / max(1, sum(one.n for one in scores))
        if share > NOTABLE:
            cut.append(f"{test_set_label(condition, conditions)} {condition.label} {100 * share:.0f} %")
    return [f"outputs cut at the maximum number of tokens: {_first(cut)}"] if cut else []


def _size_note(conditions: Sequence[Condition]) -> list[str]:
    """Return a warning if conditions that are compared differ in parameters by more than 5 %."""
    sizes: dict[tuple[str, ...], dict[str, int]] = {}
    for condition in conditions:
        if condition.runs and (parameters := condition.runs[0].result.parameters):
            sizes.setdefault(condition.comparison_key, {})[condition.label] = parameters
    splits_by_difference: dict[str, dict[str, None]] = {}  # the difference, and the split schemes that it is on
    for (task, split, corpus, *_), by_label in sizes.items():
        small, large = min(by_label, key=lambda name: by_label[name]), max(by_label, key=lambda name: by_label[name])
        if by_label[large] > (1 + TOLERANCE) * by_label[small]:
            excess = by_label[large] / by_label[small] - 1
            text = f"{large} ({by_label[large]:,}) vs {small} ({by_label[small]:,}), +{100 * excess:.0f} %,"
            splits_by_difference.setdefault(text, {})[f"{task} {split} {corpus}".strip()] = None
    if not splits_by_difference:
        return []
    listed = [f"{text} on {', '.join(splits)}" for text, splits in splits_by_difference.items()]
    return [f"compared conditions differ in parameters by more than 5 %: {_first(listed)}"]


def _preset_notes(conditions: Sequence[Condition]) -> list[str]:
    """Return what differs from the presets as they are now (in older runs, or by other settings), and what has none.

    Of what differs, settings in the names of conditions are left out.
    """
    differing: dict[str, list[Condition]] = {}  # by their settings
    without: dict[str, list[Condition]] = {}
    for condition in conditions:
        plain = f"preset {condition.preset}"
        if _has_no_preset(condition):
            settings = preset_text(condition).removeprefix(plain).removeprefix(" with ") or "default settings"
            without.setdefault(settings, []).append(condition)
        elif (text := preset_beside_label(condition)) != plain:
            differing.setdefault(text, []).append(condition)
    beside = ", beside those in the names" if any(condition.settings for condition in conditions) else ""
    notes = (
        [f"settings that differ from today's presets{beside}: {_listed(differing, conditions)}"] if differing else []
    )
    if without:
        listed = _listed(without, conditions, named=True)
        scaled = "unless a width is set, the widths of such an architecture are scaled to the size of the Transformer"
        notes.append(f"no preset for this task: {listed}; {scaled}")
    return notes


def _has_no_preset(condition: Condition) -> bool:
    """Whether its architecture has no default preset for its task, as far as this installation knows both."""
    c = condition
    known = c.task in tasks.names() and c.arch in models.names()
    return known and c.preset == "default" and not preset(c.task, c.arch)


def _listed(
    by_settings: Mapping[str, Sequence[Condition]], conditions: Sequence[Condition], named: bool = False
) -> str:
    """Return the settings, each after the shortest names that distinguish its conditions from the others.

    With `named`, the names include at least the architecture.
    """
    place = _place(conditions)
    ways: list[Callable[[Condition], str]] = [
        lambda condition: condition.arch,
        lambda condition: f"{condition.arch} on {place(condition)}",
        lambda condition: condition.label,
        lambda condition: f"{condition.label} on {place(condition)}",
    ]
    if not named:
        ways = [lambda condition: "", place, *ways]
    settings = {id(condition): text for text, members in by_settings.items() for condition in members}

    def distinguishes(way: Callable[[Condition], str]) -> bool:
        return len({(way(c), settings.get(id(c))) for c in conditions}) == len({way(c) for c in conditions})

    way = next((way for way in ways if distinguishes(way)), ways[-1])
    names = {text: ", ".join(dict.fromkeys(map(way, members))) for text, members in by_settings.items()}
    return _first([f"{name}: {text}" if name else text for text, name in names.items()])


def _place(conditions: Sequence[Condition]) -> Callable[[Condition], str]:
    """Return a function that gives the task, split scheme and corpus of a condition, where they differ."""
    parts = ("task", "split", "corpus")
    differing = [part for part in parts if len({getattr(condition, part) for condition in conditions}) > 1]
    return lambda condition: " ".join(filter(None, (getattr(condition, part) for part in differing)))


def _first(listed: Sequence[str]) -> str:
    """Return the first of these texts, and how many more there are."""
    more = f"; and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return "; ".join(listed[:MAX_LISTED]) + more

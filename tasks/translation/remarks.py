"""What a run says of its corpus before it trains: pairs left out, faults, and what looks wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

from tfstudy.errors import path_of
from tfstudy.tasks.base import Example
from tfstudy.tasks.translation.config import TranslationConfig
from tfstudy.tasks.translation.corpus import Languages
from tfstudy.tasks.translation.folder import has_columns, named_languages
from tfstudy.tasks.translation.quality import FAULTS

COPIES = 0.1  # of a subset's pairs, from which a run warns
SHOWN = 6  # files in a line


def corpus_remarks(
    config: TranslationConfig, notes: Mapping[str, Any], max_subwords: int, examples: Mapping[str, Sequence[Example]]
) -> list[str]:
    """Return a line for each remark; `notes` and `examples`, by split, are those of the task."""
    lines = not_read(notes["unread"], config)
    if left_out := left_out_of_train(config, notes["left_out"], max_subwords):
        lines.append(f"left out of train: {left_out}")
    lines += [*_lost(config, notes["in_no_split"]), *_copies(config, examples["train"])]
    lines += mixed_forms_line(notes["mixed_forms"])
    if not config.clean and (found := _listed(notes["quality"]["train"], FAULTS)):
        lines.append(f"faults in all train pairs of the corpus: {found}; data.clean=true leaves them out")
    return [*lines, *_long_examples(examples, max_subwords), *_equal_sides(examples["train"]), *_contradictions(config)]


def not_read(files: Sequence[str], config: TranslationConfig | None = None) -> list[str]:
    """Return a line on files that look like those of a split, but were not read; no line without any."""
    if not files:
        return []
    named = config is None or (config.source_language and config.target_language)
    way_out = "" if named else "; parallel files need data.source_language and data.target_language"
    return [f"WARNING: not read: {', '.join(files[:SHOWN])}{', ...' * (len(files) > SHOWN)}{way_out}"]


def left_out_of_train(config: TranslationConfig, counts: Mapping[str, int], max_subwords: int = 0) -> str:
    """Return how many pairs were left out for each reason; empty if none were."""
    reasons = FAULTS | {
        "overlap": "with a side that is also in another split",
        "length": f"longer than data.max_train_length={config.max_train_length}",
        "subwords": f"with more than {max_subwords} subwords on a side (data.max_subwords)",
    }
    return _listed(counts, reasons)


def _listed(counts: Mapping[str, int], texts: Mapping[str, str]) -> str:
    return ", ".join(f"{number:,} {texts[name]}" for name, number in counts.items() if number and name in texts)


def _lost(config: TranslationConfig, counts: Mapping[str, int]) -> list[str]:
    """Return a line on held-out pairs in no split: too long for `validation` and for the longest test split."""
    lost = ", ".join(f"{number:,} of {split}" for split, number in counts.items())
    return [f"in no split because of data.max_train_length={config.max_train_length}: {lost}"] if lost else []


def _copies(config: TranslationConfig, train: Sequence[Example]) -> list[str]:
    """Return a line if a subset has many copies, which `shuffled` puts side by side."""
    if not config.train_pairs or config.clean:
        return []
    distinct = len({(example.source, example.target) for example in train})
    if distinct > (1 - COPIES) * len(train):
        return []
    return [
        f"WARNING: only {distinct:,} of the {len(train):,} train pairs differ, since all copies of a pair are in the "
        "same subsets; data.clean=true leaves copies out"
    ]


def mixed_forms_line(mixed: Mapping[str, float]) -> list[str]:
    """Return a warning if equal words of two splits are different text; `mixed` is that of `quality.mixed_forms`."""
    train_first = sorted(mixed.items(), key=lambda item: item[0] != "train")
    shares = ", ".join(f"{share:.0%} of {split}" for split, share in train_first)
    wrong = "accents are composed (Unicode NFC) in some splits only, so that equal words do not match"
    return [f"WARNING: {wrong}: not composed are {shares}"] if shares else []


def _long_examples(examples: Mapping[str, Sequence[Example]], max_subwords: int) -> list[str]:
    """Return a line on held-out pairs that would be left out of train for their length."""
    held_out = (example for name in examples if name != "train" for example in examples[name])
    sizes = [max(len(example.source), len(example.target)) for example in held_out]
    if not (long := [size for size in sizes if size > max_subwords]):
        return []
    what = f"{len(long):,} with more than {max_subwords} subwords on a side, at most {max(long):,}"
    return [f"kept in the other splits, though they take long to translate: {what}"]


def _equal_sides(train: Sequence[Example]) -> list[str]:
    """Return a warning for a side on which there is nothing to learn."""
    sides = {"sources": {e.source for e in train}, "targets": {e.target for e in train}}
    equal = [side for side, texts in sides.items() if len(train) > 1 and len(texts) == 1]
    return [f"WARNING: all {len(train):,} train {side} are the same" for side in equal]


def _contradictions(config: TranslationConfig) -> list[str]:
    """Return a warning if the name of a folder with two-column files says other languages than the config.

    A name such as `big-set`, with a longer word than codes usually are and neither of the languages, says nothing.
    """
    folder = path_of(config.root)
    if not config.root or not has_columns(folder):
        return []
    named = named_languages(folder)
    named = Languages(*reversed(named)) if config.reverse else named
    given = {"data.source_language": config.source_language, "data.target_language": config.target_language}
    if max(map(len, named)) > 2 and not {*given.values()} & {*named}:
        return []
    pairs = zip(given.items(), named, strict=True)
    wrong = " and ".join(f"{key}={code}" for (key, code), name in pairs if code and name not in ("", code))
    name = folder.resolve().name
    return [f"WARNING: by its name {name} is {named.source} to {named.target}, but {wrong}"] if wrong else []

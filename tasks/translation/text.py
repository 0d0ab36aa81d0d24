"""The text of a config's train and held-out splits, before it is split into tokens."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from tfstudy.errors import UserError, path_of
from tfstudy.tasks.translation import synthetic
from tfstudy.tasks.translation.config import TranslationConfig
from tfstudy.tasks.translation.corpus import Corpus, Languages, Sentences, lowercased, shuffled
from tfstudy.tasks.translation.filtering import Row, TrainFilter, in_no_split, overlaps, row_of, split_by_length
from tfstudy.tasks.translation.folder import from_folder
from tfstudy.tasks.translation.hub import from_hub
from tfstudy.tasks.translation.profile import OrderProfile
from tfstudy.tasks.translation.quality import check_empty, check_order, counts, faults, mixed_forms, without_faults
from tfstudy.tasks.translation.remarks import left_out_of_train

TRAIN_PAIRS = 5_000  # default number of train pairs of the embedded languages
EVAL_PAIRS = {"validation": 500, "test": 1_000}
KEPT_PAIRS = 100_000  # of the largest corpus that is kept
CONSTRUCTION_PAIRS = 300  # of each test split with a held-out construction


class Text(NamedTuple):
    """The pairs of all splits as text."""

    train: list[Row]  # all candidates; prefixes are nested subsets
    held_out: dict[str, list[Row]]
    notes: dict[str, Any]


class Checked(NamedTuple):
    """A corpus with its train pairs in random order, its faults by split, and those that were left out of train."""

    corpus: Corpus
    quality: dict[str, dict[str, int]]
    left_out: dict[str, int]
    mixed_forms: dict[str, float]


_LAST: dict[str, Checked] = {}  # the last corpus, by `_state`


def embedded(config: TranslationConfig) -> Text:
    """Draw pairs of the embedded languages."""
    number, limit = max(config.train_pairs or TRAIN_PAIRS, config.subword_pairs), config.max_train_length
    sizes = EVAL_PAIRS | dict.fromkeys(synthetic.TESTS, CONSTRUCTION_PAIRS)
    held_out = _embedded_held_out(config.seed, **sizes)
    train_filter = TrainFilter(held_out if config.drop_overlap else {}, limit)
    train = list(islice(train_filter.keep(_drawn("train", range(20 * number), config.seed)), number))
    if len(train) < number:
        raise UserError(f"data.max_train_length={limit} leaves {len(train):,} of {number:,} train pairs")
    longer = _drawn("test", range(EVAL_PAIRS["test"], 6 * EVAL_PAIRS["test"]), config.seed) if limit else ()
    return Text(train, split_by_length(held_out, limit, longer, train), {"left_out": train_filter.left_out})


@lru_cache(maxsize=1)  # a grid has runs on different amounts of the same pairs
def _embedded_held_out(seed: int, **sizes: int) -> Mapping[str, tuple[Row, ...]]:
    return MappingProxyType({name: tuple(_drawn(name, range(size), seed)) for name, size in sizes.items()})


def _drawn(split: str, numbers: Iterable[int], seed: int) -> Iterator[Row]:
    for pair in (synthetic.pair(split, number, seed) for number in numbers):
        yield row_of(Sentences(" ".join(pair.source), " ".join(pair.target)), pair.tags)


def from_corpus(config: TranslationConfig) -> Text:
    """Read a corpus from a folder or from the hub."""
    corpus, quality, faulty, mixed = _checked(config)  # is kept: nothing here may change it
    if config.lowercase:  # after shuffling, so that the subset is the same
        corpus = lowercased(corpus)
    held_out = {name: [row_of(pair) for pair in pairs] for name, pairs in corpus.splits.items() if name != "train"}
    train_filter = TrainFilter(held_out if config.drop_overlap else {}, config.max_train_length)
    candidates = [row_of(pair) for pair in corpus.splits["train"]]
    train = list(train_filter.keep(candidates))
    left_out = train_filter.left_out | faulty
    _check_size(config, len(train), len(candidates) + sum(faulty.values()), left_out)
    notes = {
        "commit": corpus.commit,
        "unread": list(corpus.unread),
        "quality": quality,
        "left_out": left_out,
        "overlap_of_corpus": overlaps(candidates, held_out),
        "mixed_forms": mixed,
    }
    splits = split_by_length(held_out, config.max_train_length, train_filter.longer, train)
    return Text(train, splits, notes | {"in_no_split": in_no_split(held_out, splits)})


def _checked(config: TranslationConfig) -> Checked:
    """Return a corpus, checked. The last one is kept, since a grid has runs on different amounts of the same corpus."""
    state = _state(config)
    if kept := _LAST.get(state):
        return kept
    checked = _read_and_checked(config)
    _LAST.clear()
    if state and len(checked.corpus.splits["train"]) <= KEPT_PAIRS:
        _LAST[state] = checked
    return checked


def _state(config: TranslationConfig) -> str:
    """Return what decides the result of `_checked`, files included; empty if that is not known, as of the hub."""
    try:
        root = path_of(config.root).absolute()
        files = [(path.name, (state := path.stat()).st_mtime_ns, state.st_size) for path in sorted(root.iterdir())]
    except OSError:
        return ""
    settings = (*_languages(config), config.reverse, config.subset_seed, config.clean)
    return repr((str(root), files, settings)) if config.root else ""


def _read_and_checked(config: TranslationConfig) -> Checked:
    corpus = _read(config)
    check_empty(corpus, config.clean)
    corpus.splits["train"] = shuffled(corpus.splits["train"], config.subset_seed)
    profile = OrderProfile(corpus.splits["train"])
    check_order(corpus, profile, _languages(config), config.reverse)
    found = {name: faults(pairs, profile) for name, pairs in corpus.splits.items()}
    quality = {name: counts(pairs, found[name]) for name, pairs in corpus.splits.items()}
    mixed = mixed_forms(corpus.splits)
    if not config.clean:
        return Checked(corpus, quality, {}, mixed)
    corpus.splits["train"], left_out = without_faults(corpus.splits["train"], found["train"])
    return Checked(corpus, quality, left_out, mixed)


def _languages(config: TranslationConfig) -> Languages:
    return Languages(config.source_language, config.target_language)


def _read(config: TranslationConfig) -> Corpus:
    if config.root:
        return from_folder(config.root, _languages(config), config.reverse)
    return from_hub(config.hub, config.hub_config, config.revision, _languages(config))


def _check_size(config: TranslationConfig, remaining: int, total: int, left_out: Mapping[str, int]) -> None:
    """Raise `UserError` if the corpus has fewer train pairs than the config asks for."""
    reasons = left_out_of_train(config, left_out) or "none"
    if not remaining:
        raise UserError(f"no train pair is left of {total:,} (left out: {reasons})")
    for key in ("train_pairs", "subword_pairs"):
        if remaining < getattr(config, key):
            raise UserError(
                f"data.{key} must be at most {remaining:,}, the number of train pairs (left out: {reasons}), "
                f"but is {getattr(config, key):,}"
            )

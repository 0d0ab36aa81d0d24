"""Low-resource translation: a synthetic language pair with held-out constructions, or a corpus of your own.

    Two dogs play .  ->  zwei Hunde spielen .

The two embedded languages need no files and no network; a corpus is read from a folder (`data.root`) or from the
Hugging Face hub (`data.hub`). Its text is used as it is; train pairs with a fault are counted, and left out with
`data.clean`. The metrics are BLEU (Papineni et al. 2002, P02-1040) and chrF (Popovic 2015, W15-3049) of the text,
computed by sacreBLEU (Post 2018, arXiv 1804.08771). Sennrich & Zhang (2019, P19-1021) show how much the settings
matter with few pairs.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from tfstudy.errors import UserError, quoted
from tfstudy.tasks.base import Example, TaskConfig, Tokens
from tfstudy.tasks.corpus import CorpusTask, FilesConfig
from tfstudy.tasks.reading import read_pairs
from tfstudy.tasks.scoring import UNSPACED_SCRIPTS, is_unspaced, mean, same_text, token_accuracy
from tfstudy.tasks.translation import synthetic
from tfstudy.tasks.translation.subwords import BYTES, Subwords, Words, learn

TRAIN_PAIRS = 5_000  # default number of train pairs of the embedded languages
EVAL_PAIRS = {"validation": 500, "test": 1_000}
CONSTRUCTION_PAIRS = 300  # of each test split with a held-out construction
# Test splits of longer sources: more than and at most this many times the maximum train length.
LONGER = {"test_1_5x": (1, 1.5), "test_2x": (1.5, 2), "test_4x": (2, 4)}
MAX_LONGER = 1_000  # pairs in each of these splits
MAX_SUBWORDS = 256  # or words, of a train source or target: one much longer pair would set the cost of a batch
MAX_EVALUATED = 32 * MAX_SUBWORDS  # of a held-out sentence
SIZES = ((1_500, 1_000), (7_500, 2_000), (15_000, 4_000), (10**8, 8_000))  # most pairs, and the number of subwords
PRESETS = ((40_000, "small"), (200_000, "medium"))  # the most target tokens in train that each is meant for
CHINESE = ("zh", "zho", "cmn", "yue")  # codes; sacreBLEU has a tokenizer of its own for it
SAMPLE = 100  # train pairs whose script decides whether words are separated by spaces
MAX_RATIO = 9  # of the two sides' lengths in words
# Faults that `clean-corpus-n.perl` of Moses (Koehn et al. 2007, P07-2045) and OpusFilter (Aulamo et al. 2020) remove,
# without those that guess a language. The first fault of a pair counts.
FAULTS = {
    "empty_side": "with an empty side",
    "length_ratio": "with an extreme length ratio",
    "identical_sides": "with identical sides",
    "duplicate": "that occurred before",
}
LEFT_OUT = FAULTS | {  # reasons to leave a pair out of train
    "overlap": "with a source that is also in another split",
    "overlap_target": "with a target that is also in another split",
    "length": "longer than data.max_train_length",
    "subwords": f"with more than {MAX_SUBWORDS} subwords or words on a side",
}


class TranslationConfig(FilesConfig):
    """Settings of the task `translation` (section `data`)."""

    split: str = "embedded"
    target_language: str = Field("", description="code of the target language; selects the tokenizer of BLEU")
    train_pairs: int = Field(
        0, ge=0, le=10**8, description="number of train pairs; 0: all of a corpus, or 5,000 of the embedded languages"
    )
    clean: bool = Field(
        False,
        description="leave out train pairs with a fault: an empty side, one side with over 9 times the words of the "
        "other (Moses), equal sides, a duplicate",
    )
    max_train_length: int = Field(
        0, ge=0, description="maximum source words in training; longer pairs become test splits; 0: no limit"
    )
    tokens: Literal["subwords", "words"] = Field(
        "subwords",
        description="subwords; or words, which white space separates (tokenised text); those that occur once on their "
        "side of train are unknown",
    )
    subword_vocab_size: int = Field(
        -1, ge=-1, description="maximum number of subwords; -1: chosen by the number of train pairs"
    )


CORPUS_ONLY = (*FilesConfig.__annotations__, "target_language", "clean")  # no effect on the embedded languages


class Pair(NamedTuple):
    """A sentence and its translation, with the tags of the example; `length` is the number of source words."""

    source: str
    target: str
    tags: Mapping[str, Any]


# All pairs to train on, of which prefixes are nested subsets; the held-out splits; notes for the record
Text = tuple[list[Pair], dict[str, list[Pair]], dict[str, Any]]


class Translation(CorpusTask):
    """Map a sentence to its translation; `tokens` and `text` convert between text and subwords or words."""

    schemes: ClassVar = {
        "embedded": "two synthetic languages with tests of held-out constructions; needs no files and no network",
        "corpus": "a corpus from data.root or data.hub, or a random subset of it",
    }

    Config = TranslationConfig
    config: TranslationConfig
    _tokenizer: Subwords | Words

    def __init__(self, config: TranslationConfig) -> None:
        self.check_config(config)
        self.config = config
        every, held_out, notes = from_corpus(config) if config.split == "corpus" else embedded(config)
        train = every[: config.train_pairs or (TRAIN_PAIRS if config.split == "embedded" else None)]
        size = config.subword_vocab_size  # with few pairs, most of many subwords would be rare
        if size < 0:
            size = next(size for limit, size in SIZES if len(train) <= limit)
        words = config.tokens == "words"
        self._tokenizer = Words() if words else learn([side for pair in train for side in pair[:2]], size)
        self._bleu_tokenizer = "none" if words else bleu_tokenizer(config.target_language, every)
        encoded = [e for e in self._encode(train) if max(len(e.source), len(e.target)) <= MAX_SUBWORDS]
        if not encoded:
            raise UserError(f"no train pair is left: all have more than {MAX_SUBWORDS} {config.tokens} on a side")
        self._examples = {"train": encoded} | {split: self._encode(own) for split, own in held_out.items()}
        for split in held_out:  # none is left out silently
            longest = max((side for e in self._examples[split] for side in e[:2]), key=len)
            if len(longest) > MAX_EVALUATED:
                raise UserError(
                    f"{split}: at most {MAX_EVALUATED:,} {config.tokens} can be translated, but a sentence has "
                    f"{len(longest):,}: {quoted(self.text(longest))}; split or remove it"
                )
        self._vocabulary = self._tokenizer.vocabulary(encoded)
        if not all(self._vocabulary):
            raise UserError(
                "no word occurs twice on its side of train, so that all are unknown; use data.tokens=subwords"
            )
        self._unused = notes.get("unused", {})
        self._notes = notes | {"left_out": notes["left_out"] | {"subwords": len(train) - len(encoded)}}

    @classmethod
    def check_config(cls, config: TaskConfig) -> None:
        assert isinstance(config, TranslationConfig)  # noqa: S101 - always true; for the type checker
        if 0 <= (size := config.subword_vocab_size) < BYTES:
            raise UserError(f"data.subword_vocab_size must be -1 or at least {BYTES} (all bytes), but is {size}")
        if config.tokens == "words" and (size >= 0 or config.target_language):
            key = "subword_vocab_size" if size >= 0 else "target_language"
            raise UserError(f"data.{key} can only be set with data.tokens=subwords")
        if config.split != "embedded":
            super().check_config(config)
        elif no_effect := [key for key in CORPUS_ONLY if getattr(config, key)]:
            raise UserError(f"data.{no_effect[0]} can only be set with --split corpus")

    def tokens(self, text: str) -> Tokens:
        return self._tokenizer.encode([text])[0]

    def target_tokens(self, text: str) -> Tokens:
        return self.tokens(text)

    def text(self, tokens: Tokens) -> str:
        return self._tokenizer.decode(tokens)

    def readable(self, token: str) -> str:
        return self._tokenizer.readable(token)

    def files(self) -> dict[str, str]:
        """Return what `restored` needs; with subwords also their tokenizer."""
        corpus = super().files() if self.config.split == "corpus" else {}
        return corpus | self._tokenizer.files()

    def restore(self, files: Mapping[str, str]) -> bool:
        if self.config.tokens == "words":
            self._tokenizer = Words()
            return True
        if "tokenizer.json" in files:
            self._tokenizer = Subwords.read(files["tokenizer.json"])
        return "tokenizer.json" in files

    def notes(self) -> dict[str, Any]:
        """Return the commit on the hub, the faults of train, and train pairs left out."""
        return self._notes

    def remarks(self) -> Sequence[str]:
        """Return the preset that the amount of text is for, what was left out of train, and faults that were not."""
        tokens = sum(len(example.target) for example in self._examples["train"])
        presets = PRESETS if self.config.split == "corpus" else PRESETS[:1]
        fitting = next((name for most, name in presets if tokens <= most), "default")
        meant = f"train has {tokens:,} target tokens, for which --preset {fitting} is meant"
        remarks = [*super().remarks(), *[meant] * (self.config.tokens == "subwords")]
        if self.config.split == "corpus":
            if left_out := listed(self._notes["left_out"]):
                remarks.append(f"left out of train: {left_out}")
            if (found := listed(self._notes["faults"], self._notes["first_fault"])) and not self.config.clean:
                remarks.append(f"faults in the train pairs of the corpus: {found}; data.clean=true leaves them out")
        return remarks

    def signatures(self) -> dict[str, str]:
        """Return sacreBLEU's signatures of `bleu` and `chrf`, which are divided by 100 here."""
        metrics = self._metrics()
        for metric in metrics.values():
            metric.corpus_score(["a"], [["a"]])  # the signature contains the number of references, known after use
        return {name: str(metric.get_signature()) for name, metric in metrics.items()}

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Return corpus BLEU, chrF and exact match of the text, and token accuracy of the tokens.

        BLEU uses up to four-grams, so it is 0 if all targets have fewer words, as in a slice of short sentences.
        """
        predicted, targets = [self.text(p) for p in predictions], [self.text(e.target) for e in examples]
        return {
            # If all sentences are correct, BLEU exceeds 100 by a rounding error.
            name: min(1.0, metric.corpus_score(predicted, [targets]).score / 100) if targets else float("nan")
            for name, metric in self._metrics().items()
        } | {
            "exact_match": mean(map(float, map(same_text, targets, predicted))),
            "token_accuracy": mean(token_accuracy(p, e.target) for p, e in zip(predictions, examples, strict=True)),
        }

    def baselines(self, split: str) -> dict[str, list[Tokens]]:
        """Return the sources as predictions, as target tokens: what copying scores."""
        return {"copy": self._tokenizer.encode([self._tokenizer.decode(e.source) for e in self.examples(split)])}

    def _metrics(self) -> dict[str, Any]:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        # `force`: no warning at every slice if the text of a corpus is tokenised.
        return {"bleu": BLEU(tokenize=self._bleu_tokenizer, force=True), "chrf": CHRF()}

    def _encode(self, pairs: Sequence[Pair]) -> list[Example]:
        sources, targets = map(self._tokenizer.encode, ([p.source for p in pairs], [p.target for p in pairs]))
        return [Example(s, t, pair.tags) for s, t, pair in zip(sources, targets, pairs, strict=True)]


def bleu_tokenizer(language: str, train: Sequence[Pair]) -> str:
    """Return the name of the tokenizer of sacreBLEU, by the language (`zh`, `ZH`, `zh_TW`) or the script of targets."""
    if language.lower().replace("_", "-").partition("-")[0] in CHINESE:
        return "zh"
    return "char" if is_unspaced("".join(pair.target for pair in train[:SAMPLE])) else "13a"


def embedded(config: TranslationConfig) -> Text:
    """Draw pairs of the embedded languages."""
    number, limit = config.train_pairs or TRAIN_PAIRS, config.max_train_length

    def drawn(split: str, numbers: Iterable[int]) -> Iterator[Pair]:
        for source, target, tags in (synthetic.pair(split, number, config.seed) for number in numbers):
            yield Pair(" ".join(source), " ".join(target), tags)

    sizes = EVAL_PAIRS | dict.fromkeys(synthetic.TESTS, CONSTRUCTION_PAIRS)
    held_out = {name: [*drawn(name, range(size))] for name, size in sizes.items()}
    train, _, left_out = choose(drawn("train", range(20 * number)), held_out, limit, number)
    if len(train) < number:
        raise UserError(f"data.max_train_length={limit} leaves {len(train):,} of {number:,} train pairs")
    longer = drawn("test", range(EVAL_PAIRS["test"], 6 * EVAL_PAIRS["test"])) if limit else ()
    return train, split_by_length(held_out, limit, longer, train), {"left_out": left_out}


def from_corpus(config: TranslationConfig) -> Text:
    """Read a corpus from a folder or from the hub; notes have its faults and the train pairs that were left out."""
    splits, unused, commit = read_pairs(config)
    for name, split in splits.items():
        unused |= {f"column {column}": "translation has no tags" for column in split.tags}
        unused |= {"features": "translation has none"} if split.features else {}
        if name != "train":
            split.check_no_empty(name, "; only train pairs can be left out: remove these lines from the file")
        elif not config.clean:
            split.check_no_empty(name, "; data.clean=true leaves them out")
    pairs = {
        name: [Pair(s, t, {"length": len(s.split())}) for s, t in zip(split.sources, split.targets, strict=True)]
        for name, split in splits.items()
    }
    train = pairs.pop("train")
    found = [*faults(train)]
    number, counts = len(train), {name: found.count(name) for name in FAULTS}
    first = {name: splits["train"].first + found.index(name) for name in FAULTS if name in found}
    if config.clean:
        train = [pair for pair, fault in zip(train, found, strict=True) if not fault]
    # In an order that depends only on text and seed, prefixes are nested random subsets; files are often sorted.
    train.sort(key=lambda own: hashlib.sha256(f"subset\t{config.seed}\t{own.source}\t{own.target}".encode()).digest())
    kept, longer, left_out = choose(train, pairs, config.max_train_length)
    left_out |= counts if config.clean else {}
    if len(kept) < max(config.train_pairs, 1):
        needed = f" for data.train_pairs={config.train_pairs}" if config.train_pairs else ""
        reasons = listed(left_out) or "none"
        raise UserError(f"{len(kept):,} of {number:,} train pairs are left, too few{needed} (left out: {reasons})")
    notes = {"commit": commit, "faults": counts, "first_fault": first, "left_out": left_out, "unused": unused}
    return kept, split_by_length(pairs, config.max_train_length, longer, kept), notes


def faults(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield the first of `FAULTS` that each pair has, or an empty text."""
    seen: set[tuple[str, str]] = set()
    for source, target, _ in pairs:
        shorter, longer = sorted((words(source), words(target)))
        found = {
            "empty_side": not (source.strip() and target.strip()),
            "length_ratio": longer > MAX_RATIO * shorter > 0,
            "identical_sides": source == target,
            "duplicate": (source, target) in seen,
        }
        seen.add((source, target))
        yield next((name for name, has in found.items() if has), "")


def words(text: str) -> int:
    """Return the number of words; in scripts written without spaces, two characters are one."""
    rest, characters = UNSPACED_SCRIPTS.subn(" ", text)
    return len(rest.split()) + (characters + 1) // 2


def listed(counts: Mapping[str, int], first: Mapping[str, int] | None = None) -> str:
    """Return the counts that are not zero, each with its text and, where it is given, the line of the first one."""
    places = {name: f" (first in line {line})" for name, line in (first or {}).items()}
    return ", ".join(
        f"{counts[name]:,} {text}{places.get(name, '')}" for name, text in LEFT_OUT.items() if counts.get(name)
    )


def choose(
    pairs: Iterable[Pair], held_out: Mapping[str, Iterable[Pair]], max_length: int, most: int = 0
) -> tuple[list[Pair], list[Pair], dict[str, int]]:
    """Return the pairs to train on (at most `most`; 0: all), the longer ones, and how many are left out by reason.

    No pair to train on has a source or a target of a held-out split.
    """
    sources = {pair.source for own in held_out.values() for pair in own}
    targets = {pair.target for own in held_out.values() for pair in own}
    train: list[Pair] = []
    longer: list[Pair] = []
    left_out = {"overlap": 0, "overlap_target": 0, "length": 0}
    for pair in pairs:
        if max_length and pair.tags["length"] > max_length:
            longer.append(pair)
            left_out["length"] += 1
        elif pair.source in sources or pair.target in targets:
            left_out["overlap" if pair.source in sources else "overlap_target"] += 1
        else:
            train.append(pair)
            if len(train) == most:
                break
    return train, longer, left_out


def split_by_length(
    held_out: dict[str, list[Pair]], max_length: int, longer: Iterable[Pair], train: Sequence[Pair]
) -> dict[str, list[Pair]]:
    """Return the held-out splits; with a `max_length`, longer sources of `test` and `longer` are splits of their own.

    These contain no pair twice and no target of `train`. Empty splits are dropped.
    """
    if not max_length:
        return held_out
    if taken := sorted(held_out.keys() & LONGER.keys()):
        raise UserError(f"data.max_train_length adds a split '{taken[0]}', but the corpus already has one")
    train_targets = {pair.target for pair in train}
    candidates = chain(held_out.get("test", ()), longer)
    distinct = {pair[:2]: pair for pair in candidates if pair.target not in train_targets}.values()
    splits = dict(held_out)
    for name in splits.keys() & {"validation", "test"}:
        splits[name] = [pair for pair in splits[name] if pair.tags["length"] <= max_length]
    for name, (lower, upper) in LONGER.items():
        between = (pair for pair in distinct if lower * max_length < pair.tags["length"] <= upper * max_length)
        splits[name] = [*between][:MAX_LONGER]
    if not any(splits[name] for name in LONGER):
        raise UserError(f"data.max_train_length={max_length}: no source of the test split is longer")
    return {name: pairs for name, pairs in splits.items() if pairs}

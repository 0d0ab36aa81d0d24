"""Translation: sentences of one language to another, as subwords, from few pairs.

    Two dogs play .  ->  Ġzwei ĠHun de Ġspielen Ġ.

The embedded pair of languages needs no file and no network; a corpus is read from a folder (`data.root`) or from the
hub (`data.hub`). Subwords are byte-level BPE (Sennrich et al. 2016, arXiv 1508.07909), learnt on the training pairs
alone. Scores are BLEU (Papineni et al. 2002, P02-1040) and chrF (Popovic 2015, W15-3049) of the text, not of subwords,
by sacreBLEU (Post 2018, arXiv 1804.08771). How small training sets change the verdict: Sennrich & Zhang 2019, P19-1021.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from pydantic import Field

from tasks.base import Example, Splits, Task, TaskConfig, Tokens
from tasks.errors import UserError, one_of
from tasks.scoring import exact_match, mean, token_accuracy
from tasks.translation import synthetic
from tasks.translation.corpus import (
    Languages,
    Row,
    Sentences,
    Sieve,
    by_length,
    from_folder,
    from_hub,
    lowercased,
    overlaps,
    row_of,
    shuffled,
)
from tasks.translation.subwords import BYTES, Subwords, coders

DRAWN = {"validation": 500, "test": 1_000}  # pairs of the embedded languages; of each held-out construction, `FEW`
PAIRS, FEW = 5_000, 300
UNSPACED = {"ja": "char", "jpn": "char", "zh": "zh", "zho": "zh"}  # languages without blanks: sacreBLEU's tokeniser
CORPUS_ONLY = (
    "root",
    "hub",
    "hub_config",
    "revision",
    "source_language",
    "target_language",
    "reverse",
    "subset_seed",
    "lowercase",
)


class Text(NamedTuple):
    """What is learnt from and tested on, before it is cut into tokens."""

    kept: list[Row]  # of train, in an order whose beginnings are subsets
    held_out: dict[str, list[Row]]
    notes: dict[str, Any]


class Translation(Task):
    """Pairs of sentences as tokens; `text` and `tokens` lead from one to the other."""

    version = 1

    class Config(TaskConfig):
        split: str = Field("embedded", description="embedded: two synthetic languages; corpus: data.root or data.hub")
        root: str = Field("", description="folder with train, dev and test as .tsv, .jsonl or parallel files (or .gz)")
        hub: str = Field("", description="id of a data set on the Hugging Face hub")
        hub_config: str = Field("", description="which configuration of the hub's data set, such as de-en")
        revision: str = Field("", description="branch or commit of the hub's data set")
        source_language: str = Field("", description="code of the source language, such as en: names files and columns")
        target_language: str = Field(
            "", description="code of the target language: names files and columns, decides tokenize"
        )
        reverse: bool = Field(False, description="translate from the second column of two-column files to the first")
        train_pairs: int = Field(
            0, ge=0, description="training pairs; 0 is all of a corpus, and 5,000 of the embedded pair"
        )
        subset_seed: int = Field(0, ge=0, lt=2**63, description="which pairs of a corpus these are; smaller are nested")
        drop_overlap: bool = Field(
            True, description="leave out training pairs with a source or target of another split"
        )
        max_train_length: int = Field(
            0, ge=0, description="words of a source in training, longer ones are tests; 0: no bound"
        )
        max_subwords: int = Field(0, ge=0, description="leave out training pairs with more on a side; 0: no bound")
        subword_vocab_size: int = Field(
            -1, ge=-1, description="most subwords; -1 goes by the number of pairs, 0 is whole words"
        )
        shared_subwords: bool = Field(True, description="one list of subwords for both languages, not one for each")
        subword_pairs: int = Field(0, ge=0, description="pairs that subwords are learnt from; 0: those trained on")
        lowercase: bool = Field(False, description="lowercase all text of a corpus, references too")
        bleu_tokenizer: Literal["auto", "13a", "intl", "char", "zh"] = Field(
            "auto", description="what BLEU counts (sacreBLEU); auto: char for ja, zh for zh, else 13a"
        )

    def __init__(self, config: Config) -> None:
        one_of("split scheme", config.split, self.split_schemes())
        _check(config)
        self._config = config
        text = _corpus(config) if config.split == "corpus" else _embedded(config)
        self._tokenize = _tokenize(config, text.kept)
        most = config.train_pairs or (PAIRS if config.split == "embedded" else len(text.kept))
        train = text.kept[:most]
        learnt = [r.pair for r in text.kept[: config.subword_pairs] or train]
        self._source, self._target = coders(learnt, config.subword_vocab_size, config.shared_subwords)
        short = [(row, example) for row, example in zip(train, self._encode(train), strict=True) if self._fits(example)]
        if not short:
            raise UserError(f"data.max_subwords leaves no training pair: all have more than {config.max_subwords}")
        self._examples = {"train": [example for _, example in short]}
        self._examples |= {split: self._encode(rows) for split, rows in text.held_out.items()}
        self._notes = {
            **text.notes,
            "left_out": text.notes["left_out"] | {"subwords": len(train) - len(short)},
            "overlap": overlaps([row for row, _ in short], text.held_out),
            "sizes": {split: _sizes(examples) for split, examples in self._examples.items()},
            "vocabulary": dict(zip(("source", "target"), map(len, self.vocabulary()), strict=True)),
        }

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return {
            "embedded": "two synthetic languages, with tests of held-out constructions; no file and no network",
            "corpus": "a corpus of data.root or data.hub, or a random subset of it",
        }

    def splits(self) -> Splits:
        names = [name for name in self._examples if name not in ("train", "validation")]
        return Splits("train", "validation" if "validation" in self._examples else None, tuple(names))

    def examples(self, split: str) -> Sequence[Example]:
        return self._examples[one_of("split", split, self.splits().all)]

    def by_length(self) -> tuple[str, ...]:
        """None: whole sentences are rarely exact at any length. Slices by `length` say BLEU and chrF."""
        return ()

    def vocabulary(self) -> tuple[set[str], set[str]]:
        """All subwords that there are, since any may be needed; of words, those of the train split."""
        source, target = self._source.vocabulary(), self._target.vocabulary()
        return (source, target) if source and target else super().vocabulary()

    def tokens(self, text: str) -> Tokens:
        return self._source.encode([text.lower() if self._config.lowercase else text])[0]

    def text(self, tokens: Tokens) -> str:
        return self._target.decode(tokens)

    def files(self) -> dict[str, str]:
        """The subwords as `tokenizers.Tokenizer.from_str` reads them."""
        coders = {"tokenizer": self._source}
        if self._source is not self._target:
            coders = {"source.tokenizer": self._source, "target.tokenizer": self._target}
        return {f"{name}.json": coder.json() for name, coder in coders.items() if isinstance(coder, Subwords)}

    def notes(self) -> dict[str, Any]:
        """Sizes, the hub's commit, how many pairs were left out of train, and what of other splits occurs in it."""
        return self._notes

    def signatures(self) -> dict[str, str]:
        """sacreBLEU's signatures of `bleu` and `chrf`, which here are divided by 100."""
        metrics = self._metrics()
        for metric in metrics.values():
            metric.corpus_score(["a"], [["a"]])  # the signature has the number of references, known after use
        return {name: str(metric.get_signature()) for name, metric in metrics.items()}

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """BLEU and chrF of the corpus and exact match, all of the text; token accuracy of the tokens.

        BLEU counts up to four words: it is 0 where all targets have fewer, as in a slice of short ones.
        """
        given, gold = self._plain(predictions), self._plain([e.target for e in examples])
        scores = {
            # Of sentences that are all right, BLEU is a rounding error above 100.
            name: min(1.0, metric.corpus_score(given, [gold]).score / 100) if gold else float("nan")
            for name, metric in self._metrics().items()
        } | {
            "exact_match": mean(exact_match(p, g) for p, g in zip(given, gold, strict=True)),
            "token_accuracy": mean(token_accuracy(p, e.target) for p, e in zip(predictions, examples, strict=True)),
        }
        if self._config.split == "embedded":
            scores |= synthetic.phenomena([text.split() for text in given], [text.split() for text in gold])
        return scores

    def _plain(self, sequences: Iterable[Tokens]) -> list[str]:
        """Text as it is scored: without blanks in languages that have none, where a corpus puts them between words."""
        texts = map(self.text, sequences)
        return (
            ["".join(text.split()) for text in texts]
            if _code(self._config.target_language) in UNSPACED
            else list(texts)
        )

    def _metrics(self) -> dict[str, Any]:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        lowercase = self._config.lowercase
        # `force`: a corpus of tokenised text is what it is, no reason for a warning at every slice.
        return {
            "bleu": BLEU(lowercase=lowercase, tokenize=self._tokenize, force=True),
            "chrf": CHRF(lowercase=lowercase),
        }

    def _encode(self, rows: Sequence[Row]) -> list[Example]:
        sources = self._source.encode([r.pair.source for r in rows])
        targets = self._target.encode([r.pair.target for r in rows])
        return [Example(s, t, r.tags) for s, t, r in zip(sources, targets, rows, strict=True)]

    def _fits(self, example: Example) -> bool:
        most = self._config.max_subwords
        return not most or max(len(example.source), len(example.target)) <= most


def _sizes(examples: Sequence[Example]) -> dict[str, int]:
    return {
        "pairs": len(examples),
        "source_tokens": sum(len(e.source) for e in examples),
        "target_tokens": sum(len(e.target) for e in examples),
    }


def _check(config: Translation.Config) -> None:
    """`UserError` for settings that exclude each other or would be without effect."""
    if 0 < config.subword_vocab_size < BYTES:
        raise UserError(
            f"data.subword_vocab_size must be -1, 0 or at least {BYTES} (the bytes), but is {config.subword_vocab_size}"
        )
    if config.split == "embedded":
        for key in (*CORPUS_ONLY, "bleu_tokenizer"):
            if getattr(config, key) != type(config).model_fields[key].default:
                raise UserError(f"data.{key} has a meaning with data.split=corpus only")
        return
    if bool(config.root) == bool(config.hub):
        raise UserError("data.split 'corpus' needs one of data.root (a folder) and data.hub (an id), and not both")
    if config.seed:
        raise UserError("data.seed draws the embedded pair: which pairs of a corpus are drawn is data.subset_seed")
    for key in ("hub_config", "revision") if config.root else ("reverse",):
        if getattr(config, key):
            raise UserError(f"data.{key} has no meaning with data.{'root' if config.root else 'hub'}")


def _code(language: str) -> str:
    """`ja` of `ja`, `JA` or `ja_JP`."""
    return language.lower().replace("_", "-").partition("-")[0]


def _tokenize(config: Translation.Config, train: Sequence[Row]) -> str:
    """The name of sacreBLEU's tokeniser."""
    if config.bleu_tokenizer != "auto":
        return config.bleu_tokenizer
    some = "".join(r.pair.target for r in train[:100])
    if not config.target_language and 3 * len(re.findall("[\u3040-\u30ff\u3400-\u9fff]", some)) > len(some):
        raise UserError(
            "the targets look Japanese or Chinese: set data.target_language=ja (or zh), or data.bleu_tokenizer"
        )
    return UNSPACED.get(_code(config.target_language), "13a")


# What is drawn


def _embedded(config: Translation.Config) -> Text:
    def rows(split: str, numbers: Iterable[int]) -> Iterator[Row]:
        for pair in (synthetic.pair(split, number, config.seed) for number in numbers):
            yield row_of(Sentences(" ".join(pair.source), " ".join(pair.target)), pair.tags)

    wanted = max(config.train_pairs or PAIRS, config.subword_pairs)
    held_out = {name: list(rows(name, range(n))) for name, n in (DRAWN | dict.fromkeys(synthetic.TESTS, FEW)).items()}
    sieve = Sieve(held_out if config.drop_overlap else {}, config.max_train_length)
    kept = list(islice(sieve.kept(rows("train", range(20 * wanted))), wanted))
    if len(kept) < wanted:
        raise UserError(
            f"data.max_train_length must leave {wanted:,} training pairs, but {config.max_train_length} leaves {len(kept):,}"
        )
    longer = rows("test", range(DRAWN["test"], 6 * DRAWN["test"])) if config.max_train_length else ()
    return Text(kept, by_length(held_out, config.max_train_length, longer, kept), {"left_out": sieve.left_out})


def _corpus(config: Translation.Config) -> Text:
    languages = Languages(config.source_language, config.target_language)
    if config.root:
        corpus = from_folder(config.root, languages, config.reverse)
    else:
        corpus = from_hub(config.hub, config.hub_config, config.revision, languages)
    corpus.splits["train"] = shuffled(corpus.splits["train"], config.subset_seed)
    if config.lowercase:  # which draws no other subset
        corpus = lowercased(corpus)
    held_out = {name: [row_of(pair) for pair in pairs] for name, pairs in corpus.splits.items() if name != "train"}
    sieve = Sieve(held_out if config.drop_overlap else {}, config.max_train_length)
    kept = list(sieve.kept(map(row_of, corpus.splits["train"])))
    left_out = ", ".join(f"{n:,} for {why}" for why, n in sieve.left_out.items())
    if not kept:
        raise UserError(f"no training pair is left, of {len(corpus.splits['train']):,} (left out: {left_out})")
    for key in ("train_pairs", "subword_pairs"):
        if len(kept) < getattr(config, key):
            raise UserError(
                f"data.{key} must be at most {len(kept):,}, the training pairs that there are (left out: {left_out}), "
                f"but is {getattr(config, key):,}"
            )
    notes = {
        "commit": corpus.commit,
        "left_out": sieve.left_out,
        "overlap_of_corpus": overlaps(map(row_of, corpus.splits["train"]), held_out),
    }
    return Text(kept, by_length(held_out, config.max_train_length, sieve.longer, kept), notes)

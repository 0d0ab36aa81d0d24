"""Translation of sentences from one language to another, as subwords, with few training pairs.

    Two dogs play .  ->  zwei Hunde spielen .

The two embedded languages need no files and no network; a corpus is read from a folder (`data.root`) or from the
Hugging Face hub (`data.hub`). Its text is used as it is; faulty pairs are counted, and left out of train with
`data.clean`. `tfstudy list corpora FOLDER` describes corpora. Subwords are byte-level BPE (Sennrich et al. 2016, arXiv
1508.07909), learned on the train pairs only. The metrics are BLEU (Papineni et al. 2002, P02-1040) and chrF (Popovic
2015, W15-3049) of the detokenised text, computed by sacreBLEU (Post 2018, arXiv 1804.08771). Sennrich & Zhang (2019,
P19-1021) show how much the settings matter with few pairs.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tfstudy.errors import UserError, one_of
from tfstudy.tasks.base import Example, Splits, Task, TaskConfig, Tokens
from tfstudy.tasks.scoring import mean, same_text, token_accuracy
from tfstudy.tasks.translation.config import TranslationConfig, check
from tfstudy.tasks.translation.corpus import Sentences
from tfstudy.tasks.translation.filtering import Row, overlaps
from tfstudy.tasks.translation.phenomena import phenomena
from tfstudy.tasks.translation.quality import check_length
from tfstudy.tasks.translation.remarks import corpus_remarks
from tfstudy.tasks.translation.subwords import Subwords, coders
from tfstudy.tasks.translation.text import TRAIN_PAIRS, embedded, from_corpus
from tfstudy.tasks.translation.trivial import lexicon, translated
from tfstudy.tasks.translation.unspaced import bleu_tokenizer, is_unspaced_language, unspaced_targets
from tfstudy.tasks.translation.words import Seen, Translated, word_scores, words

KNOWN_PAIRS = 100_000  # train pairs whose words and targets are known, in the scores by words
LONG = 6  # characters of a long word, in the scores by words; 2 in languages without spaces
EVALUATED = 32  # times as many subwords may a held-out sentence have
MAX_SUBWORDS = 256  # of a train source or target, by default: one much longer pair would set the cost of a batch


class Translation(Task):
    """Map a sentence to its translation; `tokens` and `text` convert between text and tokens."""

    version = 1

    Config = TranslationConfig

    def __init__(self, config: TranslationConfig) -> None:
        self.check_config(config)
        self._config = config
        text = from_corpus(config) if config.split == "corpus" else embedded(config)
        self._bleu_tokenizer = bleu_tokenizer(config, [row.pair for row in text.train[:KNOWN_PAIRS]])
        self._corpus_train = text.train[:KNOWN_PAIRS] if config.split == "corpus" else []
        train = text.train[: config.train_pairs or (TRAIN_PAIRS if config.split == "embedded" else None)]
        subword_pairs = [row.pair for row in text.train[: config.subword_pairs] or train]
        self._source, self._target = coders(subword_pairs, config.subword_vocab_size, config.shared_subwords)
        pairs = [(row, example) for row, example in zip(train, self._encode(train), strict=True) if self._fits(example)]
        if not pairs:
            raise UserError(
                f"no train pair is left: all have more than {self._max_subwords()} subwords (data.max_subwords)"
            )
        self._examples = {"train": [example for _, example in pairs]}
        self._examples |= {split: self._encode(rows) for split, rows in text.held_out.items()}
        for split, rows in text.held_out.items():
            check_length(split, zip(rows, self._examples[split], strict=True), EVALUATED * self._max_subwords())
        self._notes = {
            **text.notes,
            "left_out": text.notes["left_out"] | {"subwords": len(train) - len(pairs)},
            "overlap": overlaps([row for row, _ in pairs], text.held_out),
            "sizes": {split: _sizes(examples) for split, examples in self._examples.items()},
            "vocabulary": dict(zip(("source", "target"), map(len, self.vocabulary()), strict=True)),
        }

    @classmethod
    def check_config(cls, config: TaskConfig) -> None:
        super().check_config(config)
        assert isinstance(config, TranslationConfig)  # noqa: S101 - always true; for the type checker
        check(config)

    @classmethod
    def split_schemes(cls) -> dict[str, str]:
        return {
            "embedded": "two synthetic languages with tests of held-out constructions; needs no files and no network",
            "corpus": "a corpus from data.root or data.hub, or a random subset of it",
        }

    def splits(self) -> Splits:
        names = [name for name in self._examples if name not in ("train", "validation")]
        return Splits("train", "validation" if "validation" in self._examples else None, tuple(names))

    def examples(self, split: str) -> Sequence[Example]:
        return self._examples[one_of("split", split, self.splits().all)]

    def by_length(self) -> tuple[str, ...]:
        """Return no split: exact match is rare at any length. Slices by `length` report BLEU and chrF."""
        return ()

    def corpus(self) -> str:
        """Return the name of the folder, or the id of the data set on the hub."""
        return Path(self._config.root).resolve().name if self._config.root else self._config.hub

    def vocabulary(self) -> tuple[set[str], set[str]]:
        """Return all subwords, since any may be needed; for whole words, those of the train split."""
        source, target = self._source.vocabulary(), self._target.vocabulary()
        return (source, target) if source and target else super().vocabulary()

    def tokens(self, text: str) -> Tokens:
        return self._source.encode([text.lower() if self._config.lowercase else text])[0]

    def target_tokens(self, text: str) -> Tokens:
        return self._target.encode([text.lower() if self._config.lowercase else text])[0]

    def text(self, tokens: Tokens) -> str:
        return self._target.decode(tokens)

    def readable(self, token: str) -> str:
        return self._target.readable(token)

    def files(self) -> dict[str, str]:
        """Return the subword tokenizers as JSON for `tokenizers.Tokenizer.from_str`."""
        tokenizers = {"tokenizer": self._source}
        if self._source is not self._target:
            tokenizers = {"source.tokenizer": self._source, "target.tokenizer": self._target}
        return {f"{name}.json": coder.json() for name, coder in tokenizers.items() if isinstance(coder, Subwords)}

    def notes(self) -> dict[str, Any]:
        """Return sizes, the commit on the hub, faults by split, train pairs left out, and overlaps between splits."""
        return self._notes

    def remarks(self) -> Sequence[str]:
        """Return what was left out of train, its faults, and what looks wrong."""
        if self._config.split != "corpus":
            return ()
        return corpus_remarks(self._config, self._notes, self._max_subwords(), self._examples)

    def signatures(self) -> dict[str, str]:
        """Return sacreBLEU's signatures of `bleu` and `chrf`, which are divided by 100 here."""
        metrics = self._metrics()
        for metric in metrics.values():
            metric.corpus_score(["a"], [["a"]])  # the signature contains the number of references, known after use
        return {name: str(metric.get_signature()) for name, metric in metrics.items()}

    def score(self, predictions: Sequence[Tokens], examples: Sequence[Example]) -> dict[str, float]:
        """Return corpus BLEU, chrF and exact match of the text, token accuracy of the tokens, and scores by words.

        BLEU uses up to four-grams, so it is 0 if all targets have fewer words, as in a slice of short sentences.
        """
        predicted, targets = [self.text(p) for p in predictions], [self.text(e.target) for e in examples]
        scores = {
            # If all sentences are correct, BLEU exceeds 100 by a rounding error.
            name: min(1.0, metric.corpus_score(predicted, [targets]).score / 100) if targets else float("nan")
            for name, metric in self._metrics().items()
        } | {
            "exact_match": mean(
                same_text(self.text(e.target), self.text(p)) for p, e in zip(predictions, examples, strict=True)
            ),
            "token_accuracy": mean(token_accuracy(p, e.target) for p, e in zip(predictions, examples, strict=True)),
        }
        if self._config.split == "embedded":
            scores |= phenomena([text.split() for text in predicted], [text.split() for text in targets])
        elif self._seen.words:
            translated = (
                Translated(self._source.decode(e.source), self.text(p), self.text(e.target))
                for p, e in zip(predictions, examples, strict=True)
            )
            scores |= word_scores(translated, self._seen, 2 if self._is_unspaced() else LONG)
        return scores

    def baselines(self, split: str) -> dict[str, list[Tokens]]:
        """Return what two trivial systems predict for a split, as target tokens.

        `copy` is the source text. `word by word` replaces each word with its most probable translation, by a lexicon
        (IBM Model 1, Brown et al. 1993) that is learned from the train pairs on the first call.
        """
        sources = [self._source.decode(example.source) for example in self.examples(split)]
        texts = {"copy": sources, "word by word": [translated(source, self._lexicon) for source in sources]}
        return {name: self._target.encode(lines) for name, lines in texts.items()}

    @cached_property
    def _lexicon(self) -> dict[str, str]:
        """Return the translation of each source word."""
        train = self._examples["train"]
        return lexicon(Sentences(self._source.decode(e.source), self._target.decode(e.target)) for e in train)

    @cached_property
    def _seen(self) -> Seen:
        """Return what the first train pairs have, by which outputs are scored; nothing if spaces separate no words."""
        pairs = [row.pair for row in self._corpus_train]
        unspaced = self._is_unspaced() or unspaced_targets(pairs)
        if unspaced and 2 * sum(" " in pair.target.strip() for pair in pairs) < len(pairs):
            return Seen(set(), set())
        known = {word for pair in pairs for text in pair for word in words(text.lower())}
        return Seen(known, {self.text(e.target).lower() for e in self._examples["train"][:KNOWN_PAIRS]})

    def _is_unspaced(self) -> bool:
        return is_unspaced_language(self._config.target_language)

    def _metrics(self) -> dict[str, Any]:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        lowercase = self._config.lowercase
        # `force`: no warning at every slice if the text of a corpus is tokenised.
        return {
            "bleu": BLEU(lowercase=lowercase, tokenize=self._bleu_tokenizer, force=True),
            "chrf": CHRF(lowercase=lowercase),
        }

    def _encode(self, rows: Sequence[Row]) -> list[Example]:
        sources = self._source.encode([r.pair.source for r in rows])
        targets = self._target.encode([r.pair.target for r in rows])
        return [Example(s, t, r.tags) for s, t, r in zip(sources, targets, rows, strict=True)]

    def _fits(self, example: Example) -> bool:
        return max(len(example.source), len(example.target)) <= self._max_subwords()

    def _max_subwords(self) -> int:
        return self._config.max_subwords or MAX_SUBWORDS


def _sizes(examples: Sequence[Example]) -> dict[str, int]:
    return {
        "pairs": len(examples),
        "source_tokens": sum(len(e.source) for e in examples),
        "target_tokens": sum(len(e.target) for e in examples),
    }

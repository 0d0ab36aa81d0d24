"""Translation of sentences from one language to another, as subwords, with few training pairs.

    Two dogs play .  ->  zwei Hunde spielen .

The two embedded languages need no files and no network; a corpus is read from a folder (`data.root`) or from the
Hugging Face hub (`data.hub`). Its text is used as it is; faulty pairs are counted, and left out of train with
`data.clean`. `tfstudy list corpora FOLDER` lists corpora. Subwords are byte-level BPE (Sennrich et al. 2016, arXiv
1508.07909), learned on the train pairs only. The metrics are BLEU (Papineni et al. 2002, P02-1040) and chrF (Popovic
2015, W15-3049) of the detokenised text, computed by sacreBLEU (Post 2018, arXiv 1804.08771). Sennrich & Zhang (2019,
P19-1021) show how much the settings matter with few pairs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from tfstudy.errors import UserError, quoted
from tfstudy.tasks.base import Example, TaskConfig, Tokens
from tfstudy.tasks.corpus import CorpusTask, FilesConfig
from tfstudy.tasks.scoring import is_unspaced, mean, same_text, token_accuracy
from tfstudy.tasks.translation.text import (
    LEFT_OUT,
    MAX_SUBWORDS,
    TRAIN_PAIRS,
    Pair,
    embedded,
    from_corpus,
    listed,
    located,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BYTES = 256  # the smallest vocabulary: no merges
SIZES = ((1_500, 1_000), (7_500, 2_000), (15_000, 4_000))  # maximum number of pairs, number of subwords
MAX_SIZE = 8_000
LARGEST = 10**8  # number of pairs, as of the examples of other tasks

# Settings that have no effect on the embedded languages.
CORPUS_ONLY = (*FilesConfig.__annotations__, "source_language", "target_language", "clean")
MAX_EVALUATED = 32 * MAX_SUBWORDS  # subwords of a held-out sentence
PRESETS = ((40_000, "small"), (200_000, "medium"))  # the most target tokens in train that each is meant for
CHINESE = ("zh", "zho", "cmn", "yue")  # codes; sacreBLEU has a tokenizer of its own for it
SAMPLE = 100  # train pairs whose script decides whether words are separated by spaces


class TranslationConfig(FilesConfig):
    """Settings of the task `translation` (section `data`)."""

    split: str = "embedded"
    source_language: str = Field("", description="code of the source language, such as en; selects files and columns")
    target_language: str = Field(
        "", description="code of the target language; selects files, columns and the tokenizer of BLEU"
    )
    train_pairs: int = Field(
        0, ge=0, le=LARGEST, description="number of train pairs; 0: all of a corpus, or 5,000 of the embedded languages"
    )
    clean: bool = Field(
        False,
        description="leave out train pairs with a fault: an empty side, one side with over 9 times the words of the "
        "other (Moses), equal sides, a duplicate",
    )
    max_train_length: int = Field(
        0, ge=0, description="maximum source words in training; longer pairs become test splits; 0: no limit"
    )
    subword_vocab_size: int = Field(
        -1, ge=-1, description="maximum number of subwords; -1: chosen by the number of train pairs"
    )


class Translation(CorpusTask):
    """Map a sentence to its translation; `tokens` and `text` convert between text and tokens."""

    schemes: ClassVar = {
        "embedded": "two synthetic languages with tests of held-out constructions; needs no files and no network",
        "corpus": "a corpus from data.root or data.hub, or a random subset of it",
    }

    Config = TranslationConfig
    config: TranslationConfig

    def __init__(self, config: TranslationConfig) -> None:
        self.check_config(config)
        self.config = config
        text = from_corpus(config) if config.split == "corpus" else embedded(config)
        train = text.train[: config.train_pairs or (TRAIN_PAIRS if config.split == "embedded" else None)]
        size = config.subword_vocab_size  # with few pairs, most of many subwords would be rare
        if size < 0:
            size = next((size for limit, size in SIZES if len(train) <= limit), MAX_SIZE)
        self._subwords = learn([*(pair.source for pair in train), *(pair.target for pair in train)], size)
        self._bleu_tokenizer = bleu_tokenizer(config.target_language, text.train)
        encoded = [e for e in self._encode(train) if max(len(e.source), len(e.target)) <= MAX_SUBWORDS]
        if not encoded:
            raise UserError(f"no train pair is left: all have more than {MAX_SUBWORDS} subwords on a side")
        self._examples = {"train": encoded} | {split: self._encode(own) for split, own in text.held_out.items()}
        self._vocabulary = {*self._subwords.pieces}, {*self._subwords.pieces}
        for split in text.held_out:
            self._check_length(split)
        self._unused = text.notes.get("unused", {})
        self._notes = text.notes | {"left_out": text.notes["left_out"] | {"subwords": len(train) - len(encoded)}}

    @classmethod
    def check_config(cls, config: TaskConfig) -> None:
        super().check_config(config)
        assert isinstance(config, TranslationConfig)  # noqa: S101 - always true; for the type checker
        if 0 <= (size := config.subword_vocab_size) < BYTES:
            raise UserError(f"data.subword_vocab_size must be -1 or at least {BYTES} (all bytes), but is {size}")
        if config.split == "embedded":
            for key in CORPUS_ONLY:
                if getattr(config, key) != type(config).model_fields[key].default:
                    raise UserError(f"data.{key} can only be set with --split corpus")
            return
        cls.check_files("split scheme 'corpus'", config)
        if config.source_language and config.source_language == config.target_language:
            raise UserError(f"data.source_language and data.target_language are both '{config.source_language}'")

    def tokens(self, text: str) -> Tokens:
        return self._subwords.encode([text])[0]

    def target_tokens(self, text: str) -> Tokens:
        return self.tokens(text)

    def text(self, tokens: Tokens) -> str:
        return self._subwords.decode(tokens)

    def readable(self, token: str) -> str:
        """Return the text of a subword, with `▁` for a space and U+FFFD for bytes that are a part of a character."""
        from tokenizers import decoders

        return str(decoders.ByteLevel().decode([token])).replace(" ", "▁")

    def files(self) -> dict[str, str]:
        """Return the subword tokenizer as JSON for `tokenizers.Tokenizer.from_str`, and what `restored` needs."""
        corpus = super().files() if self.config.split == "corpus" else {}
        return {"tokenizer.json": self._subwords.tokenizer.to_str(), **corpus}

    def restore(self, files: Mapping[str, str]) -> bool:
        if "tokenizer.json" in files:
            self._subwords = Subwords.read(files["tokenizer.json"])
        return "tokenizer.json" in files

    def notes(self) -> dict[str, Any]:
        """Return the commit on the hub, faults by split, and train pairs left out."""
        return self._notes

    def remarks(self) -> Sequence[str]:
        """Return what was left out of train, and the faults of the corpus that were not, with their first places."""
        if self.config.split != "corpus":
            return ()
        left_out = listed(self._notes["left_out"], LEFT_OUT)
        found = "" if self.config.clean else located(self._notes, "train")
        return [
            *super().remarks(),
            *([f"left out of train: {left_out}"] if left_out else []),
            *([f"faults in all train pairs of the corpus: {found}; data.clean=true leaves them out"] if found else []),
        ]

    def preset_warning(self, preset: str) -> str:
        tokens, fitting = self.fitting_preset()
        if preset == fitting or preset not in ("default", *dict(PRESETS).values()):
            return ""
        return f"WARNING: train has {tokens:,} target tokens, for which preset {fitting} is meant, not {preset}"

    def fitting_preset(self) -> tuple[int, str]:
        """Return the number of target tokens (subwords) in train, and the preset that is meant for as many."""
        tokens = sum(len(example.target) for example in self._examples["train"])
        presets = PRESETS if self.config.split == "corpus" else PRESETS[:1]
        return tokens, next((name for most, name in presets if tokens <= most), "default")

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
        return {"copy": self._subwords.encode([self._subwords.decode(e.source) for e in self.examples(split)])}

    def _metrics(self) -> dict[str, Any]:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        # `force`: no warning at every slice if the text of a corpus is tokenised.
        return {"bleu": BLEU(tokenize=self._bleu_tokenizer, force=True), "chrf": CHRF()}

    def _encode(self, pairs: Sequence[Pair]) -> list[Example]:
        sources, targets = map(self._subwords.encode, ([p.source for p in pairs], [p.target for p in pairs]))
        return [Example(s, t, pair.tags) for s, t, pair in zip(sources, targets, pairs, strict=True)]

    def _check_length(self, split: str) -> None:
        """Raise `UserError` for a held-out sentence that is too long to translate: none is left out silently."""
        for example in self._examples[split]:
            for side, tokens in (("source", example.source), ("target", example.target)):
                if len(tokens) > MAX_EVALUATED:
                    raise UserError(
                        f"{split}: a {side} has {len(tokens):,} subwords, of which at most {MAX_EVALUATED:,} can be "
                        f"translated: {quoted(self.text(tokens))}; split or remove it"
                    )


def overview(root: str) -> dict[str, Any]:
    """Return what `list corpora` says of a folder: what its train split is for, and its faults with their lines."""
    try:
        task = Translation(Translation.Config(split="corpus", root=root, clean=True))
    except UserError as error:
        return {"about": f"not read without further settings: {error}"}
    tokens, preset = task.fitting_preset()
    notes = task.notes()
    faults = [f"{split}: {text}" for split in notes["faulty"] if (text := located(notes, split))]
    about = "; ".join([f"{tokens:,} target tokens in train: preset {preset}", *faults])
    return {"about": about, "target_tokens": tokens, "preset": preset, "faulty": notes["faulty"]}


class Subwords:
    """Byte-level BPE (Wang et al. 2020): `a furry dog` is `Ġa Ġfur ry Ġdog`.

    A space is part of the following word, written `Ġ`. The first word also has one, so a word has the same subwords at
    all positions. Every byte is a subword, so decoding restores any text; bytes that form no character decode to
    U+FFFD. Training gives the same subwords for the same text in any order and with any number of threads.
    """

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self.tokenizer = tokenizer
        ids = tokenizer.get_vocab()
        self.pieces = sorted(ids, key=ids.__getitem__)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the subwords of each text; none for an empty text."""
        pieces = self.pieces  # the tokenizer itself would create a new string for each token
        return [tuple(pieces[i] for i in encoding.ids) for encoding in self.tokenizer.encode_batch_fast(list(texts))]

    def decode(self, tokens: Sequence[str]) -> str:
        return str(self.tokenizer.decoder.decode(list(tokens)))

    @classmethod
    def read(cls, text: str) -> "Subwords":
        """Return the subwords of a `tokenizer.json`; `UserError` for a damaged text."""
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_str(text))
        except Exception as error:  # the library raises nothing more specific
            raise UserError(f"tokenizer.json is damaged: {error}") from None


def learn(texts: Iterable[str], size: int) -> Subwords:
    """Learn at most `size` subwords: the bytes, and merges of neighbours that occur at least twice."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    # `add_prefix_space` of the library skips texts that begin with a space, which decoding would then lose.
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return Subwords(tokenizer)


def bleu_tokenizer(language: str, train: Sequence[Pair]) -> str:
    """Return the name of the tokenizer of sacreBLEU, by the language (`zh`, `ZH`, `zh_TW`) or the script of targets."""
    if language.lower().replace("_", "-").partition("-")[0] in CHINESE:
        return "zh"
    return "char" if is_unspaced("".join(pair.target for pair in train[:SAMPLE])) else "13a"

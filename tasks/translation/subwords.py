"""Tokens of a text: words, or subwords by byte-level BPE (Sennrich et al. 2016, arXiv 1508.07909; Wang et al. 2020)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from sys import intern
from typing import TYPE_CHECKING

from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BYTES = 256  # the smallest vocabulary: no merges


class Words:
    """The words that white space separates, as in a corpus that was tokenised before."""

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        return [tuple(map(intern, text.split())) for text in texts]  # one string for all places of a word

    def decode(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)

    def readable(self, token: str) -> str:
        return token

    def vocabulary(self, train: Sequence[Example]) -> tuple[set[str], set[str]]:
        """Return the words that occur at least twice in the sources, and those in the targets."""
        source, target = (Counter(chain.from_iterable(e[side] for e in train)) for side in (0, 1))
        return {word for word, n in source.items() if n > 1}, {word for word, n in target.items() if n > 1}

    def files(self) -> dict[str, str]:
        return {}


class Subwords:
    """The subwords of a tokenizer: `a furry dog` is `Ġa Ġfur ry Ġdog`.

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

    def readable(self, token: str) -> str:
        """Return the text of a subword, with `▁` for a space and U+FFFD for bytes that are a part of a character."""
        from tokenizers import decoders

        return str(decoders.ByteLevel().decode([token])).replace(" ", "▁")

    def vocabulary(self, train: Sequence[Example]) -> tuple[set[str], set[str]]:
        """Return all subwords, twice: source and target have the same ones."""
        return {*self.pieces}, {*self.pieces}

    def files(self) -> dict[str, str]:
        """Return the tokenizer as JSON for `tokenizers.Tokenizer.from_str`."""
        return {"tokenizer.json": self.tokenizer.to_str()}

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

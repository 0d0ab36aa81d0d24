"""Text as subwords, by byte-level BPE, and back (Sennrich et al. 2016, arXiv 1508.07909; bytes: Wang et al. 2020).

    a furry dog  ->  Ġa Ġfur ry Ġdog  ->  a furry dog

A blank belongs to the word after it, as `Ġ`, and the first word has one too, so that a word is the same subwords
wherever it stands. Every byte is a subword: whatever the text, it comes back as it was. Of the ways to learn subwords
this one gives the same for the same text in any order and on any number of threads.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from tasks.base import Tokens
from tasks.translation.corpus import Sentences

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BYTES = 256  # the least size: no merges at all
SIZES = ((1_500, 1_000), (7_500, 2_000), (15_000, 4_000))  # up to so many pairs, so many subwords
LARGEST = 8_000


def size_for(pairs: int) -> int:
    """The number of subwords for so many pairs: few pairs need few, or most would be seen too rarely."""
    return next((size for most, size in SIZES if pairs <= most), LARGEST)


class Coder(Protocol):
    """Text to tokens without blanks, and back."""

    def encode(self, texts: Sequence[str]) -> list[Tokens]: ...

    def decode(self, tokens: Sequence[str]) -> str: ...

    def vocabulary(self) -> set[str] | None:
        """All tokens that there are; None if they are not limited."""
        ...


class Words:
    """The words between white space; decoding puts one blank between them."""

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        return [tuple(text.split()) for text in texts]

    def decode(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)

    def vocabulary(self) -> None:
        return None


class Subwords:
    """Byte-level BPE. Decoding is lossless; bytes that make no character decode to U+FFFD."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer
        ids = tokenizer.get_vocab()
        self._pieces = sorted(ids, key=ids.__getitem__)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Of each text its subwords; none of an empty one."""
        pieces = self._pieces  # the tokenizer would make new strings of them all
        return [tuple(pieces[i] for i in encoding.ids) for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def decode(self, tokens: Sequence[str]) -> str:
        return str(self._tokenizer.decoder.decode(list(tokens)))

    def vocabulary(self) -> set[str]:
        return set(self._pieces)

    def json(self) -> str:
        """All that `tokenizers.Tokenizer.from_str` needs to encode and decode the same."""
        return str(self._tokenizer.to_str())


def learn(texts: Iterable[str], size: int) -> Subwords:
    """At most `size` subwords: the bytes, and merges of neighbours that occur at least twice."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    # The library's own `add_prefix_space` spares texts that begin with a blank, which then lose it in decoding.
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return Subwords(tokenizer)


def coders(pairs: Sequence[Sentences], size: int, shared: bool) -> tuple[Coder, Coder]:
    """Of sources and of targets, learnt from `pairs`; one coder if `shared`. Size -1 is by `size_for`, 0 is words."""
    if size == 0:
        return Words(), Words()
    size = size_for(len(pairs)) if size < 0 else size
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if shared:
        both = learn([*sources, *targets], size)
        return both, both
    return learn(sources, size), learn(targets, size)

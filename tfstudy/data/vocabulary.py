"""Vocabularies: tokens to ids and back."""

from collections.abc import Iterable, Sequence

PAD, BOS, EOS, UNK = range(4)
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocab:
    """A vocabulary. Ids 0 to 3 are padding, begin, end and unknown; the tokens follow in sorted order."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = [*SPECIAL, *sorted(set(tokens))]
        self._ids = {token: index for index, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def encode(self, sequence: Sequence[str]) -> list[int]:
        """Return ids, with `UNK` for tokens that are not in the vocabulary."""
        return [self._ids.get(token, UNK) for token in sequence]

    def decode(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the tokens before the first EOS."""
        out: list[str] = []
        for index in ids:
            if index == EOS:
                break
            out.append(self.tokens[index])
        return tuple(out)

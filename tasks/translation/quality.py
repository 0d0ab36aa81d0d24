"""Faults of a corpus: which pairs have which, and the errors for those that cannot be trained on or tested.

The faults are those that `clean-corpus-n.perl` of Moses (Koehn et al. 2007, P07-2045) and OpusFilter (Aulamo et al.
2020, 2020.acl-demos.20) remove.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import is_normalized

import numpy as np

from tfstudy.errors import UserError, quoted
from tfstudy.tasks.base import Example
from tfstudy.tasks.scoring import UNSPACED_SCRIPTS
from tfstudy.tasks.translation.corpus import Corpus, Languages, Sentences, language_code
from tfstudy.tasks.translation.filtering import Row
from tfstudy.tasks.translation.profile import MIN_EVIDENCE, OrderProfile, script_shares

MAX_RATIO = 9  # of the two sides' lengths in words, as in Moses
FAULTS = {  # and how a list describes such pairs; the first fault of a pair is the reason to leave it out
    "empty_side": "with an empty side",
    "length_ratio": "with an extreme length ratio",
    "identical_sides": "with identical sides",
    "control_characters": "with control characters",  # also a byte order mark, and U+FFFD
    "other_script": "in another script",  # most letters of a side, compared with most of that side of the corpus
    "swapped_sides": "that look swapped",
    "duplicate": "that occurred before",
}
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffd]")
OWN_SCRIPTS = {
    script: codes.split()
    for script, codes in {
        "CJK": "ja jpn zh zho", "HANGUL": "ko kor", "CYRILLIC": "ru rus uk ukr bg bul be bel mk mkd kk kaz ky kir",
        "GREEK": "el ell", "ARABIC": "ar ara fa fas ur urd ps pus", "HEBREW": "he heb yi yid", "TAMIL": "ta tam",
        "DEVANAGARI": "hi hin mr mar ne nep", "BENGALI": "bn ben as asm", "GUJARATI": "gu guj", "GURMUKHI": "pa pan",
        "TELUGU": "te tel", "KANNADA": "kn kan", "MALAYALAM": "ml mal", "SINHALA": "si sin", "THAI": "th tha",
        "LAO": "lo lao", "MYANMAR": "my mya", "KHMER": "km khm", "TIBETAN": "bo bod", "GEORGIAN": "ka kat",
        "ARMENIAN": "hy hye", "ETHIOPIC": "am amh ti tir",
    }.items()
}  # fmt: skip
MIXED_FORMS = 0.05  # share of a split not in normal form C, if all of another is
MIN_SWAPPED = 10  # pairs, to judge a whole split
SWAPPED_SHARE = 0.9  # of the pairs with evidence for either order, in a split with swapped sides
Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def faults(pairs: Sequence[Sentences], profile: OrderProfile) -> dict[str, Mask]:
    """Return for each of FAULTS which pairs have it; `profile` is that of the train pairs."""
    seen: set[Sentences] = set()
    tests = {
        "empty_side": _has_empty_side,
        "length_ratio": _extreme_ratio,
        "identical_sides": lambda p: p.source == p.target and bool(p.source.strip()),
        "control_characters": lambda p: bool(CONTROL.search(p.source) or CONTROL.search(p.target)),
        "duplicate": lambda p: p in seen or bool(seen.add(p)),  # type: ignore[func-returns-value]
    }
    masks = {name: np.fromiter(map(test, pairs), bool, len(pairs)) for name, test in tests.items()}
    shares = [script_shares([pair[side] for pair in pairs], profile.scripts[side]) for side in (0, 1)]
    masks["other_script"] = np.minimum(*shares) < 0.5
    masks["swapped_sides"] = profile.evidence(pairs) < -MIN_EVIDENCE
    return {name: masks[name] for name in FAULTS}


def counts(pairs: Sequence[Sentences], found: Mapping[str, Mask]) -> dict[str, int]:
    """Return the number of pairs with each fault, and that of distinct sources with several targets."""
    targets: dict[str, str] = {}
    several = {p.source for p in pairs if targets.setdefault(p.source, p.target) != p.target}
    return {name: int(mask.sum()) for name, mask in found.items()} | {"sources_with_several_targets": len(several)}


def mixed_forms(splits: Mapping[str, Sequence[Sentences]]) -> dict[str, float]:
    """Return which share of each split's pairs is not in Unicode's normal form C; empty if the splits are alike.

    Some languages are never wholly in it, but two splits of one corpus should not differ.
    """
    composed = {name: sum(is_normalized("NFC", p.source + p.target) for p in pairs) for name, pairs in splits.items()}
    shares = {name: 1 - composed[name] / len(pairs) for name, pairs in splits.items() if pairs}
    return shares if max(shares.values()) > MIXED_FORMS + 2 * min(shares.values()) else {}


def without_faults(pairs: Sequence[Sentences], found: Mapping[str, Mask]) -> tuple[list[Sentences], dict[str, int]]:
    """Return the pairs that have no fault, and how many were left out for their first fault in the order of FAULTS."""
    left = np.ones(len(pairs), bool)
    left_out = {}
    for name, mask in found.items():
        left_out[name] = int((left & mask).sum())
        left &= ~mask
    return [pair for pair, good in zip(pairs, left, strict=True) if good], left_out


def check_empty(corpus: Corpus, clean: bool) -> None:
    """Raise `UserError` for a pair with an empty side; with `clean`, only outside train."""
    for split, pairs in corpus.splits.items():
        empty = [i for i, pair in enumerate(pairs) if _has_empty_side(pair)]
        if not empty or (clean and split == "train"):
            continue
        side = int(bool(pairs[empty[0]].source.strip()))
        place = corpus.places.get(split, (f"{split}:",) * 2)[side]
        way_out = "data.clean=true leaves them out" if split == "train" else "only train pairs can be left out"
        raise UserError(
            f"{place}{empty[0] + 1}: the {Sentences._fields[side]} is empty ({len(empty):,} of {len(pairs):,} pairs of "
            f"{split} have an empty side; {way_out})"
        )


def check_order(corpus: Corpus, profile: OrderProfile, languages: Languages, reverse: bool = False) -> None:
    """Raise `UserError` if source and target are swapped in all splits (by script) or in one (compared with train).

    `reverse` is the setting with which the corpus was read.
    """
    wanted, found = [own_script(code) for code in languages], profile.scripts
    swapped = any(wanted[side] == found[1 - side] != "" and wanted[1 - side] != found[1 - side] for side in (0, 1))
    if found[0] != found[1] and swapped:
        columns = corpus.places.get("train", ("",))[0].endswith((".tsv:", ".tsv.gz:"))
        way_out = (
            f"set data.reverse={str(not reverse).lower()}"
            if columns
            else "swap the names of the files or columns of both languages"
        )
        raise UserError(
            f"the sources look like {languages.target or 'the target language'} and the targets like "
            f"{languages.source or 'the source language'} (scripts {found[0]} and {found[1]}): {way_out}"
        )
    for split in [name for name in corpus.splits if name != "train"]:
        if share := swapped_share(corpus.splits[split], profile):
            file = corpus.places.get(split, (split,))[0].rpartition(":")[0] or split
            raise UserError(
                f"{file}: source and target look swapped, compared with train (in {share:.0%} of the pairs): "
                "swap the two sides of this split"
            )


def check_length(split: str, encoded: Iterable[tuple[Row, Example]], limit: int) -> None:
    """Raise `UserError` for a held-out sentence that is too long to translate. None is left out of a test silently."""
    for row, example in encoded:
        for side, tokens, text in zip(Sentences._fields, (example.source, example.target), row.pair, strict=True):
            if len(tokens) > limit:
                raise UserError(
                    f"{split}: a {side} has {len(tokens):,} subwords, of which at most {limit:,} can be translated "
                    f"(a multiple of data.max_subwords): {quoted(text)}; split or remove it"
                )


def swapped_share(pairs: Sequence[Sentences], profile: OrderProfile) -> float:
    """Return which share of the pairs look swapped, if most do and hardly any looks right; otherwise 0."""
    evidence = profile.evidence(pairs)
    swapped, decided = int((evidence < -MIN_EVIDENCE).sum()), int((abs(evidence) > MIN_EVIDENCE).sum())
    sure = swapped >= max(MIN_SWAPPED, SWAPPED_SHARE * decided, len(pairs) / 2)
    return swapped / len(pairs) if sure else 0.0


def own_script(language: str) -> str:
    """Return the script of a language that is not written in Latin letters, by its code; empty if unknown."""
    code = language_code(language)
    return next((script for script, codes in OWN_SCRIPTS.items() if code in codes), "")


def _has_empty_side(pair: Sentences) -> bool:
    return not pair.source.strip() or not pair.target.strip()


def _extreme_ratio(pair: Sentences) -> bool:
    lengths = _words(pair.source), _words(pair.target)
    return max(lengths) > MAX_RATIO * min(lengths) > 0


def _words(text: str) -> int:
    """Return the number of words; in scripts written without spaces, two characters are one."""
    if text.isascii():
        return len(text.split())
    rest, characters = UNSPACED_SCRIPTS.subn(" ", text)
    return len(rest.split()) + (characters + 1) // 2

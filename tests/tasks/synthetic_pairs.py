"""Sentences of the synthetic languages, drawn once for all tests."""

import re

import pytest

from tfstudy.tasks.translation import lexicon
from tfstudy.tasks.translation.synthetic import TESTS, pair

NOUNS = {noun.source: noun for noun in lexicon.NOUNS + lexicon.NAMES}
VERBS = {verb.source: verb for verb in lexicon.VERBS}
ADJECTIVES = {adjective.source: adjective for adjective in lexicon.ADJECTIVES}
STEMS = {  # every stem of the target, with its kind
    **{stem.text: "noun" for noun in NOUNS.values() for stem in (noun.stem, noun.plural) if stem},
    **{noun.possessed.stem.text: "noun" for noun in NOUNS.values() if noun.possessed},
    **{stem.text: "verb" for verb in VERBS.values() for stem in verb.senses},
    **{adjective.stem.text: "adjective" for adjective in ADJECTIVES.values()},
}


@pytest.fixture(scope="module")
def train():
    return [pair("train", i, 0) for i in range(5000)]


@pytest.fixture(scope="module")
def test():
    return [pair("test", i, 0) for i in range(1000)]


@pytest.fixture(scope="module")
def constructed():
    return {split: [pair(split, i, 0) for i in range(120)] for split in TESTS}


def stem_of(word):
    """The stem of a target word: what is left of it without prefixes, up to where it is a stem."""
    rest = re.sub("^(oz)?([aeiu][lbr])?", "", word)
    return next((rest[:n] for n in range(1, len(rest) + 1) if rest[:n] in STEMS), None)

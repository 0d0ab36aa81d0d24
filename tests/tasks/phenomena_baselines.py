"""Translations without knowledge of the grammar, as baselines of the scores."""

from random import Random

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.translation.lexicon import (
    ADJECTIVES,
    NOUNS,
    NUMBERS,
    PLACES,
    PRONOUNS,
    SOURCE,
    TARGET,
    TENSES,
    VERBS,
)

CITATION = {
    **{noun.source: noun.stem.text for noun in [*NOUNS, PRONOUNS[0]]},
    **{verb.source: verb.senses[0].text for verb in VERBS},
    **{adjective.source: adjective.stem.text for adjective in ADJECTIVES},
    **{preposition: postposition for preposition, (postposition, _) in PLACES.items()},
    **{SOURCE[word]: form for word, form in TARGET.items()},
}
UNTRANSLATED = {*TENSES.values(), *NUMBERS.values(), *SOURCE.values()} - CITATION.keys()  # affixes, order


def copying(source: Tokens) -> Tokens:
    """Return the source words."""
    return source


def dictionary(source: Tokens) -> Tokens:
    """Return the citation form of each word in source order, without words that are affixes in the target."""
    return tuple(CITATION.get(word, word) for word in source if word not in UNTRANSLATED)


def shuffled(target: Tokens, random: Random) -> Tokens:
    """Return the target words in random order."""
    return tuple(random.sample(target, len(target)))

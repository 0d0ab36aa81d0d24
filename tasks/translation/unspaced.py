"""Languages written without spaces between words: which they are, and how BLEU splits their text."""

from collections.abc import Sequence

from tfstudy.errors import UserError, quoted
from tfstudy.tasks.scoring import is_unspaced
from tfstudy.tasks.translation.config import TranslationConfig
from tfstudy.tasks.translation.corpus import Sentences, language_code

LANGUAGES = {  # the tokenizer of sacreBLEU for each
    **dict.fromkeys(
        ["ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod", "dz", "dzo"], "char"
    ),
    **dict.fromkeys(["zh", "zho", "cmn", "yue"], "zh"),
}
SAMPLE = 100  # train pairs whose script decides


def is_unspaced_language(language: str) -> bool:
    """Return whether a language is written without spaces between words, by its code."""
    return language_code(language) in LANGUAGES


def unspaced_targets(train: Sequence[Sentences]) -> bool:
    """Return whether the first targets are in a script without spaces between words."""
    return is_unspaced("".join(pair.target for pair in train[:SAMPLE]))


def bleu_tokenizer(config: TranslationConfig, train: Sequence[Sentences]) -> str:
    """Return the name of the tokenizer of sacreBLEU; `UserError` if language and script of the targets disagree."""
    if config.bleu_tokenizer != "auto":
        return config.bleu_tokenizer
    tokenizer = LANGUAGES.get(language_code(config.target_language), "")
    unspaced = unspaced_targets(train)
    given = f"data.target_language is {quoted(config.target_language) if config.target_language else 'not set'}"
    if unspaced and not tokenizer:
        codes = ", ".join(code for code in LANGUAGES if len(code) == 2)
        raise UserError(
            "the targets are in a script without spaces between words, such as Japanese, but "
            f"{given}: set it to one of {codes}, or set data.bleu_tokenizer"
        )
    if tokenizer and not unspaced:
        raise UserError(
            f"{given}, a language written without spaces between words, but the targets are in another script: "
            "correct it, or set data.bleu_tokenizer"
        )
    return tokenizer or "13a"

"""Settings of the task `translation`, and the combinations of them that are refused."""

from typing import Literal

from pydantic import Field

from tfstudy.errors import UserError
from tfstudy.tasks.base import TaskConfig
from tfstudy.tasks.translation.subwords import BYTES

LARGEST = 10**8  # number of pairs, as of the examples of other tasks

# Settings that have no effect on the embedded languages.
CORPUS_ONLY = (
    *("root", "hub", "hub_config", "revision", "source_language", "target_language", "reverse"),
    *("subset_seed", "clean", "lowercase", "bleu_tokenizer"),
)


class TranslationConfig(TaskConfig):
    """Settings of the task `translation` (section `data`)."""

    split: str = Field("embedded", description="embedded (synthetic languages) or corpus (data.root or data.hub)")
    root: str = Field(
        "",
        description="folder with train, dev and test as .tsv (source, tab, target), .jsonl or parallel files (or .gz)",
    )
    hub: str = Field("", description="id of a data set on the Hugging Face hub, or a local folder of parquet files")
    hub_config: str = Field("", description="configuration of the data set on the hub, such as de-en")
    revision: str = Field("", description="branch or commit of the data set on the hub")
    source_language: str = Field("", description="code of the source language, such as en; selects files and columns")
    target_language: str = Field(
        "", description="code of the target language; selects files, columns and the tokenizer of BLEU"
    )
    reverse: bool = Field(False, description="translate from the second column of two-column files to the first")
    train_pairs: int = Field(
        0, ge=0, le=LARGEST, description="number of train pairs; 0: all of a corpus, or 5,000 of the embedded languages"
    )
    subset_seed: int = Field(0, ge=0, lt=2**63, description="seed of the subset of a corpus; subsets are nested")
    clean: bool = Field(
        False,
        description="leave out train pairs with a fault: an empty side, one side with over 9 times the words of the "
        "other (Moses), equal or swapped sides, control characters, a side in another script, a duplicate",
    )
    drop_overlap: bool = Field(True, description="leave out train pairs whose source or target occurs in another split")
    max_train_length: int = Field(
        0, ge=0, description="maximum source words in training; longer pairs become test splits; 0: no limit"
    )
    max_subwords: int = Field(
        0, ge=0, description="maximum subwords of a train source or target; longer pairs are left out; 0: 256"
    )
    subword_vocab_size: int = Field(
        -1, ge=-1, description="maximum number of subwords; -1: chosen by the number of train pairs, 0: whole words"
    )
    shared_subwords: bool = Field(True, description="share one subword vocabulary between both languages")
    subword_pairs: int = Field(
        0, ge=0, le=LARGEST, description="number of pairs to learn subwords from; 0: the train pairs"
    )
    lowercase: bool = Field(False, description="lowercase all text of a corpus, including references")
    bleu_tokenizer: Literal["auto", "13a", "intl", "char", "zh"] = Field(
        "auto",
        description="tokenizer of sacreBLEU's BLEU; auto: char for ja, th, lo, km, my and bo, zh for zh, else 13a",
    )


def check(config: TranslationConfig) -> None:
    """Raise `UserError` for settings that contradict each other or have no effect."""
    if 0 < config.subword_vocab_size < BYTES:
        raise UserError(
            f"data.subword_vocab_size must be -1, 0 or at least {BYTES} (all bytes), but is {config.subword_vocab_size}"
        )
    if config.split == "embedded":
        for key in CORPUS_ONLY:
            if getattr(config, key) != type(config).model_fields[key].default:
                raise UserError(f"data.{key} can only be set with --split corpus")
        return
    if bool(config.root) == bool(config.hub):
        raise UserError("split scheme 'corpus' needs exactly one of data.root (a folder) and data.hub (an id)")
    if config.source_language and config.source_language == config.target_language:
        raise UserError(f"data.source_language and data.target_language are both '{config.source_language}'")
    if config.seed:
        raise UserError("data.seed is for the embedded languages; data.subset_seed selects the pairs of a corpus")
    for key in ("hub_config", "revision") if config.root else ("reverse",):
        if getattr(config, key):
            raise UserError(f"data.{key} cannot be set with data.{'root' if config.root else 'hub'}")

"""Read a corpus from a data set on the Hugging Face hub."""

import re
from pathlib import Path
from typing import Any

from tfstudy.errors import UserError
from tfstudy.tasks.translation.corpus import TEST, Corpus, Languages, pair_of, split_name


def from_hub(hub: str, config: str, revision: str, languages: Languages) -> Corpus:
    """Return the corpus of a data set on the Hugging Face hub, at `revision` if it is not empty."""
    from datasets import load_dataset_builder

    try:
        builder = load_dataset_builder(hub, config or None, revision=revision or None)
        builder.download_and_prepare()
        loaded = builder.as_dataset()
        named = [(name, split_name(str(name))) for name in loaded]
    except Exception as error:  # the errors of the hub have no common base class
        raise UserError(f"data.hub: can't load '{hub}': {_reason(error, hub)}") from None
    splits = [split for _, split in named if split]
    if len(set(splits)) < len(splits):
        raise UserError(f"data.hub: '{hub}' has two splits with the same role: {', '.join(map(str, loaded))}")
    if "train" not in splits or not any(TEST.fullmatch(split) for split in splits):
        raise UserError(
            f"data.hub: '{hub}' needs a train and a test split, but has {', '.join(str(name) for name in loaded)}"
        )
    try:
        pairs = {
            split: [
                pair_of(row, languages, f"data.hub: '{hub}', {name}, row {number}")
                for number, row in enumerate(loaded[name].select_columns(_text_columns(loaded[name])), 1)
            ]
            for name, split in named
            if split
        }
    except UserError:
        raise
    except Exception as error:  # of the formats that it reads
        raise UserError(f"data.hub: can't read '{hub}': {_reason(error, hub)}") from None
    return Corpus(
        pairs,
        # For a repository the hash is the commit; for a folder it is a shorter hash of the library.
        builder.hash if re.fullmatch("[0-9a-f]{40}", builder.hash or "") else "",
        {split: (f"data.hub: '{hub}', {name}, row ",) * 2 for name, split in named if split},
    )


def _text_columns(rows: Any) -> list[str]:
    """Return the columns that can hold sentences: not audio or images, which need further packages to be read."""
    from datasets import Translation, Value

    return [name for name, feature in rows.features.items() if isinstance(feature, (dict, Translation, Value))]


def _reason(error: Exception, hub: str) -> str:
    """Return the error in one line, with a way to fix it."""
    text = str(error).strip().split("\n")[0][:160] or type(error).__name__
    if "scripts are no longer supported" in text:
        return f"{text}. If the hub has a parquet copy, use data.revision=refs/convert/parquet"
    if Path(hub).is_dir():
        return f"{text}. A folder of text files is set with data.root"
    if isinstance(error, ConnectionError) or "offline" in text.lower():
        return f"{text}. Offline, use data.root, or load the data set once while online"
    return text

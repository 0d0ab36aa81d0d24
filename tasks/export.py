"""The splits of a task as a `DatasetDict`, and as files."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tfstudy.errors import UserError, one_of
from tfstudy.tasks.base import Tag, Task

if TYPE_CHECKING:
    from datasets import DatasetDict


def to_datasets(task: Task) -> "DatasetDict":
    """Return all splits as a `DatasetDict` with columns source and target (text) and the tags."""
    from datasets import Dataset, DatasetDict

    def rows(split: str) -> Dataset:
        examples = task.examples(split)
        columns: dict[str, list[Tag]] = {
            "source": [task.text(e.source) for e in examples],
            "target": [task.text(e.target) for e in examples],
        }
        for tag in examples[0].tags if examples else ():
            columns[tag] = [e.tags[tag] for e in examples]
        return Dataset.from_dict(columns)

    return DatasetDict({split: rows(split) for split in task.splits().all})


def write_datasets(task: Task, out: Path, format_: str) -> list[Path]:
    """Write one jsonl or parquet file per split to the new folder `out`, and return their paths.

    `datasets.load_dataset("json" or "parquet", ...)` reads them. On an error no folder is left.
    """
    one_of("format", format_, ("jsonl", "parquet"))
    if out.exists():
        raise UserError(f"--out: {out} already exists")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
            folder = Path(temporary) / out.name
            folder.mkdir()
            with _no_progress_bars():
                for split, rows in to_datasets(task).items():
                    path = str(folder / f"{split}.{format_}")
                    rows.to_parquet(path) if format_ == "parquet" else rows.to_json(path, force_ascii=False)
            folder.rename(out)
    except OSError as error:
        raise UserError(f"can't write to {out}: {error.strerror or error}") from None
    return sorted(out.iterdir())


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Within the block, `datasets` shows no progress bars."""
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()

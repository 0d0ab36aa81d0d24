"""Tasks exported as data sets."""

import datasets
import pytest

from tests.tasks.toy_task import toy
from tfstudy.errors import UserError
from tfstudy.tasks.export import to_datasets, write_datasets
from tfstudy.tasks.scan import Scan


def test_an_export_has_a_row_per_example_and_a_column_per_tag():
    exported = to_datasets(toy())
    assert list(exported) == ["train", "validation", "near", "far"]
    assert all(rows.column_names == ["source", "target", "length", "kind"] for rows in exported.values())
    assert exported["train"].to_list() == [
        {"source": "a aa", "target": "A ä", "length": 2, "kind": "of a"},
        {"source": "b bb", "target": "B ä", "length": 2, "kind": "of b"},
    ]


def test_an_export_of_scan_holds_all_its_examples():
    task = Scan(Scan.Config(split="simple_p1"))
    exported = to_datasets(task)
    assert {split: len(rows) for split, rows in exported.items()} == {
        split: len(task.examples(split)) for split in ("train", "validation", "test")
    }
    first = task.examples("train")[0]
    row = {"source": " ".join(first.source), "target": " ".join(first.target), **first.tags}
    assert exported["train"][0] == row


@pytest.mark.parametrize(("form", "reader"), [("jsonl", "json"), ("parquet", "parquet")])
def test_what_is_written_is_read_back_by_datasets(form, reader, tmp_path):
    written = write_datasets(toy(), tmp_path / "new" / "out", form)
    assert [path.name for path in written] == [f"{split}.{form}" for split in ("far", "near", "train", "validation")]
    back = datasets.load_dataset(
        reader, data_files={path.stem: str(path) for path in written}, cache_dir=str(tmp_path / "cache")
    )
    assert {split: rows.to_list() for split, rows in back.items()} == {
        split: rows.to_list() for split, rows in to_datasets(toy()).items()
    }
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["out"]


def test_jsonl_is_written_as_utf_8(tmp_path):
    write_datasets(toy(), tmp_path / "out", "jsonl")
    assert '"E ä"' in (tmp_path / "out" / "far.jsonl").read_text(encoding="utf-8")


def test_an_export_refuses_an_existing_folder(tmp_path):
    (tmp_path / "mine").write_text("keep me")
    for out in (tmp_path, tmp_path / "mine"):
        with pytest.raises(UserError, match=f"{out} already exists"):
            write_datasets(toy(), out, "jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine").read_text() == "keep me"


def test_an_export_refuses_an_unknown_format(tmp_path):
    with pytest.raises(UserError, match=r"'parket'.*did you mean 'parquet'.*jsonl, parquet"):
        write_datasets(toy(), tmp_path / "out", "parket")
    assert list(tmp_path.iterdir()) == []


def failing_after_the_first(monkeypatch, error):
    """`to_json` writes the first split, and half of the second."""
    write, calls = datasets.Dataset.to_json, []

    def to_json(self, path, **options):
        calls.append(path)
        write(self, path, **options)
        if len(calls) == 2:
            raise error

    monkeypatch.setattr(datasets.Dataset, "to_json", to_json)
    return calls


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    calls = failing_after_the_first(monkeypatch, OSError(28, "No space left on device"))
    with pytest.raises(UserError, match=r"can't write to .*out: No space left on device"):
        write_datasets(toy(), tmp_path / "out", "jsonl")
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing_half_written(tmp_path, monkeypatch):
    failing_after_the_first(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_datasets(toy(), tmp_path / "out", "jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_created_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"can't write to .*file/out: "):
        write_datasets(toy(), tmp_path / "file" / "out", "parquet")

"""The task pairs: which files are which split, which column is what, tokens, tags, and tokens that train lacks."""

import json
import re
import shutil
from pathlib import Path

import datasets
import pytest

from tests.commands import tfstudy
from tests.tasks.corpora import pairs_folder, tsv, write
from tfstudy import load as tfstudy_load
from tfstudy.errors import UserError
from tfstudy.tasks.base import unknown_tokens, warnings
from tfstudy.tasks.pairs import Pairs
from tfstudy.tasks.reading import role_of

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "pairs"  # published data sets, where there is a copy
ROWS = [("jump twice", "J J", "verb"), ('walk "left"', "L W", "turn"), ("NA", "null", "verb")]
HEADER = ("Input", "Output", "Kind")
TEST = [("walk twice", "W W", "verb")]


def made(root, **config):
    return Pairs(Pairs.Config(root=str(root), **config))


def texts(task, split):
    return [(task.text(e.source), task.text(e.target)) for e in task.examples(split)]


def test_lines_of_scan_and_a_header_with_tags_are_read(tmp_path):
    lines = "".join(f"IN: {a} OUT: {b}\n" for a, b, _ in ROWS)
    scan = made(write(tmp_path / "scan", {"tasks_train_x.txt": lines, "tasks_test_x.txt": "IN: a OUT: b \n \n\n"}))
    header = made(write(tmp_path / "tsv", {"train.tsv": tsv([HEADER, *ROWS]) + "\n", "test.tsv": tsv([HEADER, *TEST])}))
    for task in (scan, header):
        assert texts(task, "train") == [row[:2] for row in ROWS]
        assert task.splits().all == ("train", "test")
        assert task.examples("train")[0].tags["length"] == 2
        assert task.remarks() == []
    assert header.examples("train")[0].tags["kind"] == "verb"


def test_further_columns_are_tags_and_other_files_are_test_sets_of_their_own_name(tmp_path):
    rows = {"train.tsv": ROWS, "train_100.tsv": ROWS[:1]}
    rows |= dict.fromkeys(("dev.tsv", "gen.tsv", "test.tsv", "long-ones.tsv"), TEST)
    root = write(tmp_path, {name: tsv(own) for name, own in rows.items()} | {"README.md": "about", "x.txt": "a\n"})
    task = made(root, columns="source,target,kind")
    assert task.splits() == ("train", "validation", ("test", "gen", "long_ones"))
    assert [e.tags["kind"] for e in task.examples("train")] == ["verb", "turn", "verb"]
    assert task.remarks()[0] == (
        "not used: README.md (no format that is read), train_100.tsv (train.tsv is the train split), "
        "x.txt (one column, and no parallel file)"
    )
    assert json.loads(json.dumps(task.notes())) == task.notes()
    other = made(root, columns="kind:target:source", roles="gen.tsv=none,long-ones.tsv=validation,dev.tsv=my_test")
    assert other.splits() == ("train", "validation", ("test", "my_test"))
    assert texts(other, "train")[0] == ("verb", "J J")
    many = tsv([(f"a{n}", "b", str(n)) for n in range(300)])
    task = made(write(tmp_path / "many", {"train.tsv": many, "test.tsv": many}))
    assert {*task.examples("train")[0].tags} == {"length"}
    assert task.remarks()[0] == "not used: column column_3 (300 values; a tag has at most 200)"
    long = tsv([("a", "b", "x" * 201)])
    task = made(write(tmp_path / "long", {"train.tsv": long, "test.tsv": long}))
    assert task.remarks()[0].startswith("not used: column column_3 (a value of 201 characters")


def test_a_file_is_for_the_split_that_its_name_says():
    roles = {
        "tur_small.train": "train", "dev.tsv": "validation", "valid.src": "validation",
        "tur.gold": "test", "test_2017.tsv": "test_2017", "tasks_test_length.txt": "test", "gen.tsv": "gen",
        "Testing-long.tsv": "testing_long", "contest.tsv": "contest",
    }  # fmt: skip
    assert {name: role_of(name) for name in roles} == roles


def test_features_follow_the_source_as_tokens_of_their_own(tmp_path):
    files = {"a.train": "go on\twent on\tV;PST\n", "a.dev": "go\tgo\tV;NFIN\n", "a.gold": "see\tsaw\tV;PST\n"}
    task = made(write(tmp_path, files), columns="source,target,features", tokens="characters")
    [example] = task.examples("train")
    assert example.source == ("g", "o", "␣", "o", "n", "[V]", "[PST]")
    assert task.text(example.target) == "went on"
    assert task.tokens("go on\tV; PST") == example.source
    assert task.splits() == ("train", "validation", ("test",))


def test_tokens_that_train_lacks_are_counted_with_the_ceiling_they_set(tmp_path):
    test = [("jump twice", "J J", "x"), ("jump", "W", "x"), ("run", "J", "x"), ("run", "R", "x")]
    task = made(write(tmp_path, {"train.tsv": tsv(ROWS[:1]), "test.tsv": tsv(test)}))
    assert unknown_tokens(task) == {"test": {"source": 2, "target": 2}}
    assert warnings(task, {"test": 0}) == [
        "2 of 4 targets of test have an unknown token: at most 50 % can be right",
        "2 of 4 sources of test have an unknown token",
    ]
    assert task.vocabulary() == ({"jump", "twice"}, {"J"})


def test_any_text_is_kept_as_it_is_and_an_empty_side_is_refused_with_its_line(tmp_path):
    rows = [("<pad> <eos>", "<unk> \u2028 x\u00a0y"), ('"a b', "NA 1.50")]
    root = write(tmp_path / "good", {"train.tsv": tsv(rows), "test.tsv": tsv(rows)})
    for tokens in ("words", "characters"):
        assert texts(made(root, tokens=tokens), "train") == rows
    message = "train.tsv:2: the source is empty (1 of 1 pairs of train have"
    with pytest.raises(UserError, match=re.escape(message)):
        made(write(tmp_path, {"train.tsv": "source\ttarget\n \tb\n", "test.tsv": "a\tb\n"}))


def test_a_data_set_of_the_hub_has_its_columns_and_all_of_its_splits(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for name in ("train", "test", "gen"):
        rows = [{"question": "jump twice", "query": "J J", "level": 3, "id": None}]
        datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / f"{name}.parquet"))
    task = Pairs(Pairs.Config(hub=str(tmp_path), columns="question,query,level"))
    assert task.splits() == ("train", None, ("test", "gen"))
    assert task.corpus() == tmp_path.name, "the name of a folder, however its path is written"
    assert task.examples("gen") == [(("jump", "twice"), ("J", "J"), {"length": 2, "level": "3"})]


def test_a_run_is_made_by_one_command_and_shown_by_tag(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pairs_folder(tmp_path / "files")
    with Path("files/gen.tsv").open("a") as file:
        file.write("z a\ta z\teven\n")
    settings = ["--set", "data.root=files", "--set", "data.columns=source,target,parity"]
    assert tfstudy("run", "pairs", "--arch", "lstm", "--smoke", *settings) == 0
    ceiling = "1 of 21 targets of gen have an unknown token: at most 95.24 % can be right"
    assert ceiling in capsys.readouterr().err
    [path] = Path("results-smoke").glob("runs/*/*/*/result.json")
    assert {*json.loads(path.read_text())["splits"]} == {"validation", "test", "gen"}
    assert tfstudy("result", str(path.parent), "--by", "parity") == 0
    assert {"even", "odd"} <= {*capsys.readouterr().out.split()}
    run = tfstudy_load(str(path.parent))
    outputs = run.predict(["a b", "c d e"])
    shutil.rmtree("files")
    moved = tfstudy_load(shutil.move(path.parent, tmp_path / "elsewhere"))
    assert moved.predict(["a b", "c d e"]) == outputs
    for damaged in ({}, {"data.json": '{"source": 3}'}):
        assert Pairs.restored(Pairs.Config(root="x"), damaged) is None
    with pytest.raises(UserError, match=r"can predict, but its data are needed for this: data\.root: can't read files"):
        moved.evaluate()


@pytest.mark.skipif(not DATA.is_dir(), reason="no copy of the data sets beside the repository")
def test_cogs_and_sigmorphon_are_read_as_they_are_published():
    cogs = made(DATA / "cogs-variable-free", columns="source,target,category")
    assert {split: len(cogs.examples(split)) for split in cogs.splits().all} == {
        "train": 24155, "validation": 3000, "test": 3000, "gen": 21000
    }  # fmt: skip
    assert len({e.tags["category"] for e in cogs.examples("gen")}) == 21
    turkish = made(DATA / "sigmorphon-2022", columns="source,target,features", tokens="characters")
    assert {split: len(turkish.examples(split)) for split in turkish.splits().all} == {
        "train": 700, "validation": 1000, "test": 2000
    }  # fmt: skip

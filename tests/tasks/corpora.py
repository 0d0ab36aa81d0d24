"""Small corpora in every format, and translation tasks on them."""

import gzip
import json
import random
from typing import NamedTuple

import pytest
from hypothesis import strategies as st

from tfstudy.tasks.corpus import FilesConfig
from tfstudy.tasks.reading import read_pairs
from tfstudy.tasks.translation.task import Translation


class Sentences(NamedTuple):
    source: str
    target: str


PAIRS = [Sentences("a dog", "ein Hund"), Sentences('"NA" 007', "NA"), Sentences("x\u2028y\x85z\x0b\x1c\rq.", "1.50 é")]
TEST = [Sentences("two", "zwei")]
SPLITS = {"train": PAIRS, "validation": TEST, "test": TEST, "test2017": [*TEST, *TEST]}
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff")
sentence = st.text(characters, min_size=1, max_size=12).filter(str.strip)
pair = st.builds(Sentences, sentence, sentence)


def tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def jsonl(pairs, form):
    return "".join(json.dumps(form(p)) + "\n" for p in pairs)


FORMS = {
    "tsv": lambda name, pairs: {f"{name}.tsv": tsv(pairs)},
    "header": lambda name, pairs: {f"{name}.tsv": "Source\tTarget\n" + tsv(pairs)},
    "of Windows": lambda name, pairs: {f"{name}.tsv": "\ufeff" + tsv(pairs)[:-1].replace("\n", "\r\n")},
    "tsv.gz": lambda name, pairs: {f"{name}.tsv.gz": tsv(pairs)},
    "source and target": lambda name, pairs: {f"{name}.jsonl": jsonl(pairs, Sentences._asdict)},
    "codes": lambda name, pairs: {f"{name}.jsonl": jsonl(pairs, lambda p: {"id": 1, "de": p.target, "en": p.source})},
    "header of codes": lambda name, pairs: {f"{name}.tsv": "en\tde\n" + tsv(pairs)},
    "translation": lambda name, pairs: {
        f"{name}.jsonl.gz": jsonl(pairs, lambda p: {"translation": {"en": p.source, "de": p.target}, "id": "7"})
    },
    "parallel, one gzipped": lambda name, pairs: {
        f"{name}.en.gz": "".join(f"{p.source}\n" for p in pairs), f"{name}.de": "".join(f"{p.target}\n" for p in pairs)
    },
}  # fmt: skip


def write(folder, files):
    """A folder of files of text or bytes; those called .gz are gzipped, if they are text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        zipped = name.endswith(".gz") and isinstance(content, str)
        (folder / name).write_bytes(gzip.compress(data) if zipped else data)
    return str(folder)


def corpus(folder, form="tsv", splits=SPLITS):
    files = {}
    for name, pairs in splits.items():
        files |= FORMS[form]("dev" if name == "validation" else name, pairs)
    return write(folder, files)


def columns(folder, **splits):
    """A folder of two-column files, such as `columns(folder, train=[("a", "b")])`."""
    return write(folder, {f"{split}.tsv": tsv(pairs) for split, pairs in splits.items()})


def pairs_folder(folder):
    """A folder of strings and their reverses as the files of `pairs`, with a column of tags."""
    draw = random.Random(0)
    strings = [" ".join(draw.choices("abcde", k=draw.randint(2, 8))) for _ in range(500)]
    strings = [*dict.fromkeys(strings)][:300]
    rows = [f"{text}\t{text[::-1]}\t{'even' if len(text.split()) % 2 == 0 else 'odd'}\n" for text in strings]
    files = {"train.tsv": rows[:240], "dev.tsv": rows[240:260], "test.tsv": rows[260:280], "gen.tsv": rows[280:]}
    return write(folder, {name: "".join(lines) for name, lines in files.items()})


def translation(root="", **config):
    """The task on the corpus in a folder, or on the embedded languages."""
    return Translation(Translation.Config(**({"split": "corpus", "root": str(root)} if root else {}) | config))


def read(root="", **config):
    """What a task reads of a folder, or of the hub."""
    return read_pairs(FilesConfig(split="corpus", root=str(root), **config))


def read_splits(root="", **config):
    """The pairs of each split of a folder, or of the hub."""
    splits = read(root, **config).splits
    return {name: [*map(Sentences, split.sources, split.targets)] for name, split in splits.items()}


def invented(name, n):
    """`n` pairs of short sentences, of which none occurs twice."""
    draw = random.Random(name)
    words = ["red", "blue", "old", "young", "dog", "cat", "bird", "tree", "sees", "likes", "finds", "near", "under"]
    return [
        (
            f"{' '.join(draw.choices(words, k=draw.randint(2, 9)))} {name}{i}",
            f"{name}{i} {' '.join(draw.choices(words, k=4))[::-1]}",
        )
        for i in range(n)
    ]


@pytest.fixture
def root(tmp_path):
    return columns(tmp_path / "set", train=invented("train", 300), dev=invented("dev", 20), test=invented("test", 30))


@pytest.fixture(scope="session")
def embedded():
    """The embedded pair with few pairs to train on."""
    return translation(train_pairs=400)


@pytest.fixture
def few(monkeypatch):
    """Small held-out splits of the embedded pair, which take most of its time."""
    monkeypatch.setattr("tfstudy.tasks.translation.task.EVAL_PAIRS", {"validation": 30, "test": 100})
    monkeypatch.setattr("tfstudy.tasks.translation.task.CONSTRUCTION_PAIRS", 10)


def sources(task, split="train"):
    return [task.text(e.source) for e in task.examples(split)]


def targets(task, split="train"):
    return [task.text(e.target) for e in task.examples(split)]

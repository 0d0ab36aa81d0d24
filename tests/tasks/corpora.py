"""Small corpora in every format."""

import gzip
import json
from pathlib import Path

from hypothesis import strategies as st

from tfstudy.tasks.translation.corpus import Languages, Sentences

HERE = Path(__file__).resolve().parents[2]
REAL = HERE.parent / "shared" / "data" / "translation"  # corpora as two-column files, where there is a copy
EN_DE = Languages("en", "de")
PAIRS = [Sentences("a dog", "ein Hund"), Sentences('"NA" 007', "NA"), Sentences("x\u2028y\x85z\x0b\x1c\rq.", "1.50 é")]
TEST = [Sentences("two", "zwei")]
SPLITS = {"train": PAIRS, "validation": TEST, "test": TEST, "test2017": [*TEST, *TEST]}
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff")
sentence = st.text(characters, min_size=1, max_size=12).filter(str.strip)
pair = st.builds(Sentences, sentence, sentence)


def tsv(pairs):
    return "".join(f"{p.source}\t{p.target}\n" for p in pairs)


def jsonl(pairs, form):
    return "".join(json.dumps(form(p)) + "\n" for p in pairs)


FORMS = {
    "tsv": lambda name, pairs: {f"{name}.tsv": tsv(pairs)},
    "no last line end": lambda name, pairs: {f"{name}.tsv": tsv(pairs).removesuffix("\n")},
    "carriage returns": lambda name, pairs: {f"{name}.tsv": tsv(pairs).replace("\n", "\r\n")},
    "byte order mark": lambda name, pairs: {f"{name}.tsv": "\ufeff" + tsv(pairs)},
    "tsv.gz": lambda name, pairs: {f"{name}.tsv.gz": tsv(pairs)},
    "source and target": lambda name, pairs: {f"{name}.jsonl": jsonl(pairs, Sentences._asdict)},
    "codes": lambda name, pairs: {f"{name}.jsonl": jsonl(pairs, lambda p: {"id": 1, "de": p.target, "en": p.source})},
    "translation": lambda name, pairs: {
        f"{name}.jsonl.gz": jsonl(pairs, lambda p: {"translation": {"en": p.source, "de": p.target}, "id": "7"})
    },
    "parallel": lambda name, pairs: {
        f"{name}.en": "".join(f"{p.source}\n" for p in pairs), f"{name}.de": "".join(f"{p.target}\n" for p in pairs)
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


def corpus(folder, form="tsv", dev="dev", splits=SPLITS):
    files = {}
    for name, pairs in splits.items():
        files |= FORMS[form](dev if name == "validation" else name, pairs)
    return write(folder, files)

"""Time, peak memory and message of `tfstudy list corpora` and of a smoke run on large, odd and damaged corpora.

Each corpus has invented words, and each command a process of its own. Ratios are to the plain corpus.
"""

import argparse
import gzip
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
CONTROL = "\x00\x07\x1b\u200b\u2028"
LONG = 100_000  # words
RUN = "run translation --split corpus --smoke --arch lstm --quiet --set data.root=corpus --set data.source_language=xx"


class Answer(NamedTuple):
    """The result of a command."""

    seconds: float
    peak_mib: float
    code: int  # exit code
    message: str  # its error, or what it says of the train split


def sentences(pairs: int, seed: int) -> bytes:
    """Return a file of pairs of 3 to 20 invented words; a translation replaces each word by another."""
    draw = random.Random(0)
    words = [("".join(draw.choices(SYLLABLES, k=3)), "".join(draw.choices(SYLLABLES, k=2)) + "en") for _ in range(5000)]
    draw = random.Random(seed)
    lines = []
    for _ in range(pairs):
        chosen = draw.choices(words, k=draw.randint(3, 20))
        lines.append(" ".join(a for a, _ in chosen) + "\t" + " ".join(b for _, b in chosen) + "\n")
    return "".join(lines).encode()


def every_third(change: Callable[[str, int], str]) -> Callable[[bytes], bytes]:
    """Return a change of a file that changes every third line, given with its number."""

    def changed(text: bytes) -> bytes:
        lines = text.decode().split("\n")
        return "\n".join(change(line, i // 3) if i % 3 == 0 else line for i, line in enumerate(lines)).encode()

    return changed


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda text: text,
    f"one pair of {LONG:,} words": lambda text: text + b"ba " * LONG + b"\t" + b"bo " * LONG + b"\n",
    "mixed scripts": every_third(lambda line, _: line.replace("a", "ж").replace("o", "日")),
    "control characters": every_third(lambda line, i: line.replace(" ", CONTROL[i % len(CONTROL)], 1)),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "the same target everywhere": lambda text: b"".join(line.split(b"\t")[0] + b"\tja\n" for line in text.splitlines()),
    "all sources empty": lambda text: b"".join(b"\t" + line.split(b"\t")[1] + b"\n" for line in text.splitlines()),
    "three columns in the last line": lambda text: text + b"a\tb\tc\n",
    "a tenth of a gzip file": lambda text: gzip.compress(text)[: len(text) // 30],
}


def ask(words: list[str], folder: Path) -> Answer:
    """Run a command of tfstudy in `folder`."""
    start = time.perf_counter()
    with (folder / "output").open("w+") as output:
        process = subprocess.Popen([sys.executable, "-m", "tfstudy", *words], stdout=output, stderr=output, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        output.seek(0)
        lines = [line.strip() for line in output]
    message = next((line for line in lines if line.startswith(("error:", "train:", "Traceback"))), "")
    return Answer(seconds, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status), message)


def measure(name: str, train: bytes, baseline: list[float]) -> list[float]:
    """Print the answers of both commands about a corpus with this train split; return their seconds."""
    print(name)
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        (corpus / ("train.tsv.gz" if train.startswith(b"\x1f\x8b") else "train.tsv")).write_bytes(train)
        (corpus / "dev.tsv").write_bytes(sentences(100, seed=1))
        (corpus / "test.tsv").write_bytes(sentences(100, seed=2))
        for i, words in enumerate((["list", "corpora", "corpus"], [*RUN.split(), "--set", "data.target_language=yy"])):
            answer = ask(words, Path(folder))
            ratio = answer.seconds / (baseline[i] if baseline else answer.seconds)
            numbers = f"{answer.seconds:>8.1f}{ratio:>7.2f}{answer.peak_mib:>8,.0f}{answer.code:>6}"
            print(f"  {words[0]:<5}{numbers}  {answer.message}", flush=True)
            taken.append(answer.seconds)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)  # that of `benchmarks.timing` imports torch, and a process
    parser.add_argument("--quick", action="store_true", help="small corpora")  # never has less memory than its parent
    quick = parser.parse_args().quick
    print(f"  {'':<5}{'seconds':>8}{'ratio':>7}{'MiB':>8}{'exit':>6}  message")
    plain = sentences(200 if quick else 10_000, seed=0)
    baseline: list[float] = []
    for name, change in CHANGES.items():
        taken = measure(name, change(plain), baseline)
        baseline = baseline or taken
    if not quick:
        measure("1,000,000 pairs", sentences(1_000_000, seed=0), baseline)


if __name__ == "__main__":
    main()

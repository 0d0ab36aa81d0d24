"""Memory and time of evaluating translation when one train pair is very long: bounded batches against fixed ones.

The corpus is synthetic: a median of 45 subwords, 99 % below 185, and one train pair of about 1,300. The models are not
trained, so that every output runs to its limit. Each measurement has a process of its own. `512 rows` decodes 512
sentences at a time whatever they need; `longest` sets the limit of all outputs by the longest target.
"""

import multiprocessing
import random
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.timing import Clock, arguments, now
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import merge
from tfstudy.evaluation import batches
from tfstudy.evaluation.evaluate import evaluate
from tfstudy.experiment.prepare import prepare
from tfstudy.training.peak_memory import peak_mib, reset_peak

OUTLIER, TRAIN = 900, 2000  # words of the long pair; train pairs
WAYS: dict[str, dict[str, Any]] = {
    "bounded": {"limit": "source"},
    "512 rows": {"limit": "source", "fixed": True},
    "longest": {"limit": "longest"},
}


class Measured(NamedTuple):
    """The evaluation of one split."""

    seconds: float
    before_mib: float  # of the process when it starts
    peak_mib: float


def write_corpus(folder: Path, sentences: int) -> None:
    """Write a train, a validation and a test set of a word-by-word translation."""
    draw = random.Random(0)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(6000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    names = {word: "".join(draw.choices(syllables, k=draw.randint(1, 4))) for word in words}

    def pair(length: int) -> str:
        source = draw.choices(words, weights, k=length)
        return " ".join(source) + "\t" + " ".join(names[word] for word in source)

    def length() -> int:
        return max(3, min(120, round(draw.lognormvariate(3.35, 0.6))))

    for name, count in (("train", TRAIN), ("dev", 100), ("test", sentences)):
        lines = [pair(length()) for _ in range(count)] + [pair(OUTLIER)] * (name == "train")
        (folder / f"{name}.tsv").write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def measure(arch: str, root: str, way: str, threads: int, cpu: bool) -> Measured:
    """Evaluate a model with its initial weights on the test set."""
    Clock.cpu = cpu
    if threads:
        torch.set_num_threads(threads)
    settings = WAYS[way]
    data = {"split": "corpus", "root": root, "max_subwords": 10_000, "source_language": "xx", "target_language": "yy"}
    changes = {"task": "translation", "arch": arch, "data": data, "decode": {"limit": settings["limit"]}}
    prepared = prepare(resolve(merge(preset("translation", arch), changes)))
    if settings.get("fixed"):
        batches.BUDGET = 2**60
    device = torch.device("cpu")
    reset_peak(device)
    before, start = peak_mib(device), now()
    evaluate(prepared.model, prepared.data, "test", prepared.config.decode, prepared.config.eval, device)
    return Measured(now() - start, before, peak_mib(device))


def main() -> None:
    chosen = arguments(__doc__)
    ways = ["bounded"] if chosen.quick else list(WAYS)
    with tempfile.TemporaryDirectory() as root:
        write_corpus(Path(root), sentences := 60 if chosen.quick else 600)
        for arch in chosen.arch:
            print(
                f"\n{arch}, {sentences} sentences\n  {'':<12}{'seconds':>10}{'ratio':>8}{'MiB before':>12}{'peak':>10}"
            )
            baseline = 0.0
            for way in ways:
                context = multiprocessing.get_context("spawn")
                with ProcessPoolExecutor(1, mp_context=context) as executor:
                    measured = executor.submit(measure, arch, root, way, chosen.threads, chosen.cpu).result()
                baseline = baseline or measured.seconds
                figures = f"{measured.seconds:>10.1f}{measured.seconds / baseline:>8.2f}"
                print(f"  {way:<12}{figures}{measured.before_mib:>12,.0f}{measured.peak_mib:>10,.0f}", flush=True)


if __name__ == "__main__":
    main()

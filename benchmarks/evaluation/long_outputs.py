"""Time and peak memory of decoding long outputs, against the first implementation.

The first implementation decodes greedily twice (free-running and of the gold length), repeats and reorders the encoded
source for each hypothesis of a beam, copies all keys and values at every token, and has no bound on explicit scores.
Models are small and untrained, sources and outputs are of the same length, and EOS is improbable, so that both do all
the work. Every measurement is in a process of its own.
"""

import multiprocessing
import resource
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.timing import alternate, arguments, seconds, table
from tests.evaluation import reference
from tfstudy import models
from tfstudy.data.vocabulary import EOS
from tfstudy.evaluation.decoding import beam, greedy_both
from tfstudy.models.base import Model
from tfstudy.models.parts import chunks
from tfstudy.models.parts.cache import Cache, KeyValue

VOCAB, BEAM = 500, 4
CONFIGS: dict[str, dict[str, Any]] = {
    "transformer": {"dim": 64, "feedforward": 128},
    "lstm": {"dim": 64, "hidden": 64, "attention": "additive"},
    "cnn": {"dim": 64, "channels": 64, "max_positions": 2048},
}
Inputs = tuple[Model, torch.Tensor, torch.Tensor]


def inputs(arch: str, batch: int, length: int) -> Inputs:
    """Return a model for which EOS is improbable, random sources and their mask."""
    torch.manual_seed(0)
    cls = models.find(arch)
    model = cls(cls.Config(**CONFIGS.get(arch, {})), VOCAB, VOCAB).eval()
    improbable = -20.0 * torch.nn.functional.one_hot(torch.tensor(EOS), VOCAB)
    model.get_submodule("output").register_forward_hook(lambda module, given, logits: logits + improbable)
    source = torch.randint(4, VOCAB, (batch, length))
    return model, source, torch.ones_like(source, dtype=torch.bool)


def as_at_first() -> None:
    """In this process, let caches copy everything at every token, and scores have no bound."""

    def append(self: Cache, new: KeyValue) -> Cache:
        return Cache(KeyValue(*(torch.cat(both, 2) for both in zip(self.seen, new, strict=True))))

    def select_rows(self: Cache, rows: torch.Tensor) -> Cache:
        return Cache(KeyValue(*(part.index_select(0, rows) for part in self.seen)))

    Cache.append, Cache.select_rows = append, select_rows  # type: ignore[method-assign]
    chunks.MAX_ELEMENTS = 2**62


def decode(search: str, first: bool, model: Model, source: torch.Tensor, mask: torch.Tensor) -> object:
    """Return the outputs: by greedy decoding both free-running and of gold length, or by beam search."""
    limits = torch.full((len(source),), source.shape[1])
    gold = limits - torch.arange(len(source)) % (source.shape[1] // 2)
    if search == "greedy" and first:
        free = reference.greedy(model, source, mask, source.shape[1])
        return free, reference.greedy(model, source, mask, 0, gold)
    if search == "greedy":
        return greedy_both(model, source, mask, limits, gold)
    if first:
        return reference.beam(model, source, mask, source.shape[1], BEAM)
    return beam(model, source, mask, limits, BEAM)


def measure(search: str, first: bool, arch: str, batch: int, length: int) -> tuple[float, float, object]:
    """Return the seconds, the additional peak memory in MiB and the outputs of a decoding in a process of its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(sender.send, search, first, inputs(arch, batch, length)))
    process.start()
    taken, memory, outputs = receiver.recv()
    process.join()
    return taken, memory, outputs


def _measured(send: Callable[[object], None], search: str, first: bool, given: Inputs) -> None:
    if first:
        as_at_first()
    outputs: list[object] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = seconds(lambda: outputs.append(decode(search, first, *given)))
    send((taken, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, outputs[0]))


def compare(search: str, arch: str, batch: int, length: int, rounds: int) -> None:
    """Print time and memory of both implementations, and how many outputs differ (by rounding)."""
    outputs: dict[str, Any] = {}
    peaks: dict[str, list[float]] = {"first": [], "ours": []}

    def run(name: str) -> float:
        taken, memory, outputs[name] = measure(search, name == "first", arch, batch, length)
        peaks[name].append(memory)
        return taken

    times = alternate({name: lambda name=name: run(name) for name in peaks}, rounds)  # type: ignore[misc]
    title = f"{arch}, {search if search == 'greedy' else f'beam of {BEAM}'}, {batch} rows of {length} tokens"
    table(f"{title}, time", "seconds", times, "first", faster=True)
    table(f"{title}, memory", "MiB", peaks, "first")
    pairs = zip(*(o if search == "beam" else [*o[0], *o[1]] for o in outputs.values()), strict=True)
    print(f"  {sum(a != b for a, b in pairs)} outputs differ")


def main() -> None:
    chosen = arguments(__doc__)
    sizes = [(8, 64)] if chosen.quick else [(8, 64), (32, 64), (8, 256), (32, 256), (8, 1024)]
    for arch in chosen.arch:
        for batch, length in sizes:
            for search in ("greedy", "beam"):
                compare(search, arch, batch, length, 1 if chosen.quick or length > 256 else 3)


if __name__ == "__main__":
    main()

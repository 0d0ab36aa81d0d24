"""Greedy decoding and a beam of 4 on a CUDA device: graphed, with growing caches, and without caches (greedy only).

The commands are from the test set of SCAN simple. The model is trained briefly first, so that its outputs end where
they should. The figure is commands per second, without the first pass, in which graphs are captured.
"""

import json
from collections.abc import Callable
from functools import partial

import torch

from benchmarks.evaluation.decoding import prefixes
from benchmarks.timing import alternate, cuda_arguments, scan, seconds, table
from tfstudy.config.schema import DecodeConfig
from tfstudy.data.encoding import Encoded, PaddedRows
from tfstudy.data.vocabulary import PAD
from tfstudy.evaluation.decoding import Ids, generate
from tfstudy.evaluation.evaluate import sample_examples
from tfstudy.evaluation.limits import generation_limit
from tfstudy.evaluation.static_decoding import StaticDecoder
from tfstudy.experiment.train import training_data
from tfstudy.models.base import Model
from tfstudy.training.execution import Execution
from tfstudy.training.fit import fit
from tfstudy.training.graphs import CudaGraphs
from tfstudy.training.module import Seq2Seq

BATCH = 512
BEAM = DecodeConfig(method="beam", beam_size=4)
TOLERATED = 5e-3  # fraction of outputs that may differ: rounding decides between equally probable tokens


def ways(model: Model, limit: int) -> dict[str, Callable[[PaddedRows], Ids]]:
    """Return what decodes a batch, by name."""
    decoder = StaticDecoder(model, CudaGraphs())

    def limits(rows: PaddedRows) -> torch.Tensor:
        return torch.full((len(rows.source),), limit, device=rows.source.device)

    def graphed(decode: DecodeConfig, rows: PaddedRows) -> Ids:
        inputs = rows.source, rows.source != PAD, limits(rows)
        if decode.method == "beam":
            return decoder.beam(*inputs, decode.beam_size, decode.length_penalty)
        return decoder.greedy_both(*inputs, torch.zeros_like(inputs[2]))[0]

    def cached(decode: DecodeConfig, rows: PaddedRows) -> Ids:
        return generate(model, rows.source, rows.source != PAD, limits(rows), decode)

    def uncached(rows: PaddedRows) -> Ids:
        with torch.device("cuda"):
            return prefixes(model, rows.source, rows.source != PAD, limit)

    greedy = DecodeConfig()
    return {
        "greedy, without caches": uncached,
        "greedy, caches": partial(cached, greedy),
        "greedy, graphed": partial(graphed, greedy),
        "beam, caches": partial(cached, BEAM),
        "beam, graphed": partial(graphed, BEAM),
    }


def decode_all(way: Callable[[PaddedRows], Ids], encoded: Encoded) -> Ids:
    """Return the outputs of all rows, ordered by the length of their sources."""
    order = encoded.source_lengths.sort(stable=True).indices
    outputs = [ids for rows in order.split(BATCH) for ids in way(encoded.rows(rows))]
    torch.cuda.synchronize()
    return outputs


def compare(arch: str, commands: int, rounds: int) -> None:
    """Train, decode in each way in turn, and print a line of JSON for each."""
    prepared = scan(arch, steps=400, warmup_steps=100)
    module = Seq2Seq(prepared.model, len(prepared.data.target_vocab), prepared.config.train)
    fit(module, training_data(prepared), accelerator="cuda", execution=Execution("graphed"))
    model = prepared.model.eval().cuda()
    examples = sample_examples(prepared.task.examples("test"), commands)
    encoded = prepared.data.encode(examples).to(torch.device("cuda"))
    methods = ways(model, generation_limit(prepared.task, prepared.config.decode).constant)
    outputs = {name: decode_all(way, encoded) for name, way in methods.items()}
    times = alternate({n: partial(seconds, partial(decode_all, w, encoded)) for n, w in methods.items()}, rounds)
    table(f"{arch}, {len(encoded):,} commands", "seconds", times, "greedy, caches", faster=True)
    for name, own in times.items():
        row = {"group": f"decoding, {arch}", "way": name, "baseline": "greedy, caches"}
        print(json.dumps({**row, "commands/s": len(encoded) / min(own)}), flush=True)
    for one, other in [("greedy, caches", "greedy, graphed"), ("beam, caches", "beam, graphed")]:
        different = sum(a != b for a, b in zip(outputs[one], outputs[other], strict=True))
        print(f"  {other}: {different} outputs differ")
        if different > TOLERATED * len(encoded):
            raise SystemExit("graphed decoding must give the same outputs")


def main() -> None:
    chosen = cuda_arguments(__doc__)
    for arch in chosen.arch:
        compare(arch, *((2000, 2) if chosen.quick else (0, 5)))


if __name__ == "__main__":
    main()

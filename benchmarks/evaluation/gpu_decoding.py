"""Greedy decoding and a beam of 4 on a CUDA device, by the number of rows decoded at once.

The commands are from the test set of SCAN simple. The model is trained briefly first, so that its outputs end where
they should. The figure is commands per second.
"""

import json
from functools import partial

import torch

from benchmarks.timing import alternate, cuda_arguments, scan, seconds, table
from tfstudy.config.schema import DecodeConfig
from tfstudy.data.encoding import Encoded
from tfstudy.data.vocabulary import PAD
from tfstudy.evaluation.decoding import generate
from tfstudy.evaluation.evaluate import sample_examples
from tfstudy.evaluation.limits import generation_limit
from tfstudy.experiment.train import training_data
from tfstudy.models.base import Model
from tfstudy.training.execution import Execution
from tfstudy.training.fit import fit
from tfstudy.training.module import Seq2Seq

ROWS = (64, 512, 4096)
METHODS = {"greedy": DecodeConfig(), "beam": DecodeConfig(method="beam", beam_size=4)}


def decode_all(model: Model, encoded: Encoded, limit: int, decode: DecodeConfig, size: int) -> None:
    """Decode all rows, ordered by the length of their sources, `size` at a time."""
    for rows in encoded.source_lengths.sort(stable=True).indices.split(size):
        source = encoded.rows(rows).source
        generate(model, source, source != PAD, torch.full((len(rows),), limit, device=source.device), decode)
    torch.cuda.synchronize()


def compare(arch: str, commands: int, rounds: int) -> None:
    """Train, decode in each way in turn, and print a line of JSON for each."""
    prepared = scan(arch, steps=400, warmup_steps=100)
    module = Seq2Seq(prepared.model, len(prepared.data.target_vocab), prepared.config.train)
    fit(module, training_data(prepared), accelerator="cuda", execution=Execution("graphed"))
    model = prepared.model.eval().cuda()
    examples = sample_examples(prepared.task.examples("test"), commands)
    encoded = prepared.data.encode(examples).to(torch.device("cuda"))
    limit = generation_limit(prepared.task, prepared.config.decode).constant
    ways = {
        f"{name}, {size} rows": partial(seconds, partial(decode_all, model, encoded, limit, decode, size))
        for name, decode in METHODS.items()
        for size in ROWS
    }
    times = alternate(ways, rounds)
    baseline = f"greedy, {ROWS[0]} rows"
    table(f"{arch}, {len(encoded):,} commands", "seconds", times, baseline, faster=True)
    for name, own in times.items():
        row = {"group": f"decoding, {arch}", "way": name, "baseline": baseline}
        print(json.dumps({**row, "commands/s": len(encoded) / min(own)}), flush=True)


def main() -> None:
    chosen = cuda_arguments(__doc__)
    for arch in chosen.arch:
        compare(arch, *((4096, 2) if chosen.quick else (0, 5)))


if __name__ == "__main__":
    main()

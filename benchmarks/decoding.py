"""Greedy decoding of the test commands of SCAN simple: as in evaluation, against a loop without caches.

The usual way: commands in the order of the file, 64 at a time; at every step the decoder reads the whole prefix, until
all rows of the batch have ended. The model is trained briefly first, so that its outputs end where they should. On a
GPU, if there is one, thousands of commands are decoded together too: launches are for each token, not for each row.
"""

from functools import partial
from statistics import mean

import torch
from torch import Tensor

from benchmarks.timing import alternate, arguments, scan, seconds, table
from tfstudy.data.encoding import BOS, EOS, PAD, Encoded
from tfstudy.evaluation.decoding import generate, generation_limit
from tfstudy.evaluation.evaluate import sample
from tfstudy.experiment.prepare import Prepared
from tfstudy.experiment.train import training_data
from tfstudy.models.base import Model
from tfstudy.models.tokens import Tokens
from tfstudy.training.fit import fit
from tfstudy.training.module import Seq2Seq

Outputs = dict[int, list[int]]  # tokens before EOS, by row
MANY = 4096  # rows
TOLERATED = 1e-3  # fraction of outputs that may differ: rounding decides between equally probable tokens


@torch.no_grad()
def prefixes(model: Model, source: Tensor, limit: int) -> list[list[int]]:
    """Append the most probable next token, given the whole prefix, until every row has ended."""
    state = model.encode(Tokens.of(source))
    tokens = torch.full_like(source[:, :1], BOS)
    ended = torch.zeros_like(source[:, 0], dtype=torch.bool)
    while not ended.all() and tokens.shape[1] <= limit:
        logits = model.decode(Tokens.of(tokens), state)[0].unflatten(0, tokens.shape)[:, -1]
        logits[:, [PAD, BOS]] = float("-inf")
        following = torch.where(ended, EOS, logits.argmax(-1))
        ended |= following == EOS
        tokens = torch.cat([tokens, following[:, None]], 1)
    rows: list[list[int]] = tokens[:, 1:].tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


def decode(prepared: Prepared, encoded: Encoded, limit: int, ordered: bool, size: int, cached: bool) -> Outputs:
    """Return the outputs of all rows, `size` at a time, ordered by source length or as in the file."""
    order = encoded.source_lengths.sort(stable=True).indices if ordered else torch.arange(len(encoded))
    out: Outputs = {}
    for rows in order.split(size):
        batch = encoded.rows(rows)
        limits, model = torch.full((len(rows),), limit, device=batch.source.device), prepared.model
        outputs = (
            generate(model, Tokens.of(batch.source), limits, prepared.config.decode)
            if cached
            else prefixes(model, batch.source, limit)
        )
        out |= zip(rows.tolist(), outputs, strict=True)  # lists, so the device has finished
    return out


def compare(arch: str, commands: int, rounds: int, steps: int = 400) -> None:
    """Train, decode in each way in turn, and check that all outputs are the same."""
    prepared = scan(arch, steps=steps, warmup_steps=steps // 4)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    module = Seq2Seq(prepared.model, len(prepared.data.target_vocab), prepared.config.train)
    fit(module, training_data(prepared), accelerator=device.type)
    prepared.model.eval().to(device)
    tested = prepared.task.examples("test")
    encoded = prepared.data.encode([tested[number] for number in sample(tested, commands)]).to(device)
    limit, size = generation_limit(prepared.task, prepared.config.decode).constant, prepared.config.eval.batch_size
    ways = {"usual": (False, 64, False), "usual, with caches": (False, 64, True), "ours": (True, size, True)}
    if device.type == "cuda":
        ways[f"ours, {MANY:,} rows"] = (True, MANY, True)
    outputs: dict[str, Outputs] = {}

    def run(name: str) -> None:
        outputs[name] = decode(prepared, encoded, limit, *ways[name])

    measured = alternate({name: partial(seconds, partial(run, name)) for name in ways}, rounds)
    length, gold = mean(map(len, outputs["usual"].values())), float(encoded.target_lengths.float().mean()) - 2
    title = f"{len(encoded):,} commands, outputs of {length:.1f} tokens on average (gold: {gold:.1f})"
    table(
        f"{arch}, {device.type}, {torch.get_num_threads()} threads, {title}", "seconds", measured, "usual", faster=True
    )
    for name, own in outputs.items():
        different = sum(own[row] != tokens for row, tokens in outputs["usual"].items())
        print(f"  {name}: {different} outputs differ")
        if different > TOLERATED * len(encoded):
            raise SystemExit("all ways must give the same outputs")


def main() -> None:
    chosen = arguments(__doc__)
    for arch in chosen.arch:
        compare(arch, *((400, 2) if chosen.quick else (0, 5)))


if __name__ == "__main__":
    main()

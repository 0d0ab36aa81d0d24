"""Evaluate a model on a split: decode every example, compute metrics overall and per slice, keep the predictions."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from tfstudy.config.schema import DecodeConfig, EvalConfig
from tfstudy.data.encoding import PAD, UNK, PaddedRows, TaskEncoder
from tfstudy.evaluation.breakdown import mean_over_lengths
from tfstudy.evaluation.decoding import generate, generate_both, generation_limit, limits_of, search_limits
from tfstudy.models.base import Model
from tfstudy.models.tokens import Tokens as TokenBatch
from tfstudy.runs.schema import Prediction
from tfstudy.tasks.base import Example, Task, Tokens, stable_hash
from tfstudy.tasks.scoring import mean, same_text, wilson
from tfstudy.training.memory import BUDGET, OutOfMemoryError, attempt

T = TypeVar("T")
FLOAT = 4  # bytes
CANDIDATES = 4  # copies that beam search makes of the logits of a position: log-probabilities, scores, sorted ones
GPU_ROWS = 4096  # that a GPU decodes together: it launches kernels for each token, not for each row
SCORES = 16  # attention scores that are kept for a pair of positions: one for each head


class MemoryUse(NamedTuple):
    """Estimates of the memory that a model uses for one row, in bytes."""

    width: int  # activations at a position: the outputs of all layers
    vocab: int
    hypotheses: int  # of beam search; 1 is greedy

    @classmethod
    def of(cls, model: Model, vocab: int, hypotheses: int) -> "MemoryUse":
        """Return the estimates for a model: each matrix gives as many activations as it has rows, embeddings none."""
        embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        matrices = [p for p in model.parameters() if p.ndim > 1 and id(p) not in embeddings]
        widths = [p.shape[0] for p in matrices if p.shape[0] != vocab]  # the output layer has that of `vocab`
        return cls(sum(widths), vocab, hypotheses)

    def decoding(self, source: Tensor, target: Tensor) -> Tensor:
        """Return bytes per row: about a quarter of the activations are kept in the state; one position has logits."""
        return self.hypotheses * ((source + target) * self.width + CANDIDATES * FLOAT * self.vocab)

    def teacher_forcing(self, source: Tensor, target: Tensor) -> Tensor:
        """Return bytes per row: logits of all target positions, attention scores, half of the activations."""
        attention = SCORES * target * (source + target)
        return FLOAT * (2 * target * self.vocab + attention + (source + target) * self.width // 2)


def rows_at_once(config: EvalConfig, device: torch.device) -> int:
    """Return how many sources are decoded together at most; on a GPU `GPU_ROWS` in place of the default."""
    default = EvalConfig.model_fields["batch_size"].default
    return GPU_ROWS if device.type != "cpu" and config.batch_size == default else config.batch_size


def in_batches(
    compute: Callable[[Tensor], Sequence[T]],
    order: Tensor,
    source: Tensor,
    target: Tensor,
    bytes_of_row: Callable[[Tensor, Tensor], Tensor],
    most_rows: int,
) -> Iterator[tuple[Tensor, Sequence[T]]]:
    """Yield consecutive parts of `order` and what `compute` returns for them, within `most_rows` and `BUDGET`.

    `source` and `target` are the lengths of all rows; a batch is padded to its longest. If memory runs out all the
    same, this and all further batches have half as many rows. `OutOfMemoryError` if a single row is too much.
    """
    start = 0
    while start < len(order):
        index = order[start : start + most_rows]
        needed = bytes_of_row(source[index].cummax(0).values, target[index].cummax(0).values)
        fitting = int((needed * torch.arange(1, len(index) + 1) <= BUDGET).sum())
        index = index[: max(1, fitting)]
        results = attempt(lambda index=index: compute(index))  # type: ignore[misc]
        if results is None:
            if len(index) == 1:
                raise OutOfMemoryError(
                    f"not enough memory for a single example: its source has {int(source[index]) - 1} tokens, and its "
                    f"output may have {int(target[index])}"
                )
            most_rows = len(index) // 2
            continue
        yield index, results
        start += len(index)


Shown = Callable[[int, float], None]  # gets the number of examples evaluated so far, and the share of the work done


class Evaluation(NamedTuple):
    """The metrics of a split, and the prediction for each example in the order of the split."""

    # n, metrics, exact_match_interval, slices, mean_over_lengths, examples, limit_hits, and maybe baselines
    summary: dict[str, Any]
    rows: list[Prediction]


class Output(NamedTuple):
    """What a model generates for one example, and its accuracy with teacher forcing."""

    free: Tokens  # until EOS
    oracle: Tokens  # of the target's length
    teacher_forced: float  # in [0, 1], over the target tokens and EOS
    cut: bool = False  # whether `free` ended at the generation limit


def sample(examples: Sequence[Example], limit: int) -> Sequence[int]:
    """Return the numbers of `limit` examples, chosen by a hash of their source; of all examples if `limit` is 0."""
    if not limit or len(examples) <= limit:
        return range(len(examples))
    return sorted(sorted(range(len(examples)), key=lambda i: stable_hash("limit", 0, examples[i].source))[:limit])


def evaluate(
    model: Model,
    data: TaskEncoder,
    split: str,
    decode: DecodeConfig,
    config: EvalConfig,
    device: torch.device,
    shown: Shown | None = None,
) -> Evaluation:
    """Evaluate a split with free-running decoding, oracle length and teacher forcing. The model stays in eval mode.

    The predictions of the task's trivial systems are scored on the same examples.
    """
    model.eval().to(device)
    task, every = data.task, data.task.examples(split)
    chosen = sample(every, config.max_examples)
    examples = [every[i] for i in chosen]
    if not examples:
        return Evaluation({"n": 0}, [])
    outputs = _outputs(model, data, examples, decode, rows_at_once(config, device), device, shown)
    text = task.text
    rows = [
        Prediction(text(e.source), text(e.target), text(o.free), text(o.oracle), round(o.teacher_forced, 6), {**e.tags})
        for e, o in zip(examples, outputs, strict=True)
    ]
    summary = summarise_outputs(task, examples, outputs)
    summary |= {"examples": digest(rows), "limit_hits": sum(output.cut for output in outputs)}
    trivial = task.baselines(split).items()
    if baselines := {name: task.score([rows[i] for i in chosen], examples) for name, rows in trivial}:
        summary["baselines"] = baselines
    return Evaluation(summary, rows)


def digest(rows: Sequence[Prediction]) -> str:
    """Return a hash of the sources and targets as text, by which test sets of different runs are known to be equal."""
    text = "\n".join(f"{row.source}\t{row.target}" for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _outputs(
    model: Model,
    data: TaskEncoder,
    examples: Sequence[Example],
    decode: DecodeConfig,
    batch_size: int,
    device: torch.device,
    shown: Shown | None,
) -> list[Output]:
    """Return the outputs of a model for all examples, computed in batches of similar source length."""
    encoded = data.encode(examples).to(device)
    source, target = encoded.source_lengths, encoded.target_lengths
    limits = limits_of(generation_limit(data.task, decode), source - 1)
    memory = MemoryUse.of(model, len(data.target_vocab), decode.hypotheses)
    tokens = data.target_vocab.decode

    def forced(index: Tensor) -> list[float]:
        return teacher_forced_accuracy(model, encoded.rows(index))

    def compute(index: Tensor) -> list[Output]:
        rows = encoded.rows(index)
        searched = limits[index].to(device), (target[index] - 2).to(device)
        free, oracle = generate_both(model, TokenBatch.of(rows.source), *searched, decode)
        parts = in_batches(forced, index, source, target, memory.teacher_forcing, len(index))
        accuracies = [accuracy for _, part in parts for accuracy in part]
        cut = [len(ids) >= limit for ids, limit in zip(free, limits[index].tolist(), strict=True)]
        return list(map(Output, map(tokens, free), map(tokens, oracle), accuracies, cut))

    out: dict[int, Output] = {}
    order, longest = source.sort(stable=True).indices, torch.maximum(limits, target)
    work = (source + longest)[order].cumsum(0)
    for index, outputs in in_batches(compute, order, source, longest, memory.decoding, batch_size):
        out |= zip(index.tolist(), outputs, strict=True)
        if shown:
            shown(len(out), float(work[len(out) - 1] / work[-1]))
    return [out[row] for row in range(len(examples))]


@torch.no_grad()
def teacher_forced_accuracy(model: Model, rows: PaddedRows) -> list[float]:
    """Return, for each row, the fraction of target tokens (with EOS) that are most probable after the gold prefix."""
    gold = rows.target[:, 1:]
    logits = model(TokenBatch.of(rows.source), TokenBatch.of(rows.target[:, :-1]))
    correct = (logits.argmax(-1).view_as(gold) == gold) & (gold != UNK)
    mask = gold != PAD
    fractions: list[float] = ((correct & mask).sum(1) / mask.sum(1)).tolist()
    return fractions


def summarise_outputs(task: Task, examples: Sequence[Example], outputs: Sequence[Output]) -> dict[str, Any]:
    """Return the metrics of all examples, and those of each slice (the examples with the same value of a tag)."""
    texts = [task.text(example.target) for example in examples]
    oracle = [float(same_text(text, task.text(o.oracle))) for o, text in zip(outputs, texts, strict=True)]

    def summarise(index: Sequence[int]) -> dict[str, Any]:
        metrics = task.score([outputs[i].free for i in index], [examples[i] for i in index])
        if "exact_match" not in metrics:
            metrics["exact_match"] = mean(float(same_text(texts[i], task.text(outputs[i].free))) for i in index)
        metrics["oracle_length_exact_match"] = mean(oracle[i] for i in index)
        metrics["teacher_forced_accuracy"] = mean(outputs[i].teacher_forced for i in index)
        correct = round(metrics["exact_match"] * len(index))
        return {"n": len(index), "metrics": metrics, "exact_match_interval": wilson(correct, len(index))}

    slices: dict[str, dict[str, Any]] = {}
    for tag in examples[0].tags:
        values = sorted((example.tags[tag] for example in examples), key=lambda v: (str(type(v)), v))
        groups: dict[str, list[int]] = {str(value): [] for value in values}  # numbers by size, then texts
        for i, example in enumerate(examples):
            groups[str(example.tags[tag])].append(i)
        slices[tag] = {value: summarise(index) for value, index in groups.items()}
    return summarise(range(len(examples))) | {"slices": slices, **mean_over_lengths(slices)}


class Generated(NamedTuple):
    """What a model wrote for a source."""

    text: str
    cut: bool  # at the generation limit


def generated(
    model: Model, data: TaskEncoder, decode: DecodeConfig, config: EvalConfig, sources: Sequence[Sequence[str]]
) -> list[Generated]:
    """Return the output of a model for each source, given as tokens; computed in batches of similar length."""
    encoded = data.encode([Example(tuple(source), (), {}) for source in sources])
    lengths, device = encoded.source_lengths, next(model.parameters()).device
    limits = search_limits(model, data.task, decode, lengths - 1)  # without EOS
    memory = MemoryUse.of(model, len(data.target_vocab), decode.hypotheses)

    def compute(index: Tensor) -> list[list[int]]:
        source = encoded.rows(index).source.to(device)
        return generate(model, TokenBatch.of(source), limits[index].to(device), decode)

    out: dict[int, Generated] = {}
    order, most = lengths.sort(stable=True).indices, rows_at_once(config, device)
    for index, rows in in_batches(compute, order, lengths, limits, memory.decoding, most):
        for number, row in zip(index.tolist(), rows, strict=True):
            text = str(data.task.text(data.target_vocab.decode(row)))
            out[number] = Generated(text, len(row) >= int(limits[number]))
    return [out[number] for number in range(len(sources))]


def cut_outputs(cut: int, total: int) -> str:
    """Return a line on outputs that reached the generation limit."""
    return f"{cut:,} of {total:,} outputs were cut at the maximum number of tokens (decode.max_length)"

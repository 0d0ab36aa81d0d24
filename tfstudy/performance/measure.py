"""Measure settings: FLOPs and memory once, times in rounds over all settings, so that load affects all alike.

What is measured is an optimiser step, or the greedy generation of a batch, of a model on random tokens. FLOPs are those
of torch's counter, with formulas for the fused operators that it does not know. Memory is counted exactly on a CPU, and
is what the allocator reports on CUDA.
"""

import math
import os
import platform
import random
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import cached
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from tfstudy import models
from tfstudy.config.schema import RunConfig
from tfstudy.data.encoding import BOS, EOS, PAD, SPECIAL
from tfstudy.evaluation.decoding import greedy_of_lengths
from tfstudy.models.attention import Weights
from tfstudy.models.base import Model, parameter_count
from tfstudy.models.checkpointing import gradient_checkpointing
from tfstudy.models.tokens import Tokens
from tfstudy.performance.record import Flops, Machine, Record, Request, Setting, config_of
from tfstudy.runs.identity import PACKAGES, commit
from tfstudy.training.loss import summed_loss
from tfstudy.training.memory import attempt
from tfstudy.training.progress import ProgressLines
from tfstudy.training.step import build_optimizer

SHORTEST = 0.05  # seconds of a repeat: a faster step is repeated within it
VOCAB = 256  # tokens of each vocabulary, with the special ones
SEED = 0
Built = tuple[Model, torch.optim.Optimizer]
aten = torch.ops.aten


@dataclass(frozen=True)
class Workload:
    """One step of a setting, to be called again and again: a model with its optimiser, and a batch of random tokens."""

    setting: Setting
    config: RunConfig
    model: Model
    optimizer: torch.optim.Optimizer
    source: Tensor  # (batch, length), of which the last is EOS
    target: Tensor  # (batch, length + 1), between BOS and EOS

    def __call__(self) -> list[list[int]]:
        """Do one optimiser step as `tfstudy run` does, or generate as many tokens as targets have for each source."""
        source, length, train = Tokens.of(self.source), self.setting.length, self.config.train
        bf16 = train.precision == "bf16-mixed"
        precision = torch.autocast(self.source.device.type, torch.bfloat16, enabled=bf16)
        with explicit_attention(self.model) if self.setting.variant == "explicit" else ExitStack():
            if self.setting.work == "generation":
                model = self.model.eval()
                with precision:
                    if self.setting.variant == "uncached":
                        return greedy_without_cache(model, source, length)
                    return greedy_of_lengths(model, source, torch.full_like(self.source[:, 0], length))
            model, targets = self.model.train(), self.target[:, 1:].flatten()
            self.optimizer.zero_grad(set_to_none=True)
            with precision, gradient_checkpointing(train.gradient_checkpointing):  # nothing keeps the logits
                loss = summed_loss(model(source, Tokens.of(self.target[:, :-1])), targets, train.label_smoothing)
            (loss / len(targets)).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), train.gradient_clip_norm or math.inf)
            self.optimizer.step()
            return []


def explicit_attention(model: Model) -> ExitStack:
    """Within this context, attention of a model is computed without the fused kernel, as its weights are hooked."""
    stack = ExitStack()
    for module in model.modules():
        if isinstance(module, Weights):
            stack.callback(module.register_forward_hook(lambda *_: None).remove)
    return stack


@torch.no_grad()
@cached()
def greedy_without_cache(model: Model, source: Tokens, length: int) -> list[list[int]]:
    """Return the same as `greedy_of_lengths`, but compute the decoder for the whole prefix at every token.

    The source is encoded once.
    """
    state, [(rows, _)] = model.encode(source), source.shapes
    prefix = source.ids.new_full((rows, 1), BOS)
    special = torch.tensor([PAD, BOS, EOS], device=prefix.device)
    for _ in range(length):
        logits = model.decode(Tokens.of(prefix), state)[0].view(*prefix.shape, -1)[:, -1]
        words = logits.index_fill(1, special, -math.inf).argmax(-1)
        prefix = torch.cat([prefix, words[:, None]], 1)
    generated: list[list[int]] = prefix[:, 1:].tolist()
    return generated


def workload(setting: Setting, config: RunConfig, device: torch.device, built: dict[str, Built]) -> Workload:
    """Return what is measured of a setting; `built` has the models, which variants, lengths and batches share."""
    key = f"{config.arch} {config.model.model_dump_json()}"
    if key not in built:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            model = models.find(config.arch)(config.model, VOCAB, VOCAB).to(device)
        built[key] = model, build_optimizer(model, config.train)
    generator = torch.Generator().manual_seed(SEED)
    source, tokens = torch.randint(len(SPECIAL), VOCAB, (2, setting.batch, setting.length), generator=generator)
    source[:, -1] = tokens[:, -1] = EOS
    target = nn.functional.pad(tokens, (1, 0), value=BOS)
    return Workload(setting, config, *built[key], source.to(device), target.to(device))


def measure(request: Request, device: torch.device, name: str) -> tuple[list[Record], list[str]]:
    """Return the records of all settings, and a note for each that does not fit into the memory; print the progress.

    `name` is that of the device. `UserError`, before anything is measured, if a setting is invalid.
    """
    configs = {setting: config_of(setting, request) for setting in request.settings()}
    machine = Machine(
        started=datetime.now(UTC).isoformat(timespec="microseconds"),
        accelerator="cuda" if device.type == "cuda" else "cpu",
        device=name,
        threads=torch.get_num_threads(),
        processors=os.cpu_count() or 1,
        platform=platform.platform(),
        versions={"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        commit=commit(),
    )
    notes: list[str] = []
    built: dict[str, Built] = {}
    prepared: list[tuple[Workload, Record, int]] = []  # with the number of steps of a repeat
    progress = ProgressLines("preparing", len(configs), "settings")
    for number, (setting, config) in enumerate(configs.items()):
        progress.update(number)
        one = workload(setting, config, device, built)
        if ready := attempt(lambda one=one: prepare(one, request, machine)):  # type: ignore[misc]
            prepared.append((one, *ready))
        else:
            notes.append(f"not enough memory: {' '.join(map(str, setting))}")
    order, places = random.Random(0), range(len(prepared))  # each round has an order of its own
    rounds = [place for _ in range(request.repeats * request.timed) for place in order.sample(places, len(places))]
    progress = ProgressLines("measuring", len(rounds), "times")
    for number, place in enumerate(rounds):
        progress.update(number)
        one, record, steps = prepared[place]
        seconds, cpu_seconds = timed(one, steps)
        times = {"seconds": (*record.seconds, seconds), "cpu_seconds": (*record.cpu_seconds, cpu_seconds)}
        prepared[place] = one, msgspec.structs.replace(record, **times), steps
    return [record for _, record, _ in prepared], notes


def prepare(one: Workload, request: Request, machine: Machine) -> tuple[Record, int]:
    """Run a setting for the first time, measure its memory and FLOPs, and choose the number of steps of a repeat."""
    work, arch, variant, length, width, batch = one.setting
    one()  # allocates what lasts, such as the states of the optimiser
    values = {key: value for key, value in one.config.model.model_dump(mode="json").items() if value is not None}
    memory = step = flops = None
    if "memory" in request.measures:
        one.optimizer.zero_grad(set_to_none=True)
        step = peak_bytes(one, one.source.device)
        states = one.optimizer.state.values() if work == "training" else ()
        state = [value for own in states for value in own.values() if isinstance(value, Tensor)]
        memory = step + size_of([*one.model.parameters(), *one.model.buffers(), *state])
    if "flops" in request.measures:
        flops = count(one, one.model)
        if variant == "checkpointing":  # the counter doesn't always know to which module a second computation belongs
            flops = msgspec.structs.replace(flops, feedforward=None)
    record = Record(
        machine, work, variant, arch, values, parameter_count(one.model), length, width, batch,
        memory=memory, step_memory=step, flops=flops,
    )  # fmt: skip
    seconds = timed(one, 1)[0] if request.timed else math.inf
    return record, max(1, math.ceil(SHORTEST / max(seconds, 1e-9)))


def timed(one: Workload, steps: int) -> tuple[float, float]:
    """Return the wall-clock time and the CPU time of a step, as means over some steps."""
    wait = torch.cuda.synchronize if one.source.device.type == "cuda" else int
    wait()
    start, cpu_start = time.perf_counter(), time.process_time()
    for _ in range(steps):
        one()
    wait()
    return (time.perf_counter() - start) / steps, (time.process_time() - cpu_start) / steps


# FLOPs and memory, which do not depend on the load of the machine


def _recurrent(x: Sequence[int], weights: Any, *more: Any, out_shape: Any = None, **_: Any) -> int:
    """Return the FLOPs of a recurrent layer: each matrix is multiplied with a vector at every position.

    For an LSTM from `d` to `h` units these are 2 (4 h d + 4 h h) = 8 h (d + h) at a position. cuDNN gets all directions
    and layers as one list of weights, oneDNN the two matrices of one layer.
    """
    listed = isinstance(weights[0], Sequence)
    matrices = [shape for shape in weights if len(shape) == 2] if listed else [weights, more[0]]
    return 2 * math.prod(x[:-1]) * sum(map(math.prod, matrices))


FORMULAS: Mapping[Any, Callable[..., int]] = {  # attention computes all pairs, with a causal mask too
    aten.mkldnn_rnn_layer: _recurrent,
    aten.mkldnn_rnn_layer_backward: lambda *a, **b: 2 * _recurrent(*a, **b),  # two gradients of each product
    aten._cudnn_rnn: _recurrent,
    aten._cudnn_rnn_backward: lambda *a, **b: 2 * _recurrent(*a, **b),
    aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),  # type: ignore[no-untyped-call]
    aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda gradient, q, k, v, *_, **__: sdpa_backward_flop_count(gradient, q, k, v)  # type: ignore[no-untyped-call]
    ),
}
PRODUCTS = ("bmm", "baddbmm", "scaled_dot_product")  # of two tensors of activations: scores, and weighted values


def count(work: Callable[[], object], model: nn.Module) -> Flops:
    """Return the FLOPs of what `work` does with a model: those of products of matrices, convolutions and attention."""
    with FlopCounterMode(display=False, custom_mapping=dict(FORMULAS)) as counter:
        # The counter names a module when its parent is called, which some parents are not.
        for name, module in model.named_modules():
            counter.mod_tracker._known_modules[module] = f"model.{name}"
        work()
    flops = counter.get_flop_counts()
    by_module = {name: sum(own.values()) for name, own in flops.items()}
    attention = sum(n for op, n in flops.get("Global", {}).items() if any(name in str(op) for name in PRODUCTS))
    feedforward = sum(n for name, n in by_module.items() if name.endswith(".feedforward"))
    return Flops(by_module.get("Global", 0), attention, feedforward)


class LiveTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within this context, counts the bytes of all tensors that operators allocate, until they are released.

    `peak` is the largest number so far. What a kernel allocates and releases within one operator is not seen. The
    result depends only on what is computed, and not on the allocator or the load of the machine.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.current = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        before = {storage._cdata for storage in _storages((args, kwargs))}
        for storage in _storages(results):
            if (key := storage._cdata) not in self._known | before:
                self._known.add(key)
                self.current += storage.nbytes()
                weakref.finalize(storage, self._release, key, storage.nbytes())
        self.peak = max(self.peak, self.current)
        return results

    def _release(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.current -= size


def _storages(tree: Any) -> Iterator[torch.UntypedStorage]:
    yield from (leaf.untyped_storage() for leaf in tree_iter(tree) if isinstance(leaf, Tensor))


def peak_bytes(work: Callable[[], object], device: torch.device) -> int:
    """Return the most bytes that tensors have at a time during `work`, beyond those that exist before."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return torch.cuda.max_memory_allocated() - before
    with LiveTensors() as live:
        work()
    return int(live.peak)


def size_of(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of tensors, each storage once."""
    return sum({storage._cdata: storage.nbytes() for storage in _storages([*tensors])}.values())

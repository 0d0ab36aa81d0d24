"""Measure settings: FLOPs and memory once, times in rounds over all settings, so that load affects all alike.

What is measured is an optimiser step, or the greedy generation of a batch, of a model on random tokens.
"""

import math
import os
import platform
import random
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import cached

from tfstudy import models
from tfstudy.config.schema import RunConfig
from tfstudy.data.encoding import BOS, EOS, PAD, SPECIAL
from tfstudy.evaluation.decoding import greedy_of_lengths
from tfstudy.models.attention import Weights
from tfstudy.models.base import Model, parameter_count
from tfstudy.models.checkpointing import gradient_checkpointing
from tfstudy.models.tokens import Tokens
from tfstudy.performance import counters
from tfstudy.performance.record import Machine, Record
from tfstudy.performance.settings import Request, Setting, config_of
from tfstudy.runs.identity import PACKAGES, commit
from tfstudy.training.loss import summed_loss
from tfstudy.training.memory import attempt
from tfstudy.training.progress import ProgressLines
from tfstudy.training.step import build_optimizer

SHORTEST = 0.05  # seconds of a repeat: a faster step is repeated within it
VOCAB = 256  # tokens of each vocabulary, with the special ones
SEED = 0


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
        explicit = explicit_attention(self.model) if self.setting.variant == "explicit" else ExitStack()
        bf16 = self.config.train.precision == "bf16-mixed"
        precision = torch.autocast(self.source.device.type, torch.bfloat16, enabled=bf16)
        with explicit:
            if self.setting.work == "training":
                self._train(precision)
                return []
            source, length = Tokens.of(self.source), self.setting.length
            with precision:
                if self.setting.variant == "uncached":
                    return greedy_without_cache(self.model.eval(), source, length)
                return greedy_of_lengths(self.model.eval(), source, torch.full_like(self.source[:, 0], length))

    def _train(self, precision: torch.autocast) -> None:
        model, train, targets = self.model.train(), self.config.train, self.target[:, 1:].flatten()
        inputs = Tokens.of(self.source), Tokens.of(self.target[:, :-1])
        self.optimizer.zero_grad(set_to_none=True)
        with precision, gradient_checkpointing(train.gradient_checkpointing):
            loss = summed_loss(model(*inputs), targets, train.label_smoothing)  # nothing keeps the logits
        (loss / len(targets)).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), train.gradient_clip_norm or math.inf)
        self.optimizer.step()

    def lasting_bytes(self) -> int:
        """Return the bytes of parameters and buffers, and in training of the states of the optimiser."""
        states = self.optimizer.state.values() if self.setting.work == "training" else ()
        state = [value for one in states for value in one.values() if isinstance(value, Tensor)]
        return counters.size_of([*self.model.parameters(), *self.model.buffers(), *state])


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


def build(config: RunConfig, device: torch.device) -> tuple[Model, torch.optim.Optimizer]:
    """Return the model of a config on a device, with its optimiser."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = models.find(config.arch)(config.model, VOCAB, VOCAB).to(device)
    return model, build_optimizer(model, config.train)


def workload(setting: Setting, config: RunConfig, model: Model, optimizer: torch.optim.Optimizer) -> Workload:
    """Return what is measured of a setting, with random tokens on the device of the model."""
    generator, device = torch.Generator().manual_seed(SEED), next(model.parameters()).device
    source, tokens = torch.randint(len(SPECIAL), VOCAB, (2, setting.batch, setting.length), generator=generator)
    source[:, -1] = tokens[:, -1] = EOS
    target = nn.functional.pad(tokens, (1, 0), value=BOS)
    return Workload(setting, config, model, optimizer, source.to(device), target.to(device))


def measure(request: Request, device: torch.device, name: str) -> tuple[list[Record], list[str]]:
    """Return the records of all settings, and a note for each that does not fit into the memory; print the progress.

    `name` is that of the device. `UserError`, before anything is measured, if a setting is invalid.
    """
    configs = {setting: config_of(setting, request) for setting in request.settings()}
    machine, notes = machine_record(device, name), list[str]()
    built: dict[str, tuple[Model, torch.optim.Optimizer]] = {}  # which variants, lengths and batch sizes share
    prepared: list[tuple[Workload, Record, int]] = []  # with the number of steps of a repeat
    progress = ProgressLines("preparing", len(configs), "settings")
    for number, (setting, config) in enumerate(configs.items()):
        progress.update(number)
        key = f"{config.arch} {config.model.model_dump_json()}"
        built[key] = built.get(key) or build(config, device)
        one = workload(setting, config, *built[key])
        if ready := attempt(lambda one=one: prepare(one, request, machine)):  # type: ignore[misc]
            prepared.append((one, *ready))
        else:
            notes.append(f"not enough memory: {' '.join(map(str, setting))}")
    order, places = random.Random(0), range(len(prepared))  # each round has an order of its own
    rounds = [place for _ in range(request.repeats * request.timed) for place in order.sample(places, len(places))]
    times: list[list[tuple[float, float]]] = [[] for _ in places]
    progress = ProgressLines("measuring", len(rounds), "times")
    for number, place in enumerate(rounds):
        progress.update(number)
        one, _, steps = prepared[place]
        times[place].append(timed(one, steps))
    records = []
    for (_, record, _), own in zip(prepared, times, strict=True):
        seconds, cpu_seconds = zip(*own, strict=True) if own else ((), ())
        records.append(msgspec.structs.replace(record, seconds=seconds, cpu_seconds=cpu_seconds))
    return records, notes


def prepare(one: Workload, request: Request, machine: Machine) -> tuple[Record, int]:
    """Run a setting for the first time, measure its memory and FLOPs, and choose the number of steps of a repeat."""
    work, arch, variant, length, width, batch = one.setting
    one()  # allocates what lasts, such as the states of the optimiser
    values = {key: value for key, value in one.config.model.model_dump(mode="json").items() if value is not None}
    memory = step = flops = None
    if "memory" in request.measures:
        one.optimizer.zero_grad(set_to_none=True)
        step = counters.peak_bytes(one, one.source.device)
        memory = step + one.lasting_bytes()
    if "flops" in request.measures:
        flops = counters.count(one, one.model)
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


def machine_record(device: torch.device, name: str) -> Machine:
    """Return where and when is measured; `name` is that of the device."""
    return Machine(
        started=datetime.now(UTC).isoformat(timespec="microseconds"),
        accelerator="cuda" if device.type == "cuda" else "cpu",
        device=name,
        threads=torch.get_num_threads(),
        processors=os.cpu_count() or 1,
        platform=platform.platform(),
        versions={"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        commit=commit(),
    )

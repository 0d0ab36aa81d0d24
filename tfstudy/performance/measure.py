"""Measure settings: FLOPs and memory once, times in rounds over all settings, so that load affects all alike."""

import math
import os
import platform
import random
import time
from datetime import UTC, datetime
from importlib.metadata import version
from typing import NamedTuple

import msgspec
import torch

from tfstudy.models.attention import MultiHeadAttention
from tfstudy.models.base import parameter_count
from tfstudy.performance import counters
from tfstudy.performance.record import Machine, Record
from tfstudy.performance.settings import Request, config_of
from tfstudy.performance.workloads import Trainee, Workload, build
from tfstudy.runs.environment import PACKAGES, commit
from tfstudy.training.memory import attempt
from tfstudy.training.progress import ProgressLines

SHORTEST = 0.05  # seconds of a repeat: a faster step is repeated within it


class Prepared(NamedTuple):
    """A setting that is ready to be timed."""

    workload: Workload
    record: Record
    steps: int  # within one repeat
    times: list[tuple[float, float]]  # of each repeat: wall-clock and CPU seconds of a step


def measure(request: Request, device: torch.device, name: str) -> tuple[list[Record], list[str]]:
    """Return the records of all settings, and a note for each that does not fit into the memory; print the progress.

    `name` is that of the device. `UserError`, before anything is measured, if a setting is invalid.
    """
    configs = {setting: config_of(setting, request) for setting in request.settings()}
    machine = machine_record(device, name)
    trainees: dict[tuple[str, str], Trainee] = {}  # models, which variants, lengths and batch sizes share
    prepared: list[Prepared] = []
    notes: list[str] = []
    progress = ProgressLines("preparing", len(configs), "settings")
    for number, (setting, config) in enumerate(configs.items()):
        progress.update(number)
        key = config.arch, config.model.model_dump_json()
        trainees[key] = trainees.get(key) or build(config, device)
        fused = any(isinstance(module, MultiHeadAttention) for module in trainees[key].model.modules())
        if setting.variant == "explicit" and not fused:
            continue
        workload = Workload(setting, config, trainees[key], device)
        if ready := attempt(lambda workload=workload: prepare(workload, request, machine)):  # type: ignore[misc]
            prepared.append(ready)
        else:
            notes.append(f"not enough memory: {' '.join(map(str, setting))}")
    order = random.Random(0)  # another one in each round
    rounds = [one for _ in range(request.repeats * request.timed) for one in order.sample(prepared, len(prepared))]
    progress = ProgressLines("measuring", len(rounds), "times")
    for number, one in enumerate(rounds):
        progress.update(number, f"round {number // len(prepared) + 1} of {request.repeats}")
        one.times.append(timed(one.workload, one.steps))
    return [
        msgspec.structs.replace(one.record, seconds=tuple(wall for wall, _ in one.times),
                                cpu_seconds=tuple(cpu for _, cpu in one.times))
        for one in prepared
    ], notes  # fmt: skip


def prepare(workload: Workload, request: Request, machine: Machine) -> Prepared:
    """Run a setting for the first time, measure its memory and FLOPs, and choose the number of steps of a repeat."""
    work, arch, variant, length, width, batch = workload.setting
    model, trainee = workload.config.model, workload.trainee
    workload()  # allocates what lasts, such as the states of the optimiser
    values = {key: value for key, value in model.model_dump(mode="json").items() if value is not None}
    memory = step = flops = None
    if "memory" in request.measures:
        trainee.optimizer.zero_grad(set_to_none=True)
        step = counters.peak_bytes(workload, workload.device)
        memory = step + counters.size_of(trainee.tensors(work == "training"))
    if "flops" in request.measures:
        flops = counters.count(workload, trainee.model)
        if variant == "checkpointing":  # the counter doesn't always know to which module a second computation belongs
            flops = msgspec.structs.replace(flops, feedforward=None)
    record = Record(
        machine, work, variant, arch, values, parameter_count(trainee.model), length, width, batch,
        memory=memory, step_memory=step, flops=flops,
    )  # fmt: skip
    seconds = timed(workload, 1)[0] if request.timed else math.inf
    return Prepared(workload, record, max(1, math.ceil(SHORTEST / max(seconds, 1e-9))), [])


def timed(workload: Workload, steps: int) -> tuple[float, float]:
    """Return the wall-clock time and the CPU time of a step, as means over some steps."""
    wait = torch.cuda.synchronize if workload.device.type == "cuda" else int
    wait()
    start, cpu_start = time.perf_counter(), time.process_time()
    for _ in range(steps):
        workload()
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

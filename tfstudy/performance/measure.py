"""Measure settings: FLOPs and memory once, times in rounds over all settings, so that load affects all alike."""

import math
import os
import platform
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import NamedTuple

import msgspec
import torch

from tfstudy.models.base import parameter_count
from tfstudy.performance import counters
from tfstudy.performance.record import Machine, Record
from tfstudy.performance.settings import Request, config_of
from tfstudy.performance.workloads import Trainee, Workload, build
from tfstudy.runs.environment import PACKAGES, commit
from tfstudy.training.memory import attempt
from tfstudy.training.progress_display import ProgressDisplay

SHORTEST = 0.05  # seconds of a repeat: a faster step is repeated within it


class Prepared(NamedTuple):
    """A setting that is ready to be timed."""

    workload: Workload
    record: Record
    steps: int  # within one repeat
    seconds: list[float]
    cpu_seconds: list[float]

    def finished(self) -> Record:
        """Return the record with the times."""
        return msgspec.structs.replace(self.record, seconds=tuple(self.seconds), cpu_seconds=tuple(self.cpu_seconds))


def measure(request: Request, device: torch.device, name: str) -> tuple[list[Record], list[str]]:
    """Return the records of all settings, and a note for each that does not fit into the memory; print the progress.

    `name` is that of the device. `UserError`, before anything is measured, if a setting is invalid.
    """
    configs = {setting: config_of(setting, request) for setting in request.settings()}
    machine = machine_record(device, name)
    trainees: dict[tuple[str, str], Trainee] = {}  # models, which variants, lengths and batch sizes share
    prepared: list[Prepared] = []
    notes: list[str] = []
    with ProgressDisplay("preparing", len(configs), "settings") as display:
        for number, (setting, config) in enumerate(configs.items()):
            display.update(number)
            key = config.arch, config.model.model_dump_json()
            trainees[key] = trainees.get(key) or build(config, device)
            workload = Workload(setting, config, trainees[key], device)
            small = Workload(setting._replace(variant="default", length=2, batch=1), config, trainees[key], device)
            if setting.variant == "explicit" and not counters.uses_fused_attention(small, trainees[key].model):
                continue
            if ready := attempt(lambda workload=workload: prepare(workload, request, machine)):  # type: ignore[misc]
                prepared.append(ready)
            else:
                notes.append(f"not enough memory: {' '.join(map(str, setting))}")
    if request.timed:
        time_all(prepared, request.repeats)
    return [one.finished() for one in prepared], notes


def prepare(workload: Workload, request: Request, machine: Machine) -> Prepared:
    """Run a setting for the first time, measure its memory and FLOPs, and choose the number of steps of a repeat."""
    work, arch, variant, length, width, batch = workload.setting
    model, trainee = workload.config.model, workload.trainee
    workload()  # allocates what lasts, such as the states of the optimiser
    values = {key: value for key, value in model.model_dump(mode="json").items() if value is not None}
    size = parameter_count(trainee.model)
    record = Record(machine, work, variant, arch, values, size, length, width, batch)
    if "memory" in request.measures:
        trainee.optimizer.zero_grad(set_to_none=True)
        step = counters.peak_bytes(workload, workload.device)
        lasting = counters.size_of(trainee.tensors(work == "training"))
        record = msgspec.structs.replace(record, memory=lasting + step, step_memory=step)
    if "flops" in request.measures:
        counted = counters.count(workload, trainee.model)
        if variant == "checkpointing":  # the counter doesn't always know to which module a second computation belongs
            counted = msgspec.structs.replace(counted, feedforward=None)
        record = msgspec.structs.replace(record, flops=counted)
    steps = 1
    if request.timed:
        seconds, _ = timed(workload, 1)
        steps = max(1, math.ceil(SHORTEST / max(seconds, 1e-9)))
    return Prepared(workload, record, steps, [], [])


def time_all(prepared: Sequence[Prepared], repeats: int) -> None:
    """Time every setting once per round, in an order that is drawn in each round."""
    order = random.Random(0)
    rounds = [one for _ in range(repeats) for one in order.sample(prepared, len(prepared))]
    with ProgressDisplay("measuring", len(rounds), "times") as display:
        for number, one in enumerate(rounds):
            display.update(number, f"round {number // len(prepared) + 1} of {repeats}")
            seconds, cpu_seconds = timed(one.workload, one.steps)
            one.seconds.append(seconds)
            one.cpu_seconds.append(cpu_seconds)


def timed(workload: Workload, steps: int) -> tuple[float, float]:
    """Return the wall-clock time and the CPU time of a step, as means over some steps."""
    _wait_for(workload.device)
    start, cpu_start = time.perf_counter(), time.process_time()
    for _ in range(steps):
        workload()
    _wait_for(workload.device)
    return (time.perf_counter() - start) / steps, (time.process_time() - cpu_start) / steps


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


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

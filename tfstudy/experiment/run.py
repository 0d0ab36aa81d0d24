"""One run, from its config to its record: prepare, train, score, finish."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from tfstudy.config.presets import preset_notes
from tfstudy.config.schema import RunConfig
from tfstudy.errors import UserError, one_of
from tfstudy.experiment.api import (
    DEFAULTS,
    EXECUTIONS,
    RunOptions,
    check_loggers,
    device_name,
    device_of,
)
from tfstudy.experiment.prepare import Prepared, check_output, describe, prepare, undisturbed
from tfstudy.experiment.score import score, scored_splits
from tfstudy.experiment.train import Report, Trained, train
from tfstudy.models.base import parameter_count
from tfstudy.runs.files import packed_in, utc_now, write_atomically
from tfstudy.runs.identity import environment
from tfstudy.runs.schema import DecodingSettings, Event, Result
from tfstudy.runs.store import RunFolder, is_finished, open_run, read_result, run_folder, write_run
from tfstudy.tasks.base import overlap, warnings


class Outcome(NamedTuple):
    """What `tfstudy.run` returns: the run folder, the result, and whether this call did any work."""

    path: Path
    result: Result
    worked: bool

    def __repr__(self) -> str:
        return f"Outcome({str(self.path)!r}: {self.result})"


@undisturbed()
def run(
    config: RunConfig,
    root: Path,
    study: str,
    options: RunOptions = DEFAULTS,
    *,
    planned: Path | None = None,
    report: Report = print,
) -> Outcome:
    """Train and evaluate; resume an unfinished run from its last checkpoint; do nothing if the run is finished.

    `planned` is the folder that a grid expects. `UserError` for what can't be run.
    """
    check_loggers(options.loggers)
    one_of("execution", options.execution, EXECUTIONS)
    device = device_of(options)
    prepared = prepare(config)
    check_output(config.arch, prepared.model, prepared.data)
    splits = scored_splits(prepared.task, options)
    path = run_folder(root, study, config, prepared.identity)
    if planned and path != planned:
        raise UserError(f"data or code changed since the run was planned: {planned} would now be {path.name}")
    if packed_in(path) and is_finished(path) and not options.restart:
        return _finished_before(RunFolder(path, prepared.identity.hash), options, report)
    with write_run(path, config, prepared.identity, options.restart) as folder:
        if is_finished(path):
            return _finished_before(folder, options, report)
        before, used = [one.device for one in open_run(path).environments], device_name(device)
        if before and before[-1] != used:
            report(f"resumed on {used}, after {before[-1]}: the result may differ from that of one device by rounding")
        found = environment(prepared.identity, used, torch.get_num_threads())
        folder.record(Event(event="started", environment=found, preset=options.preset, tuning=options.tuning))
        for name, content in prepared.task.files().items():
            write_atomically(path / name, content.encode())
        report(describe(prepared, path))
        if about := preset_notes(config.task, config.arch, options.preset).get("about"):
            report(f"preset {options.preset}: {about}")
        shared = overlap(prepared.task)
        for line in (*prepared.task.remarks(), *warnings(prepared.task, shared)):
            report(line)
            folder.log(line)
        trained = train(prepared, folder, options, report)
        scored: dict[str, Any] = {}
        try:
            if trained.status == "finished":
                scored = score(prepared, device, splits, folder)
        except BaseException:
            report("the evaluation did not finish; the training is complete and kept: the same command only evaluates")
            raise
        finish(prepared, folder, options, trained, scored, shared)
        return Outcome(path, read_result(path), True)


def finish(
    prepared: Prepared,
    folder: RunFolder,
    options: RunOptions,
    trained: Trained,
    scored: Mapping[str, Any],
    shared_sources: Mapping[str, int],
) -> None:
    """Write the result, after which the run is finished."""
    config, task, parameters = prepared.config, prepared.task, parameter_count(prepared.model)
    result = Result(
        run=prepared.identity.hash,
        experiment=prepared.identity.experiment,
        task=config.task,
        split=config.data.split,
        corpus=task.corpus(),
        arch=config.arch,
        seed=config.seed,
        smoke=config.smoke,
        preset=options.preset,
        tuning=options.tuning,
        started=next(event.time for event in open_run(folder.path).events if event.event == "started"),
        finished=utc_now(),
        device=device_of(options).type,
        parameters=parameters,
        train_examples=len(task.examples(task.splits().train)),
        checkpoint=config.eval.checkpoint,
        # Kaplan et al. 2020, section 2.1: 2 per parameter and token forwards, twice that backwards
        train_flops_estimate=6.0 * parameters * trained.train_tokens,
        decode=msgspec.convert(config.decode.model_dump(), DecodingSettings),
        eval=config.eval.model_dump(mode="json"),
        overlap=dict(shared_sources),
        data_notes=dict(task.notes()),
        signatures=dict(task.signatures()),
        **trained._asdict(),
        **scored,
    )
    folder.finish(result)


def _finished_before(folder: RunFolder, options: RunOptions, report: Report) -> Outcome:
    result = read_result(folder.path)
    if result.tuning != options.tuning:
        kind = "a trial of tuning" if result.tuning else "not a trial of tuning"
        raise UserError(f"the run at {folder.path} is {kind}; use another folder of results")
    report(f"already finished (a restart runs it again): {folder.path}")
    return Outcome(folder.path, result, False)

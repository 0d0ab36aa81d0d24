"""How runs are executed: the options that `tfstudy run`, `grid` and `retry` share."""

from typing import TYPE_CHECKING, Annotated

from tfstudy.cli.option_groups import Group
from tfstudy.cli.options import (
    Accelerator,
    Devices,
    Execution,
    LoggerNames,
    MeasureNames,
    PerDevice,
    Timeout,
)

if TYPE_CHECKING:
    from tfstudy.experiment.options import RunOptions
    from tfstudy.launchers import ExecutorSettings


def run_options(
    devices: Devices = 1,
    accelerator: Accelerator = "auto",
    execution: Execution = "eager",
    logger: LoggerNames = "",
    measure: MeasureNames = "",
) -> "RunOptions":
    """Return how each run is executed; `UserError` for an unknown logger or instrument."""
    from tfstudy.experiment.options import RunOptions
    from tfstudy.instruments import parse_in_training
    from tfstudy.training.logger_choice import parse_loggers

    loggers, measured = parse_loggers(logger), parse_in_training(measure)
    return RunOptions(devices=devices, accelerator=accelerator, loggers=loggers, measure=measured, execution=execution)


OneRun = Annotated["RunOptions", Group(run_options)]


def executor_settings(*, per_device: PerDevice = "auto", timeout: Timeout = 0.0, options: OneRun) -> "ExecutorSettings":
    """Return how runs share the devices, and how each is executed."""
    from tfstudy.launchers import ExecutorSettings

    return ExecutorSettings(per_device, timeout, options=options)


ManyRuns = Annotated["ExecutorSettings", Group(executor_settings)]

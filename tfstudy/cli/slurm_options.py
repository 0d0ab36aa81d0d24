"""The options of `tfstudy grid` for Slurm."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfstudy.cli.option_groups import Group

if TYPE_CHECKING:
    from tfstudy.launchers import SlurmRequest


def _option(name: str, help_text: str, **more: Any) -> Any:
    return typer.Option(f"--slurm.{name}", help=help_text, **more)


Partition = Annotated[str, _option("partition", "Partition.")]
Account = Annotated[str, _option("account", "Account.")]
Qos = Annotated[str, _option("qos", "Quality of service.")]
Constraint = Annotated[str, _option("constraint", "Features of nodes, such as a100.")]
Minutes = Annotated[int, _option("time", "Time limit of a job in minutes.", min=1)]
Gres = Annotated[str, _option("gres", "Resources of a job: gpu:1 or shard:1.")]
Cpus = Annotated[int, _option("cpus", "CPUs of a job (0: one per device).", min=0)]
Memory = Annotated[str, _option("memory", "Memory of a job, such as 16G.")]
AtOnce = Annotated[int, _option("at-once", "Maximum number of jobs in parallel.", min=1)]
ArraySize = Annotated[int, _option("array-size", "Maximum number of jobs of an array.", min=1)]
Setup = Annotated[list[str] | None, _option("setup", "Shell line before each job; repeatable.", metavar="LINE")]
Extra = Annotated[list[str] | None, _option("extra", "Other option of sbatch; repeatable.", metavar="KEY[=VALUE]")]
Detach = Annotated[bool, typer.Option("--detach", help="Submit to Slurm and return; the same command resumes.")]


def slurm_request(
    slurm_partition: Partition = "",
    slurm_account: Account = "",
    slurm_qos: Qos = "",
    slurm_constraint: Constraint = "",
    slurm_time: Minutes = 240,
    slurm_gres: Gres = "",
    slurm_cpus: Cpus = 0,
    slurm_memory: Memory = "",
    slurm_at_once: AtOnce = 50,
    slurm_array_size: ArraySize = 1000,
    slurm_setup: Setup = None,
    slurm_extra: Extra = None,
) -> "SlurmRequest":
    """Return what a grid asks of Slurm."""
    from tfstudy.launchers import SlurmRequest

    return SlurmRequest(
        partition=slurm_partition,
        account=slurm_account,
        qos=slurm_qos,
        constraint=slurm_constraint,
        minutes=slurm_time,
        gres=slurm_gres,
        cpus=slurm_cpus,
        memory=slurm_memory,
        max_parallel=slurm_at_once,
        array_size=slurm_array_size,
        setup=tuple(slurm_setup or ()),
        extra=tuple(slurm_extra or ()),
    )


Slurm = Annotated["SlurmRequest", Group(slurm_request)]


def check_slurm_options(request: "SlurmRequest", launcher: str, detach: bool, fail_fast: bool) -> None:
    """`UserError` for an invalid request, or one without the launcher that it is for."""
    from tfstudy.errors import UserError
    from tfstudy.launchers import SlurmRequest
    from tfstudy.launchers.slurm_request import check_request

    if request != SlurmRequest() and launcher != "slurm":
        raise UserError(f"--slurm options need --launcher slurm, but --launcher is '{launcher}'")
    if detach and launcher != "slurm":
        raise UserError(f"--detach needs --launcher slurm, but --launcher is '{launcher}'")
    if detach and fail_fast:
        raise UserError("--fail-fast can't be used with --detach, which does not wait for runs that fail")
    check_request(request)

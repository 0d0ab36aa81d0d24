"""The resources that each job requests from Slurm, and what each of them may be.

They are options of `sbatch`. None of them is part of a run's config, hash or record.
"""

import re
from typing import Any, NamedTuple

from tfstudy.errors import UserError, quoted
from tfstudy.experiment.options import RunOptions

MAX_ARRAY = 1_000_000  # no Slurm is configured for larger arrays
NAME = r"[\w.@+-]+"
FORMS = {  # field to the form of its text, and to the words of a message
    "partition": (rf"{NAME}(,{NAME})*", "the name of a partition, or several with commas between them, such as gpu"),
    "gres": (rf"{NAME}(:{NAME}){{0,2}}(,{NAME}(:{NAME}){{0,2}})*", "resources such as gpu:1, gpu:a100:1 or shard:1"),
    "account": (NAME, "the name of an account, such as my-project"),
    "qos": (NAME, "the name of a quality of service, such as normal"),
    "memory": (r"(?i:\d{1,12}[KMGT]?)", "a number with K, M, G or T, such as 16G"),
    "constraint": (r"[\w.@+&|*,:()\[\]-]+", "features of nodes, such as a100 or 'a100|h100'"),
}
OPTION_OF = {  # long options of sbatch that have an option of their own here
    "account": "--slurm.account",
    "array": "--slurm.array-size and --slurm.at-once",
    "constraint": "--slurm.constraint",
    "cpus-per-task": "--slurm.cpus",
    "gres": "--slurm.gres",
    "mem": "--slurm.memory",
    "partition": "--slurm.partition",
    "qos": "--slurm.qos",
    "time": "--slurm.time",
}
FIXED = (  # what tfstudy itself relies on
    *("chdir", "dependency", "error", "job-name", "nodes", "no-requeue", "ntasks", "ntasks-per-node", "open-mode"),
    *("output", "parsable", "requeue", "signal", "test-only", "wait", "wrap"),
)


class SlurmRequest(NamedTuple):
    """The resources that a job requests from Slurm; empty or 0 is the default of the cluster."""

    partition: str = ""
    minutes: int = 240
    gres: str = ""  # such as gpu:1, or shard:1 for a share of a GPU
    cpus: int = 0
    max_parallel: int = 50  # jobs
    account: str = ""
    qos: str = ""
    memory: str = ""  # of a job, such as 16G
    constraint: str = ""
    array_size: int = 1000  # maximum number of jobs of an array: the default limit of Slurm
    setup: tuple[str, ...] = ()  # lines of shell that run before each job, such as `module load cuda`
    extra: tuple[str, ...] = ()  # other options of sbatch, as KEY=VALUE, or KEY for an option without a value


def check_request(request: SlurmRequest) -> None:
    """`UserError` with a line for each invalid value."""
    problems = []
    for field, (form, expected) in FORMS.items():
        value = getattr(request, field)
        if value and not re.fullmatch(form, value):
            problems.append(f"--slurm.{field} must be {expected}, but is {quoted(value)}")
    if not 1 <= request.array_size <= MAX_ARRAY:
        problems.append(f"--slurm.array-size must be from 1 to {MAX_ARRAY:,}, but is {request.array_size:,}")
    for line in request.setup:
        if not line.strip() or not line.isprintable():
            problems.append(
                f"--slurm.setup must be one line of shell, such as 'module load cuda', but is {quoted(line)}"
            )
    problems += _problems_of_extra(request.extra)
    if problems:
        raise UserError("\n".join(problems))


def _problems_of_extra(extra: tuple[str, ...]) -> list[str]:
    problems, keys = [], list[str]()
    for text in extra:
        key, equals, value = text.partition("=")
        if not re.fullmatch("[a-z][a-z0-9-]+", key) or bool(equals) != bool(value) or not text.isprintable():
            problems.append(
                "--slurm.extra must be a long option of sbatch without its dashes, such as nice=100 or exclusive, "
                f"but is {quoted(text)}"
            )
        elif key in OPTION_OF:
            problems.append(f"--slurm.extra can't set '{key}': use {OPTION_OF[key]}")
        elif key in FIXED:
            problems.append(f"--slurm.extra can't set '{key}', which tfstudy sets itself")
        elif key in keys:
            problems.append(f"--slurm.extra sets '{key}' twice")
        keys.append(key)
    return problems


def parameters(request: SlurmRequest, options: RunOptions) -> dict[str, Any]:
    """Return the resources of each job as parameters of submitit."""
    gres = request.gres or (f"gpu:{options.devices}" if options.accelerator == "cuda" else "")
    named = {
        "account": request.account,
        "constraint": request.constraint,
        "gres": gres,
        "mem": request.memory,
        "partition": request.partition,
        "qos": request.qos,
    }
    extra: dict[str, str | bool] = {}
    for text in request.extra:
        key, equals, value = text.partition("=")
        extra[key] = value if equals else True
    return {
        "name": "tfstudy",
        "timeout_min": request.minutes,
        "cpus_per_task": request.cpus or options.devices,
        "slurm_array_parallelism": request.max_parallel,
        "slurm_additional_parameters": {"requeue": True} | {k: v for k, v in named.items() if v} | extra,
        **({"slurm_setup": list(request.setup)} if request.setup else {}),
    }

"""The command that measures speed, memory and FLOPs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tfstudy.cli import options as opt
from tfstudy.cli.command_line import app
from tfstudy.cli.output import announce, listing_format, print_listing, progress_on_stderr
from tfstudy.errors import UserError

if TYPE_CHECKING:
    from tfstudy.performance.settings import Request


@app.command()
def bench(
    arch: Annotated[str, opt.option(metavar="NAME,...", help="Architectures (transformer,lstm).")] = "transformer,lstm",
    vary: Annotated[
        list[str] | None,
        opt.option(metavar="AXIS=N,...", help="length=16,32,64,128, width=128 or batch=16; repeatable."),
    ] = None,
    measure: Annotated[
        str, opt.option(metavar="NAME,...", help="training, generation, memory, flops (all).")
    ] = "training,generation,memory,flops",
    variant: Annotated[
        str, opt.option(metavar="NAME,...", help="default, uncached, explicit, checkpointing, bf16 (all).")
    ] = "default,uncached,explicit,checkpointing,bf16",
    settings: opt.Set = None,
    repeats: Annotated[int, opt.option(min=1, max=1000, metavar="N", help="Rounds; each times every setting (7).")] = 7,
    threads: Annotated[int, opt.option(min=0, metavar="N", help="Threads of torch (0: torch's default).")] = 0,
    accelerator: opt.Accelerator = "auto",
    out: Annotated[Path | None, opt.path_option("New folder for records, table and figure.")] = None,
    format_: opt.Format = "text",
    quiet: opt.Quiet = False,
) -> None:
    """Measure speed, memory and FLOPs by length, width or batch.

    Training and generation of models of about equal size, on random tokens. Variants: generation without a cache
    (uncached), attention without fused kernels (explicit), gradient checkpointing, and mixed precision (bf16).
    """
    from tfstudy.performance.record import check_free

    format_, request = listing_format(format_), _request(arch, vary, measure, variant, settings, repeats)
    if out:
        check_free(out)
    announce("loading PyTorch ...", quiet)
    import torch

    from tfstudy.experiment.api import RunOptions, device_name, device_of
    from tfstudy.performance.measure import measure as measured
    from tfstudy.report import bench_table

    device = device_of(RunOptions(accelerator=accelerator))
    if threads:
        torch.set_num_threads(threads)
    with progress_on_stderr(quiet):
        records, notes = measured(request, device, device_name(device))
    if not records:  # known only when the models are built
        raise UserError(
            "; ".join(notes)
            or f"nothing to measure: {', '.join(request.archs)} without the fused attention that the variant explicit "
            "replaces; add the variant default"
        )
    if out:
        bench_table.save(out, records, notes, next(iter(request.axes)))
    print_listing(bench_table.listing(records, notes), format_)
    if out and format_ == "text":
        print(out)


def _request(
    arch: str, vary: list[str] | None, measure: str, variant: str, settings: list[str] | None, repeats: int
) -> "Request":
    """Return what the options ask for; `UserError` for an invalid one."""
    from tfstudy import models
    from tfstudy.config.resolve import overrides
    from tfstudy.performance import settings as sizes
    from tfstudy.performance.record import VARIANTS

    request = sizes.Request(
        sizes.parse_names(arch, "architecture", models.names()),
        sizes.parse_axes(vary or []),
        sizes.parse_names(measure, "measure", sizes.MEASURES),
        tuple(name for name in VARIANTS if name in sizes.parse_names(variant, "variant", tuple(VARIANTS))),
        sizes.check_overrides(overrides(settings or [])),
        repeats,
    )
    if not request.settings():
        applies = "; ".join(f"the variant {name} applies to {VARIANTS[name][0]}" for name in request.variants)
        asked = "" if request.timed else ", and without training or generation, memory and FLOPs are those of training"
        raise UserError(f"nothing to measure with --measure {measure} --variant {variant}: {applies}{asked}")
    return request

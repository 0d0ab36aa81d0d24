"""The command that measures speed, memory and FLOPs."""

from pathlib import Path
from typing import Annotated

from tfstudy.cli import options as opt
from tfstudy.cli.command_line import app
from tfstudy.cli.output import announce, listing_format, print_listing, progress_on_stderr
from tfstudy.errors import UserError


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
        str, opt.option(metavar="NAME,...", help="default, uncached, explicit, checkpointing, bf16 (default).")
    ] = "default",
    settings: opt.Set = None,
    repeats: Annotated[int, opt.option(min=1, max=1000, metavar="N", help="Rounds; each times every setting (7).")] = 7,
    threads: Annotated[int, opt.option(min=0, metavar="N", help="Threads of torch (0: torch's default).")] = 0,
    accelerator: opt.Accelerator = "auto",
    out: Annotated[Path | None, opt.path_option("New folder for records and figure.")] = None,
    format_: opt.Format = "text",
    quiet: opt.Quiet = False,
) -> None:
    """Measure speed, memory and FLOPs by length, width or batch.

    Training and generation of models of about equal size, on random tokens. Variants: generation without a cache
    (uncached), attention without fused kernels (explicit), gradient checkpointing, and mixed precision (bf16).
    """
    from tfstudy.performance.record import check_free, parse_request, write_records

    format_ = listing_format(format_)
    request = parse_request(arch, vary or [], measure, variant, settings or [], repeats)
    if out:
        check_free(out)
    announce("loading PyTorch ...", quiet)
    import torch

    from tfstudy.experiment.api import RunOptions, device_name, device_of
    from tfstudy.performance.measure import measure as measured
    from tfstudy.report.bench import listing, plot

    device = device_of(RunOptions(accelerator=accelerator))
    if threads:
        torch.set_num_threads(threads)
    with progress_on_stderr(quiet):
        records, notes = measured(request, device, device_name(device))
    if not records:
        raise UserError("; ".join(notes))
    if out:
        write_records(out, records)
        plot(records, next(iter(request.axes))).save(out / "bench.svg")
    print_listing(listing(records, notes), format_)
    if out and format_ == "text":
        print(out)

"""The command that shows what a finished run attends to."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.options import INSPECT, RESULTS, Online, Results, Run, app, some_path
from tfstudy.cli.output import Format, Quiet, announce, is_json, progress_on_stderr


@app.command(rich_help_panel=INSPECT)
def attention(
    run: Run,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source sequence, tokens separated by spaces.")],
    target: Annotated[str | None, typer.Option(help="Output to read (default: the model's own greedy output).")] = None,
    kind: Annotated[
        str,
        typer.Option(help="encoder, decoder, prefix or cross (default: the last that the model has; json: all)."),
    ] = "",
    layer: Annotated[int | None, typer.Option(min=1, help="Only this layer, from 1.")] = None,
    head: Annotated[int | None, typer.Option(min=1, help="Only this head, from 1.")] = None,
    out: Annotated[
        Path | None, typer.Option(parser=some_path, metavar="PATH", help="Also draw it: a .png, .svg or .pdf file.")
    ] = None,
    format_: Format = "text",
    online: Online = False,
    quiet: Quiet = False,
    results: Results = RESULTS,
) -> None:
    """Show which tokens a finished run attends to.

    The table has the token with the largest weight, as a mean over heads; the figure has all weights of each layer and
    head. A row belongs to the output token that is predicted from it.
    """
    from tfstudy.report.plots import check_file_type
    from tfstudy.runs.find import find_run

    as_json = is_json(format_)
    if out:
        check_file_type(out)
    path = find_run(results, run)
    announce(f"{path}: loading PyTorch ...", quiet)
    from tfstudy.experiment.finished import load

    with progress_on_stderr(quiet):
        finished = load(path, online=online)
    found = finished.attention(source, target)
    maps = found.maps(kind, layer or 0, head or 0)
    if out:
        from tfstudy.report.plots import heat_maps

        heat_maps.attention(maps.of_one_kind()).save(out)
    if as_json:
        tree = {"source": maps.source, "output": maps.output, "given": found.given}
        print(json.dumps(tree | {"maps": [one._asdict() for one in maps.maps]}, ensure_ascii=False))
        return
    from tfstudy.report.attention_summary import show

    show(maps.of_one_kind())
    if out:
        print(out)

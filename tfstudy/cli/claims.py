"""The command that judges claims by the results."""

from typing import Annotated

import typer

from tfstudy.cli.app import app
from tfstudy.cli.options import RESULTS, Results
from tfstudy.cli.output import DocumentFormat, document_format


@app.command()
def claims(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Claims, such as L2 (default: all).")] = None,
    format_: DocumentFormat = "",
    results: Results = RESULTS,
) -> None:
    """Judge claims by the finished runs.

    Each claim is supported, refuted, mixed, undecided or not run; the evidence is listed.
    """
    from tfstudy.report.claims import FORMATS, claim_lines, judged_claims
    from tfstudy.report.terminal import show_lines

    format_ = document_format(format_, ("text", *FORMATS))
    names = [name for text in ids or [] for name in text.replace(",", " ").split() or [text]]
    verdicts, notes = judged_claims(results, names)
    if format_ == "text":
        show_lines(claim_lines(verdicts, notes, details=bool(names)))
    else:
        print(FORMATS[format_](verdicts, notes), end="")

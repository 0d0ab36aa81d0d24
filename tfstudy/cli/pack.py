"""The commands that pack the runs of a study into one file, and unpack them."""

from pathlib import Path
from typing import Annotated

import typer

from tfstudy.cli.command_line import app
from tfstudy.cli.options import RESULTS, ExistingResults, complete_study

Study = Annotated[
    str,
    typer.Argument(
        metavar="STUDY", help="Study: a folder within the results, or its path.", autocompletion=complete_study
    ),
]


@app.command()
def pack(
    study: Study,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Leave out predictions or checkpoints, which are then lost; repeatable."),
    ] = None,
    results: ExistingResults = RESULTS,
) -> None:
    """Pack the finished runs of a study into one file.

    The file is runs.zip in the folder of the study, and all commands read the runs in it. Runs that finish later go to
    runs-2.zip and so on. Each file is read back and compared before the run folders are removed.
    """
    from tfstudy.errors import one_of
    from tfstudy.report.markup import plural
    from tfstudy.runs.pack import OPTIONAL, pack_study

    for name in without or ():
        one_of("part of a run", name, OPTIONAL, "--without")
    folder = _folder(study, results)
    packed = pack_study(folder, without or ())
    reasons: dict[str, list[Path]] = {}
    for path, reason in packed.kept:
        reasons.setdefault(reason, []).append(path)
    for reason, paths in reasons.items():
        print(f"not packed ({reason}): {plural(len(paths), 'run')}, such as {paths[0]}")
    if packed.file:
        print(f"{packed.file}: {plural(packed.runs, 'run')}, {packed.file.stat().st_size / 1e6:.1f} MB")
    elif packed.removed:
        print(f"{folder}: {plural(packed.removed, 'folder')} of packed runs removed")
    else:
        print(f"{folder}: nothing to pack")


@app.command()
def unzip(study: Study, results: ExistingResults = RESULTS) -> None:
    """Unpack all runs of a study into folders.

    This undoes tfstudy pack and removes its files.
    """
    from tfstudy.report.markup import plural
    from tfstudy.runs.pack import unzip_study

    folder = _folder(study, results)
    count, files = unzip_study(folder)
    removed = f", {', '.join(file.name for file in files)} removed" if files else ""
    print(f"{folder}: {plural(count, 'run')} unpacked{removed}")


def _folder(study: str, results: Path) -> Path:
    """Return the folder of a study; `UserError` if there is none, or if a run or the folder of all results is named."""
    from tfstudy.errors import UserError
    from tfstudy.runs.files import RUN
    from tfstudy.runs.find import find_study, studies, study_folder

    folder = study_folder(study, results) if study else find_study(results, study)
    if folder.resolve() == results.resolve() or RUN.fullmatch(folder.name):
        raise UserError(f"{folder} is not a study; choose one of: {', '.join(studies(results))}")
    return folder

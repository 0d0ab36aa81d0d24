"""The commands to begin with and to pass on: files of a new task, exported weights, and packed studies."""

import keyword
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

from tfstudy.cli import options as opt
from tfstudy.cli.command_line import app
from tfstudy.cli.output import progress_on_stderr
from tfstudy.errors import UserError, one_of, quoted

TEMPLATES = Path(__file__).parent / "templates"
NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


@app.command()
def new(
    kind: Annotated[str, opt.argument("task|architecture", "What to write.")],
    name: Annotated[str, opt.argument("NAME", "Its name, such as my_task, which is that of its file.")],
) -> None:
    """Write the files of a new task or architecture into this folder.

    They are a file for --plugin and its test. The task reverses strings and the architecture is a GRU: both work at
    once, and are there to be edited.
    """
    from tfstudy.plugins import command

    one_of("kind", kind, ("task", "architecture"))
    _check_name(kind, name)
    names = {f"{name}.py": f"{kind}.py", f"test_{name}.py": f"test_{kind}.py"}
    texts = {file: (TEMPLATES / f"{own}.txt").read_text(encoding="utf-8") for file, own in names.items()}
    cls = "".join(part.capitalize() for part in name.split("_"))
    if re.search(rf"\b{cls}\b", texts[f"{name}.py"]):  # such as Task, which the module imports
        cls += kind.capitalize()
    if existing := [file for file in texts if os.path.lexists(file)]:
        raise UserError(f"can't write {existing[0]}: File exists; nothing was written")
    for file, text in texts.items():
        Path(file).write_text(Template(text).substitute(name=name, Class=cls), encoding="utf-8")
        print(file)
    words = [name] if kind == "task" else ["scan", "--arch", name]
    print(f"next: {command('run', *words, '--smoke', '--plugin', f'{name}.py')}")


def _check_name(kind: str, name: str) -> None:
    """`UserError` for a name that is taken, that Python could not import, or that hides or is hidden by a module."""
    from tfstudy import models, tasks

    registry = tasks.REGISTRY if kind == "task" else models.REGISTRY
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or name.startswith("test_"):
        rule = "of small letters, digits and '_', and not a keyword"
        raise UserError(f"the name must be a name in Python such as my_{kind}, {rule}, but is {quoted(name)}")
    if name in {*registry.names(), *registry.shared, *sys.stdlib_module_names}:
        raise UserError(f"'{name}' is a name of tfstudy or Python already; choose another one")
    if module := find_spec(name):
        raise UserError(f"'{name}' is already a module ({module.origin}); choose another name")


@app.command()
def export(
    run: opt.Run, online: opt.Online = False, quiet: opt.Quiet = False, results: opt.Results = opt.RESULTS
) -> None:
    """Write the weights of a run as weights.safetensors, which commands on the run use where there is no checkpoint."""
    from tfstudy.cli.inspection import load_run, run_with_weights

    finished = load_run(run_with_weights(run, results), online, quiet)
    with progress_on_stderr(quiet):
        file = finished.save_weights()
    print(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")


@app.command()
def pack(
    study: Annotated[str, opt.argument("STUDY", "Study: a folder within the results, or its path.")],
    without: Annotated[
        list[str] | None,
        opt.option(metavar="NAME", help="Leave out predictions or checkpoints, which are then lost; repeatable."),
    ] = None,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Pack the finished runs of a study into one file.

    The file is runs.zip in the folder of the study, and all commands read the runs in it. Runs that finish later go to
    runs-2.zip and so on. Each file is read back and compared before the run folders are removed. Most of it are
    weights: --without checkpoints leaves them out, and tables and plots stay the same.
    """
    from tfstudy.report.markup import plural
    from tfstudy.runs.files import numbered_zips
    from tfstudy.runs.find import find_study
    from tfstudy.runs.pack import OPTIONAL, pack_study

    for name in without or ():
        one_of("part of a run", name, OPTIONAL, "--without")
    folder = find_study(results, study)
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
        print(f"{folder}: nothing to pack{'; packed runs are never changed' * bool(numbered_zips(folder))}")

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
    out: Annotated[Path, opt.path_option("Folder for the files (this one).")] = Path(),
) -> None:
    """Write the files of a new task or architecture.

    They are a file for --plugin, its test and, for a task, presets. The task reverses strings and the architecture is a
    GRU: both work at once, and are there to be edited.
    """
    from tfstudy.plugins import command

    one_of("kind", kind, ("task", "architecture"))
    _check_name(kind, name)
    code = (TEMPLATES / f"{kind}.py.txt").read_text(encoding="utf-8")
    cls = "".join(part.capitalize() for part in name.split("_"))
    if re.search(rf"\b{cls}\b", code):  # such as Task, which the module imports
        cls += kind.capitalize()
    templates = {f"{name}.py": f"{kind}.py", f"test_{name}.py": f"test_{kind}.py"}
    if kind == "task":
        templates[f"{name}.presets.yaml"] = "task.presets.yaml"
    files = {}
    for file, template in templates.items():
        text = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
        files[out / file] = Template(text).substitute(name=name, Class=cls)
    _write(files)
    for path in files:
        print(path)
    words = [name] if kind == "task" else ["scan", "--arch", name]
    print(f"next: {command('run', *words, '--smoke', '--plugin', out / f'{name}.py')}")


def _check_name(kind: str, name: str) -> None:
    """`UserError` for a name that is taken, that Python could not import, or that hides or is hidden by a module."""
    from tfstudy import models, tasks

    registry = tasks.REGISTRY if kind == "task" else models.REGISTRY
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or name.startswith("test_"):
        raise UserError(
            f"the name must be a name in Python such as my_{kind}, of small letters, digits and '_' and not a keyword, "
            f"but is {quoted(name)}"
        )
    if name in registry.names():
        raise UserError(f"there is {'an' if kind[0] in 'aeiou' else 'a'} {kind} '{name}' already; choose another name")
    if name in registry.shared or name in sys.stdlib_module_names or find_spec(name):
        raise UserError(f"'{name}' is the name of a module of Python, tfstudy or an installed package; choose another")


def _write(files: dict[Path, str]) -> None:
    """Write all files, or none. `UserError` if one exists or can't be written."""
    if existing := [path for path in files if os.path.lexists(path)]:
        raise UserError(f"can't write {quoted(existing[0], 300, '')}: File exists; nothing was written")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@app.command()
def export(
    run: opt.Run,
    out: Annotated[Path | None, opt.path_option("File (weights.safetensors in the run folder).")] = None,
    online: opt.Online = False,
    quiet: opt.Quiet = False,
    results: opt.Results = opt.RESULTS,
) -> None:
    """Write the weights of a run as a safetensors file, which commands on the run use where there is no checkpoint."""
    from tfstudy.cli.inspection import load_run, run_with_weights

    path = run_with_weights(run, results)
    if out and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise UserError(f"--out must be a file in an existing folder, but is {out}")
    finished = load_run(path, online, quiet)
    with progress_on_stderr(quiet):
        file = finished.save_weights(out)
    print(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")


@app.command()
def pack(
    study: Annotated[str, opt.argument("STUDY", "Study: a folder within the results, or its path.")],
    without: Annotated[
        list[str] | None,
        opt.option(metavar="NAME", help="Leave out predictions or checkpoints, which are then lost; repeatable."),
    ] = None,
    results: opt.ExistingResults = opt.RESULTS,
) -> None:
    """Pack the finished runs of a study into one file.

    The file is runs.zip in the folder of the study, and all commands read the runs in it. Runs that finish later go to
    runs-2.zip and so on. Each file is read back and compared before the run folders are removed.
    """
    from tfstudy.report.markup import plural
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
        print(f"{folder}: nothing to pack")

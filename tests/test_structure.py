"""The structure of the code: each package is one floor and imports only the floors below it; a file is a subject."""

import ast
import re
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import tfstudy

ROOT = Path(tfstudy.__file__).parent.parent
TOUR = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FLOORS = tuple(re.findall(r"^\| `(tfstudy\.\w+)` \|", TOUR, re.MULTILINE))[::-1]  # from the ground up
GROUND = ("tfstudy.errors", "tfstudy.registry", "tfstudy.plugins")  # what every floor stands on
ROOF = ("tfstudy", "tfstudy.__main__")  # the Python API, imported lazily, and `python -m tfstudy`
FILES = sorted([*(ROOT / "tasks").rglob("*.py"), *(ROOT / "tfstudy").rglob("*.py")])
HEAVY = {"torch", "lightning", "torchmetrics", "pandas", "datasets", "sacrebleu", "tokenizers", "seaborn", "scipy"}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("tfstudy", *parts) if parts[0] == "tasks" else parts  # tfstudy/tasks is a link to it
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def floor(module: str) -> int | None:
    found = [i for i, package in enumerate((GROUND[0], *FLOORS)) if within(module, package)]
    found += [0] if module in GROUND else []
    return found[0] if found else None


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imported(module: str, path: Path, deferred: bool = True) -> set[str]:
    """The modules that a file imports; with `deferred`, those within functions or for type checkers too."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    out: set[str] = set()

    def visit(node: ast.AST) -> None:
        if not deferred and (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_type_checking(node)):
            return
        if isinstance(node, ast.Import):
            out.update(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
            whole = [f"{base}.{alias.name}" for alias in node.names]
            out.update(name if name in MODULES else base for name in whole)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return out


def test_every_module_stands_on_a_floor_and_imports_go_down():
    assert sorted(FLOORS) == sorted(f"tfstudy.{path.parent.name}" for path in (ROOT / "tfstudy").glob("*/__init__.py"))
    for module in (name for name in MODULES if name not in ROOF):
        assert floor(module) is not None, module
        ours = {name for name in imported(module, MODULES[module]) if floor(name) is not None}
        assert [name for name in ours if floor(name) > floor(module)] == [], module


def test_no_imports_are_circular():
    graph = {}
    for module, path in MODULES.items():
        names = {name for name in imported(module, path, deferred=False) if name in MODULES}
        graph[module] = {name for name in names if not within(module, name)}  # a package is there before its parts
    TopologicalSorter(graph).prepare()


def test_tasks_import_nothing_of_tfstudy_and_nothing_heavy():
    for module, path in MODULES.items():
        if within(module, "tfstudy.tasks"):
            names = imported(module, path)
            above = [name for name in names if within(name, "tfstudy") and not within(name, "tfstudy.tasks")]
            assert not {*above} - {*GROUND}, module
            assert not [n for n in imported(module, path, deferred=False) if n.split(".")[0] in HEAVY], module


def test_models_know_no_lightning_and_no_vocabulary():
    for module, path in MODULES.items():
        if within(module, "tfstudy.models"):
            names = imported(module, path)
            assert not [name for name in names if name.split(".")[0] in {"lightning", "torchmetrics"}], module
            assert "tfstudy.data.encoding" not in names, module


def test_the_default_folder_of_results_is_defined_once():
    assert [module_of(path) for path in FILES if 'Path("results")' in path.read_text(encoding="utf-8")] == ["tfstudy"]


def test_a_file_is_a_subject_of_at_most_450_lines_that_says_what_it_is():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 450, path
        assert ast.get_docstring(ast.parse(text)), path

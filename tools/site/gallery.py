"""The gallery of tasks: purpose, split schemes, tags and sampled examples of each, from the tasks themselves."""

import inspect
import sys
from random import Random
from typing import Any

from tfstudy import tasks
from tfstudy.errors import UserError
from tfstudy.tasks.base import Example, Task
from tools.site.reference import code, fenced, table, text

SAMPLED = 3  # examples of each split
SHOWN = 24  # tokens of a longer example: the first ones
DRAWN = {"train_examples": 60, "eval_examples": 20}  # of generated tasks, which draw as many as they are asked for
MANY = 16  # schemes of a task with a section each; of others, those of FEW are shown
FEW = {"scan": ("simple", "length", "addprim_jump", "addprim_turn_left", "template_around_right", "filler_num2")}
INDEX = """# Gallery of tasks

Every task maps a source sequence to a target sequence. The examples on these pages are drawn from the tasks, with the
default settings, when the documentation is built.
"""


def pages() -> dict[str, str]:
    """Return the pages by their paths: an overview and one page for each task."""
    names = tasks.names()
    return {"gallery/index.md": index(names)} | {f"gallery/{name}.md": page(name) for name in names}


def index(names: list[str]) -> str:
    """Return the overview: each task with its first sentence, a pair and its split schemes."""
    rows = []
    for name in names:
        kind = tasks.find(name)
        schemes = tuple(kind.split_schemes())
        some = FEW.get(name, schemes[:6])
        more = f" and {len(schemes) - len(some)} more" if len(schemes) > len(some) else ""
        shown = ", ".join(map(code, some))
        rows.append((f"[{name}]({name}.md)", text(purpose(kind).split("\n\n")[0]), f"{shown}{more}"))
    return f"{INDEX}\n{table(('Task', 'What it asks', 'Split schemes'), rows, 'tasks')}"


def page(name: str) -> str:
    """Return the page of a task."""
    kind = tasks.find(name)
    schemes = kind.split_schemes()
    shown = FEW.get(name, tuple(schemes)) if len(schemes) > MANY else tuple(schemes)
    parts = [
        f"# {name}\n",
        fenced(purpose(kind)),
        "",
        f"[All keys of its config](../reference/config-data.md#{name}).\n",
    ]
    parts += [
        "## Split schemes\n",
        table(("`--split`", "What it tests"), _schemes(schemes), "schemes"),
        "## Examples\n",
    ]
    parts += [examples(name, scheme) for scheme in shown]
    return "\n".join(parts)


def purpose(kind: type[Task]) -> str:
    """Return the docstring of the task's module."""
    return inspect.getdoc(sys.modules[kind.__module__]) or ""


def examples(name: str, scheme: str) -> str:
    """Return a section with examples of the splits of one scheme, or what the scheme needs."""
    config: Any = tasks.find(name).Config
    try:
        few = {key: value for key, value in DRAWN.items() if key in config.model_fields}
        task = tasks.find(name)(config(split=scheme, **few))
        splits = task.splits()
        rows = [row for split in (splits.train, *splits.tests) for row in _rows(task, split)]
    except UserError as error:
        return f"### {scheme}\n\n{text(str(error)[:1].upper() + str(error)[1:])}.\n"
    return f"### {scheme}\n\n{table(('Split', 'Source', 'Target', 'Tags'), rows, 'examples')}"


def _rows(task: Task, split: str) -> list[tuple[str, ...]]:
    """Return sampled examples of a split, the shortest source first: the same ones in every build."""
    every = task.examples(split)
    numbers = sorted(Random(split).sample(range(len(every)), min(SAMPLED, len(every))))
    chosen = sorted((every[number] for number in numbers), key=lambda example: len(example.source))
    return [("" if i else code(split), *_cells(task, example)) for i, example in enumerate(chosen)]


def _cells(task: Task, example: Example) -> tuple[str, str, str]:
    tags = ", ".join(f"{name} {value}" for name, value in example.tags.items())
    return _text(task, example.source), _text(task, example.target), text(tags)


def _text(task: Task, tokens: tuple[str, ...]) -> str:
    """Return tokens as readable text, of a long sequence the first ones."""
    more = f" … ({len(tokens)} tokens)" if len(tokens) > SHOWN else ""
    return (code(task.text(tokens[:SHOWN])) or "(empty)") + more


def _schemes(schemes: dict[str, str]) -> list[tuple[str, str]]:
    return [(code(name), text(meaning)) for name, meaning in schemes.items()]

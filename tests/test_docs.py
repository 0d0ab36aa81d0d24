"""The documentation: it builds without a warning, its links lead somewhere, its generated pages are whole."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import typer

from tests.commands import tfstudy
from tests.committed import ROOT
from tfstudy import models, tasks
from tfstudy.cli import app
from tfstudy.config.schema import RunConfig
from tools.site import gallery, hooks, reference

README = (ROOT / "README.md").read_text(encoding="utf-8")


class Page(HTMLParser):
    """The files that an HTML page loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("link", "script", "img", "iframe", "source", "video"):
            self.loaded += [value for key, value in attrs if key in ("href", "src") and value]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_no_page_is_left_out_or_loads_anything_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {"NO_MKDOCS_2_WARNING": "1", "PATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if re.match("WARNING|ERROR", line)] == []  # links and anchors too
    assert done.returncode == 0
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - listed == set()
    loaded = [(path, url) for path in tmp_path.rglob("*.html") for url in Page(path).loaded]
    assert len(loaded) > 100
    assert [found for found in loaded if urlsplit(found[1]).netloc] == []


def test_links_to_files_work_where_the_repository_is_shown():
    generated = re.compile(r"(gallery/|reference/|^)(index|command-line|config[\w-]*|instruments)\.md$")
    missing = []
    for page in (ROOT / "README.md", *(ROOT / path for path in hooks.summaries()), *(ROOT / "docs").rglob("*.md")):
        targets = [link[3].split("#")[0] for link in hooks.LINK.finditer(page.read_text(encoding="utf-8"))]
        files = [name for name in targets if name and not re.match(r"[a-z]+:", name) and not generated.search(name)]
        missing += [f"{page}: {name}" for name in files if not (page.parent / name).exists()]
    assert missing == []


def test_the_readme_is_read_in_a_minute_and_shows_what_the_shipped_run_says(capsys):
    assert len(README.splitlines()) <= 140
    assert tfstudy("errors", "first/lstm", "--examples", "1", "--results", ROOT / "results") == 0
    shown = README[README.index("lstm s0-") :].split("\n...\n")[0].splitlines()
    assert len(shown) == 7
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()][:7] == shown


def test_the_reference_has_every_command_option_and_key():
    text, program = reference.commands_page(), typer.main.get_command(app)
    assert [name for name in program.commands if f"### tfstudy {name}\n" not in text] == []
    options = {word for one in program.commands.values() for p in one.params for word in p.opts if word[:2] == "--"}
    assert [word for word in options if word not in text] == []
    run, data, model = reference.run_page(), reference.data_page(), reference.model_page()
    for name in ("train", "decode", "eval"):
        section = RunConfig.model_fields[name].annotation
        assert [key for key in section.model_fields if f"`{name}.{key}`" not in run] == []
    for task in tasks.names():
        assert [key for key in tasks.find(task).Config.model_fields if f"`data.{key}`" not in data] == []
    for arch in models.names():
        assert [key for key in models.find(arch).Config.model_fields if f"`model.{key}`" not in model] == []
    assert "| `train.steps` | `3000` | integer, at least 1 | optimiser steps;" in run
    assert "| `train.optimizer` | `adamw` | `adamw` \\| `sgd` |" in run


def test_the_gallery_shows_every_task_with_pairs_that_the_task_contains():
    assert set(tasks.names()) == {
        name for name in tasks.names() if f"[{name}]({name}.md)" in gallery.index(tasks.names())
    }
    page = gallery.page("copying")
    pairs = re.findall(r"\| `([a-j ]+)` \| `([a-j ]+)` \|", page.split("### reverse")[1].split("###")[0])
    assert len(pairs) == 12  # three of train and of each test set
    assert all(target == source[::-1] for source, target in pairs)
    assert page == gallery.page("copying"), "it is the same in every build"

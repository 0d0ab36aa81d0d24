"""The documentation: it builds without a warning, its links lead somewhere, and it needs no network."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer
import yaml

from tests.committed import ROOT
from tfstudy import models, tasks
from tfstudy.cli import app
from tfstudy.config.schema import RunConfig
from tools.site import command_line, config_pages, gallery, hooks


class Page(HTMLParser):
    """The ids, links and loaded files of an HTML page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.ids |= {values[key] for key in ("id", "name") if key in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in ("link", "script", "img", "iframe", "source", "video"):
            self.loaded += [values[key] for key in ("href", "src") if key in values]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site, by pages."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""}, capture_output=True, text=True
    )
    assert [line for line in done.stderr.splitlines() if re.match("WARNING|ERROR", line)] == []
    assert done.returncode == 0
    return {path.relative_to(folder): Page(path) for path in folder.rglob("*.html")}


def test_the_site_builds_without_a_warning_and_all_links_lead_to_a_page_and_an_anchor(site):
    folder, broken = ROOT, []  # of the folder only the names matter
    for path, page in site.items():
        for link in page.links if path.name != "404.html" else ():
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link in (".", ""):
                continue
            target = (folder / path.parent / unquote(parts.path)).resolve().relative_to(folder) if parts.path else path
            known = site.get(target)
            if target.suffix == ".html" and (
                not known or (parts.fragment and unquote(parts.fragment) not in known.ids)
            ):
                broken.append(f"{path}: {link}")
    assert broken == []


def test_no_page_loads_anything_from_elsewhere(site):
    assert [(path, url) for path, page in site.items() for url in page.loaded if urlsplit(url).netloc] == []


def test_every_page_in_docs_is_in_the_navigation(site):
    nav = yaml.safe_load(re.sub(r"!!\S+", "", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))["nav"]
    listed = set(re.findall(r"[\w/-]+\.md", str(nav)))
    assert {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - listed == set()


@pytest.mark.parametrize("page", ["README.md", *(str(path) for path in hooks.summaries())])
def test_links_to_files_work_where_the_repository_is_shown(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [link[3].split("#")[0] for link in hooks.LINK.finditer(text)]
    files = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [name for name in files if not (ROOT / page).parent.joinpath(name).exists()] == []


def test_the_reference_has_every_command_and_option():
    text, program = command_line.page(), typer.main.get_command(app)
    assert [name for name in program.commands if f"### tfstudy {name}\n" not in text] == []
    options = {word for one in program.commands.values() for p in one.params for word in p.opts if word[:2] == "--"}
    assert [word for word in options if word not in text] == []


def test_the_summaries_are_looked_up_once():
    assert hooks.summaries() is hooks.summaries()


def test_the_reference_has_every_key_of_every_config():
    run, data, model = config_pages.run_page(), config_pages.data_page(), config_pages.model_page()
    sections = {name: field.annotation for name, field in RunConfig.model_fields.items()}
    for name in ("train", "decode", "eval"):
        assert [key for key in sections[name].model_fields if f"`{name}.{key}`" not in run] == []
    for task in tasks.names():
        assert [key for key in tasks.find(task).Config.model_fields if f"`data.{key}`" not in data] == []
    for arch in models.names():
        assert [key for key in models.find(arch).Config.model_fields if f"`model.{key}`" not in model] == []


def test_a_key_is_described_with_its_type_range_and_default():
    assert "| `train.steps` | `3000` | integer, at least 1 | optimiser steps;" in config_pages.run_page()
    assert "| `train.optimizer` | `adamw` | `adamw` \\| `sgd` |" in config_pages.run_page()


def test_the_gallery_shows_every_task_with_pairs_that_the_task_contains():
    pages = gallery.pages()
    assert pages.keys() == {"gallery/index.md", *(f"gallery/{name}.md" for name in tasks.names())}
    reverse = pages["gallery/copying.md"].split("### reverse")[1].split("###")[0]
    pairs = re.findall(r"\| `([a-j ]+)` \| `([a-j ]+)` \|", reverse)
    assert len(pairs) == 12  # three of train and of each test set
    assert all(target == source[::-1] for source, target in pairs)


def test_the_gallery_is_the_same_in_every_build():
    assert gallery.page("copying") == gallery.page("copying")


def test_a_link_out_of_docs_leads_to_a_page_or_names_the_file():
    text = "[all](../results/README.md#x), [it](../results/scan/README.md), [file](../configs/grids/scan.yaml)"
    expected = "[all](results/README.md#x), [it](results/scan/README.md), file (`configs/grids/scan.yaml`)"
    assert hooks.rewritten(text, "docs/page.md", "page.md") == expected
    assert hooks.rewritten("[up](../faq.md)", "docs/how-to/page.md", "how-to/page.md") == "[up](../faq.md)"


def test_a_link_out_of_docs_to_no_file_stays_for_the_build_to_report():
    assert hooks.rewritten("[x](../nowhere.md)", "docs/page.md", "page.md") == "[x](../nowhere.md)"


def test_links_within_code_stay():
    block = "```text\n[a](../b)\n```"
    assert hooks.rewritten(block, "docs/page.md", "page.md") == block

"""What happens when the site is built: pages are generated, and links that leave docs/ are resolved.

The summaries of the committed studies are pages too, with the paths that they have in the repository. Links to other
files of the repository become their paths.
"""

import posixpath
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for the packages tfstudy and tools, wherever the build starts

from mkdocs.structure.files import File, Files  # noqa: E402

from tools.site import gallery, reference  # noqa: E402

LOW = "---\nsearch: {boost: 0.1}\n---\n"  # records come last in searches
IMAGES = {".png", ".svg", ".jpg", ".gif"}
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^()\s]+)((?:\s+\"[^\"]*\")?)\)")


def on_config(config: Any) -> None:
    """Add a page for each task to the gallery."""
    from tfstudy import tasks

    summaries.cache_clear()  # `mkdocs serve` builds more than once
    for entry in config.nav or []:
        if "Gallery of tasks" in entry and isinstance(entry["Gallery of tasks"], str):
            pages = [entry["Gallery of tasks"], *({name: f"gallery/{name}.md"} for name in tasks.names())]
            entry["Gallery of tasks"] = pages


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, the summaries of studies and the images that pages show."""
    for path, content in generated().items():
        files.append(File.generated(config, path, content=content))
    for path in map(str, summaries()):
        content = LOW + rewritten((ROOT / path).read_text(encoding="utf-8"), path, path)
        files.append(File.generated(config, path, content=content))
    for path in sorted(images()):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Resolve the links of the pages that lie in docs/."""
    path = page.file.src_uri
    return markdown if page.file.generated_by else rewritten(markdown, f"docs/{path}", path)


def generated() -> dict[str, str]:
    """Return the generated pages by their paths."""
    return gallery.pages() | {
        "reference/command-line.md": reference.commands_page(),
        "reference/config.md": reference.run_page(),
        "reference/config-data.md": reference.data_page(),
        "reference/config-model.md": reference.model_page(),
        "reference/instruments.md": reference.instruments_page(),
    }


@cache
def summaries() -> tuple[Path, ...]:
    """Return the Markdown files of the committed studies and of the benchmarks, which are pages of the site."""
    found = [*(ROOT / "results").glob("*.md"), ROOT / "benchmarks" / "README.md"]
    committed = re.findall(r"^!/results/([\w-]+)/$", (ROOT / ".gitignore").read_text(encoding="utf-8"), re.MULTILINE)
    found += [ROOT / "results" / name / "README.md" for name in committed]
    return tuple(sorted(path.relative_to(ROOT) for path in found if path.exists()))


def documents() -> Iterator[tuple[str, str]]:
    """Yield the path in the repository and the text of every document that is a page."""
    written = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    for path in [*summaries(), *written]:
        yield str(path), (ROOT / path).read_text(encoding="utf-8")


def images() -> set[str]:
    """Return the images outside docs/ that documents show, by their paths in the repository."""
    found = set()
    for source, text in documents():
        targets = [
            posixpath.normpath(posixpath.join(posixpath.dirname(source), link[3])) for link in LINK.finditer(text)
        ]
        found |= {target for target in targets if Path(target).suffix in IMAGES and (ROOT / target).is_file()}
    return {path for path in found if not path.startswith("docs/")}


def rewritten(markdown: str, source: str, page: str) -> str:
    """Return the text of the file `source` with its links as they are on the page at this path of the site."""

    def replace(match: re.Match[str]) -> str:
        mark, label, address, title = match.groups()
        if re.match(r"[a-z]+:|#|/", address):
            return match[0]
        target, hash_, anchor = address.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        found = site_path(path)
        if not (found or (ROOT / path).exists()):
            return match[0]  # which the build reports
        if not found:
            return f"`{path}`" if label.strip("`") == path else f"{label} (`{path}`)"
        return f"{mark}[{label}]({posixpath.relpath(found, posixpath.dirname(page) or '.')}{hash_}{anchor}{title})"

    parts = re.split(r"(^```.*?^```[^\n]*$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if i % 2 else LINK.sub(replace, part) for i, part in enumerate(parts))


def site_path(path: str) -> str:
    """Return where a file of the repository is in the site; empty if it is not there."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path == "README.md":
        return "index.md"
    known = path in map(str, summaries()) or (Path(path).suffix in IMAGES and (ROOT / path).is_file())
    return path if known else ""

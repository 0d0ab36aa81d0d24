"""The recipes of containers: what they copy exists and is enough to build the wheel."""

import re

from tests.committed import ROOT

NEEDED = {"constraints.txt", "pyproject.toml", "README.md", "LICENSE", "tasks", "configs", "tfstudy"}


def test_the_dockerfile_copies_what_the_wheel_is_built_from_and_dockerignore_lets_it_pass():
    lines = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {source for line in lines for source in line.split()} == NEEDED
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert set(allowed) == NEEDED
    assert all((ROOT / name).exists() for name in NEEDED)


def test_the_image_does_not_run_as_root():
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^USER (.+)$", text, re.MULTILINE)[-1] == "1000"
    assert text.index("USER 1000") < text.index('ENTRYPOINT ["tfstudy"]')


def test_apptainer_copies_the_same_and_starts_the_same_command():
    text = (ROOT / "apptainer.def").read_text()
    files = re.findall(r"^    (\S+) /opt/tfstudy/\S+$", text, re.MULTILINE)
    assert set(files) == NEEDED
    assert 'exec tfstudy "$@"' in text


def test_both_start_from_the_same_image_and_install_the_pinned_versions():
    recipes = [(ROOT / name).read_text() for name in ("Dockerfile", "apptainer.def")]
    images = {re.search(r"^(?:FROM|From:) (.+)$", text, re.MULTILINE)[1] for text in recipes}
    assert len(images) == 1
    for text in recipes:
        assert "grep '^torch==' /opt/tfstudy/constraints.txt" in text
        assert "--constraint /opt/tfstudy/constraints.txt /opt/tfstudy" in text

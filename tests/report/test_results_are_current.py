"""The committed documents of `results/` are what its records give today, and do not contradict each other."""

import re
import runpy
from pathlib import Path

import pytest
from PIL import Image

from tests.committed import ROOT, STUDIES
from tfstudy.analysis.claim_files import read_claims

RESULTS = ROOT / "results"
UPDATE = runpy.run_path(str(RESULTS / "update.py"))


@pytest.fixture(scope="module")
def documents():
    with UPDATE["only_committed_studies"]():
        return dict(UPDATE["documents"]())


def test_tables_and_claims_are_current(documents):
    """`python results/update.py` writes them."""
    outdated = [
        page.relative_to(ROOT).as_posix()
        for page, text in documents.items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    ]
    assert outdated == []
    assert set(documents) == {*UPDATE["PAGES"], RESULTS / "claims.md", RESULTS / "README.md"}


@pytest.mark.parametrize(("file", "words"), [(file, words) for file, *words in UPDATE["FIGURES"]], ids=str)
def test_the_numbers_of_a_picture_are_those_of_its_records(file, words, tmp_path, monkeypatch):
    """A picture contains its alt text, which has the numbers that it shows; `update.py --figures` draws them all."""
    monkeypatch.chdir(RESULTS)
    UPDATE["output"](*words, "--out", str(tmp_path / "drawn.png"))
    drawn, committed = (Image.open(path).text["Description"] for path in (tmp_path / "drawn.png", Path(file)))
    assert committed == drawn
    assert re.search(r"\d", drawn)


def test_every_committed_study_is_read():
    """Except runs that are trials, baselines of CI, or copies with weights, whose numbers no document states."""
    assert {*UPDATE["TABLES"], UPDATE["PERFORMANCE"], "ci", "tuning", "first"} == {study.name for study in STUDIES}


def test_every_claim_has_a_row():
    page = (RESULTS / "claims.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([LP]\d+) \|", page, re.MULTILINE) == list(read_claims())

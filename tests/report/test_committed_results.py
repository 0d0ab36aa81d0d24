"""The committed pages of results: their links have targets, and every claim has a verdict.

The pages of `docs/` link to pages that exist in the site only; `tests/test_docs.py` builds it and checks them.
"""

import re

import pytest

from tests.committed import ROOT, STUDIES
from tfstudy.analysis.claim_files import read_claims

PAGES = [*(ROOT / "results").glob("*.md"), *(p for d in STUDIES for p in sorted(d.rglob("*.md")))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_committed_page_have_targets(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not link.startswith("http") and not (page.parent / link).exists()]
    assert missing == []


def test_the_page_of_claims_has_a_row_for_each_claim():
    page = (ROOT / "results" / "claims.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([LP]\d+) \|", page, re.MULTILINE) == list(read_claims())

"""Records and claims for tests of claims."""

from tests.example_records import result, write
from tfstudy.analysis.claim_files import parse_claim
from tfstudy.analysis.frame import read_study
from tfstudy.report.claims import claim_texts

SPLIT = {"task": "scan", "split": "length"}
NEAR_HALF = (0.49, 0.5, 0.51, 0.505, 0.495)


def claim(*statements, **more):
    """A claim with these statements."""
    tree = {"id": "L1", "claim": "It is so.", "source": "here", "where": SPLIT, "grid": "scan"}
    return parse_claim(tree | {"statements": list(statements)} | more, "here")


def values(study, arch, *shares, name="", **more):
    """Write runs of one experiment, with seeds from 0 on and narrow intervals within runs."""
    name = name or arch
    records = []
    for seed, share in enumerate(shares):
        one = result(seed, share, arch=arch, experiment=name, run=f"{name}{seed}", **more)
        one["splits"]["test"]["exact_match_interval"] = [max(0, share - 0.001), min(1, share + 0.001)]
        records.append(one)
    return write(study, *records)


def judged(study, *statements, **more):
    """A claim with these statements, judged by the records of a study."""
    one = claim(*statements, **more)
    return claim_texts([one], [read_study(study)])[one.id]

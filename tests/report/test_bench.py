"""The table and the figure of `tfstudy bench`, and the evidence of claims about its measurements."""

import msgspec

from tests.example_tables import text_of
from tests.performance.example_measurements import record
from tfstudy.performance.record import write_records
from tfstudy.report.bench import listing as bench_listing
from tfstudy.report.bench import plot
from tfstudy.report.claims import judged_claims, listing
from tfstudy.report.claims import markdown as claims_markdown

SECONDS = (0.1, 0.11, 0.12, 0.1, 0.09, 0.1, 0.1)
RECORDS = [
    record(*SECONDS),
    record(*(4 * s for s in SECONDS), variant="explicit", memory=2**23),
    record(*SECONDS, arch="lstm", parameters=200_000, flops=None),
]


def test_a_ratio_is_to_the_default_of_the_same_setting():
    [table] = bench_listing(RECORDS, ()).parts
    shown = [table.frame[head] for head in ("tokens/s", "ratio", "MiB", "GFLOP")]
    assert shown == [["160", "40.0", "160"], ["", "0.250", ""], ["2.00", "8.00", "2.00"], ["4.00", "4.00", ""]]
    assert table.title == "training, length 8, width 16, batch 2"


def test_the_figure_has_a_panel_for_each_quantity_and_says_every_number():
    longer = [msgspec.structs.replace(one, length=16) for one in RECORDS]
    drawn = plot([*RECORDS, *longer])
    titles = [" ".join(axes.get_title().split()) for axes in drawn.figure.axes]
    names = ("target tokens per second", "peak memory (MiB)", "GFLOP per batch")
    assert titles == [f"training: {name}" for name in names]
    assert [len(axes.lines) for axes in drawn.figure.axes] == [3, 3, 2]
    assert "training: target tokens per second, transformer explicit, length 8: 40;" in drawn.alt


def test_a_claim_is_judged_by_the_measurements_in_a_folder_of_results(tmp_path):
    [[unrun], _] = judged_claims(tmp_path, ["L26"])
    assert unrun.verdict == "not run"
    sizes = {"length": 1024, "width": 128, "batch": 1}
    records = [record(variant=name, memory=2**size, **sizes) for name, size in (("default", 25), ("explicit", 27))]
    write_records(tmp_path / "performance" / "any", records)
    verdicts, notes = judged_claims(tmp_path, ["L26"])
    one = verdicts[0].statements[1]
    assert (one.verdict, one.mean, one.n, one.interval) == ("supported", 4, 1, "exact")
    said = "on training, length 1024, width 128, batch 1, peak memory: the Transformer (explicit) has 4.00 times"
    said += " that of the Transformer, claimed"
    assert f"- {said} above 2: supported\n" in claims_markdown(verdicts, notes)
    text = " ".join(text_of(listing(verdicts, notes, details=True)).split())
    assert f"2 {said} above 2: supported" in text

"""Claims about ratios of speed, memory and FLOPs."""

import msgspec
import pytest

from tests.example_claims import claim
from tests.performance.example_measurements import MACHINE, record
from tfstudy.report.claims import claim_texts

PLACE = {"work": "training", "arch": "transformer", "length": 8, "width": 16, "batch": 2}
NOISE = (1.0, 1.1, 0.9, 1.05, 0.95, 1.2, 0.8, 1.02, 0.98, 1.0, 1.1, 0.9)


def statement(of=None, over=None, **bounds):
    return {"of": of or {}, "over": over or {"variant": "explicit"}, **bounds}


def judged(records, *statements, **more):
    one = claim(*statements, where=PLACE, **more)
    return claim_texts([one], [], records)[one.id]


def pair(ratio, machine=MACHINE, n=12):
    """A default that is `ratio` times as fast as explicit attention, on a machine whose load changes."""
    explicit = NOISE[:n]
    default = [second / ratio * jitter for second, jitter in zip(explicit, NOISE[::-1][:n], strict=True)]
    return [record(*default, machine=machine), record(*explicit, variant="explicit", machine=machine)]


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ({"above": 1.5}, "supported"),
        ({"is": 2, "within": 1}, "supported"),
        ({"is": 4, "within": 0.5}, "refuted"),
        ({"below": 2}, "open"),
    ],
)
def test_a_ratio_of_speeds_is_judged_by_the_interval_of_its_median(bounds, verdict):
    found = judged(pair(2), statement(**bounds))
    assert found.verdict == verdict
    [one] = found.statements
    assert one.low < 2 < one.high


def test_ratios_are_of_the_same_round_so_that_load_does_not_matter():
    slower = (1, 5, 2, 9, 1, 3, 4, 1, 7, 2, 6, 8)
    records = [record(*slower), record(*(2 * s for s in slower), variant="explicit")]
    found = judged(records, statement(above=1.99)).statements[0]
    assert (found.low, found.mean, found.high) == (2, 2, 2)


@pytest.mark.parametrize(("quantity", "ratio"), [("memory", 0.25), ("attention_flops", 1)])
def test_memory_and_flops_are_exact(quantity, ratio):
    records = [record(0.1), record(0.1, variant="explicit", memory=2**23)]
    sides = {"quantity": quantity}, {"quantity": quantity, "variant": "explicit"}
    found = judged(records, statement(*sides, **{"is": ratio, "within": 0.01}))
    assert found.verdict == "supported"
    [one] = found.statements
    assert (one.mean, one.low, one.high, one.n) == (ratio, ratio, ratio, 1)
    assert judged(records, statement(*sides, above=ratio)).verdict == "refuted"


def test_only_measurements_of_one_command_with_as_many_and_enough_repeats_are_compared():
    found = judged(pair(2, n=5), statement(above=1))
    assert (found.verdict, found.statements[0].reason) == ("open", "5 of at least 6 rounds")
    later = msgspec.structs.replace(MACHINE, started="2026-02-02")
    first, second = pair(2), pair(3, later)
    assert judged([first[0], second[1]], statement(above=1)).verdict == "not run"
    assert judged([first[0], pair(2, n=11)[1]], statement(above=1)).verdict == "not run"
    both = judged([*second, *first], statement(above=1)).statements[0]
    assert both.mean == judged(second, statement(above=1)).statements[0].mean


def test_a_record_on_another_machine_or_with_other_settings_of_training_is_not_taken():
    assert judged(pair(2), statement({"accelerator": "cuda"}, above=1)).verdict == "not run"
    assert judged(pair(2), statement(above=1)).verdict == "supported"
    sgd = [msgspec.structs.replace(one, train={"optimizer": "sgd"}) for one in pair(2)]
    assert judged(sgd, statement(above=1)).verdict == "not run"

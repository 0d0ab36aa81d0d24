"""The protocol: how each condition was measured, read from the records of its runs."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from tfstudy.analysis.labels import Condition
from tfstudy.report.markup import several
from tfstudy.report.notes import whole_scores
from tfstudy.runs.reader import read_environments
from tfstudy.runs.schema import Result

PACKAGES = ("python", "torch", "lightning")  # that affect results most
UNKNOWN, NOT_RECORDED = "unknown", "not recorded"


class ConditionProtocol(NamedTuple):
    """How a condition was measured."""

    condition: Condition
    facts: dict[str, str]


class Protocol(NamedTuple):
    """How all conditions were measured."""

    shared: dict[str, str]  # the same in all of several conditions
    entries: list[ConditionProtocol]  # the rest, by condition


def build_protocol(conditions: Sequence[Condition]) -> Protocol:
    """Return the protocol of these conditions; what they share is listed once."""
    all_facts = [_facts(condition) for condition in conditions]
    same = {name: text for name, text in all_facts[0].items() if all(facts[name] == text for facts in all_facts)}
    shared = same if len(conditions) > 1 else {}
    rest = ({name: text for name, text in facts.items() if name not in shared} for facts in all_facts)
    return Protocol(shared, list(map(ConditionProtocol, conditions, rest)))


def _facts(condition: Condition) -> dict[str, str]:
    runs, results, test_set = condition.runs, [run.result for run in condition.runs], condition.test
    environments = [environment for run in runs for environment in read_environments(run.path)]
    packages = [environment.versions for environment in environments]
    return {
        "checkpoint": _distinct(f"{r.checkpoint}, step {r.step:,}" if r.step else r.checkpoint for r in results),
        "decoding": _distinct(_decoding(r) for r in results),
        "test examples": _distinct(f"{scores.n:,}" for scores in whole_scores(condition)),
        "test evaluations": _distinct(run.test_reads().get(test_set, NOT_RECORDED) for run in runs),
        "overlap with training": _distinct(r.overlap.get(test_set, NOT_RECORDED) for r in results),
        "training examples": _distinct(f"{r.train_examples:,}" for r in results if r.train_examples),
        "parameters": _distinct(f"{r.parameters:,}" for r in results),
        "training seconds": _seconds([r.train_seconds for r in results]),
        "evaluation seconds": _seconds([r.evaluate_seconds for r in results]),
        "weights": _distinct(f"from run {r.reused_from[:8]}" if r.reused_from else "its own" for r in results),
        "device": _distinct(r.device for r in results),
        "versions": _distinct(", ".join(f"{name} {one[name]}" for name in PACKAGES if name in one) for one in packages),
        "data hash": _distinct(environment.data[:12] for environment in environments),
        "commit": _distinct((environment.commit or "")[:10] for environment in environments),
    }


def _distinct(values: Iterable[object]) -> str:
    """Return the distinct values; `unknown` if there are none."""
    return several(value for value in values if value not in ("", None)) or UNKNOWN


def _decoding(result: Result) -> str:
    decode = result.decode
    if decode.method != "beam":
        return decode.method
    return f"beam search, beam size {decode.beam_size}, length penalty {decode.length_penalty:g}"


def _seconds(values: Sequence[float]) -> str:
    """Return the median, and the range of several values."""
    if not values:
        return UNKNOWN
    span = f" ({min(values):,.0f} to {max(values):,.0f})" if len(values) > 1 else ""
    return f"{median(values):,.0f}{span}"

"""Check that a result has possible values and belongs to the run of its folder. Imports no torch."""

from pathlib import Path

from tfstudy.runs.files import RUN
from tfstudy.runs.schema import Result
from tfstudy.runs.studyfile import read_bytes

HEADER = b"# tfstudy run "  # first line of a config.yaml, followed by the hash of the run
NAMES = ("task", "split", "arch", "preset", "status", "device", "checkpoint", "started", "finished")  # in tables, logs
MAX_NAME = 200


def impossible_values(result: Result) -> str:
    """Return why a result is invalid; empty if it is valid."""
    for field, name in [*((field, getattr(result, field)) for field in NAMES), *(("split", n) for n in result.splits)]:
        if not name.isprintable() or len(name) > MAX_NAME:
            return f"{field} is not printable or has more than {MAX_NAME} characters"
    for name, scores in result.splits.items():
        share, ends = scores.metrics.get("exact_match"), scores.exact_match_interval
        if share is not None and ends and not ends[0] - 1e-9 <= share <= ends[1] + 1e-9:
            return f"exact match on {name} lies outside its interval"
        if scores.errors and sum(kind.n for kind in scores.errors.values()) != scores.n:
            return f"the kinds of errors on {name} do not add up to its examples"
        if not scores.n and scores.metrics:
            return f"metrics on {name}, which has no examples"
    if result.status not in ("finished", "diverged"):
        return f"status '{result.status}'"
    if result.status == "finished" and not any(scores.metrics for scores in result.splits.values()):
        return "finished, but without any metric"
    return ""


def mixed_up(path: Path, result: Result) -> str:
    """Return which files in the folder belong to different runs; empty if none do."""
    name = RUN.fullmatch(path.name)
    if name and (int(name["seed"]) != result.seed or not result.run.startswith(name["hash"])):
        return f"the result belongs to another run (s{result.seed}-{result.run[:8]})"
    header = read_bytes(f"{path}/config.yaml", len(HEADER) + 65).partition(b"\n")[0]
    if header.startswith(HEADER) and header[len(HEADER) :].strip().decode(errors="replace") != result.run:
        return "config.yaml belongs to another run than the result"
    return ""

"""Finished records of format 2, as most committed studies have them: env.json and test_reads.csv read as events.

Their result covers itself and the predictions by digests, not the other files. Those are held against what else the
record says of them: the hash of the run, its settings, its number of steps and the counts in its result.
"""

from pathlib import Path

import msgspec

from tfstudy.config.trees import flat_yaml, flatten
from tfstudy.runs.files import BrokenError
from tfstudy.runs.identity import run_hash
from tfstudy.runs.schema import AnyEvent, Environment, ReadTest, Result, Started
from tfstudy.runs.studyfile import read_bytes

SEAL = b'"digest": "', b'"\n}'  # around the digest at the end of a result
ENVIRONMENTS = msgspec.json.Decoder(list[Environment])


def events(path: Path, config: bytes, result: Result) -> tuple[AnyEvent, ...]:
    """The events of a run; `BrokenError` if they, its config or its metrics are not those of the result."""
    file = path / "env.json"
    try:
        environments = ENVIRONMENTS.decode(read_bytes(file) or b"[]")
        rows = read_bytes(file := path / "test_reads.csv").decode().splitlines()
        reads = [ReadTest(split=split, reason=reason) for split, reason in (row.split(",") for row in rows)]
    except (ValueError, RecursionError) as error:  # also of a row that does not have a split and a reason
        raise BrokenError(file, str(error)) from None
    if not environments:
        raise BrokenError(path / "env.json", "it is missing")
    last = environments[-1]
    if run_hash(last.settings, last.data, last.code_versions) != result.run:
        raise BrokenError(path / "env.json", "its settings, data and versions are not those of the run")
    values = flat_yaml(config)
    recorded = flatten(last.settings).items()
    if "train.steps" not in values or any(values.get(key) != value for key, value in recorded):
        raise BrokenError(path / "config.yaml", "its settings are not those of the run" if config else "it is missing")
    *_, row, end = [b"", *read_bytes(path / "metrics.csv").rsplit(b"\n", 2)]
    if result.status == "finished" and (end or row.split(b",")[0] != str(values["train.steps"]).encode()):
        raise BrokenError(path / "metrics.csv", "it does not end with the last step")
    if any([read.split for read in reads].count(split) < count for split, count in result.test_reads.items()):
        raise BrokenError(path / "test_reads.csv", "it has fewer rows than the result")
    preset, tuning, time = result.preset, result.tuning, result.started
    return (*(Started(environment=one, preset=preset, tuning=tuning, time=time) for one in environments), *reads)

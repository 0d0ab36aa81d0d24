"""The defaults of all settings, kept in golden/defaults.json: changing one requires raising the version beside it.

    python -m tests.config.golden_defaults          write the file again, after adding a key or raising a version

A new task need not be in the file before its first results are committed.

The hash of a run leaves out the settings that equal their default. If a default changed while its version did not, old
and new runs would share a hash although their settings differ.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tfstudy import evaluation, models, tasks, training
from tfstudy.config.schema import DecodeConfig, EvalConfig, RunConfig, TrainConfig

PATH = Path(__file__).parent / "golden" / "defaults.json"
SECTIONS = ("task", "data", "arch", "model", "train", "decode", "eval")  # of RunConfig: their keys are listed apart
Golden = dict[str, dict[str, Any]]  # owner to {"version": 1, "defaults": {key: value}}


def current() -> Golden:
    """Return each version with the defaults that it covers, by the file in which the version is declared."""
    top = {key: value for key, value in defaults(RunConfig, "").items() if key not in SECTIONS}
    found: dict[str, tuple[int, dict[str, Any]]] = {
        "tfstudy/training/__init__.py": (training.VERSION, defaults(TrainConfig, "train.") | top),
        "tfstudy/evaluation/__init__.py": (
            evaluation.VERSION, defaults(DecodeConfig, "decode.") | defaults(EvalConfig, "eval.")
        ),
    }  # fmt: skip
    for room, registry, prefix in (("tfstudy/models/{}.py", models, "model."), ("tasks/{}", tasks, "data.")):
        classes = {room.format(name): registry.find(name) for name in registry.names()}
        found |= {owner: (cls.version, defaults(cls.Config, prefix)) for owner, cls in classes.items()}
    return {owner: {"version": version, "defaults": keys} for owner, (version, keys) in found.items()}


def defaults(section: type[BaseModel], prefix: str) -> dict[str, Any]:
    """Return every key of a section with its default."""
    values = section.model_construct().model_dump(mode="json", warnings=False)
    return {f"{prefix}{key}": values.get(key, "(required)") for key in section.model_fields}


def violations(golden: Golden, now: Golden) -> list[str]:
    """Return a line for each default that changed although its version was not raised."""
    lines = []
    for owner in sorted(golden.keys() & now.keys()):
        (version, before), (new, after) = golden[owner].values(), now[owner].values()
        changed = [key for key in before.keys() & after.keys() if json.dumps(before[key]) != json.dumps(after[key])]
        if new < version or (changed and new == version):
            lines.append(f"{owner}: to change {', '.join(sorted(changed))}, raise its version above {version}")
    return lines


if __name__ == "__main__":
    if problems := violations(json.loads(PATH.read_text()), current()):
        sys.exit("\n".join(problems))
    PATH.write_text(json.dumps(current(), indent=1) + "\n")

"""Runs of presets, and the verdicts on published figures that they lead to."""

import json

import yaml

from tests.example_claims import values
from tests.example_records import ENVIRONMENT
from tfstudy.analysis.collection import read_study
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.published import figure_of
from tfstudy.analysis.reproduction import judge_figure
from tfstudy.config.presets import preset
from tfstudy.config.resolve import resolve
from tfstudy.config.trees import flatten, merge


def runs(study, name, *shares, arch="lstm", split="length", changes=None, **more):
    """Write runs of a preset, with all their settings; `changes` are settings that differ from it."""
    tree = {"task": "scan", "arch": arch, "data": {"split": split}}
    config = resolve(merge(merge(preset("scan", arch, name), tree), changes or {}))
    settings = config.model_dump(mode="json", exclude_defaults=True)
    label = f"{arch}-{name}-{split}-{'-'.join(flatten(changes or {}))}"
    values(study, arch, *shares, name=label, preset=name, split=split, **more)
    for path in study.glob(f"*/*/s*-{label}*"):
        (path / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
        (path / "env.json").write_text(json.dumps([ENVIRONMENT | {"settings": settings}]))
    return study


def judged(study, id_, tolerance=5.0):
    return judge_figure(figure_of(id_), conditions(read_study(study).runs), tolerance)

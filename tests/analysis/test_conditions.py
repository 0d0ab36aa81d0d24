"""What varies between runs, and the settings that distinguish conditions with the same names."""

import json
from types import SimpleNamespace

import pytest
import yaml

from tests.example_claims import values
from tests.example_records import ENVIRONMENT, put, result, rival, set_environments, write
from tests.example_tables import compared as pairs_of
from tests.example_tables import notes, rows
from tfstudy.analysis import labels
from tfstudy.analysis.labels import of_configs as varying_settings
from tfstudy.analysis.labels import of_runs as varying_runs
from tfstudy.config.presets import starting_point
from tfstudy.config.trees import flatten
from tfstudy.report.tables import table
from tfstudy.runs.store import open_run


@pytest.mark.parametrize(
    ("runs", "named"),
    [
        (  # a setting that an older run does not know distinguishes only if it is not the default
            [({"steps": 10}, {"steps": 10}), ({"steps": 20, "epsilon": 1, "sample": 5}, {"steps": 20, "sample": 5})],
            {"train.steps=10", "train.steps=20 train.sample=5"},
        ),
        (  # what is off by default is named only where it is on
            [
                ({"decay": 0, "warm": 9}, {}),
                ({"decay": 1, "warm": 9}, {"decay": 1}),
                ({"decay": 0, "warm": 0}, {"warm": 0}),
            ],
            {"train.warm=9", "train.decay=1 train.warm=9", "train.warm=0"},
        ),
    ],
)
def test_conditions_are_named_by_the_settings_that_distinguish_them(tmp_path, runs, named):
    for number, (config, settings) in enumerate(runs):
        values(tmp_path, "lstm", number / 10, number / 10, name=f"e{number}-")
        for path in tmp_path.glob(f"*/*/s*-e{number}-*"):
            put(path, "config.yaml", yaml.safe_dump({"train": config}))
            set_environments(path, ENVIRONMENT | {"settings": {"train": settings}})  # those that are not defaults
    assert {labels.text(condition.settings, short=False) for condition in rows(tmp_path)} == named


def test_only_conditions_with_the_same_amount_of_training_data_are_compared_and_rows_are_ordered_by_it(tmp_path):
    for arch in ("lstm", "cnn"):
        for number, amount in enumerate((900, 1000)):
            values(tmp_path, arch, 0.5 + number / 10, 0.55 + number / 10, name=f"{arch}{amount}-")
            for path in tmp_path.glob(f"*/*/s*-{arch}{amount}-*"):
                put(path, "config.yaml", yaml.safe_dump({"data": {"train_examples": amount}}))
    found = [(row.config["data.train_examples"], row.arch) for row in rows(tmp_path)]
    assert found == [(900, "cnn"), (900, "lstm"), (1000, "cnn"), (1000, "lstm")]
    amounts = ("train_examples=900", "train_examples=1000")
    pairs = [(one.first.label, one.second.label) for one in pairs_of(tmp_path)]
    assert pairs == [(f"cnn {amount}", f"lstm {amount}") for amount in amounts]
    shown = table(tmp_path, baseline="lstm")
    assert [bool(name) for name in shown.rows["baseline"]] == [True, False, True, False]
    note = "has no run with their test examples and amount of training data"
    shown = table(tmp_path, baseline=f"lstm {amounts[0]}")
    assert notes(shown)[-1] == f"no difference in 2 of 4 rows: lstm {amounts[0]} {note}"


@pytest.mark.parametrize(
    ("key", "texts", "pairs"),
    [
        ("examples", ("a", "a", "b"), [{"lstm", "cnn"}]),
        ("examples", ("", "a", "a"), [{"lstm", "cnn"}, {"lstm", "transformer"}, {"cnn", "transformer"}]),
        ("corpus", ("en-de", "en-ja", "en-de"), [{"lstm", "transformer"}]),
        ("train_examples", (90, 100, 90), [{"lstm", "transformer"}]),
    ],
)
def test_only_conditions_with_the_same_corpus_and_examples_are_compared(tmp_path, key, texts, pairs):
    part = result()["splits"]["test"]
    made = [
        rival(s, 0.5, arch) | ({"splits": {"test": part | {key: text}}} if key == "examples" else {key: text})
        for arch, text in zip(("lstm", "cnn", "transformer"), texts, strict=True)
        for s in (0, 1)
    ]
    found = [{pair.first.arch, pair.second.arch} for pair in pairs_of(write(tmp_path / "study", *made))]
    assert sorted(map(sorted, found)) == sorted(map(sorted, pairs))


def test_a_condition_whose_runs_all_diverged_has_the_test_sets_of_the_others(tmp_path):
    write(tmp_path, result(0, splits=dict.fromkeys(("test", "test_11_15"), result()["splits"]["test"])))
    write(tmp_path, rival(0, 0.5, "cnn") | {"status": "diverged", "reason": "nan", "splits": {}})
    found = [(row.arch, row.test, len(row.runs), len(row.diverged)) for row in rows(tmp_path)]
    assert found == [
        (arch, test, *n) for test in ("test", "test_11_15") for arch, n in (("cnn", (0, 1)), ("lstm", (1, 0)))
    ]


def test_test_sets_are_ordered_by_the_numbers_in_their_names(tmp_path):
    names = ["test_11_15", "names", "test_4x", "test", "test_1_5x", "test_2x"]
    split = result()["splits"]["test"]
    study = write(tmp_path / "study", result(0, splits=dict.fromkeys(names, split)))
    found = [condition.test for condition in rows(study)]
    assert found == ["test", "names", "test_1_5x", "test_2x", "test_4x", "test_11_15"]


def config(seed=0, arch="lstm", **train) -> dict:
    return {"task": "scan", "arch": arch, "seed": seed, "data": {"split": "length"}, "train": train}


WORDS = [
    "train.batch_size=8, steps=1",
    "train.batch_size=4, steps=2",
    "train.batch_size=default, steps=1",
    "train.batch_size=8, steps=2",
]
SIZES = [(64, 128, 5, 1), (64, 128, 6, 2), (16, 32, 5, 1), (32, 64, 5, 3)]


@pytest.mark.parametrize(
    ("configs", "named"),
    [
        ([config(steps=5, learning_rate=x) for x in (0.1, 0.2)], ["learning_rate=0.1", "learning_rate=0.2"]),
        ([config(0), config(1), config(0, "cnn", steps=3)], [""] * 3),
        ([config(batch_size=n, steps=k) if n else config(steps=k) for n, k in ((8, 1), (4, 2), (0, 1), (8, 2))], WORDS),
        (
            [config(dim=dim, feedforward=wide, steps=n, patience=k) for dim, wide, n, k in SIZES],
            ["dim=64, patience=1", "dim=64, patience=2", "dim=16, patience=1", "dim=32, patience=3"],
        ),
        (
            [config(feedforward=wide, positions=x) for wide, x in ((192, "relative"), (256, "none"))],
            ["positions=relative", "positions=none"],
        ),
    ],
    ids=["the last word", "seeds and architectures", "words of several keys", "what follows from others", "names"],
)
def test_only_what_varies_is_named(configs, named):
    assert varying_settings(configs) == named


def test_runs_are_compared_within_a_study_and_a_key_that_older_runs_lack_has_its_default(tmp_path):
    paths = []
    for place, steps, more in (("study/s0-1", 5, {}), ("study/s0-2", 6, {"key": 0}), ("other/s0-3", 7, {"key": 0})):
        study, name = place.split("/")
        path = tmp_path / study / "scan-length" / "lstm" / name
        path.mkdir(parents=True)
        (path / "config.yaml").write_text(json.dumps(config(steps=steps, **more)))
        set_environments(path, {"settings": {"train": {"steps": steps}}})
        paths.append(path)
    assert varying_runs([open_run(path) for path in paths]) == ["steps=5", "steps=6", ""]


def test_widths_that_the_tool_chose_do_not_differ_from_a_preset():
    """Without a preset the size follows from the reference's; what the user chose is named."""
    start = flatten(starting_point("copying", "mingru"))

    def differs(label: dict[str, int], **model: int) -> set[str]:
        changed = {f"model.{key}": value for key, value in model.items()}
        config = start | {"data.split": "copy"} | changed
        names = {"task": "copying", "split": "copy", "arch": "mingru", "preset": "default"}
        return labels.differing(SimpleNamespace(**names, config=config, changed=changed, settings=label))

    assert differs({}, hidden=122) == set()
    assert differs({}, hidden=122, layers=3) == {"model.hidden", "model.layers"}, "a network of the user's"
    assert differs({"model.hidden": 122}, hidden=122) == {"model.hidden"}

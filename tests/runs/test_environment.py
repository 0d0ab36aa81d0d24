"""What the record of a run keeps of the command line."""

from pathlib import Path

import pytest

from tfstudy.runs.environment import environment, recorded_words
from tfstudy.runs.identity import Identity


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        (["run", "scan", "--set", "train.batch_tokens=50"], ["run", "scan", "--set", "train.batch_tokens=50"]),
        (["--set", "data.hub.token=hf_abc"], ["--set", "data.hub.token=***"]),
        (["--set=hub.token=abc", "--set=a.b=1"], ["--set=hub.token=***", "--set=a.b=1"]),
        (["--set", "a.b=1,hub.token=a,b"], ["--set", "a.b=1,hub.token=***"]),
        (["--password", "abc", "--seed", "1"], ["--password", "***", "--seed", "1"]),
        (["--api-key=abc"], ["--api-key=***"]),
        (["--api_key=abc"], ["--api_key=***"]),
        (["--ray.address", "ray://me:abc@host:1"], ["--ray.address", "ray://***@host:1"]),
        (["data.root=/home/ann/corpus", "/Users/ann/x", "/root/x"], ["data.root=~/corpus", "~/x", "~/x"]),
        ([f"{Path.home()}/results", "/data/root/x", "/rooted"], ["~/results", "/data/root/x", "/rooted"]),
        (['{"path": "/home/ann/results/s"}'], ['{"path": "~/results/s"}']),
    ],
)
def test_the_recorded_command_has_no_secrets_and_no_home_folder(words, recorded):
    assert recorded_words(words) == recorded


@pytest.mark.parametrize(("preload", "names"), [("", ""), ("/opt/liba.so:/usr/lib/libm.so.6", "liba.so libm.so.6")])
def test_preloaded_libraries_are_recorded_by_name(monkeypatch, preload, names):
    monkeypatch.setenv("LD_PRELOAD", preload)
    identity = Identity("", "", {"task": "copying", "arch": "lstm"}, "", {})
    assert environment(identity, "x86_64", 1).preloaded == names

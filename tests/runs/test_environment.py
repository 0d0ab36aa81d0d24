"""What the record of a run keeps of the command line."""

from pathlib import Path

import pytest

from tfstudy.runs.environment import recorded_words


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        (["run", "scan", "--set", "train.batch_tokens=50"], ["run", "scan", "--set", "train.batch_tokens=50"]),
        (["--set", "data.hub.token=hf_abc"], ["--set", "data.hub.token=***"]),
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

"""What a job requests from Slurm, and how invalid requests are refused."""

import pytest

from tests.commands import tfstudy
from tfstudy.errors import UserError
from tfstudy.experiment.options import RunOptions
from tfstudy.launchers import SlurmRequest
from tfstudy.launchers.slurm_request import check_request, parameters

GRID = ("grid", "--task", "copying", "--arch", "lstm", "--launcher", "slurm")


def test_the_resources_of_a_job_follow_the_options():
    assert parameters(SlurmRequest("gpu", 30, "", 8, 7), RunOptions(devices=2, accelerator="cuda")) == {
        "name": "tfstudy",
        "timeout_min": 30,
        "cpus_per_task": 8,
        "slurm_array_parallelism": 7,
        "slurm_additional_parameters": {"requeue": True, "partition": "gpu", "gres": "gpu:2"},
    }
    assert parameters(SlurmRequest(), RunOptions())["slurm_additional_parameters"] == {"requeue": True}


def test_every_option_reaches_sbatch():
    request = SlurmRequest(
        gres="shard:1",
        account="my-project",
        qos="long",
        memory="16G",
        constraint="a100|h100",
        setup=("module load cuda/12.8", "export HF_HUB_OFFLINE=1"),
        extra=("nice=100", "exclusive", "comment=a b=c"),
    )
    check_request(request)
    given = parameters(request, RunOptions())
    assert given["slurm_setup"] == ["module load cuda/12.8", "export HF_HUB_OFFLINE=1"]
    assert given["slurm_additional_parameters"] == {
        "requeue": True,
        "account": "my-project",
        "constraint": "a100|h100",
        "gres": "shard:1",
        "mem": "16G",
        "qos": "long",
        "nice": "100",
        "exclusive": True,
        "comment": "a b=c",
    }


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (SlurmRequest(partition="gpu main"), "--slurm.partition must be the name of a partition.*'gpu main'"),
        (SlurmRequest(gres="gpu: 1"), "--slurm.gres must be resources such as gpu:1.*'gpu: 1'"),
        (SlurmRequest(account="a;b"), "--slurm.account must be the name of an account.*'a;b'"),
        (SlurmRequest(qos="a\nb"), "--slurm.qos must be the name of a quality of service"),
        (
            SlurmRequest(memory="16 GB"),
            "--slurm.memory must be a number with K, M, G or T, such as 16G, but is '16 GB'",
        ),
        (SlurmRequest(constraint="a100;h100"), "--slurm.constraint must be features of nodes.*'a100;h100'"),
        (SlurmRequest(array_size=0), "--slurm.array-size must be from 1 to 1,000,000, but is 0"),
        (SlurmRequest(setup=("a\nb",)), "--slurm.setup must be one line of shell"),
        (SlurmRequest(setup=(" ",)), "--slurm.setup must be one line of shell"),
        (SlurmRequest(extra=("--nice=1",)), "--slurm.extra must be a long option.*without its dashes.*'--nice=1'"),
        (SlurmRequest(extra=("nice=",)), "--slurm.extra must be a long option.*'nice='"),
        (SlurmRequest(extra=("nice=1\n#SBATCH",)), "--slurm.extra must be a long option"),
        (SlurmRequest(extra=("mem=4G",)), "--slurm.extra can't set 'mem': use --slurm.memory"),
        (SlurmRequest(extra=("array=1-4",)), "can't set 'array': use --slurm.array-size and --slurm.at-once"),
        (SlurmRequest(extra=("output=x",)), "can't set 'output', which tfstudy sets itself"),
        (SlurmRequest(extra=("nice=1", "nice=2")), "--slurm.extra sets 'nice' twice"),
    ],
)
def test_an_invalid_request_is_one_line(request_, message):
    with pytest.raises(UserError, match=message) as error:
        check_request(request_)
    assert len(str(error.value).splitlines()) == 1


def test_all_invalid_values_are_reported_at_once():
    with pytest.raises(UserError) as error:
        check_request(SlurmRequest(partition="a b", memory="x", extra=("Nice",)))
    assert len(str(error.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*GRID, "--slurm.memory", "lots"), "--slurm.memory must be a number"),
        ((*GRID, "--slurm.extra", "time=5"), "--slurm.extra can't set 'time': use --slurm.time"),
        ((*GRID, "--slurm.array-size", "0"), "--slurm.array-size"),
        ((*GRID, "--detach", "--fail-fast"), "--fail-fast can't be used with --detach"),
        ((*GRID[:-1], "local", "--detach"), "--detach needs --launcher slurm, but --launcher is 'local'"),
        ((*GRID[:-1], "ray", "--slurm.setup", "module load x"), "--slurm options need --launcher slurm"),
    ],
)
def test_the_command_refuses_them_with_exit_code_2(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tfstudy(*words) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())

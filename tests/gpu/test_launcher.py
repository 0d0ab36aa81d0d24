"""The multi-process service, and a run and a grid on a GPU from the command line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tfstudy.launchers.local import MultiProcessService
from tfstudy.runs.find import find_runs
from tfstudy.runs.store import open_run, read_result


def tfstudy(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tfstudy", *words, "--accelerator", "cuda"],
        env=os.environ, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def test_the_multi_process_service_starts_and_stops_or_is_not_used():
    service = MultiProcessService()
    service.start()
    folder = service.environment.get("CUDA_MPS_PIPE_DIRECTORY", "")
    assert bool(folder) == bool(shutil.which("nvidia-cuda-mps-control"))
    service.stop()
    assert not folder or not Path(folder).exists()


def test_a_run_is_graphed_and_says_so():
    tfstudy("run", "copying", "--arch", "lstm", "--smoke", "--execution", "graphed", "--results", "r")
    [path] = find_runs(Path("r-smoke"))
    assert [one.how for one in open_run(path).events if one.event == "steps computed"] == ["graphed"]
    assert read_result(path).device == "cuda"


def test_runs_of_a_grid_share_a_gpu():
    axes = ("--task", "copying", "--arch", "lstm", "--seed", "0-3")
    tfstudy("grid", "smoke", *axes, "--per-device", "2", "--results", "g")
    results = [read_result(path) for path in find_runs(Path("g-smoke"))]
    assert len(results) == 4
    assert {result.status for result in results} == {"finished"}

"""Cohorts on a CUDA device: each member has its own stream, its own generator, and the numbers of the run alone."""

from pathlib import Path

import pytest
import torch

from tests.example_cohorts import grid, train_together
from tests.example_jobs import planned
from tests.training.small_training import metrics
from tfstudy.training.cohort import Cohort

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_members_draw_their_own_numbers_on_their_own_streams():
    cohort, drawn, streams = Cohort(cuda=True), {}, set()

    def member(me, seed):
        torch.manual_seed(seed)
        streams.add(torch.cuda.current_stream().cuda_stream)
        drawn[seed] = [me.step(lambda: torch.rand((), device="cuda").item()) for _ in range(4)]

    for thread in [cohort.start(lambda me, seed=seed: member(me, seed)) for seed in range(3)]:
        thread.join()
    assert len(streams) == 3
    for seed, values in drawn.items():
        torch.manual_seed(seed)
        assert values == [torch.rand((), device="cuda").item() for _ in range(4)]


@pytest.mark.parametrize("arch", ["transformer", "lstm", "cnn"])
def test_members_learn_as_they_do_alone(tmp_path, arch):
    runs = grid(arch, seeds="0-1", **{"train.learning_rate": [0.001, 0.003]})
    found = {}
    for name in ("together", "alone"):
        jobs = planned(tmp_path / name, runs)
        jobs = [job._replace(options=job.options._replace(accelerator="cuda")) for job in jobs]
        for group in [jobs] if name == "together" else [[job] for job in jobs]:
            assert {end.code for end in train_together(group, cuda=True)} == {0}
        found[name] = {Path(job.path).name: metrics(Path(job.path)) for job in jobs}
    for run, values in found["alone"].items():
        assert found["together"][run] == pytest.approx(values, rel=1e-2, abs=1e-3)

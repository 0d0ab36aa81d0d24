"""Whole steps of the members of a cohort train as they do alone."""

from tests.training.replayed import Repeated, ReplayedExecution
from tests.training.small_training import same, small_training
from tfstudy.training.cohort import ALONE, Cohort
from tfstudy.training.fit import fit

RATES = (0.001, 0.003)


def train(seed: int, member, modules: dict) -> None:
    """Train a module with dropout by replays of whole steps."""
    module, data = small_training("lstm", 0.3, seed, steps=6, learning_rate=RATES[seed])
    module._member = member
    modules[seed] = module
    fit(module, data, accelerator="cpu", execution=ReplayedExecution(graphs=Repeated()))


def test_members_with_whole_steps_train_as_alone():
    alone, members = {}, {}
    cohort = Cohort()
    for thread in [cohort.start(lambda me, seed=seed: train(seed, me, members)) for seed in (0, 1)]:
        thread.join()
    for seed in (0, 1):
        train(seed, ALONE, alone)
        assert same(members[seed], alone[seed])
        assert not same(members[seed], alone[0] if seed else small_training("lstm", 0.3, 0)[0])

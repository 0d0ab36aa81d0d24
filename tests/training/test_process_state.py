"""The state of a process is what its parts say, and all of it comes back."""

import os
import random
import sys
import warnings

import numpy as np
import pytest
import torch

from tfstudy.training.process_state import ProcessState


@pytest.fixture
def state():
    state = ProcessState.capture()
    yield state
    state.restore()
    state.close()


def draws():
    return float(torch.rand(())), random.random(), float(np.random.random())


def test_draws_repeat_after_the_state_is_restored(state):
    state.restore_copy()
    first = draws()
    assert draws() != first
    state.restore_copy()
    assert draws() == first


def test_settings_come_back(state):
    def settings():
        return (
            torch.get_num_threads(),
            torch.get_default_dtype(),
            torch.get_float32_matmul_precision(),
            torch.are_deterministic_algorithms_enabled(),
            torch.backends.cudnn.benchmark,
            torch.backends.cudnn.allow_tf32,
            list(warnings.filters),
            sys.stdout,
        )

    state.restore_copy()
    before = settings()
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    torch.set_float32_matmul_precision("high")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
    torch.backends.cudnn.allow_tf32 = not torch.backends.cudnn.allow_tf32
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr
    assert all(now != then for now, then in zip(settings(), before, strict=True))
    state.restore()
    assert settings() == before
    assert not torch.is_deterministic_algorithms_warn_only_enabled()


def test_a_filter_that_is_added_after_the_state_was_restored_does_not_change_it(state):
    before = list(warnings.filters)
    state.restore_copy()
    warnings.simplefilter("default")
    state.restore()
    assert warnings.filters == before


def test_output_goes_where_it_went(tmp_path, capfd):
    state = ProcessState.capture()
    file = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.close(file)
    os.write(1, b"elsewhere")
    state.restore()
    state.close()
    os.write(1, b"here")
    assert capfd.readouterr().out.endswith("here")
    assert (tmp_path / "log").read_bytes() == b"elsewhere"

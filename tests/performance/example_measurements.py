"""Records of `tfstudy bench` for tests."""

from tfstudy.performance.record import Flops, Machine, Record

MACHINE = Machine(
    started="2026-01-02T03:04:05+00:00",
    accelerator="cpu",
    device="x86_64",
    threads=1,
    processors=2,
    platform="Linux",
    versions={"torch": "2.0"},
    commit="",
)


def record(*cpu_seconds, machine=MACHINE, **changes):
    """A record with these CPU times, and twice the wall-clock time."""
    values = {"work": "training", "variant": "default", "arch": "transformer", "model": {"heads": 4}}
    values |= {"parameters": 10, "length": 8, "width": 16, "batch": 2, "memory": 2**21, "step_memory": 2**20}
    values |= {"flops": Flops(4_000_000_000, 1_000_000_000, 2_000_000_000)}
    times = {"seconds": tuple(2 * s for s in cpu_seconds), "cpu_seconds": cpu_seconds}
    return Record(machine=machine, **values | times | changes)

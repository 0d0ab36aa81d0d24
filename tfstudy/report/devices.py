"""How busy this machine's devices are. Nothing is asked of torch, and nothing waits for the answer."""

import os
import shutil
import subprocess
import time

EVERY = 5.0  # seconds between two questions to nvidia-smi, which takes some tenths of a second
PATIENCE = 30.0  # seconds after which an answer is no longer waited for
QUESTION = ("--query-gpu=index,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")


class Devices:
    """The load of the CPU, and of NVIDIA's GPUs if `nvidia-smi` is there."""

    def __init__(self) -> None:
        self._program = shutil.which("nvidia-smi")
        self._asked: subprocess.Popen[str] | None = None
        self._when = float("-inf")
        self._gpus: list[str] = []

    def line(self) -> str:
        """In one line, as of the last answer."""
        self._ask()
        processors = f"cpu: load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores"
        return "; ".join([processors, *self._gpus])

    def stop(self) -> None:
        """Leaves no process behind."""
        if self._asked:
            self._asked.kill()
            self._asked.communicate()
            self._asked = None

    def _ask(self) -> None:
        late = time.monotonic() - self._when
        if self._asked and self._asked.poll() is not None:
            answer, _ = self._asked.communicate()
            self._gpus = [gpu(line) for line in answer.splitlines()] if self._asked.returncode == 0 else []
            self._asked = None
        elif self._asked and late > PATIENCE:
            self.stop()
        elif self._program and not self._asked and late > EVERY:
            self._when = time.monotonic()
            self._asked = subprocess.Popen(
                [self._program, *QUESTION],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )


def gpu(line: str) -> str:
    """`0, 87, 1024, 81559` as words: index, use in per cent, memory in MiB of all."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 4 or not all(part.isdigit() for part in parts):
        return f"cuda {parts[0]}: no figures"
    index, use, taken, memory = parts
    return f"cuda {index}: {use} % busy, {int(taken) / 1024:.1f} of {int(memory) / 1024:.0f} GiB"

"""Kill the processes of a grid of 20 tiny runs at random, and compare the results with those of an undisturbed grid.

    python -m tests.launchers.chaos --kills 200     prints a table (minutes)

Each kill is a SIGKILL, at a random moment, of the process of a run or, one time in ten, of the launcher
while it has runs. The same command is then started again until all runs are finished. If that happens before
there were enough kills, the next round starts in an empty folder.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.example_jobs import COPYING, digests, process_of
from tfstudy.report.markup import plural

GRID = {**COPYING, "axes": {"arch": ["transformer", "lstm"]}, "seeds": "0-9"}
RUN, LAUNCHER = "process of a run", "launcher"


def start(grid: Path, results: Path, *more: str) -> "subprocess.Popen[bytes]":
    """Start the grid's command in a session of its own, so that what it leaves can be found."""
    words = ["grid", str(grid), "--study", "study", "--results", str(results), "--accelerator", "cpu", *more]
    with (grid.parent / "grid.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tfstudy", *words], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def runs(results: Path) -> list[Path]:
    """Return the folders of all runs, finished or not."""
    return [path for path in results.glob("*/*/*/s*") if path.is_dir() and ".old-" not in path.name]


def left(results: Path) -> list[bytes]:
    """Return the command lines of living processes that name this folder or have a file of it open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            files = [os.readlink(file) for file in (process / "fd").iterdir()]
            names = (words.decode(errors="replace"), *files)
            if int(process.name) != os.getpid() and any(str(results) in name for name in names):
                found.append(words)
    return found


def wait_until_nothing_is_left(results: Path, seconds: float = 30.0) -> None:
    """Wait until no process works on these results; `TimeoutError` if one still does."""
    last = time.monotonic() + seconds
    while processes := left(results):
        if time.monotonic() > last:
            raise TimeoutError(f"still running: {processes}")
        time.sleep(0.05)


def disturb(grid: Path, results: Path, kills: int, draw: random.Random, *more: str) -> Counter[tuple[str, str]]:
    """Run the grid to its end, with at most this many kills; return what was killed, and how far the run was."""
    counts: Counter[tuple[str, str]] = Counter()
    while True:
        launcher = start(grid, results, *more)
        for victim in _victims(launcher, results, draw):
            if counts.total() >= kills:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim[0], signal.SIGKILL)
                counts[victim[1:]] += 1
        if launcher.wait(timeout=900) == 0:
            return counts
        wait_until_nothing_is_left(results)


def _victims(launcher: "subprocess.Popen[bytes]", results: Path, draw: random.Random) -> Iterator[tuple[int, str, str]]:
    """Yield a random process after each random pause, while the launcher lives."""
    while launcher.poll() is None:
        time.sleep(draw.uniform(0.05, 1.0))
        living = {process: path for path in runs(results) if (process := process_of(path))}
        if living and draw.random() < 0.1:
            yield launcher.pid, LAUNCHER, "while runs were running"
            launcher.wait()
        elif living:
            process = draw.choice(list(living))
            yield process, RUN, _progress(living[process])


def _progress(run: Path) -> str:
    """Say how far a run is, from the files in its folder."""
    if not (run / "checkpoints" / "last.ckpt").exists():
        return "before the first checkpoint"
    try:
        step = json.loads((run / ".progress").read_text())["step"]
    except (OSError, ValueError, KeyError):
        step = 0
    return "in evaluation" if step >= COPYING["base"]["train"]["steps"] else "in training, after a checkpoint"


def report(kills: int, seed: int = 0) -> tuple[list[str], bool]:
    """Return the lines of a table, and whether every grid ended as the undisturbed one."""
    draw, counts, outcome, rounds = random.Random(seed), Counter[tuple[str, str]](), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.yaml"
        grid.write_text(json.dumps(GRID))  # JSON is YAML
        if start(grid, Path(folder) / "undisturbed").wait() != 0:
            raise RuntimeError((Path(folder) / "grid.log").read_text())
        expected = digests(Path(folder) / "undisturbed")
        while counts.total() < kills:
            rounds += 1
            results = Path(folder) / f"disturbed-{rounds}"
            counts += disturb(grid, results, kills - counts.total(), draw)
            found = digests(results)
            outcome["lost"] += len(expected.keys() - found.keys())
            outcome["doubled"] += len(runs(results)) - len(found)
            outcome["different"] += sum(found[name] != expected.get(name) for name in found)
    lines = ["| killed | when | kills |", "|---|---|---|"]
    lines += [f"| {what} | {when} | {number} |" for (what, when), number in sorted(counts.items())]
    lines.append(f"| all | in {plural(rounds, 'grid')} of {len(expected)} runs | {counts.total()} |")
    lines.append("")
    lines.append(f"Runs lost: {outcome['lost']}; doubled: {outcome['doubled']}; different: {outcome['different']}.")
    return lines, not outcome.total()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    table, sound = report(given.kills, given.seed)
    print("\n".join(table))
    sys.exit(0 if sound else 1)

"""What a person sees of a grid while it runs."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfstudy.launchers.job import Job
from tfstudy.launchers.supervisor import FINISHED, GIVEN_UP, OTHERS, RETRYING, RUNNING, Event
from tfstudy.record import read_result


class Progress:
    """Tells every run that ended, how many are left, and about how long that takes."""

    def __init__(self, jobs: Sequence[Job], seconds: Mapping[str, float], say: Callable[[str], None] = print) -> None:
        self._seconds, self._say = dict(seconds), say
        self._left = {job.path for job in jobs}
        self._total, self._ended = len(jobs), 0
        self._began = time.monotonic()

    def __call__(self, event: Event | None) -> None:
        if event is None or event.state == RUNNING:
            return
        if event.state in (FINISHED, GIVEN_UP):
            self._left.discard(event.job.path)
            self._ended += 1
        self._say(f"[{self._ended}/{self._total}] {self._line(event)}")

    def _line(self, event: Event) -> str:
        took = f" in {event.seconds:.1f} s" if event.seconds else ""
        if event.state == FINISHED:
            return f"{event.job.name}: {headline(read_result(Path(event.job.path)))}{took}{self._eta()}"
        words = {GIVEN_UP: "failed", RETRYING: "to be tried again", OTHERS: "made by another process"}
        reason = f": {event.reason}" if event.reason else ""
        return f"{event.job.name} {words.get(event.state, event.state)}{reason}{took}"

    def _eta(self) -> str:
        if not self._left:
            return ""
        elapsed = time.monotonic() - self._began
        return f"; about {duration(elapsed / self._ended * len(self._left))} left"


def headline(result: Mapping[str, Any]) -> str:
    """How a run came out, in some words: the first metric of its first test split."""
    if result["status"] != "finished":
        return str(result["status"])
    tests = [part for part in result.get("splits", {}).values() if part["role"] == "test" and part["n"]]
    metrics = tests[0]["metrics"] if tests else {}
    main = next(iter(metrics), "")
    return f"{main.replace('_', ' ')} {100 * metrics[main]:.1f} %" if main else "finished"


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min` or `2 d 4 h`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def foretell(jobs: Sequence[Job], done: Sequence[Job], seconds: Mapping[str, float], at_once: int) -> list[str]:
    """A grid's runs and how long those will take that are not done."""
    finished = {job.path for job in done}
    lines = []
    for job in jobs:
        state = "done" if job.path in finished else "to do"
        cost = f"about {duration(seconds[job.path])}" if job.path in seconds else ""
        lines.append(f"{state:6} {cost:16} {job.name}")
    todo = [job for job in jobs if job.path not in finished]
    known = [seconds[job.path] for job in todo if job.path in seconds]
    lines.append(f"{len(jobs)} runs, {len(done)} of them done")
    if known:
        total = max(max(known), sum(known) / at_once) * len(todo) / len(known)
        guess = f" ({len(todo) - len(known)} of them taken to be like the others)" if len(known) < len(todo) else ""
        lines.append(f"about {duration(total)} for {len(todo)} runs, {at_once} at once{guess}, judged by finished runs")
    elif todo:
        lines.append("no run like these has finished here, so how long they take is not known")
    return lines

"""What a person sees of a grid while it runs: a table on a terminal, a line for every run that ends elsewhere."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tasks.errors import UserError
from tfstudy.launchers import Executor, Job
from tfstudy.launchers.gpu_sharing import Devices
from tfstudy.launchers.supervisor import FINISHED, GIVEN_UP, OTHERS, RETRYING, RUNNING, WAITING, Event
from tfstudy.report.status import HOUR, duration
from tfstudy.runs.progress import last_step
from tfstudy.runs.reader import headline, read_result

EVERY = 0.5  # seconds between two drawings
MANY = 1000  # runs, of which each is looked at to tell how long all take
BELOW = 8  # lines of the table that are not runs at work


class Progress:
    """Tells every run that ended, how many are left, and about how long that takes.

    To be entered, so that the terminal is as it was however the grid ends.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        seconds: Mapping[str, float],
        engine: Executor,
        say: Callable[[str], None] = print,
        console: Console | None = None,
    ) -> None:
        self._seconds, self._engine, self._say = dict(seconds), engine, say
        self._left = {job.path: job for job in jobs}
        self._running: dict[str, float] = {}  # path to when it began
        self._finished, self._took = 0, 0.0  # those that finished here, and their seconds
        self._told = self._took_of_told = (
            0.0  # of those among them that an estimate was known of: it, and their seconds
        )
        told = [seconds[job.path] for job in jobs if job.path in seconds]
        self._known, self._unknown = sum(told), len(jobs) - len(told)  # of those left
        self._usual = mean(told) if told else None
        self._ends: deque[float] = deque()  # of the last hour
        self._last: deque[str] = deque(maxlen=3)
        self._total, self._failed = len(jobs), 0
        self._began, self._drawn = time.monotonic(), float("-inf")
        self._console, self._devices = console or Console(), Devices()
        self._live: Live | None = None

    def __enter__(self) -> "Progress":
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
            self._console.show_cursor(True)  # a killed process could not show it again
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._devices.stop()
        if self._live:
            self._live.update(Group(*self._summary()), refresh=True)
            self._live.stop()
            self._live = None

    def __call__(self, event: Event | None) -> None:
        if event:
            self._count(event)
            if event.state not in (RUNNING, WAITING):
                self._tell(event)
        if self._live and time.monotonic() - self._drawn > EVERY:
            self._live.update(Group(*self._summary(), *self._at_work()), refresh=True)
            self._drawn = time.monotonic()

    def _count(self, event: Event) -> None:
        path = event.job.path
        if event.state == RUNNING:
            self._running[path] = time.monotonic()
            return
        self._running.pop(path, None)
        if event.state in (FINISHED, GIVEN_UP) and path in self._left:
            del self._left[path]
            self._failed += event.state == GIVEN_UP
            self._known -= self._seconds.get(path, 0.0)
            self._unknown -= path not in self._seconds
        if event.state == FINISHED:
            self._ends.append(time.monotonic())
            self._learn(path, event.seconds)

    def _learn(self, path: str, seconds: float) -> None:
        """Takes in how long a run took; 0 seconds is one that another process made."""
        self._finished += seconds > 0
        self._took += seconds
        if seconds and path in self._seconds:
            self._told += self._seconds[path]
            self._took_of_told += seconds

    def _tell(self, event: Event) -> None:
        line = f"[{self._total - len(self._left)}/{self._total}] {self._line(event)}"
        if not self._live:
            self._say(line + (self._eta() if event.state == FINISHED else ""))
        elif event.state == FINISHED:
            self._last.append(line)
        else:  # stays on the screen, above the table
            self._live.console.print(Text(line))

    @staticmethod
    def _line(event: Event) -> str:
        took = f" in {duration(event.seconds)}" if event.seconds else ""
        if event.state == FINISHED:
            return f"{event.job.name}: {_outcome(event.job)}{took}"
        words = {GIVEN_UP: "failed", RETRYING: "to be tried again", OTHERS: "made by another process"}
        reason = f": {event.reason}" if event.reason else ""
        return f"{event.job.name} {words.get(event.state, event.state)}{reason}{took}"

    def _eta(self) -> str:
        seconds = self.seconds_left()
        return f"; about {duration(seconds)} left" if seconds is not None and seconds >= 1 else ""

    def seconds_left(self) -> float | None:
        """Until all have ended: what they are expected to take, corrected by what those that finished took; None if
        nothing is known.
        """
        off = self._took_of_told / self._told if self._told else 1.0
        usual = self._took / self._finished if self._finished else self._usual
        if usual is None:
            return None

        def rest(path: str) -> float:
            cost = self._seconds[path] * off if path in self._seconds else usual
            return max(0.0, cost - (now - self._running[path] if path in self._running else 0.0))

        now, at_once = time.monotonic(), max(1, self._engine.at_once)
        if len(self._left) > max(MANY, 4 * at_once):  # then no single run decides
            return (self._known * off + self._unknown * usual) / at_once
        each = [rest(path) for path in self._left]
        return max(max(each), sum(each) / at_once) if each else 0.0

    def _summary(self) -> list[Text | Table]:
        now = time.monotonic()
        while self._ends and now - self._ends[0] > HOUR:
            self._ends.popleft()
        hours = min(now - self._began, HOUR) / HOUR
        pace = f"; {len(self._ends) / hours:,.0f} runs an hour" if self._ends and hours else ""
        done = self._total - len(self._left) - self._failed
        counts = f"{done} done, {self._failed} failed, {len(self._left)} left of {self._total}{self._eta()}{pace}"
        return [Text(line, no_wrap=True, overflow="ellipsis") for line in (*self._last, counts)]

    def _at_work(self) -> list[Text | Table]:
        """The runs at work, as many as there is room for, and the devices."""
        table = Table(box=None, pad_edge=False, show_header=False)
        room = max(1, self._console.height - BELOW)
        now = time.monotonic()
        for path, began in list(self._running.items())[:room]:
            job = self._left[path]
            steps = job.config.get("train", {}).get("steps", 0)
            table.add_row(job.name, f"step {last_step(Path(path)):,} of {steps:,}", duration(now - began))
        more = f"and {len(self._running) - room} more; " if len(self._running) > room else ""
        return [table, Text(f"{more}{self._devices.line()}", no_wrap=True, overflow="ellipsis")]


def _outcome(job: Job) -> str:
    try:
        return headline(read_result(Path(job.path)))
    except UserError as error:
        return str(error)


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

"""How far training or an evaluation is: a bar on a terminal, a line now and then elsewhere. Imports no Lightning."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

LINE_INTERVAL = 10.0  # seconds between two lines without a terminal
BAR_INTERVAL = 0.2  # seconds between two updates of the bar


class ProgressDisplay:
    """Shows `TITLE: 1,024 of 3,000 UNIT, TEXT, 16 s left`, at most five times a second on a terminal.

    Elsewhere, as in a notebook, it prints a line at most every ten seconds. A context manager that removes the bar.
    """

    def __init__(self, title: str, total: int, unit: str, done: int = 0) -> None:
        self._title, self._total, self._unit, self._first = title, total, unit, done
        self._bar: Progress | None = None
        self._interval = BAR_INTERVAL if sys.stdout.isatty() else LINE_INTERVAL
        if sys.stdout.isatty():
            console = Console(file=sys.stdout)  # by name, so that the bar finds it behind its own stream
            self._bar = Progress(BarColumn(), TextColumn(f"{title}: {{task.description}}"), console=console)
            self._bar.add_task("", total=total)
        self._started = self._shown = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for an update."""
        return time.monotonic() - self._shown >= self._interval

    def update(self, done: int, text: str = "", share: float | None = None) -> None:
        """Show that `done` of the total are done, if an update is due.

        `share` is the share of the work in this process, if it is not proportional to the number; it gives the time
        that is left.
        """
        if not self.due():
            return
        self._shown = time.monotonic()
        share = share or (done - self._first) / max(1, self._total - self._first)
        left = f"{(self._shown - self._started) * (1 - share) / share:,.0f} s left" if share else ""
        self._show(done, ", ".join(filter(None, [f"{done:,} of {self._total:,} {self._unit}", text, left])))

    def examples(self, done: int, share: float) -> None:
        """Show how many examples are done, with their number per second."""
        self.update(done, f"{done / max(time.monotonic() - self._started, 1e-9):,.0f}/s", share)

    def _show(self, done: int, text: str) -> None:
        if self._bar is None:
            print(f"{self._title}: {text}", flush=True)
        else:
            self._bar.start()
            self._bar.update(self._bar.task_ids[0], completed=done, description=text)

    def stop(self, done: int | None = None) -> None:
        """Remove the bar; with `done` after a last update."""
        if self._bar:
            if done is not None:
                self._show(done, f"{done:,} of {self._total:,} {self._unit}")
            self._bar.stop()

    def __enter__(self) -> "ProgressDisplay":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

"""How far training or an evaluation is, as a line now and then. Imports no Lightning."""

import time

INTERVAL = 10.0  # seconds between two lines


class ProgressLines:
    """Prints `TITLE: 1,024 of 3,000 UNIT, TEXT, 16 s left`, at most every ten seconds."""

    def __init__(self, title: str, total: int, unit: str, done: int = 0) -> None:
        self._title, self._total, self._unit, self._first = title, total, unit, done
        self._started = self._shown = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for another line."""
        return time.monotonic() - self._shown >= INTERVAL

    def update(self, done: int, text: str = "", share: float | None = None) -> None:
        """Print that `done` of the total are done, if a line is due.

        `share` is the share of the work in this process, if it is not proportional to the number; it gives the time
        that is left.
        """
        if not self.due():
            return
        self._shown = time.monotonic()
        share = share or (done - self._first) / max(1, self._total - self._first)
        left = f"{(self._shown - self._started) * (1 - share) / share:,.0f} s left" if share else ""
        parts = f"{done:,} of {self._total:,} {self._unit}", text, left
        print(f"{self._title}: {', '.join(filter(None, parts))}", flush=True)

    def examples(self, done: int, share: float) -> None:
        """Print how many examples are done, with their number per second."""
        self.update(done, f"{done / max(time.monotonic() - self._started, 1e-9):,.0f}/s", share)

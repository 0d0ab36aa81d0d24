"""Ticks of logarithmic axes: at least two, however narrow the range of the numbers is."""

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, LogLocator, MaxNLocator, NullFormatter

FEWEST = 3  # ticks at 1, 2, 5, 10, ...; with fewer, ticks are evenly spaced numbers


def set_log_ticks(axes: Axes) -> None:
    """Set the ticks of the logarithmic axes. An axis of a single number has it in the middle, with a tick."""
    for axis, set_limits in ((axes.xaxis, axes.set_xlim), (axes.yaxis, axes.set_ylim)):
        if axis.get_scale() != "log":
            continue
        lowest, highest = axis.get_data_interval()
        if lowest == highest:
            set_limits(lowest / 2, 2 * highest)
            axis.set_major_locator(FixedLocator([lowest]))
        else:
            axis.set_major_locator(_locator(*sorted(axis.get_view_interval())))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
        axis.set_minor_formatter(NullFormatter())


def _locator(low: float, high: float) -> Locator:
    """Return where the ticks between two numbers are."""
    locator = LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=7)
    shown = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
    return locator if len(shown) >= FEWEST else MaxNLocator(5, steps=[1, 2, 5, 10])

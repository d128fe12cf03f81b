"""Rates of events at exact multiples of the physics tick."""

from __future__ import annotations

from crazyflow_ros.control.modes import Control

DEFAULT_RATES = {Control.state: 100}
"""Default rates [Hz] of the controllers that do not run at `DEFAULT_RATE`."""
DEFAULT_RATE = 500  # Hz


def ticks_per_period(freq: int, rate: int, name: str) -> int:
    """Return the number of ticks between two events.

    Args:
        freq: Physics ticks per second.
        rate: Events per second.
        name: Name of the rate in the error message.

    Raises:
        ValueError: `rate` does not divide `freq`; the message names the nearest rates that do.
    """
    if rate >= 1 and freq % rate == 0:
        return freq // rate
    divisors = [r for r in range(1, freq + 1) if freq % r == 0]
    below = [r for r in divisors if r < rate][-1:]
    above = [r for r in divisors if r > rate][:1]
    nearest = " or ".join(str(r) for r in below + above)
    raise ValueError(f"{name} must divide the physics rate of {freq} Hz, got {rate}; try {nearest}")

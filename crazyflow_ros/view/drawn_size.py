"""How large drones are drawn: as they are from near, and larger where they would be dots."""

from __future__ import annotations

import math
from collections.abc import Iterable

AUTOMATIC = "automatic"
"""The setting with which the page chooses."""
PIXELS = 50.0
"""Across a drone in a picture, at least, up to `LARGEST` [CSS pixels]."""
LARGEST = 10.0
"""Times the real size."""
CHOICES = (AUTOMATIC, *(f"{size:g} ×" for size in (1, 2, 3, 4, 6, 8, LARGEST)))
"""Settings for users."""

_STEP = 1.2  # from one size to the next one
_SLACK = 1.6  # how far too large drones become before they are drawn smaller
_NEAR = 0.8  # of the real size, needed where drones are drawn as they are
_QUICK = 0.25  # s, time constant of a change
_SETTLED = 0.01  # of a size, below which it has changed


class DrawnSize:
    """The drawn size of the drones in all tabs.

    Attributes:
        value: As a multiple of the real size.
        goal: What it is about to be.
    """

    def __init__(self) -> None:
        self.value = 1.0
        self.goal = 1.0

    def choose(self, setting: str, needed: Iterable[float], seconds: float) -> None:
        """Choose the size.

        Args:
            setting: One of `CHOICES`.
            needed: What each picture needs, as a multiple of the real size. The largest decides,
                so that drones are seen in all of them.
            seconds: Wall time since the last call [s]; infinite to be there at once.
        """
        if setting != AUTOMATIC:
            self.value = self.goal = float(setting.split()[0])
            return
        least = min(max((*needed, 0.0)), LARGEST)
        most = 1.0 if least < _NEAR else max(least * _SLACK, 1.0)
        if least > 0 and not least <= self.goal * (1 + 1e-9) <= most * (1 + 2e-9):
            steps = math.ceil(math.log(max(least, 1.0), _STEP) - 1e-9)
            self.goal = min(_STEP**steps, LARGEST)
        self.value += (self.goal - self.value) * -math.expm1(-seconds / _QUICK)
        if abs(self.value - self.goal) < _SETTLED * self.goal:
            self.value = self.goal


def needed(diameter: float, depth: float, focal: float) -> float:
    """Return the multiple of its size that makes a drone `PIXELS` wide.

    Args:
        diameter: Of the drone [m].
        depth: Distance from the camera along its axis [m].
        focal: Focal length of the picture [CSS pixels].
    """
    return PIXELS * max(depth, 1e-3) / (focal * diameter)

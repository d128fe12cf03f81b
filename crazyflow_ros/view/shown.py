"""What a page draws: switches, and the drawn size of drones, larger where they would be dots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from crazyflow_ros.view.controls import PageControl, PageControls
from crazyflow_ros.view.drawing import Switches

AUTOMATIC = "automatic"
"""The setting with which the page chooses."""
PIXELS = 50.0
"""Least width of a drone in a picture, up to the size `LARGEST` [CSS pixels]."""
LARGEST = 10.0
"""Largest drawn size, as a multiple of the real size."""
CHOICES = (AUTOMATIC, *(f"{size:g} ×" for size in (1, 2, 3, 4, 6, 8, LARGEST)))
"""Settings for users."""

_STEP = 1.2  # from one size to the next one
_SLACK = 1.6  # how far too large drones become before they are drawn smaller
_NEAR = 0.8  # of the real size, needed where drones are drawn as they are
_QUICK = 0.25  # s, time constant of a change
_SETTLED = 0.01  # of a size, below which it has changed


class Shown:
    """Switches that all tabs share; the `value` of each says whether it is on.

    Args:
        panel: Where the switches are.
        on_change: Called after a change of a switch that is not from `add`.

    Attributes:
        dark: Whether all tabs are dark, see `theme`.
        names: Names of the drones.
        trails: Paths that the drones have flown.
        shadows: Shadows below the drones, and lines up to them.
        size: The drawn size of the drones, as a multiple of their real size.
    """

    def __init__(self, panel: PageControls, on_change: Callable[[], None]) -> None:
        self._panel = panel
        self.size = DrawnSize()
        self._note = panel.add("text", content="", order=65, visible=False)
        self._section = panel.add("section", "Show", order=90, is_open=False)
        self.dark = self.add(
            "Dark page", is_on=False, hint="In all tabs; a browser set to dark shows it dark anyway"
        )
        with panel.inside(self._section):
            panel.add("place", "shortcuts")
        self.shadows = self.add(
            "Shadows", is_on=True, hint="On what is below a drone, with a line up to it"
        )
        self.names = self.add("Names", is_on=True)
        self.trails = self.add("Trails", is_on=True)
        with panel.inside(self._section):
            self._sizes = panel.add(
                "choice",
                "Size of drones",
                options=CHOICES,
                hint="How large they are drawn; they fly as they are",
            )
        for control in (self.shadows, self.names, self.trails, self._sizes):
            control.on_change(lambda *_: on_change())

    @property
    def switches(self) -> Switches:
        """What is drawn of the drones."""
        return Switches(self.trails.value, self.shadows.value)

    def choose_size(self, needed: list[float], seconds: float) -> None:
        """Choose the drawn size, see `DrawnSize.choose`; a note tells if it is not real."""
        self.size.choose(self._sizes.value, needed, seconds)
        text = f"Drones are drawn {self.size.goal:.2g} times as large as they are"
        self._note.set(visible=self.size.goal != 1, content=text)

    def add(self, label: str, *, is_on: bool, hint: str = "") -> PageControl:
        """Add a switch."""
        with self._panel.inside(self._section):
            return self._panel.add("switch", label, is_on, hint=hint)


class DrawnSize:
    """The drawn size of the drones in all tabs.

    Attributes:
        value: As a multiple of the real size.
        goal: The value that it approaches.
    """

    def __init__(self) -> None:
        self.value = 1.0
        self.goal = 1.0

    def choose(self, setting: str, needed: Iterable[float], seconds: float) -> None:
        """Choose the size.

        Args:
            setting: One of `CHOICES`.
            needed: The size that each picture needs, as a multiple of the real size. The largest
                decides, so that drones are visible in all of them.
            seconds: Wall time since the last call [s]; infinite for a change at once.
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


def needed_size(diameter: float, depth: float, focal: float) -> float:
    """Return the drawn size that makes a drone `PIXELS` wide, as a multiple of its real size.

    Args:
        diameter: Of the drone [m].
        depth: Distance from the camera along its axis [m].
        focal: Focal length of the picture [CSS pixels].
    """
    return PIXELS * max(depth, 1e-3) / (focal * diameter)

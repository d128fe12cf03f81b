"""The switches that select what a page draws."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import viser

from crazyflow_ros.view.drawing import Switches
from crazyflow_ros.view.drawn_size import AUTOMATIC, CHOICES, DrawnSize


class Shown:
    """Switches, the same in all tabs; the `value` of each says whether it is on.

    Args:
        server: The page's server.
        on_change: Called after one that is here from the beginning was changed.

    Attributes:
        dark: Whether all tabs are dark, see `theme`.
        names: Names of the drones.
        trails: Paths that the drones have flown.
        shadows: Shadows below the drones, and lines up to them.
        size: The drawn size of the drones, as a multiple of their real size.
    """

    def __init__(self, server: viser.ViserServer, on_change: Callable[[], None]) -> None:
        self._gui = server.gui
        self.size = DrawnSize()
        self._note = self._gui.add_html("", order=3.5, visible=False)
        self._folder = self._gui.add_folder("Show", order=90, expand_by_default=False)
        self.dark = self.add(
            "Dark page", is_on=False, hint="In all tabs; a browser set to dark shows it dark anyway"
        )
        with self._folder:
            self._gui.add_html('<div data-place="shortcuts" style="padding:0 0.7em 0.5em"></div>')
        self.shadows = self.add(
            "Shadows", is_on=True, hint="On what is below a drone, with a line up to it"
        )
        self.names = self.add("Names", is_on=True)
        self.trails = self.add("Trails", is_on=True)
        with self._folder:
            self._sizes = self._gui.add_dropdown(
                "Size of drones",
                CHOICES,
                initial_value=AUTOMATIC,
                hint="How large they are drawn; they fly as they are",
            )
        for control in (self.shadows, self.names, self.trails, self._sizes):
            control.on_update(lambda _: on_change())

    @property
    def switches(self) -> Switches:
        """What is drawn of the drones."""
        return Switches(bool(self.trails.value), bool(self.shadows.value))

    def choose_size(self, needed: list[float], seconds: float) -> None:
        """Choose the drawn size, see `DrawnSize.choose`, and tell it if it is not the real one."""
        self.size.choose(self._sizes.value, needed, seconds)
        self._note.visible = self.size.goal != 1
        text = escape(f"Drones are drawn {self.size.goal:.2g} times as large as they are")
        self._note.content = f'<div style="padding:0.3em 0.8em;font-size:0.85em">{text}</div>'

    def add(self, label: str, *, is_on: bool, hint: str | None = None) -> Any:
        """Add a switch."""
        with self._folder:
            return self._gui.add_checkbox(label, is_on, hint=hint)

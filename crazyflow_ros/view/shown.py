"""The switches that select what a page draws."""

from __future__ import annotations

from typing import Any

import viser

_LARGEST = 10.0  # times a drone's size


class Shown:
    """Switches, the same in all tabs; the `value` of each says whether it is on.

    Args:
        server: The page's server.

    Attributes:
        dark: Whether all tabs are dark, see `theme`.
        names: Names of the drones.
        trails: Paths that the drones have flown.
        size: Slider for the drawn size of the drones, as a multiple of their real size.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._gui, self._scene = server.gui, server.scene
        self._note = self._gui.add_html("", order=3.5, visible=False)
        self._folder = self._gui.add_folder("Show", order=90, expand_by_default=False)
        self.dark = self.add(
            "Dark page", is_on=False, hint="In all tabs; a browser set to dark shows it dark anyway"
        )
        self._shadows = self.add(
            "Shadows", is_on=False, hint="Of the drones; they slow a browser down"
        )
        self._shadows.on_update(lambda _: self._set_shadows())
        self._set_shadows()
        self.names = self.add("Names", is_on=True)
        self.trails = self.add("Trails", is_on=True)
        with self._folder:
            self.size = self._gui.add_slider(
                "Size of drones",
                min=1.0,
                max=_LARGEST,
                step=0.5,
                initial_value=1.0,
                hint="How many times as large as they are they are drawn; they fly as they are",
            )
        self.size.on_update(lambda _: self._tell_size())

    def _set_shadows(self) -> None:
        self._scene.configure_default_lights(cast_shadow=self._shadows.value)

    def _tell_size(self) -> None:
        """Show a note while drones are not drawn in their real size."""
        self._note.visible = self.size.value != 1
        self._note.content = (
            '<div style="padding:0.3em 0.8em;font-size:0.85em">Drones are drawn'
            f" <b>{self.size.value:g} times</b> as large as they are</div>"
        )

    def add(self, label: str, *, is_on: bool, hint: str | None = None) -> Any:
        """Add a switch."""
        with self._folder:
            return self._gui.add_checkbox(label, is_on, hint=hint)

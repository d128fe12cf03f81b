"""Inputs of the panel that show a parameter, or whose options change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import viser

from crazyflow_ros.view.panel.state import SimulatorState

NOTHING = "nothing"
"""The option of a dropdown without options."""

_OWN = 1.5  # s of wall time for which the user's choice is shown, until the simulator has it


class ParameterControl:
    """Keeps an input and a parameter equal, whichever of them changes.

    Args:
        control: The input.
        parameter: Name of the parameter.
        state: The simulator with the parameter.
        to_input: Converts a value of the parameter to one of the input.
        to_parameter: Converts a value of the input to one of the parameter.
    """

    def __init__(
        self,
        control: Any,
        parameter: str,
        state: SimulatorState,
        to_input: Callable[[Any], Any],
        to_parameter: Callable[[Any], Any],
    ) -> None:
        self._control, self._parameter, self._state = control, parameter, state
        self._to_input, self._to_parameter = to_input, to_parameter
        self._changed = 0.0
        control.on_update(self._change)

    async def _change(self, event: viser.GuiEvent[Any]) -> None:
        if event.client is None:  # the change comes from `update`
            return
        self._changed = time.monotonic()
        value = self._to_parameter(event.target.value)
        requests = self._state.requests
        requests.set_parameter(event.client, self._control.label, self._parameter, value)

    def update(self) -> None:
        """Show the simulator's value."""
        value = self._state.follower.parameters.get(self._parameter)
        if value is not None and time.monotonic() > self._changed + _OWN:
            self._control.value = self._to_input(value)


def set_options(dropdown: Any, options: tuple[str, ...]) -> None:
    """Set the options of a dropdown if they differ; its value stays if it is still an option."""
    options = options or (NOTHING,)
    if dropdown.options != options:
        dropdown.options = options

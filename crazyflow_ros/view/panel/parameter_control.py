"""An input of the panel that shows and sets a parameter of the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import viser

from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.panel.requests import ServiceRequests

_OWN = 1.5  # s of wall time for which the user's choice is shown, until the simulator has it


class ParameterControl:
    """Keeps an input and a parameter equal, whichever of them changes.

    Args:
        control: The input.
        parameter: Name of the parameter.
        follower: The connection to the simulator.
        requests: Sets the parameter.
        to_input: Converts a value of the parameter to one of the input.
        to_parameter: Converts a value of the input to one of the parameter.
    """

    def __init__(
        self,
        control: Any,
        parameter: str,
        follower: Follower,
        requests: ServiceRequests,
        to_input: Callable[[Any], Any],
        to_parameter: Callable[[Any], Any],
    ) -> None:
        self._control, self._parameter = control, parameter
        self._follower, self._requests = follower, requests
        self._to_input, self._to_parameter = to_input, to_parameter
        self._changed = 0.0
        control.on_update(self._change)

    async def _change(self, event: viser.GuiEvent[Any]) -> None:
        if event.client is None:  # the change comes from `update`
            return
        self._changed = time.monotonic()
        value = self._to_parameter(event.target.value)
        self._requests.set_parameter(event.client, self._control.label, self._parameter, value)

    def update(self) -> None:
        """Show the simulator's value."""
        value = self._follower.parameters.get(self._parameter)
        if value is not None and time.monotonic() > self._changed + _OWN:
            self._control.value = self._to_input(value)

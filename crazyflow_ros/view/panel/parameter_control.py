"""An input of the panel that is a parameter of the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import viser

from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.panel.requests import Requests

_OWN = 1.5  # s of wall time in which what a user has chosen is shown, until the simulator has it


class ParameterControl:
    """Keeps an input and a parameter equal, whoever changes one of them.

    Args:
        control: The input.
        parameter: Name of the parameter.
        follower: The connection to the simulator.
        requests: Sets the parameter.
        to_input: Value of the input for one of the parameter.
        to_parameter: The other way round.
    """

    def __init__(
        self,
        control: Any,
        parameter: str,
        follower: Follower,
        requests: Requests,
        to_input: Callable[[Any], Any],
        to_parameter: Callable[[Any], Any],
    ) -> None:
        self._control, self._parameter = control, parameter
        self._follower, self._requests = follower, requests
        self._to_input, self._to_parameter = to_input, to_parameter
        self._changed = 0.0
        control.on_update(self._change)

    async def _change(self, event: viser.GuiEvent[Any]) -> None:
        if event.client is None:  # it is from `update`
            return
        self._changed = time.monotonic()
        value = self._to_parameter(event.target.value)
        self._requests.set_parameter(event.client, self._control.label, self._parameter, value)

    def update(self) -> None:
        """Show the value that the simulator has."""
        value = self._follower.parameters.get(self._parameter)
        if value is not None and time.monotonic() > self._changed + _OWN:
            self._control.value = self._to_input(value)

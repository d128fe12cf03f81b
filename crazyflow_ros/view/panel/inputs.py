"""Inputs of the panel that show a parameter, or whose options change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from crazyflow_ros.view.controls import PageControl, User
from crazyflow_ros.view.panel.state import SimulatorState

NOTHING = "nothing"
"""The option of a choice without options."""

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
        control: PageControl,
        parameter: str,
        state: SimulatorState,
        to_input: Callable[[Any], Any],
        to_parameter: Callable[[Any], Any],
    ) -> None:
        self._control, self._parameter, self._state = control, parameter, state
        self._to_input, self._to_parameter = to_input, to_parameter
        self._changed = 0.0
        control.on_change(self._change)

    def _change(self, user: User, value: Any) -> None:
        self._changed = time.monotonic()
        requests = self._state.requests
        what = self._control.label
        requests.set_parameter(user, what, self._parameter, self._to_parameter(value))

    def update(self) -> None:
        """Show the simulator's value."""
        value = self._state.follower.parameters.get(self._parameter)
        if value is not None and time.monotonic() > self._changed + _OWN:
            self._control.value = self._to_input(value)


def set_options(choice: PageControl, options: tuple[str, ...]) -> None:
    """Set the options of a choice; its value stays if it is still one of them."""
    choice.options = options or (NOTHING,)

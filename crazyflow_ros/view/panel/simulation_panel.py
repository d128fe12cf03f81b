"""Controls of time: pause, step, reset and speed."""

from __future__ import annotations

from functools import partial
from typing import Any

from crazyflow_ros.view.controls import PageControls, User
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.inputs import ParameterControl
from crazyflow_ros.view.panel.state import SimulatorState

_PAUSE, _RESUME, _STEP, _RESET = "Pause", "Resume", "Step", "Reset all"
_FASTEST = "as fast as possible"
_SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 0.0)  # 0: as fast as possible


class SimulationPanel:
    """The part of the panel that is always visible."""

    def __init__(self, panel: PageControls, state: SimulatorState) -> None:
        self._state = state
        self._buttons = panel.add(
            "buttons",
            "Time",
            options=(_PAUSE, _STEP, _RESET),
            order=1,
            is_bare=True,
            hint="Step: one control period while paused. Reset all: all drones back to their start",
        )
        self._speed = panel.add(
            "choice",
            "Speed",
            _label(1.0),
            options=tuple(map(_label, _SPEEDS)),
            order=2,
            hint="Simulated time over wall time",
        )
        self._buttons.on_change(self._click)
        self._factor = ParameterControl(
            self._speed, "real_time_factor", state, self._option, _factor
        )

    def _click(self, user: User, button: Any) -> None:
        ask = self._state.requests.ask
        if button in (_PAUSE, _RESUME):
            fields = {"data": button == _PAUSE}
            then = partial(self._note_pause, button == _PAUSE)
            ask(user, button, "std_srvs/srv/SetBool", "~/pause", fields, then=then)
        else:
            service = "~/step" if button == _STEP else "~/reset"
            ask(user, button, "std_srvs/srv/Trigger", service)

    def _note_pause(self, paused: bool, _: Any) -> None:
        self._state.paused = paused

    def _option(self, factor: float) -> str:
        """Return the option for a factor, and add it if it is missing."""
        label = _label(factor)
        if label not in self._speed.options:
            self._speed.options = (*map(_label, _SPEEDS), label)
        return label

    def update(self, frame: Frame | None) -> None:
        """Show the latest state; None without a simulator."""
        state = self._state
        self._buttons.visible = self._speed.visible = frame is not None
        if frame is None:
            return
        self._buttons.options = (_RESUME if state.paused else _PAUSE, _STEP, _RESET)
        self._factor.update()


def _label(factor: float) -> str:
    return f"{factor:g} ×" if factor else _FASTEST


def _factor(label: str) -> float:
    return 0.0 if label == _FASTEST else float(label.partition(" ")[0])

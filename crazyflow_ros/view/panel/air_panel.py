"""Controls of disturbances: wind, gusts, failing motors, an empty battery."""

from __future__ import annotations

from functools import partial
from typing import Any

from crazyflow_ros.view.controls import PageControls, User
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.inputs import ParameterControl
from crazyflow_ros.view.panel.state import SimulatorState

_MOTORS = ("Front right", "Rear right", "Rear left", "Front left")
_THRUST = "Share of the commanded thrust, 1: intact; a reset of the drone repairs the motor"
_BATTERY = ("Battery", "Share of the capacity, 1: full; a reset of the drone fills it", False)
_WIND, _GUSTS = 30.0, 5.0  # m/s, largest values


class AirPanel:
    """The tab for wind and failures.

    Args:
        panel: Where the tab is.
        state: The simulator. It counts resets, which repair motors and fill batteries.
    """

    def __init__(self, panel: PageControls, state: SimulatorState) -> None:
        self._state, self._drone = state, ""
        self._chosen: dict[tuple[str, int], tuple[int, float]] = {}  # with the drone's resets
        self._time_ns = 0
        with panel.section("Wind"):
            wind = panel.add(
                "vector",
                "Wind [m/s]",
                [0.0, 0.0, 0.0],
                min=-_WIND,
                max=_WIND,
                step=0.5,
                hint="Mean wind: to the east, to the north, up",
            )
            gusts = panel.add(
                "slider",
                "Gusts [m/s]",
                0.0,
                min=0.0,
                max=_GUSTS,
                step=0.1,
                hint="Standard deviation of the vertical gusts. The first time takes some seconds",
            )
        self._parameters = (
            ParameterControl(wind, "wind", state, list, list),
            ParameterControl(gusts, "gust_intensity", state, lambda v: min(v, _GUSTS), float),
        )
        with panel.section("Failures") as self._failures:
            limits: dict[str, Any] = {"min": 0.0, "max": 1.0, "step": 0.05}
            self._controls = [
                panel.add("slider", name, 1.0, **limits, hint=hint, visible=motor)
                for name, hint, motor in (*((name, _THRUST, True) for name in _MOTORS), _BATTERY)
            ]
        for number, control in enumerate(self._controls):
            control.on_change(partial(self._set, number))

    def _set(self, number: int, user: User, value: Any) -> None:
        if not self._drone:
            return
        value = float(value)
        self._chosen[self._drone, number] = self._state.resets[self._drone], value
        kind, service, fields = (
            ("SetMotorEfficiency", "set_motor_efficiency", {"motor": number, "efficiency": value})
            if number < len(_MOTORS)
            else ("SetBattery", "set_battery", {"charge": value})
        )
        self._state.requests.ask(
            user,
            f"{self._controls[number].label}: {self._drone}",
            f"crazyflow_ros_interfaces/srv/{kind}",
            f"{self._drone}/{service}",
            fields,
            part=str(number),
        )

    def update(self, frame: Frame | None, drone: str) -> None:
        """Show the values of a drone; `frame` is None without a simulator."""
        self._forget(frame)
        if frame is None or drone not in frame.names:
            return
        for parameter in self._parameters:
            parameter.update()
        self._controls[-1].visible = bool(self._state.follower.parameters.get("battery"))
        self._drone, resets = drone, self._state.resets[drone]
        self._failures.label = f"Failures of {drone}"
        for number, control in enumerate(self._controls):
            chosen = self._chosen.get((drone, number))
            control.value = chosen[1] if chosen and chosen[0] == resets else 1.0

    def _forget(self, frame: Frame | None) -> None:
        """Forget choices for drones that no longer exist, and all choices when time goes back."""
        before, self._time_ns = self._time_ns, 0 if frame is None else frame.time_ns
        kept = () if frame is None or frame.time_ns < before else frame.names
        for key in tuple(self._chosen):  # a copy: a choice may come meanwhile
            if key[0] not in kept:
                self._chosen.pop(key)

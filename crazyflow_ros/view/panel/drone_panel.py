"""Controls of flight: the selected drone, all drones, clicks on the floor, keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
import viser

from crazyflow_ros.scene.frames import body_to_world, rpy
from crazyflow_ros.scene.frames import yaw as yaw_of
from crazyflow_ros.view.alarms import LAND, RESET
from crazyflow_ros.view.controls import PageControls, User
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.goals import Goals
from crazyflow_ros.view.panel.inputs import NOTHING, set_options
from crazyflow_ros.view.panel.service_requests import Fields
from crazyflow_ros.view.panel.state import SimulatorState
from crazyflow_ros.view.panel.sticks import KEYS, PanelPilot, Sticks
from crazyflow_ros.view.plans import Plans
from crazyflow_ros.view.viewer import Viewer, floor_at

_TAKE_OFF, _ARM, _DISARM, _STOP = "Take off", "Arm", "Disarm", "Stop"
_QUESTION = "Stop the rotors?"
_STANDS = 0.1  # m, height above the floor below which a drone counts as standing on the floor
_FLIGHT = "crazyflie_interfaces/srv"
_MOVED = 0.05  # m of a goal, after which the panel shows where it is now
_LONGEST = 20  # characters of a name on a button


class DronePanel:
    """The tab with the controls of flight."""

    def __init__(self, viewer: Viewer, state: SimulatorState, sticks: Sticks, plans: Plans) -> None:
        self._viewer, self._state, self._sticks, self._plans = viewer, state, sticks, plans
        self._pilot = PanelPilot(state.follower, sticks)
        self._goals, self._goal = Goals(viewer, self.send), np.full(3, np.nan)
        self._frame: Frame | None = None
        self._drone = ""
        panel = viewer.panel
        with panel.section("Selected drone"):
            self._drones = panel.add("choice", "Drone", options=(NOTHING,), hint="Or click on it")
            self._text = panel.add("text", content="")
            self._add_flight(panel, "")
            self._height = panel.add(
                "slider",
                "Height [m]",
                1.0,
                min=0.2,
                max=3.0,
                step=0.1,
                hint="For take-off, and for a click on the floor",
            )
            self._clicks = panel.add(
                "switch", "Fly to clicks", True, hint="A click on the floor sends the drone there"
            )
            hint = "Or drag the ring on the floor, and the arrow above the drone for its height"
            self._place = panel.add("vector", "Goal [m]", [0.0] * 3, step=0.1, hint=hint)
            go = panel.add("button", "Fly there")
            self._add_rotors(panel, "")
            self._reset = panel.add("button", RESET, hint="Puts the drone back to its start")
        with panel.section("All drones", visible=False) as self._all:
            self._add_flight(panel, "all")
            self._add_rotors(panel, "all")
        with panel.section("Keys and gamepad", is_open=False):
            self._keys = panel.add("switch", "Use them", True, hint="They fly the selected drone")
            self._speed = panel.add("slider", "Top speed [m/s]", 1.0, min=0.1, max=3.0, step=0.1)
            panel.add("text", content=_help())
        self._drones.on_change(self._choose)
        go.on_change(lambda user, _: self.send(user, *self._place.value))
        self._reset.on_change(lambda user, _: self._press("", user, RESET))
        viewer.tabs.on("remedy", self._help)

    def _add_flight(self, panel: PageControls, owner: str) -> None:
        flight = panel.add("buttons", "Flight", options=(_TAKE_OFF, LAND), tone="main")
        flight.on_change(partial(self._press, owner))

    def _add_rotors(self, panel: PageControls, owner: str) -> None:
        rotors = panel.add(
            "buttons",
            "Rotors",
            options=(_ARM, _DISARM, _STOP),
            danger=(_STOP,),
            hint="Only an armed drone takes off; a command arms it, too."
            " Stop: at once, wherever it is; it is locked until it is reset",
        )
        rotors.on_change(partial(self._press, owner))

    def _choose(self, _: User, drone: Any) -> None:
        self._viewer.selected = drone

    def _press(self, owner: str, user: User, button: str) -> None:
        """Carry out a button for the owner of the services, or for the selected drone."""
        owner = owner or self._drone
        harm = self._harm(owner, button) if button in (_STOP, _DISARM) else ""
        then = partial(self.command, user, button, owner)
        if harm:
            yes = f"{button}: {_of(owner)}"
            self._viewer.panel.ask(user, _QUESTION, harm, yes, then)
        else:
            then()

    def _harm(self, owner: str, button: str) -> str:
        """Return what would happen to drones if their rotors stopped; empty for no harm."""
        frame = self._frame
        if frame is None:
            return ""
        flying = [
            drone
            for drone in frame.names
            if owner in (drone, "all") and self._state.flies(frame, drone)
        ]
        if len(flying) > 1:
            return f"{len(flying)} drones are flying. Without rotors they fall."
        if flying:
            height = frame.position[frame.names.index(flying[0]), 2]
            return f"{flying[0]} is flying at {height:.2f} m. Without rotors it falls."
        is_of_all = owner == "all" and button == _STOP
        return "All drones will be locked until they are reset." if is_of_all else ""

    def _help(self, client: Any, kind: Any) -> None:
        """Carry out the button of an alarm."""
        user = self._viewer.tabs.user(client)
        for alarm in self._state.alarms.now():
            if alarm.kind == kind and alarm.remedy:
                self._command_each(user, alarm.remedy, alarm.parts)

    def _command_each(self, user: User | None, button: str, drones: Sequence[str]) -> None:
        """Carry out a button for one drone after the other, until one refuses."""
        if drones:
            then = partial(self._command_each, user, button, drones[1:])
            self.command(user, button, drones[0], lambda _: then())

    def command(
        self,
        user: User | None,
        button: str,
        owner: str,
        then: Callable[[Any], None] | None = None,
    ) -> None:
        """Carry out a button.

        Args:
            user: Who has pressed it, or None.
            button: Label of the button.
            owner: The drone, or `all`.
            then: See `ServiceRequests.ask`.
        """
        height = float(self._height.value)
        services: dict[str, tuple[str, str, Fields]] = {
            _TAKE_OFF: (f"{_FLIGHT}/Takeoff", "takeoff", {"height": height}),
            LAND: (f"{_FLIGHT}/Land", "land", {}),
            _STOP: ("std_srvs/srv/Empty", "emergency", {}),
            _ARM: (f"{_FLIGHT}/Arm", "arm", {"arm": True}),
            _DISARM: (f"{_FLIGHT}/Arm", "arm", {"arm": False}),
            RESET: ("std_srvs/srv/Trigger", "reset", {}),
        }
        kind, service, fields = services[button]
        if owner:
            what, name = f"{button}: {owner}", f"{owner}/{service}"
            self._state.requests.ask(user, what, kind, name, fields, then=then)

    @property
    def _floor(self) -> float:
        """Height of the floor of the world [m]."""
        return self._viewer.drawing.ground.floor

    def send(self, user: User | None, x: float, y: float, z: float | None = None) -> None:
        """Send the selected drone to a place [m], by default at the height of the panel."""
        frame, drone = self._frame, self._drone
        if frame is None or drone not in frame.names:
            return
        heading = float(yaw_of(frame.attitude[frame.names.index(drone)]))
        what, topic = f"Fly there: {drone}", f"{drone}/cmd_pose"
        self._state.requests.expect_refusal(user, what, topic)
        height = self._floor + float(self._height.value) if z is None else z
        self._pilot.go_to(x, y, height, heading)

    def click(self, event: viser.SceneClickEvent) -> None:
        """Select the drone under the pointer, or send the selected drone to that place."""
        frame, drone = self._frame, self._drone
        if frame is None or drone not in frame.names:
            return
        if self._viewer.select_under(event) or not self._clicks.value:
            return
        place = floor_at(np.array(event.ray_origin), np.array(event.ray_direction), self._floor)
        if place is not None:
            self.send(self._viewer.tabs.user(event.client), *place[:2].tolist())

    def update(self, frame: Frame | None, drone: str) -> None:
        """Show the state of the selected drone; `frame` is None without a simulator."""
        self._frame = frame
        names = frame.names if frame is not None else ()
        drone = drone if drone in names else ""
        if drone != self._drone:
            self._drone = drone
            self._pilot.select(drone)
        set_options(self._drones, names)
        self._all.visible = len(names) > 1
        self._drones.value = drone or self._drones.options[0]
        self._show_goal(frame, drone)
        self._pilot.speed, self._pilot.uses_sticks = self._speed.value, self._keys.value
        if frame is not None and drone:
            self._text.content = self._describe(frame, drone)
            self._reset.label = f"{RESET} {_of(drone)}"
        self._switch(frame, drone)

    def _show_goal(self, frame: Frame | None, drone: str) -> None:
        """Show where the selected drone flies to, or hovers, in the scene and in the panel."""
        if frame is None or not drone or not self._state.flies(frame, drone):
            self._goals.show(None, 0.0)
            return
        row = frame.names.index(drone)
        plan = self._plans.under_way.get(drone)
        goal = self._plans.reference(drone, np.inf)[:3] if plan is None else plan.poses[-1, :3]
        goal = frame.position[row] if np.isnan(goal).any() else goal
        radius = float(self._viewer.drawing.radii_of(frame)[row] * self._viewer.shown.size.value)
        self._goals.show(goal, radius)
        if not np.abs(goal - self._goal).max() < _MOVED:  # else a user may write there
            self._goal = goal
            self._place.value = (goal.round(2) + 0.0).tolist()

    def _describe(self, frame: Frame, drone: str) -> str:
        """Return the state of a drone as HTML."""
        row, battery = frame.names.index(drone), self._state.batteries.get(drone)
        x, y, z = frame.position[row]
        vx, vy, vz = body_to_world(frame.attitude[row], frame.velocity[row])
        roll, pitch, yaw = np.rad2deg(rpy(frame.attitude[row]))
        rows = [
            ("state", self._state.flight.get(drone, "")),
            ("position", f"{x:z.2f}, {y:z.2f}, {z:z.2f} m"),
            ("velocity", f"{vx:z.2f}, {vy:z.2f}, {vz:z.2f} m/s"),
            ("roll, pitch, yaw", f"{roll:z.0f}°, {pitch:z.0f}°, {yaw:z.0f}°"),
        ]
        if battery is not None:
            rows.append(("battery", f"{battery.charge:.0%}, {battery.volts:.2f} V"))
        return _table((name, escape(value)) for name, value in rows)

    def _switch(self, frame: Frame | None, drone: str) -> None:
        """Take off or land if a user has pressed the key for it."""
        if self._sticks.switched() and self._keys.value and frame is not None and drone:
            stands = frame.position[frame.names.index(drone), 2] < self._floor + _STANDS
            self.command(None, _TAKE_OFF if stands else LAND, drone)


def _of(owner: str) -> str:
    """Return the owner of a service as text that fits on a button."""
    if owner == "all":
        return "all drones"
    return owner if len(owner) <= _LONGEST else f"{owner[: _LONGEST - 1]}…"


def _help() -> str:
    sticks = "Gamepad: height and heading with the left stick, place with the right one."
    return f"{_table(KEYS)}<p>{sticks}</p>"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"

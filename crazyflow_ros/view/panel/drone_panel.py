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
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.inputs import NOTHING, set_options
from crazyflow_ros.view.panel.service_requests import Fields
from crazyflow_ros.view.panel.state import SimulatorState
from crazyflow_ros.view.panel.sticks import KEYS, PanelPilot, Sticks
from crazyflow_ros.view.viewer import Viewer, floor_at

_TAKE_OFF, _ARM, _DISARM, _STOP = "Take off", "Arm", "Disarm", "Stop"
_QUESTION = "Stop the rotors?"
_STANDS = 0.1  # m, height above the floor below which a drone counts as standing on the floor
_FLIGHT = "crazyflie_interfaces/srv"
_LONGEST = 20  # characters of a name on a button


class DronePanel:
    """The tab with the controls of flight."""

    def __init__(self, viewer: Viewer, state: SimulatorState, sticks: Sticks) -> None:
        self._viewer, self._state, self._sticks = viewer, state, sticks
        self._pilot = PanelPilot(state.follower, sticks)
        self._questions: dict[int, Any] = {}  # windows by the number of the tab
        self._frame: Frame | None = None
        self._drone = ""
        gui = viewer.server.gui
        with gui.add_folder("Selected drone"):
            self._drones: Any = gui.add_dropdown("Drone", (NOTHING,), hint="Or click on it")
            self._drones.on_update(self._choose)
            self._text = gui.add_html("")
            self._add_flight(gui, "")
            self._height = gui.add_slider(
                "Height [m]",
                min=0.2,
                max=3.0,
                step=0.1,
                initial_value=1.0,
                hint="For take-off, and for a click on the floor",
            )
            self._clicks = gui.add_checkbox(
                "Fly to clicks", True, hint="A click on the floor sends the drone there"
            )
            self._add_rotors(gui, "")
            self._reset = gui.add_button(
                RESET, color="gray", hint="Puts the drone back to its start"
            )
            self._reset.on_click(partial(self._press, "", RESET))
        self._all = gui.add_folder("All drones", visible=False)
        with self._all:
            self._add_flight(gui, "all")
            self._add_rotors(gui, "all")
        with gui.add_folder("Keys and gamepad", expand_by_default=False):
            self._keys = gui.add_checkbox("Use them", True, hint="They fly the selected drone")
            self._speed = gui.add_slider(
                "Top speed [m/s]", min=0.1, max=3.0, step=0.1, initial_value=1.0
            )
            gui.add_html(_help())
        viewer.server.scene.on_click()(self._click)  # type: ignore[arg-type]
        viewer.tabs.on("remedy", self._help)

    def _add_flight(self, gui: viser.GuiApi, owner: str) -> None:
        flight = gui.add_button_group("Flight", (_TAKE_OFF, LAND))
        flight.on_click(partial(self._choose_button, owner))

    def _add_rotors(self, gui: viser.GuiApi, owner: str) -> None:
        rotors = gui.add_button_group(
            "Rotors",
            (_ARM, _DISARM, _STOP),
            hint="Only an armed drone takes off; a command arms it, too."
            " Stop: at once, wherever it is; it is locked until it is reset",
        )
        rotors.on_click(partial(self._choose_button, owner))

    async def _choose(self, event: viser.GuiEvent[Any]) -> None:
        if event.client is not None:
            self._viewer.selected = event.target.value

    async def _choose_button(self, owner: str, event: viser.GuiEvent[Any]) -> None:
        await self._press(owner, event.target.value, event)

    async def _press(self, owner: str, button: str, event: viser.GuiEvent[Any]) -> None:
        """Carry out a button for the owner of the services, or for the selected drone."""
        owner, client = owner or self._drone, event.client
        harm = self._harm(owner, button) if button in (_STOP, _DISARM) else ""
        if harm and client is not None:
            self._ask(client, button, owner, harm)
        else:
            self.command(client, button, owner)

    def _ask(self, client: Any, button: str, owner: str, harm: str) -> None:
        """Carry out a button after the user has agreed in a window over that tab."""
        self._close_question(client)
        window = self._questions[client.client_id] = client.gui.add_modal(_QUESTION)
        with window:
            client.gui.add_html(f'<div style="padding:0 0.7em 1em">{escape(harm)}</div>')
            confirm = client.gui.add_button(f"{button}: {_of(owner)}", color="red")
            refuse = client.gui.add_button("Cancel", color="gray")
        confirm.on_click(partial(self._answer, client, (button, owner)))
        refuse.on_click(partial(self._answer, client, None))

    async def _answer(self, client: Any, agreed: tuple[str, str] | None, _: Any) -> None:
        self._close_question(client)
        if agreed is not None:
            self.command(client, *agreed)

    def _close_question(self, client: Any) -> None:
        if (window := self._questions.pop(client.client_id, None)) is not None:
            window.close()

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
        for alarm in self._state.alarms.now():
            if alarm.kind == kind and alarm.remedy:
                self._command_each(client, alarm.remedy, alarm.parts)

    def _command_each(self, client: Any, button: str, drones: Sequence[str]) -> None:
        """Carry out a button for one drone after the other, until one refuses."""
        if drones:
            then = partial(self._command_each, client, button, drones[1:])
            self.command(client, button, drones[0], lambda _: then())

    def command(
        self, client: Any, button: str, owner: str, then: Callable[[Any], None] | None = None
    ) -> None:
        """Carry out a button.

        Args:
            client: Tab of the user, or None.
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
            self._state.requests.ask(client, what, kind, name, fields, then=then)

    @property
    def _floor(self) -> float:
        """Height of the floor of the world [m]."""
        return self._viewer.drawing.ground.floor

    def send(self, client: Any, x: float, y: float) -> None:
        """Send the selected drone to a place of the floor [m], at the height of the panel."""
        frame, drone = self._frame, self._drone
        if frame is None or drone not in frame.names:
            return
        heading = float(yaw_of(frame.attitude[frame.names.index(drone)]))
        what, topic = f"Fly there: {drone}", f"{drone}/cmd_pose"
        self._state.requests.expect_refusal(client, what, topic)
        self._pilot.go_to(x, y, self._floor + float(self._height.value), heading)

    async def _click(self, event: viser.SceneClickEvent) -> None:
        """Select the drone under the pointer, or send the selected drone to that place."""
        frame, drone = self._frame, self._drone
        if frame is None or drone not in frame.names:
            return
        if self._viewer.select_under(event) or not self._clicks.value:
            return
        place = floor_at(np.array(event.ray_origin), np.array(event.ray_direction), self._floor)
        if place is None:
            return
        self.send(event.client, *place[:2].tolist())

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
        self._pilot.speed, self._pilot.uses_sticks = self._speed.value, self._keys.value
        if frame is not None and drone:
            self._text.content = self._describe(frame, drone)
            self._reset.label = f"{RESET} {_of(drone)}"
        for number in self._questions.keys() - self._viewer.server.get_clients().keys():
            self._questions.pop(number, None)  # the tab has closed
        self._switch(frame, drone)

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
    return f'{_table(KEYS)}<div style="padding:0 0.7em;font-size:0.85em">{sticks}</div>'


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{name}&ensp;</td><td>{value}</td></tr>" for name, value in rows)
    return f'<table style="font-size:0.85em;padding:0 0.7em">{cells}</table>'

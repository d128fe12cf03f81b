"""Controls of flight: the selected drone, all drones, clicks on the floor, keys."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import viser

from crazyflow_ros.scene.frames import body_to_world, rpy
from crazyflow_ros.scene.frames import yaw as yaw_of
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.options import NOTHING, set_options
from crazyflow_ros.view.panel.pilot import PanelPilot
from crazyflow_ros.view.panel.requests import Fields, ServiceRequests
from crazyflow_ros.view.panel.sticks import KEYS, Sticks
from crazyflow_ros.view.picking import drone_at, floor_at
from crazyflow_ros.view.viewer import Viewer

_TAKE_OFF, _LAND, _ARM, _DISARM, _RESET = "Take off", "Land", "Arm", "Disarm", "Reset"
_STOP = "Stop the rotors"
_STANDS = 0.1  # m, height below which a drone counts as standing on the floor
_FLIGHT = "crazyflie_interfaces/srv"


class DronePanel:
    """The tab with the controls of flight.

    Args:
        viewer: The page.
        requests: Sends what the user clicks.
        pilot: Flies the selected drone.
        sticks: Keys and gamepads of the tabs.
    """

    def __init__(
        self,
        viewer: Viewer,
        requests: ServiceRequests,
        pilot: PanelPilot,
        sticks: Sticks,
    ) -> None:
        self._viewer = viewer
        self._requests, self._pilot, self._sticks = requests, pilot, sticks
        self._frame: Frame | None = None
        self._drone = ""
        gui = viewer.server.gui
        self._drones: Any = gui.add_dropdown("Drone", (NOTHING,), hint="Or click on it")
        self._drones.on_update(self._choose)
        self._text = gui.add_html("")
        self._height = gui.add_slider(
            "Height [m]",
            min=0.2,
            max=3.0,
            step=0.1,
            initial_value=1.0,
            hint="For take-off, and for a click on the floor",
        )
        flight = gui.add_button_group("Flight", (_TAKE_OFF, _LAND))
        flight.on_click(partial(self._command, ""))
        stop = gui.add_button(
            _STOP,
            color="red",
            hint="At once, wherever the drone is; it is locked until you reset it",
        )
        stop.on_click(partial(self._command, ""))
        more = gui.add_button_group("Drone", (_ARM, _DISARM, _RESET))
        more.on_click(partial(self._command, ""))
        self._clicks = gui.add_checkbox("A click on the floor sends the drone there", True)
        with gui.add_folder("Keys and gamepad", expand_by_default=False):
            self._keys = gui.add_checkbox("Use them to fly the drone", True)
            self._speed = gui.add_slider(
                "Speed [m/s]", min=0.1, max=3.0, step=0.1, initial_value=1.0
            )
            gui.add_html(_help())
        with gui.add_folder("All drones", expand_by_default=False):
            everyone = gui.add_button_group("Flight", (_TAKE_OFF, _LAND))
            everyone.on_click(partial(self._command, "all"))
            stop_all = gui.add_button(_STOP, color="red")
            stop_all.on_click(partial(self._command, "all"))
        viewer.server.scene.on_click()(self._click)  # type: ignore[arg-type]

    async def _choose(self, event: viser.GuiEvent[Any]) -> None:
        if event.client is not None:
            self._viewer.selected = event.target.value

    async def _command(self, owner: str, event: viser.GuiEvent[Any]) -> None:
        """Carry out a button for the selected drone, or for the owner of the services."""
        button = event.target.value if event.target.value is not True else _STOP
        self.command(event.client, button, owner or self._drone)

    def command(self, client: Any, button: str, owner: str) -> None:
        """Carry out a button.

        Args:
            client: Tab of the user, or None.
            button: Label of the button.
            owner: The drone, or `all`.
        """
        height = float(self._height.value)
        services: dict[str, tuple[str, str, Fields]] = {
            _TAKE_OFF: (f"{_FLIGHT}/Takeoff", "takeoff", {"height": height}),
            _LAND: (f"{_FLIGHT}/Land", "land", {}),
            _STOP: ("std_srvs/srv/Empty", "emergency", {}),
            _ARM: (f"{_FLIGHT}/Arm", "arm", {"arm": True}),
            _DISARM: (f"{_FLIGHT}/Arm", "arm", {"arm": False}),
            _RESET: ("std_srvs/srv/Trigger", "reset", {}),
        }
        kind, service, fields = services[button]
        if owner:
            self._requests.ask(client, f"{button}: {owner}", kind, f"{owner}/{service}", fields)

    async def _click(self, event: viser.SceneClickEvent) -> None:
        """Select the drone under the pointer, or send the selected drone to that place."""
        frame, drone = self._frame, self._drone
        if frame is None or drone not in frame.names:
            return
        origin, direction = np.array(event.ray_origin), np.array(event.ray_direction)
        size = float(self._viewer.shown.size.value)
        if (hit := drone_at(frame, origin, direction, size)) is not None:
            self._viewer.selected = hit
            return
        place = floor_at(origin, direction)
        if place is None or not self._clicks.value:
            return
        heading = float(yaw_of(frame.attitude[frame.names.index(drone)]))
        self._requests.expect_refusal(event.client, f"Fly there: {drone}", f"{drone}/cmd_pose")
        x, y, _ = place.tolist()
        self._pilot.go_to(x, y, float(self._height.value), heading)

    def update(self, frame: Frame | None, drone: str) -> None:
        """Show the state of the selected drone; `frame` is None without a simulator."""
        self._frame = frame
        names = frame.names if frame is not None else ()
        drone = drone if drone in names else ""
        if drone != self._drone:
            self._drone = drone
            self._pilot.select(drone)
        set_options(self._drones, names)
        self._drones.value = drone or self._drones.options[0]
        self._pilot.speed, self._pilot.uses_sticks = self._speed.value, self._keys.value
        if frame is not None and drone:
            self._text.content = _describe(frame, names.index(drone))
        self._switch(frame, drone)

    def _switch(self, frame: Frame | None, drone: str) -> None:
        """Take off or land if a user has pressed the key for it."""
        if self._sticks.switched() and self._keys.value and frame is not None and drone:
            stands = frame.position[frame.names.index(drone), 2] < _STANDS
            self.command(None, _TAKE_OFF if stands else _LAND, drone)


def _describe(frame: Frame, row: int) -> str:
    x, y, z = frame.position[row]
    vx, vy, vz = body_to_world(frame.attitude[row], frame.velocity[row])
    roll, pitch, yaw = np.rad2deg(rpy(frame.attitude[row]))
    rows = (
        ("position", f"{x:z.2f}, {y:z.2f}, {z:z.2f} m"),
        ("velocity", f"{vx:z.2f}, {vy:z.2f}, {vz:z.2f} m/s"),
        ("roll, pitch, yaw", f"{roll:z.0f}°, {pitch:z.0f}°, {yaw:z.0f}°"),
    )
    return _table(rows)


def _help() -> str:
    sticks = "Gamepad: height and heading with the left stick, place with the right one."
    return f"{_table(KEYS)}<small>{sticks}</small>"


def _table(rows: tuple[tuple[str, str], ...]) -> str:
    cells = "".join(f"<tr><td>{name}&ensp;</td><td>{value}</td></tr>" for name, value in rows)
    return f'<table style="font-size:0.85em;padding:0 0.7em">{cells}</table>'

"""Controls of the world and of what is in it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import viser

from crazyflow_ros.view.controls import User
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.inputs import NOTHING, set_options
from crazyflow_ros.view.panel.service_requests import Fields
from crazyflow_ros.view.panel.state import SimulatorState
from crazyflow_ros.view.viewer import Viewer, drone_at, floor_at, nearest_on_ray

_SLOW = 300.0  # s of wall time, in which the simulator may compile
_SRV = "simulation_interfaces/srv"
_ABOVE = 100.0  # m, from where the ground below a click is looked for
_REACH = 0.25  # m, around the middle of an object that is clicked


class WorldPanel:
    """The tab for worlds, and for objects and drones that users place and remove.

    Args:
        viewer: The page.
        state: The simulator, with what can be loaded, spawned and deleted.
    """

    def __init__(self, viewer: Viewer, state: SimulatorState) -> None:
        self._viewer, self._state, self._loaded = viewer, state, ""
        self._frame: Frame | None = None
        panel = viewer.panel
        with panel.section("Add"):
            self._kinds = panel.add("choice", "Kind", options=(NOTHING,))
            self._places = panel.add(
                "switch", "Place with clicks", False, hint="A click on the floor adds one there"
            )
            self._drop = panel.add(
                "slider",
                "Above the floor [m]",
                0.3,
                min=0.0,
                max=3.0,
                step=0.05,
                hint="Where a click places it, from where objects fall",
            )
            self._yaw = panel.add("slider", "Heading [°]", 0.0, min=-180.0, max=180.0, step=5.0)
            self._name = panel.add("field", "Name", "", hint="Empty: the simulator chooses one")
            self._place = panel.add("vector", "Place [m]", [0.0, 0.0, 0.0], step=0.1)
            spawn = panel.add("button", "Add", hint="At this place")
        with panel.section("Remove"):
            self._removes = panel.add(
                "switch", "Remove with clicks", False, hint="A click on an object or a drone"
            )
            self._entities = panel.add("choice", "Which", options=(NOTHING,))
            delete = panel.add("button", "Remove")
        with panel.section("World"):
            self._worlds = panel.add("choice", "World", options=(NOTHING,))
            load = panel.add("button", "Load world", hint="Time stands still afterwards")
        load.on_change(self._load)
        spawn.on_change(self._add)
        delete.on_change(lambda user, _: self._delete(user, self._entities.value))
        self._places.on_change(lambda *_: self._removes.set(value=False))
        self._removes.on_change(lambda *_: self._places.set(value=False))

    def click(self, event: viser.SceneClickEvent) -> bool:
        """Place or remove what is under the pointer, and return whether clicks do that."""
        user = self._viewer.tabs.user(event.client)
        origin, ray = np.array(event.ray_origin), np.array(event.ray_direction)
        if self._removes.value:
            self._delete(user, self._entity_at(origin, ray))
        elif self._places.value:
            ground = self._viewer.drawing.ground
            if (place := floor_at(origin, ray, ground.floor)) is not None:
                x, y = map(float, place[:2])
                height = float(ground.below(np.array([[x, y, _ABOVE]]))[0])
                self._spawn(user, "", x, y, height + self._drop.value)
        return bool(self._removes.value or self._places.value)

    def _entity_at(self, origin: np.ndarray, ray: np.ndarray) -> str:
        """Return the drone or the object on a ray, empty for none."""
        frame = self._frame
        if frame is None:
            return ""
        drone = drone_at(frame, origin, ray, float(self._viewer.shown.size.value))
        if drone is not None or frame.bodies is None:
            return drone or ""
        names = [name.partition("/")[0] for name in frame.bodies.names]
        row = nearest_on_ray(frame.bodies.pos, origin, ray, _REACH)
        return "" if row is None else names[row]

    def _add(self, user: User, _: Any) -> None:
        x, y, z = self._place.value
        self._spawn(user, self._name.value, x, y, z)

    def _load(self, user: User, _: Any) -> None:
        name = self._worlds.value
        if uri := self._state.worlds.get(name):
            fields = {"world_resource.uri": uri}
            self._ask(user, f"Load {name}", "LoadWorld", "load_world", fields)

    def _spawn(self, user: User | None, name: str, x: float, y: float, z: float) -> None:
        kind, half = self._kinds.value, math.radians(self._yaw.value) / 2
        uri = self._spawnables().get(kind)
        if uri is None:
            return
        fields = {
            "name": name or _name_of(kind),
            "allow_renaming": not name,
            "entity_resource.uri": uri,
            "initial_pose.pose.position.x": float(x),
            "initial_pose.pose.position.y": float(y),
            "initial_pose.pose.position.z": float(z),
            "initial_pose.pose.orientation.z": math.sin(half),
            "initial_pose.pose.orientation.w": math.cos(half),
        }
        self._ask(user, f"Add {kind}", "SpawnEntity", "spawn_entity", fields)

    def _delete(self, user: User | None, name: str) -> None:
        if name in self._state.entities:
            fields = {"entity": name}
            self._ask(user, f"Remove {name}", "DeleteEntity", "delete_entity", fields)

    def _ask(self, user: User | None, what: str, kind: str, service: str, fields: Fields) -> None:
        kind, name = f"{_SRV}/{kind}", f"~/{service}"
        self._state.requests.ask(user, what, kind, name, fields, timeout=_SLOW)

    def _spawnables(self) -> dict[str, str]:
        model = self._state.follower.parameters.get("drone_model")
        drone = {f"drone {model}": model} if model else {}
        return self._state.spawnables | drone

    def update(self, frame: Frame) -> None:
        """Show what can be loaded, spawned and deleted."""
        state, self._frame = self._state, frame
        set_options(self._worlds, tuple(state.worlds))
        if state.world != self._loaded and state.world in state.worlds:
            self._loaded = self._worlds.value = state.world
        set_options(self._kinds, tuple(self._spawnables()))
        set_options(self._entities, state.entities)


def _name_of(kind: str) -> str:
    """Return a name for an entity; empty for a drone, whose name the simulator chooses."""
    return "" if kind.startswith("drone ") else kind

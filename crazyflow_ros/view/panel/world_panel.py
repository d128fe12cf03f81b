"""Controls of the world and of its content."""

from __future__ import annotations

import math
from typing import Any

import viser

from crazyflow_ros.view.panel.inputs import NOTHING, set_options
from crazyflow_ros.view.panel.service_requests import Fields
from crazyflow_ros.view.panel.state import SimulatorState

_SLOW = 300.0  # s of wall time, in which the simulator may compile
_SRV = "simulation_interfaces/srv"


class WorldPanel:
    """The tab for worlds, drones and objects.

    Args:
        gui: Where the tab is.
        state: The simulator, with what can be loaded, spawned and deleted.
    """

    def __init__(self, gui: viser.GuiApi, state: SimulatorState) -> None:
        self._state, self._loaded = state, ""
        with gui.add_folder("World"):
            self._worlds: Any = gui.add_dropdown("World", (NOTHING,))
            load = gui.add_button("Load world", hint="Time stands still afterwards")
        with gui.add_folder("Add"):
            self._kinds = gui.add_dropdown("Kind", (NOTHING,))
            self._name = gui.add_text("Name", "", hint="Empty: the simulator chooses one")
            self._place = gui.add_vector3("Place [m]", (0.0, 0.0, 0.0), step=0.1)
            self._yaw = gui.add_slider(
                "Heading [°]", min=-180.0, max=180.0, step=5.0, initial_value=0.0
            )
            spawn = gui.add_button("Add")
        with gui.add_folder("Remove"):
            self._entities = gui.add_dropdown("Which", (NOTHING,))
            delete = gui.add_button("Remove")
        load.on_click(self._load)
        spawn.on_click(self._spawn)
        delete.on_click(self._delete)

    async def _load(self, event: viser.GuiEvent[Any]) -> None:
        name = self._worlds.value
        if uri := self._state.worlds.get(name):
            fields = {"world_resource.uri": uri}
            self._ask(event.client, f"Load {name}", "LoadWorld", "load_world", fields)

    async def _spawn(self, event: viser.GuiEvent[Any]) -> None:
        kind, half = self._kinds.value, math.radians(self._yaw.value) / 2
        uri = self._spawnables().get(kind)
        if uri is None:
            return
        x, y, z = self._place.value
        fields = {
            "name": self._name.value,
            "allow_renaming": not self._name.value,
            "entity_resource.uri": uri,
            "initial_pose.pose.position.x": x,
            "initial_pose.pose.position.y": y,
            "initial_pose.pose.position.z": z,
            "initial_pose.pose.orientation.z": math.sin(half),
            "initial_pose.pose.orientation.w": math.cos(half),
        }
        self._ask(event.client, f"Add {kind}", "SpawnEntity", "spawn_entity", fields)

    async def _delete(self, event: viser.GuiEvent[Any]) -> None:
        name = self._entities.value
        if name in self._state.entities:
            fields = {"entity": name}
            self._ask(event.client, f"Remove {name}", "DeleteEntity", "delete_entity", fields)

    def _ask(self, client: Any, what: str, kind: str, service: str, fields: Fields) -> None:
        kind, name = f"{_SRV}/{kind}", f"~/{service}"
        self._state.requests.ask(client, what, kind, name, fields, timeout=_SLOW)

    def _spawnables(self) -> dict[str, str]:
        model = self._state.follower.parameters.get("drone_model")
        drone = {f"drone {model}": model} if model else {}
        return drone | self._state.spawnables

    def update(self) -> None:
        """Show what can be loaded, spawned and deleted."""
        state = self._state
        set_options(self._worlds, tuple(state.worlds))
        if state.world != self._loaded and state.world in state.worlds:
            self._loaded = self._worlds.value = state.world
        set_options(self._kinds, tuple(self._spawnables()))
        set_options(self._entities, state.entities)

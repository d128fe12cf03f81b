"""A running simulator, as seen by scripts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from std_srvs.srv import Trigger

from crazyflow_ros.checks.limits import suggestion
from crazyflow_ros.client.connection import Connection, checked
from crazyflow_ros.client.drone import DroneClient
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.graph import Graph
from crazyflow_ros.client.parameters import ParameterClient
from crazyflow_ros.client.status import DroneStatus
from crazyflow_ros.client.world import LOADING, ROBOT, WorldClient

if TYPE_CHECKING:
    from crazyflow_ros.client.transforms import TransformClient

_FEW = 8  # drones that a message names


class SimulatorClient(Connection):
    """A running simulator: its drones, and all that `Connection` offers."""

    @cached_property
    def parameters(self) -> ParameterClient:
        """The simulator's parameters."""
        return ParameterClient(self)

    @cached_property
    def world(self) -> WorldClient:
        """The simulator's world."""
        return WorldClient(self, self.parameters, self._forget)

    @cached_property
    def transforms(self) -> TransformClient:
        """The transforms between the simulator's frames.

        Raises:
            SimulationError: The ROS package tf2_msgs is not installed.
        """
        try:
            from crazyflow_ros.client.transforms import TransformClient  # with JAX, for a second
        except ModuleNotFoundError as error:
            raise SimulationError(f"transforms need the ROS package {error.name}") from None
        return TransformClient(self)

    @cached_property
    def graph(self) -> Graph:
        """The topics and services of the ROS domain."""
        return Graph(self)

    def drone(self, name: str) -> DroneClient:
        """Return a drone, the same object as before.

        Raises:
            SimulationError: There is no drone of this name.
        """
        drones = self.drones
        for gone in self._clients.keys() - set(drones):
            self._forget(gone)
        if name not in drones:
            have = f"have {', '.join(drones)}"
            if len(drones) > _FEW:
                have = suggestion(name, drones) or f"have {', '.join(drones[:_FEW])} and others"
            raise SimulationError(f"there is no drone {name!r}, {have}")
        if name not in self._clients:
            self._clients[name] = DroneClient(self, name)
        return self._clients[name]

    def reset(self) -> None:
        """Reset all drones to their initial states."""
        checked(self.call(Trigger, f"{self.name}/reset"))
        self.look_at_time()

    def save_checkpoint(self, name: str) -> str:
        """Write the state of the simulation to a file, and return a summary.

        Args:
            name: Name of the file in the simulator's `checkpoint_folder`.

        Raises:
            SimulationError: It cannot be written.
        """
        return self._checkpoint(name, "save_checkpoint")

    def restore_checkpoint(self, name: str) -> str:
        """Restore the state in a file, and return a summary.

        Args:
            name: Name of the file in the simulator's `checkpoint_folder`.

        Raises:
            SimulationError: The file cannot be read, or does not fit the simulation.
        """
        restored = self._checkpoint(name, "load_checkpoint")
        self.look_at_time()
        return restored

    @cached_property
    def _clients(self) -> dict[str, DroneClient]:
        return {}

    def _forget(self, name: str) -> None:
        if name in self._clients:
            self._clients.pop(name).forget()

    def _checkpoint(self, name: str, service: str) -> str:
        self.parameters.set({"checkpoint": name})
        return str(checked(self.call(Trigger, f"{self.name}/{service}", LOADING)).message)

    def drone_status(self) -> list[DroneStatus]:
        """Return state, position and battery of all drones."""
        status = self.status()
        return [status.drone(name, pose) for name, pose in self.world.poses(ROBOT).items()]

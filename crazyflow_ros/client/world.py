"""The world of a running simulator: its scene, drones and objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from geometry_msgs.msg import Pose, PoseStamped
from simulation_interfaces.msg import EntityCategory, EntityFilters, Resource, Result
from simulation_interfaces.srv import (
    DeleteEntity,
    GetAvailableWorlds,
    GetCurrentWorld,
    GetEntitiesStates,
    GetSpawnables,
    LoadWorld,
    SpawnEntity,
    UnloadWorld,
)

from crazyflow_ros.checks.limits import shown_path, suggestion
from crazyflow_ros.checks.program_end import in_words
from crazyflow_ros.client.connection import Connection, checked
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.parameters import ParameterClient
from crazyflow_ros.drones import Drone
from crazyflow_ros.ros.messages import heading, point

LOADING = 330.0  # s of wall time; the simulator gives up after 300
ROBOT = EntityCategory.CATEGORY_ROBOT


class WorldClient:
    """The world of a simulator.

    Args:
        simulation: The connection to the simulator.
        parameters: Its parameters.
        removed: Called with the name of each drone or object that this removes.
    """

    def __init__(
        self, simulation: Connection, parameters: ParameterClient, removed: Callable[[str], object]
    ) -> None:
        self._simulation, self._parameters, self._removed = simulation, parameters, removed

    def poses(self, *categories: int) -> dict[str, Pose]:
        """Return the poses in the map of all entities, or of some categories, by name.

        All are of the same tick.
        """
        filters = EntityFilters(categories=[EntityCategory(category=one) for one in categories])
        found = self._call(GetEntitiesStates, "get_entities_states", filters=filters)
        return {name: state.pose for name, state in zip(found.entities, found.states)}

    def current(self) -> str:
        """Return the name of the loaded world.

        Raises:
            SimulationError: None is loaded.
        """
        return str(self._call(GetCurrentWorld, "get_current_world").world.name)

    def available(self) -> dict[str, str]:
        """Return the descriptions of the worlds that the simulator knows, by name."""
        return {name: world.description for name, world in self._worlds().items()}

    def load(self, world: str) -> str:
        """Load a world, and return its name; all objects go, and time stands still at its start.

        Args:
            world: Name of a world that the simulator knows, or path of an MJCF file.

        Raises:
            SimulationError: There is no such world, or it cannot be loaded; nothing has changed.
        """
        worlds = {name: one.world_resource.uri for name, one in self._worlds().items()}
        uri = _uri(world, worlds, f"there is no world {world!r}")
        answer = self._ask(LoadWorld, "load_world", "world_resource", uri)
        self._simulation.look_at_time()
        return str(answer.world.name) or Path(uri).stem

    def unload(self) -> None:
        """Remove the world; time stands still until one is loaded."""
        self._call(UnloadWorld, "unload_world")

    def spawnables(self) -> dict[str, str]:
        """Return the addresses of the objects that the simulator knows, by name."""
        found = self._call(GetSpawnables, "get_spawnables").spawnables
        uris = [one.entity_resource.uri if _has_resources() else one.uri for one in found]
        return {Path(urlsplit(uri).path).stem: uri for uri in uris}

    def spawn(
        self,
        name: str,
        x: float = 0.0,
        y: float = 0.0,
        z: float = 0.0,
        yaw: float = 0.0,
        *,
        model: str = "",
    ) -> str:
        """Add a drone or an object, and return its name.

        Args:
            name: Its name.
            x: x in the map [m].
            y: y in the map [m].
            z: z in the map [m].
            yaw: Heading [rad].
            model: Name of an object that the simulator knows, or path of an MJCF or URDF file;
                empty, or the simulator's drone model: a drone.

        Raises:
            SimulationError: It cannot be added; nothing has changed.
        """
        if name in self.poses():
            raise SimulationError(f"{name} exists already: choose another name")
        drone_model = self._parameters.get("drone_model")
        is_drone = model in ("", drone_model, Path(drone_model).name)
        uri = drone_model if is_drone else self._object(model, drone_model)
        pose = Pose(position=point((x, y, z)), orientation=heading(yaw))
        answer = self._ask(
            SpawnEntity,
            "spawn_entity",
            "entity_resource",
            uri,
            name=name,
            initial_pose=PoseStamped(pose=pose),
        )
        return str(answer.entity_name)

    def remove(self, name: str) -> None:
        """Remove a drone or an object.

        Raises:
            SimulationError: There is none of this name, or it cannot be removed.
        """
        names = self.poses()
        if name not in names:
            hint = suggestion(name, names) or f"there is {', '.join(names)}"
            raise SimulationError(f"there is no drone or object {name!r}; {hint}")
        self._call(DeleteEntity, "delete_entity", entity=name)
        self._removed(name)

    def _object(self, model: str, drone_model: str) -> str:
        if model in list(Drone):
            text = f"all drones of this simulator are {drone_model}"
            raise SimulationError(f"{text}: start one with drone_model:={model}")
        return _uri(model, self.spawnables(), f"there is no object {model!r}")

    def _worlds(self) -> dict[str, Any]:
        found = self._call(GetAvailableWorlds, "get_available_worlds").worlds
        return {world.name: world for world in found}

    def _ask(self, kind: Any, service: str, field: str, uri: str, **request: Any) -> Any:
        """Call a service with a file, or with its text if the simulator does not read that file."""
        name = f"{self._simulation.name}/{service}"
        wanted = _resource(kind, field, uri=uri)
        answer = self._simulation.call(kind, name, LOADING, **wanted, **request)
        if answer.result.result != Result.RESULT_NOT_FOUND or not Path(uri).is_file():
            return checked(answer)
        wanted = _resource(kind, field, resource_string=_text_of(Path(uri)))
        try:
            return checked(self._simulation.call(kind, name, LOADING, **wanted, **request))
        except SimulationError as error:
            raise SimulationError(
                f"{error}; if it needs files beside it, start the simulator with "
                f"world_folders:=[{Path(uri).parent}]"
            ) from None

    def _call(self, kind: Any, service: str, **request: Any) -> Any:
        name = f"{self._simulation.name}/{service}"
        return checked(self._simulation.call(kind, name, LOADING, **request))


def _uri(name: str, known: Mapping[str, str], problem: str) -> str:
    """Return the address of something by its name or its path.

    Raises:
        SimulationError: Nothing has this name or path.
    """
    if name in known:
        return known[name]
    if Path(name).expanduser().is_file():
        return str(Path(name).expanduser().absolute())
    if "/" in name:
        raise SimulationError(f"there is no file {shown_path(Path(name).absolute())}")
    hint = suggestion(name, known) or f"the simulator knows {', '.join(known)}"
    raise SimulationError(f"{problem}, and no file of that name; {hint}")


def _has_resources() -> bool:
    """Return whether the interface is of version 2, which has the message Resource in requests."""
    return hasattr(SpawnEntity.Request(), "entity_resource")


def _resource(kind: Any, field: str, **content: str) -> dict[str, Any]:
    """Return the field of a request that has address or text; it is another before version 2."""
    return {field: Resource(**content)} if hasattr(kind.Request(), field) else content


def _text_of(path: Path) -> str:
    """Return the text of a description, with what it includes unless it names other files, too.

    Raises:
        SimulationError: It cannot be read, or is none.
    """
    from crazyflow_ros.scene.description import read  # with MuJoCo, for a second

    try:
        description = read(path)
        return path.read_text() if description.assets or description.parts else description.text
    except (OSError, ValueError) as error:
        raise SimulationError(in_words(error)) from None

"""The standard interface of simulators: what no client of a running node can see."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Vector3
from physics_double import Physics
from simulation_interfaces.msg import (
    EntityInfo,
    EntityState,
    Resource,
    SimulationState,
    SimulatorFeatures,
    WorldResource,
)
from simulation_interfaces.srv import (
    GetEntityInfo,
    SetEntityInfo,
    SetEntityState,
    SetSimulationState,
)

from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.simulation_interfaces import entities, server, spawning
from crazyflow_ros.ros.simulation_interfaces.entity_motion import WORLD, EntityMotion
from crazyflow_ros.ros.simulation_interfaces.resource_reader import Reader, objects, resource_of
from crazyflow_ros.ros.simulation_interfaces.server import Refusal, service_name
from crazyflow_ros.ros.simulation_interfaces.simulation_state import States
from crazyflow_ros.runtime import InvalidState


def test_resources_before_and_since_version_2():
    of_1 = SimpleNamespace(uri="a", resource_string="b")
    of_2 = SimpleNamespace(entity_resource=Resource(uri="a", resource_string="b"))
    assert resource_of(of_1, "entity_resource") == resource_of(of_2, "entity_resource")


def test_spawnables_before_version_2(monkeypatch: pytest.MonkeyPatch):
    class Spawnable:
        def __init__(self, description: str, spawn_bounds: Any) -> None:
            self.uri, self.description, self.bounds = "", description, spawn_bounds

    monkeypatch.setattr(spawning, "Spawnable", Spawnable)
    gate = objects()["gate"]
    assert spawning._spawnable(Reader([gate]), gate).uri == gate.as_uri()


def test_before_version_2_a_state_is_set_as_a_whole():
    state = EntityState()
    state.pose.position.x, state.twist.linear = 1.0, Vector3(y=2.0)
    motion = EntityMotion("cf0", "drone:cf0", True, 0, np.zeros(3), WORLD.quat)
    of_1 = entities._drone_state(motion, WORLD, SimpleNamespace(state=state))
    assert of_1.pos is not None and of_1.vel is not None
    assert (of_1.pos[0], of_1.vel[1]) == (1.0, 2.0)
    of_2 = entities._drone_state(motion, WORLD, SetEntityState.Request(state=state))
    assert (of_2.pos, of_2.quat, of_2.vel, of_2.ang_vel) == (None,) * 4  # no flag is set


class Server:
    """Stands in for the services' server; its simulation does nothing that is asked of it."""

    def __init__(self, refuse: Callable[[], Exception]) -> None:
        self.handlers: dict[Any, Any] = {}
        self.world, self.loading, self.stopped_at = object(), False, (1, 0)
        self.physics = SimpleNamespace(paused=True, resume=Future, pause=Future)
        self._refuse = refuse

    def serve(self, kind: Any, handler: Any, *features: str) -> None:
        assert all(hasattr(SimulatorFeatures, feature) for feature in features)
        self.handlers[kind] = handler

    def now(self) -> tuple[int, int]:
        return (1, 0)

    async def wait(self, future: Future) -> None:
        raise self._refuse()


def finish(coroutine: Coroutine[Any, Any, None]) -> None:
    with pytest.raises(StopIteration):
        coroutine.send(None)


@pytest.mark.parametrize("error", [InvalidState("the simulation has ended"), TimeoutError("late")])
def test_a_transition_that_fails(error: Exception):
    server = Server(lambda: error)
    States(server)  # type: ignore[arg-type]
    request = SetSimulationState.Request()
    request.state.state = SimulationState.STATE_PLAYING
    with pytest.raises(Refusal, match=str(error)) as raised:
        finish(server.handlers[SetSimulationState](request, SetSimulationState.Response()))
    assert raised.value.code == SetSimulationState.Response.STATE_TRANSITION_ERROR


def test_a_world_that_is_loading():
    server = Server(RuntimeError)
    States(server)  # type: ignore[arg-type]
    server.loading = True
    request = SetSimulationState.Request()
    for target in (SimulationState.STATE_PLAYING, SimulationState.STATE_STOPPED):
        request.state.state = target
        with pytest.raises(Refusal, match="loading world") as raised:
            finish(server.handlers[SetSimulationState](request, SetSimulationState.Response()))
        assert raised.value.code == SetSimulationState.Response.INCORRECT_TRANSITION


class Simulator(Physics):
    """A node with services; its drones come and go by hand."""

    def __init__(self, *drones: str) -> None:
        super().__init__()
        self.parameters, self.waiting = Parameters(), SimpleNamespace(result=None)
        self._handlers: dict[str, Any] = {}
        self._followers: list[Callable[[], None]] = []
        self.now_with(*drones)

    def now_with(self, *drones: str) -> None:
        self.use(list(drones))
        self.drones = drones
        for follow in self._followers:
            follow()

    def for_all_drones(self, add: Callable[[], None]) -> None:
        self._followers.append(add)
        add()

    def on_close(self, close: Callable[[], None]) -> None:
        """It is never closed."""

    def create_service(self, kind: Any, name: str, handler: Any) -> None:
        self._handlers[name] = handler

    def call(self, kind: Any, **fields: Any) -> Any:
        name, response = service_name(kind), kind.Response()
        self._handlers[name](kind.Request(**fields), response)
        return response


def test_a_new_drone_has_nothing_of_the_one_whose_name_it_has():
    simulator: Any = Simulator("cf0", "wasp")
    served = server.Server(simulator)
    served.world = WorldResource()
    entities.Entities(served)
    info = EntityInfo(description="stings", tags=["yellow"])
    for drone in ("cf0", "wasp"):
        simulator.call(SetEntityInfo, entity=drone, info=info)
    simulator.now_with("cf0")
    simulator.now_with("cf0", "bee", "wasp")
    assert simulator.call(GetEntityInfo, entity="cf0").info == info  # it has stayed
    assert simulator.call(GetEntityInfo, entity="wasp").info.tags == ["drone", "cf2x_L250"]

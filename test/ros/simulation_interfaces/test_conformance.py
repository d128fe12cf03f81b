"""The standard interface of simulators, from a second process."""

from __future__ import annotations

import math
import os
import random
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Twist, Vector3
from nav_msgs.msg import Odometry
from paths import ROOT
from rclpy.action import ActionClient
from ros_client import FREQ, LATCHED, Client, SimulatorProcess, numbers, own_domain, time_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, MultiDOFJointState, Range
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    EntityFilters,
    EntityInfo,
    EntityState,
    Resource,
    Result,
    SimulationState,
    SimulatorFeatures,
    SpawnResult,
    TagsFilter,
)
from simulation_interfaces.msg import SpawnEntity as SpawnRequest
from simulation_interfaces.srv import (
    DeleteEntity,
    GetAvailableWorlds,
    GetCurrentWorld,
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    GetEntityState,
    GetNamedPoseBounds,
    GetNamedPoses,
    GetSimulationState,
    GetSimulatorFeatures,
    GetSpawnables,
    LoadWorld,
    ResetSimulation,
    SetEntityInfo,
    SetEntityState,
    SetSimulationState,
    SpawnEntities,
    SpawnEntity,
    StepSimulation,
    UnloadWorld,
)
from std_msgs.msg import Header
from std_srvs.srv import SetBool, Trigger
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from crazyflow_ros.ros.simulation_interfaces.server import service_name

DOMAIN = own_domain("test_ros_simulation_interfaces")
# Of each rival client; 2000 make a thorough run.
N_REQUESTS = int(os.environ.get("CRAZYFLOW_ROS_REQUESTS", "40"))
DOCUMENTATION = ROOT / "docs" / "guides" / "simulation_interfaces.md"
OK, FAILED = Result.RESULT_OK, Result.RESULT_OPERATION_FAILED
SCOPE = ResetSimulation.Request
NOT_FOUND = Result.RESULT_NOT_FOUND
COMPILE_TIMEOUT = 300.0  # s; a machine may be busy
WORLD = """
<mujoco model="yard">
  <custom>
    <text name="description" data="A yard with a hut."/>
    <text name="tags" data="outdoors small"/>
    <text name="tags:hut" data="building wooden"/>
    <text name="tags:door" data="entrance"/>
    <text name="description:hut" data="A hut."/>
  </custom>
  <asset><texture type="skybox" builtin="flat" width="900" height="5400"/></asset>
  <keyframe><key name="home"/></keyframe>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="hut" pos="5 0 0" quat="0 0 0 1">
      <geom type="box" size="1 2 0.5" pos="0 0 0.5"/>
      <site name="door" type="box" size="0.1 0.4 1" pos="1 0 0"/>
      <body name="roof" pos="0.5 0 1"><geom type="sphere" size="0.25" pos="0 0 0.25"/></body>
    </body>
  </worldbody>
</mujoco>
"""
BALL = """
<mujoco model="beach_ball">
  <worldbody><body><freejoint/><geom size="0.25"/></body></worldbody>
</mujoco>
"""
NAMELESS = '<mujoco><worldbody><geom size="0.25"/></worldbody></mujoco>'
ROBOT = """
<robot name="box">
  <link name="base"><visual><geometry><box size="1 1 1"/></geometry></visual></link>
</robot>
"""
ARM = """
<robot name="arm"><link name="base">
  <visual><geometry><mesh filename="package://some_arm/meshes/arm.obj"/></geometry></visual>
  <collision><geometry><sphere radius="0.1"/></geometry></collision>
</link></robot>
"""
ARM_MESH = "v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
POSES = """
station:
  position: [1, 2, 3]
  description: Charges.
  tags: [spawn]
  radius: 0.5
"""


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds")
    (folder / "yard.xml").write_text(WORLD)
    (folder / "robot.urdf").write_text(ROBOT)
    (folder / "poses.yaml").write_text(POSES)
    for part in ("urdf", "meshes"):
        (folder / "some_arm" / part).mkdir(parents=True)
    (folder / "some_arm" / "urdf" / "arm.urdf").write_text(ARM)
    (folder / "some_arm" / "meshes" / "arm.obj").write_text(ARM_MESH)
    return folder


@pytest.fixture(scope="module")
def arguments(worlds: Path) -> list[str]:
    files = [f"scene:={worlds / 'yard.xml'}", f"named_poses:={worlds / 'poses.yaml'}"]
    files.append(f"world_folders:=[{worlds}]")
    return [*files, "drones:=[cf0,cf1]", "start_paused:=true", "max_drones:=3"]


@pytest.fixture
def paused(client: Client) -> None:
    """Time stands still, and all is as at the start."""
    client.pause(True)
    client.reset()


def call(client: Client, kind: Any, /, **request: Any) -> Any:
    return client.call(kind, service_name(kind).replace("~", "crazyflow"), **request)


def refused(client: Client, kind: Any, code: int, text: str, /, **request: Any) -> None:
    result = call(client, kind, **request).result
    assert (result.result, text in result.error_message) == (code, True), result


def done(client: Client, kind: Any, /, **request: Any) -> Any:
    response = call(client, kind, **request)
    assert response.result.result == OK, response.result
    return response


def state(client: Client) -> int:
    return done(client, GetSimulationState).state.state


def set_state(client: Client, target: int) -> Any:
    return call(client, SetSimulationState, state=SimulationState(state=target)).result


def entities(client: Client, **filters: Any) -> list[str]:
    return list(done(client, GetEntities, filters=EntityFilters(**filters)).entities)


def bounds(kind: int, *points: tuple[float, float, float]) -> Bounds:
    floats = [map(float, point) for point in points]
    return Bounds(type=kind, points=[Vector3(x=x, y=y, z=z) for x, y, z in floats])


def tick(client: Client) -> int:
    stamp = done(client, GetEntityState, entity="cf0").state.header.stamp
    return round(time_ns(stamp) * FREQ / 1e9)


def test_the_documentation_lists_the_services(client: Client) -> None:
    rows = re.findall(r"^\| `~/(\w+)` \| `(\w+)` ", DOCUMENTATION.read_text(), re.MULTILINE)
    listed = {f"/crazyflow/{name}": f"simulation_interfaces/srv/{kind}" for name, kind in rows}

    def served() -> dict[str, str]:
        services = client.node.get_service_names_and_types()
        kinds = {name: kind for name, (kind, *_) in services if "/_action/" not in name}
        return {n: kind for n, kind in kinds.items() if kind.startswith("simulation_interfaces/")}

    client.until(lambda: served() == listed, f"the services {listed}")


def test_every_feature_that_is_reported_has_its_service(client: Client) -> None:
    features = call(client, GetSimulatorFeatures).features
    assert len(set(features.features)) == len(features.features)
    services = dict(client.node.get_service_names_and_types())
    needed = {
        f"{what.upper()}_{verb.upper()}TING": f"{verb}_{what}"
        for what in ("entity_state", "entity_info", "simulation_state")
        for verb in ("get", "set")
    } | {
        "ENTITY_BOUNDS": "get_entity_bounds",
        "ENTITY_TAGS": "get_entities",
        "SIMULATION_RESET": "reset_simulation",
        "STEP_SIMULATION_SINGLE": "step_simulation",
    }
    for feature, service in needed.items():
        assert getattr(SimulatorFeatures, feature) in features.features
        assert f"/crazyflow/{service}" in services


def test_states(client: Client, paused: None) -> None:
    set_state(client, SimulationState.STATE_STOPPED)
    assert state(client) == SimulationState.STATE_STOPPED
    for name in ("PLAYING", "PAUSED", "STOPPED", "PAUSED", "PLAYING", "STOPPED"):
        target = getattr(SimulationState, f"STATE_{name}")
        result = set_state(client, target)
        assert result.result == OK, result
        assert state(client) == target
        again = set_state(client, target)
        assert again.result == SetSimulationState.Response.ALREADY_IN_TARGET_STATE
        assert "already" in again.error_message
    done(client, StepSimulation)
    assert state(client) == SimulationState.STATE_PAUSED
    for target in (SimulationState.STATE_NO_WORLD, SimulationState.STATE_LOADING_WORLD):
        result = set_state(client, target)
        assert result.result == SetSimulationState.Response.INCORRECT_TRANSITION
        assert "load_world" in result.error_message
    unknown = set_state(client, 9)
    assert unknown.result == FAILED and "9" in unknown.error_message


def test_steps_are_exact(client: Client, paused: None) -> None:
    before = tick(client)
    done(client, StepSimulation)  # one, by default
    assert tick(client) == before + 1
    done(client, StepSimulation, steps=503)
    assert tick(client) == before + 504
    refused(client, StepSimulation, FAILED, "at least 1, got 0", steps=0)


def test_steps_need_a_pause_and_end_with_it(client: Client, paused: None) -> None:
    before, waiting = tick(client), []
    for _ in range(2):
        waiting.append(client.send(StepSimulation, "crazyflow/step_simulation", steps=10**9))
        client.until(lambda: tick(client) > before, "a step")
    assert set_state(client, SimulationState.STATE_PLAYING).result == OK
    for future in waiting:
        result = client.response(future, "step").result
        assert result.result == FAILED
        assert "the simulation was resumed" in result.error_message
    refused(client, StepSimulation, FAILED, "not paused", steps=1)


class Steps:
    """A client of the action."""

    def __init__(self, client: Client, steps: int) -> None:
        self._client, self.feedback = client, []
        self._action = ActionClient(client.node, SimulateSteps, "crazyflow/simulate_steps")
        client.until(self._action.server_is_ready, "action server")
        goal = SimulateSteps.Goal(steps=steps)
        future = self._action.send_goal_async(
            goal, feedback_callback=lambda message: self.feedback.append(message.feedback)
        )
        self.goal = client.response(future, "goal")
        assert self.goal.accepted

    def result(self) -> tuple[str, Any]:
        response = self._client.response(self.goal.get_result_async(), "result")
        names = {4: "succeeded", 5: "canceled", 6: "aborted"}
        return names[response.status], response.result.result


def test_the_action_steps_exactly_and_tells_how_far_it_is(client: Client, paused: None) -> None:
    before, n_steps = tick(client), 10_003
    steps = Steps(client, n_steps)
    assert steps.result()[0] == "succeeded"
    assert tick(client) == before + n_steps
    # The client is deaf from the moment on that it knows that all is done: the last may be missing.
    completed = [f.completed_steps for f in steps.feedback]
    assert completed and completed == sorted(set(completed)) and completed[-1] <= n_steps
    assert all(f.completed_steps + f.remaining_steps == n_steps for f in steps.feedback)


def test_the_action_is_cancelled_between_two_steps(client: Client, paused: None) -> None:
    before = tick(client)
    steps, after = Steps(client, 10**9), Steps(client, 7)
    client.until(lambda: steps.feedback, "feedback")
    client.response(steps.goal.cancel_goal_async(), "cancellation")
    status, result = steps.result()
    assert status == "canceled"
    assert after.result()[0] == "succeeded"
    completed = int(result.error_message.split()[2])
    assert f"cancelled after {completed} of {10**9} steps" == result.error_message
    assert tick(client) == before + completed + 7


def test_the_action_fails_unless_paused(client: Client, paused: None) -> None:
    steps = Steps(client, 0)
    status, result = steps.result()
    assert status == "aborted" and "at least 1, got 0" in result.error_message
    steps = Steps(client, 10**9)
    client.pause(False)
    status, result = steps.result()
    assert (status, result.result) == ("aborted", FAILED)
    assert "the simulation was resumed" in result.error_message
    status, result = Steps(client, 1).result()
    assert (status, result.result) == ("aborted", FAILED)
    assert "not paused" in result.error_message


def put(client: Client, entity: str, x: float, **fields: Any) -> Any:
    """Set a pose, and what else is given."""
    state = EntityState(pose=Pose(position=Point(x=x, z=1.0)))
    flags = {"set_pose": True, "set_twist": "twist" in fields, "set_acceleration": False}
    for name in list(fields):
        if name in flags:
            flags[name] = fields.pop(name)
    for name, value in fields.items():
        setattr(state, name, value)
    return call(client, SetEntityState, entity=entity, state=state, **flags).result


def position(client: Client, entity: str) -> list[float]:
    return numbers(done(client, GetEntityState, entity=entity).state.pose.position).tolist()


def test_resets_by_scope(client: Client, paused: None) -> None:
    set_state(client, SimulationState.STATE_PLAYING)
    set_state(client, SimulationState.STATE_STOPPED)
    start = position(client, "cf0")
    assert tick(client) == 1

    def go_away() -> int:
        assert put(client, "cf0", 7.0).result == OK
        done(client, StepSimulation, steps=10)
        return tick(client)

    assert go_away() == 11
    done(client, ResetSimulation, scope=SCOPE.SCOPE_STATE)
    assert (tick(client), position(client, "cf0")) == (11, start)
    go_away()
    done(client, ResetSimulation, scope=SCOPE.SCOPE_TIME)
    assert tick(client) == 1 and position(client, "cf0")[0] == pytest.approx(7.0)
    for scope in (SCOPE.SCOPE_DEFAULT, SCOPE.SCOPE_ALL, SCOPE.SCOPE_TIME | SCOPE.SCOPE_STATE):
        go_away()
        done(client, ResetSimulation, scope=scope)
        assert (tick(client), position(client, "cf0")) == (1, start)
    refused(client, ResetSimulation, Result.RESULT_FEATURE_UNSUPPORTED, "got 8", scope=8)


def check_motion(client: Client, entity: str, *expected: Any) -> EntityState:
    """Position, quaternion, velocity and angular velocity of an entity are as expected."""
    state = done(client, GetEntityState, entity=entity).state
    pose, twist = state.pose, state.twist
    for got, want in zip((pose.position, pose.orientation, twist.linear, twist.angular), expected):
        want = numbers(want) if isinstance(want, Quaternion) else want
        np.testing.assert_allclose(numbers(got), want, atol=1e-6)
    return state


def test_setting_the_state_of_a_drone(client: Client, paused: None) -> None:
    other = position(client, "cf1")
    quarter = Quaternion(z=math.sqrt(0.5), w=math.sqrt(0.5))
    pose = Pose(position=Point(x=1.0, y=2.0, z=3.0), orientation=quarter)
    twist = Twist(linear=Vector3(x=1.0), angular=Vector3(x=2.0))
    assert put(client, "cf0", 0.0, pose=pose, twist=twist).result == OK
    now = check_motion(client, "cf0", (1, 2, 3), quarter, (1, 0, 0), (2, 0, 0))
    assert position(client, "cf1") == other
    # In the frame of that drone: x is north, and what stands still in it moves and turns with it.
    header = Header(frame_id="cf0/base_link")
    twist = Twist(linear=Vector3(x=1.0))
    assert put(client, "cf1", 1.0, header=header, twist=twist).result == OK
    # (1, 0, 0) + (2, 0, 0) x (0, 1, 1) + (0, 1, 0)
    check_motion(client, "cf1", (1, 3, 4), quarter, (1, -1, 2), (2, 0, 0))
    # The flags: nothing, or the twist alone.
    assert put(client, "cf0", 9.0, set_pose=False).result == OK
    assert done(client, GetEntityState, entity="cf0").state == now
    twist = Twist(linear=Vector3(z=5.0))
    assert put(client, "cf0", 9.0, set_pose=False, twist=twist).result == OK
    np.testing.assert_allclose(position(client, "cf0"), (1, 2, 3), atol=1e-6)


def test_states_that_are_refused(client: Client, paused: None) -> None:
    before = done(client, GetEntitiesStates)
    invalid = SetEntityState.Response.INVALID_POSE
    far, nowhere = Point(x=math.nan), Quaternion(w=0.0)
    for pose, what in ((Pose(position=far), "position"), (Pose(orientation=nowhere), "zero")):
        result = put(client, "cf0", 0.0, pose=pose)
        assert result.result == invalid and what in result.error_message
    twist = Twist(angular=Vector3(x=math.inf))
    assert put(client, "cf0", 0.0, twist=twist).result == FAILED
    result = put(client, "cf0", 0.0, header=Header(frame_id="mars"))
    assert result.result == NOT_FOUND and "'mars'" in result.error_message
    assert put(client, "nobody", 0.0).result == NOT_FOUND
    assert done(client, GetEntitiesStates).states == before.states


def test_entities_by_filter(client: Client, paused: None) -> None:
    assert entities(client) == ["cf0", "cf1", "hut"]
    assert entities(client, filter="^cf[[:digit:]]$") == ["cf0", "cf1"]
    assert entities(client, filter="1|u") == ["cf1", "hut"]
    text = "not a POSIX extended regular expression"
    for bad in ("(", r"\d"):
        filters = EntityFilters(filter=bad)
        refused(client, GetEntities, FAILED, text, filters=filters)
    robot = EntityCategory(category=EntityCategory.CATEGORY_ROBOT)
    static = EntityCategory(category=EntityCategory.CATEGORY_STATIC_OBJECT)
    human = EntityCategory(category=EntityCategory.CATEGORY_HUMAN)
    assert entities(client, categories=[robot]) == ["cf0", "cf1"]
    assert entities(client, categories=[static, robot]) == ["cf0", "cf1", "hut"]
    assert entities(client, categories=[human]) == []
    both = ["drone", "wooden"]
    assert entities(client, tags=TagsFilter(tags=both)) == ["cf0", "cf1", "hut"]
    every = TagsFilter.FILTER_MODE_ALL
    assert entities(client, tags=TagsFilter(tags=both, filter_mode=every)) == []
    tags = TagsFilter(tags=["wooden", "building"], filter_mode=every)
    assert entities(client, tags=tags) == ["hut"]
    assert entities(client, tags=tags, filter="cf") == []
    refused(
        client, GetEntities, FAILED, "got 2", filters=EntityFilters(tags=TagsFilter(filter_mode=2))
    )


def test_entities_by_bounds(client: Client, paused: None) -> None:
    # The hut takes x from 4 to 6, y from -2 to 2 and z from 0 to 1, the roof up to 1.5 at x = 4.5.
    sphere, box, hull = Bounds.TYPE_SPHERE, Bounds.TYPE_BOX, Bounds.TYPE_CONVEX_HULL
    assert entities(client, bounds=bounds(sphere, (8, 0, 0), (1.9, 0, 0))) == []
    assert entities(client, bounds=bounds(sphere, (8, 0, 0), (2.1, 0, 0))) == ["hut"]
    assert entities(client, bounds=bounds(sphere, (0, 0, 0), (100, 0, 0))) == ["cf0", "cf1", "hut"]
    assert entities(client, bounds=bounds(box, (7, 1, 1), (6.1, -1, 0))) == []
    assert entities(client, bounds=bounds(box, (7, 1, 1), (5.9, -1, 0))) == ["hut"]
    triangle = (8, 0, 0), (10, 2, 0), (10, -2, 0)
    assert entities(client, bounds=bounds(hull, *triangle)) == []
    assert entities(client, bounds=bounds(hull, *triangle, (5.5, 0, 0.5))) == ["hut"]
    bad = (
        bounds(sphere, (0, 0, 0)),
        bounds(sphere, (0, 0, 0), (-1, 0, 0)),
        bounds(box, (0, 0, 0), (1, 1, 1)),
        bounds(hull, (0, 0, 0), (1, 1, 1)),
        bounds(sphere, (math.nan, 0, 0), (1, 0, 0)),
    )
    for volume in bad:
        filters = EntityFilters(bounds=volume)
        refused(client, GetEntities, FAILED, "got", filters=filters)
    filters = EntityFilters(bounds=Bounds(type=7))
    refused(client, GetEntities, Result.RESULT_FEATURE_UNSUPPORTED, "got 7", filters=filters)


def test_bounds_of_entities(client: Client, paused: None) -> None:
    found = done(client, GetEntityBounds, entity="hut").bounds
    assert found.type == Bounds.TYPE_BOX
    upper, lower = (numbers(point) for point in found.points)
    np.testing.assert_allclose(upper, (1, 2, 1.5), atol=1e-6)  # the roof's, in the hut's axes
    np.testing.assert_allclose(lower, (-1, -2, 0), atol=1e-6)
    upper, lower = (numbers(p) for p in done(client, GetEntityBounds, entity="cf0").bounds.points)
    assert (upper > 0.01).all() and (lower < -0.01).all()
    assert (upper - lower < 0.2).all()  # it is a small drone
    refused(client, GetEntityBounds, NOT_FOUND, "'nobody'", entity="nobody")


def test_states_of_entities(client: Client, paused: None) -> None:
    poses = client.collect(PoseStamped, "cf0/pose")
    done(client, StepSimulation, steps=3)
    now = done(client, GetEntityState, entity="cf0").state
    message = client.newest(poses, tick(client))
    assert now.header == message.header
    assert now.pose == message.pose
    found = done(client, GetEntitiesStates, filters=EntityFilters(filter="0$|hut"))
    assert found.entities == ["cf0", "hut"] and found.states[0] == now
    hut = found.states[1]
    assert (hut.pose.position.x, hut.pose.orientation.z) == (5.0, 1.0)
    refused(client, GetEntityState, NOT_FOUND, "'nobody'", entity="nobody")


def test_info_of_entities(client: Client, paused: None) -> None:
    info = done(client, GetEntityInfo, entity="hut").info
    assert (info.description, info.tags) == ("A hut.", ["building", "wooden"])
    assert info.category.category == EntityCategory.CATEGORY_STATIC_OBJECT
    category = EntityCategory(category=EntityCategory.CATEGORY_HUMAN)
    new = EntityInfo(category=category, description="x", tags=["y"])
    done(client, SetEntityInfo, entity="hut", info=new)
    assert done(client, GetEntityInfo, entity="hut").info == new
    assert entities(client, categories=[category]) == ["hut"]
    assert entities(client, tags=TagsFilter(tags=["y"])) == ["hut"]
    done(client, SetEntityInfo, entity="hut", info=info)
    bad = EntityInfo(category=EntityCategory(category=3))
    refused(client, SetEntityInfo, FAILED, "got 3", entity="hut", info=bad)
    refused(client, SetEntityInfo, NOT_FOUND, "'nobody'", entity="nobody", info=new)
    refused(client, GetEntityInfo, NOT_FOUND, "'nobody'", entity="nobody")


def test_named_poses(client: Client) -> None:
    every = {pose.name: pose for pose in done(client, GetNamedPoses).poses}
    assert set(every) == {"door", "station"}
    door, station = every["door"].pose, every["station"].pose
    np.testing.assert_allclose(numbers(door.position), (4, 0, 0), atol=1e-9)  # the hut is turned
    np.testing.assert_allclose(numbers(door.orientation), (0, 0, 1, 0), atol=1e-9)
    assert list(every["door"].tags) == ["entrance"]
    assert numbers(station.position).tolist() == [1.0, 2.0, 3.0]
    assert every["station"].description == "Charges."
    tags = TagsFilter(tags=["spawn"])
    assert [pose.name for pose in done(client, GetNamedPoses, tags=tags).poses] == ["station"]
    found = done(client, GetNamedPoseBounds, name="station").bounds
    assert found == bounds(Bounds.TYPE_SPHERE, (0, 0, 0), (0.5, 0, 0))
    found = done(client, GetNamedPoseBounds, name="door").bounds
    assert found == bounds(Bounds.TYPE_BOX, (0.1, 0.4, 1), (-0.1, -0.4, -1))
    refused(client, GetNamedPoseBounds, NOT_FOUND, "'nowhere'", name="nowhere")


def test_worlds(client: Client, worlds: Path) -> None:
    now = done(client, GetCurrentWorld).world
    expected = "yard", "A yard with a hut.", ["outdoors", "small"]
    assert (now.name, now.description, now.tags) == expected
    names = [world.name for world in done(client, GetAvailableWorlds).worlds]
    assert {"floor", "race_track"} <= set(names)
    tags = TagsFilter(tags=["race"])
    (track,) = done(client, GetAvailableWorlds, filter=tags).worlds
    assert track.name == "race_track" and track.world_resource.uri.startswith("file:///")
    folder = [str(worlds)]
    names = [w.name for w in done(client, GetAvailableWorlds, additional_sources=folder).worlds]
    assert "yard" in names
    folder.append("/nowhere")
    refused(client, GetAvailableWorlds, NOT_FOUND, "/nowhere", additional_sources=folder)
    some = done(client, GetAvailableWorlds, additional_sources=folder, continue_on_error=True)
    assert "yard" in [world.name for world in some.worlds]


def spawn(client: Client, xml: str = BALL, **fields: Any) -> Any:
    """Response to the wish for an object."""
    source = fields.pop("uri", None)
    resource = Resource(uri=source) if source else Resource(resource_string=xml)
    frame, x = fields.pop("frame", ""), fields.pop("x", 2.0)
    pose = PoseStamped(header=Header(frame_id=frame), pose=Pose(position=Point(x=x, z=1.0)))
    fields.setdefault("timeout", COMPILE_TIMEOUT)
    return call(client, SpawnEntity, entity_resource=resource, initial_pose=pose, **fields)


def test_objects_come_and_go(client: Client, paused: None) -> None:
    assert spawn(client, name="ball").entity_name == "ball"
    assert entities(client) == ["cf0", "cf1", "hut", "ball"]
    assert position(client, "ball") == [2.0, 0.0, 1.0]
    upper, _ = (numbers(p) for p in done(client, GetEntityBounds, entity="ball").bounds.points)
    np.testing.assert_allclose(upper, (0.25, 0.25, 0.25), atol=1e-6)
    assert put(client, "ball", 3.0).result == OK
    assert position(client, "ball") == [3.0, 0.0, 1.0]
    result = put(client, "hut", 3.0, twist=Twist(linear=Vector3(x=1.0)))
    assert result.result == FAILED and "does not move freely" in result.error_message
    relative = spawn(client, name="second", frame="ball", x=1.0)
    assert relative.result.result == OK
    assert position(client, "second") == [4.0, 0.0, 2.0]
    done(client, DeleteEntity, entity="second")
    assert put(client, "hut", 9.0).result == OK
    done(client, ResetSimulation, scope=SCOPE.SCOPE_STATE)
    assert position(client, "ball") == [2.0, 0.0, 1.0] and position(client, "hut")[0] == 5.0
    done(client, DeleteEntity, entity="hut")
    assert entities(client) == ["cf0", "cf1", "ball"]
    done(client, ResetSimulation, scope=SCOPE.SCOPE_SPAWNED)
    assert entities(client) == ["cf0", "cf1", "hut"]
    refused(client, DeleteEntity, NOT_FOUND, "'ball'", entity="ball")


def test_what_is_spawned_falls(client: Client, paused: None) -> None:
    spawn(client, name="ball")
    joint = '<joint name="j" type="fixed"><parent link="world"/><child link="base"/></joint>'
    stand = ROBOT.replace("</robot>", f'<link name="world"/>{joint}</robot>')
    for name, xml, x in (("box", ROBOT, -3.0), ("stand", stand, -5.0)):
        assert spawn(client, name=name, xml=xml, x=x).result.result == OK
    categories = [
        done(client, GetEntityInfo, entity=name).info.category.category
        for name in ("ball", "stand", "hut")
    ]
    dynamic, static = EntityCategory.CATEGORY_DYNAMIC_OBJECT, EntityCategory.CATEGORY_STATIC_OBJECT
    assert categories == [dynamic, static, static]
    thrown = Twist(linear=Vector3(x=1.0), angular=Vector3(z=3.0))
    assert put(client, "ball", 2.0, twist=thrown).result == OK
    client.advance(100)
    ball = done(client, GetEntityState, entity="ball").state
    seconds = 100 / FREQ
    np.testing.assert_allclose(
        numbers(ball.pose.position), (2 + seconds, 0, 1 - 9.81 * seconds**2 / 2), atol=5e-3
    )
    np.testing.assert_allclose(numbers(ball.twist.linear), (1, 0, -9.81 * seconds), atol=1e-3)
    np.testing.assert_allclose(numbers(ball.twist.angular), (0, 0, 3), atol=1e-6)
    client.advance(400)
    assert position(client, "ball")[2] == pytest.approx(0.25, abs=0.02)  # it lies on the floor
    assert position(client, "box") == [-3.0, 0.0, 1.0]  # only visible: it marks a place
    assert position(client, "stand") == [-5.0, 0.0, 1.0]
    spawn(client, name="guest", uri="cf2x_L250", x=-7.0)
    assert position(client, "ball")[2] == pytest.approx(0.25, abs=0.02)
    done(client, ResetSimulation, scope=SCOPE.SCOPE_STATE)
    assert position(client, "ball") == [2.0, 0.0, 1.0]
    done(client, ResetSimulation, scope=SCOPE.SCOPE_SPAWNED)
    assert entities(client) == ["cf0", "cf1", "hut"]


def test_robots_are_seen_with_their_meshes(client: Client, paused: None, worlds: Path) -> None:
    scenes = client.collect(MarkerArray, "crazyflow/scene", LATCHED)
    spawn(client, name="arm", uri=f"file://{worlds}/some_arm/urdf/arm.urdf")
    points = done(client, GetEntityBounds, entity="arm").bounds.points
    upper, lower = (numbers(point) for point in points)
    # Around the box that MuJoCo lays along the principal axes of the mesh.
    np.testing.assert_array_less((1 - 1e-6, 2 - 1e-6, 3 - 1e-6), upper)
    np.testing.assert_allclose(upper, (1, 2, 3), atol=0.5)
    assert (lower <= -0.1 + 1e-6).all()

    def meshes() -> list[Marker]:
        shown = scenes[-1].markers if scenes else []
        return [marker for marker in shown if marker.type == Marker.TRIANGLE_LIST]

    client.until(lambda: len(meshes()) == 1, "mesh of the arm in the scene")
    spheres = [m for m in scenes[-1].markers if m.type == Marker.SPHERE and m.scale.x == 0.2]
    assert not spheres  # the collision shape behind the mesh
    done(client, DeleteEntity, entity="arm")


def test_drones_that_are_spawned_are_seen_in_their_frames(client: Client, paused: None) -> None:
    """Others have a description, which a program has that began with them."""
    shown = client.collect(MarkerArray, "crazyflow/display/spawned", LATCHED)
    for x, name in ((-7.0, "guest"), (-8.0, "other")):
        spawn(client, name=name, uri="cf2x_L250", x=x)

    def frames() -> dict[str, int]:
        return Counter(m.header.frame_id for m in shown[-1].markers if m.action == Marker.ADD)

    client.until(lambda: shown and len(frames()) == 2, "both")
    guest, other = frames().values()
    assert frames().keys() == {"guest/base_link", "other/base_link"} and guest == other > 4
    places = [numbers(m.pose.position) for m in shown[-1].markers if m.action == Marker.ADD]
    assert 0.03 < np.abs(places).max() < 0.1  # its arms, whatever its pose is
    done(client, DeleteEntity, entity="guest")
    client.until(lambda: frames().keys() == {"other/base_link"}, "the deletion")
    done(client, DeleteEntity, entity="other")
    client.until(lambda: not frames(), "the deletion of both")


def test_the_scene_shows_objects(client: Client, paused: None) -> None:
    scenes = client.collect(MarkerArray, "crazyflow/scene", LATCHED)
    transforms = client.collect(TFMessage, "/tf")
    still = BALL.replace("<freejoint/>", "")

    def balls() -> list[tuple[str, list[float]]]:
        shown = scenes[-1].markers if scenes else []
        spheres = [
            (m.header.frame_id, numbers(m.pose.position).tolist())
            for m in shown
            if m.type == Marker.SPHERE
        ]
        return [(frame, place) for frame, place in spheres if place[0] < 4]  # no parts of the hut

    def is_at(x: float) -> bool:
        found = [t for m in transforms for t in m.transforms if t.child_frame_id == "ball"]
        return bool(found) and numbers(found[-1].transform.translation).tolist() == [x, 0.0, 1.0]

    client.until(lambda: scenes, "scene")
    assert spawn(client, still, name="ball").entity_name == "ball"
    client.until(lambda: balls() == [("map", [2.0, 0.0, 1.0])], "ball in the scene")
    assert put(client, "ball", 3.0).result == OK
    client.until(lambda: balls() == [("map", [3.0, 0.0, 1.0])], "moved ball")
    done(client, DeleteEntity, entity="ball")
    client.until(lambda: not balls(), "scene without the ball")
    assert spawn(client, name="ball").entity_name == "ball"  # one that moves has a frame
    client.until(lambda: balls() == [("ball", [0.0, 0.0, 0.0])], "ball in its frame")
    assert put(client, "ball", 3.0).result == OK
    client.until(lambda: is_at(3.0), "moved ball")
    done(client, DeleteEntity, entity="ball")
    client.until(lambda: not balls(), "scene without the ball")


def test_drones_come_and_go(client: Client, paused: None) -> None:
    odometry = {name: client.collect(Odometry, f"{name}/odom") for name in ("cf0", "cf1")}
    transforms = client.collect(TFMessage, "/tf")
    shown = client.collect(MultiDOFJointState, "crazyflow/display/odometry")
    refused = {"a-b": "underscores", "a__b": "underscores", "a" * 250: "at most 100 characters"}
    for name, reason in (refused | dict.fromkeys(("all", "crazyflow"), "is reserved")).items():
        result = spawn(client, name=name, uri="cf2x_L250").result
        assert result.result == SpawnResult.NAME_INVALID and reason in result.error_message
    guests = ("guest", "second")  # the second one needs another slot
    for kept, x in zip(guests, (-3.0, -4.0)):  # away from the hut
        assert spawn(client, name=kept, uri="cf2x_L250", x=x).entity_name == kept
        odometry[kept] = client.collect(Odometry, f"{kept}/odom")
    assert entities(client) == ["cf0", "cf1", *guests, "hut"]
    client.until(lambda: shown and shown[-1].joint_names == ["cf0", "cf1", *guests], "displays")
    assert position(client, "second") == [-4.0, 0.0, 1.0]
    target = PoseStamped()
    target.header.frame_id = "map"
    target.pose.position.x, target.pose.position.z, target.pose.orientation.w = -3.0, 1.0, 1.0
    client.publish("guest/cmd_pose", target)
    tick = client.advance(100)
    last = {name: client.newest(messages, tick) for name, messages in odometry.items()}
    for name, message in last.items():
        assert message.child_frame_id == f"{name}/base_link"
        assert numbers(message.pose.pose.position).tolist() == position(client, name)
    flying, falling = (last[name].pose.pose.position.z for name in ("guest", "second"))
    assert flying > falling + 0.02
    frames = [t.child_frame_id for t in transforms[-1].transforms]
    assert frames == [f"{name}/base_link" for name in ("cf0", "cf1", *guests)]
    done(client, DeleteEntity, entity="second")
    done(client, ResetSimulation, scope=SCOPE.SCOPE_SPAWNED)
    assert entities(client) == ["cf0", "cf1", "hut"]
    for name in guests:
        for topic in ("odom", "cmd_pose", "robot_description"):
            client.until(lambda t=f"/{name}/{topic}": not _offered(client, t), f"end of {name}")
    tick = client.advance(5)
    assert client.newest(odometry["cf1"], tick).child_frame_id == "cf1/base_link"


def test_drones_go_while_subscribers_find_their_topics(client: Client, paused: None) -> None:
    node = client.node
    subscriptions = [
        node.create_subscription(kind, f"cf1/{name}", lambda _: None, 1)
        for kind, name in ((Odometry, "odom"), (PoseStamped, "pose"), (JointState, "joint_states"))
        for _ in range(2)
    ]
    for _ in range(20):
        done(client, DeleteEntity, entity="cf1")
        done(client, ResetSimulation, scope=SCOPE.SCOPE_SPAWNED)
        client.advance(20)
    assert entities(client) == ["cf0", "cf1", "hut"]
    for subscription in subscriptions:
        node.destroy_subscription(subscription)


def test_calls_on_their_way_to_a_drone_that_goes_are_answered(client: Client, paused: None) -> None:
    client.call(Trigger, "cf1/reset")  # its client has found the service
    calls = [client.send(Trigger, "cf1/reset") for _ in range(20)]
    deleted = client.send(DeleteEntity, "crazyflow/delete_entity", entity="cf1")
    calls += [client.send(Trigger, "cf1/reset") for _ in range(20)]
    client.response(deleted, "deletion")
    calls += [client.send(Trigger, "cf1/reset") for _ in range(20)]
    answers = [client.response(call, "call") for call in calls]
    assert not answers[-1].success and "cf1/reset is gone with its drone" in answers[-1].message
    done(client, ResetSimulation, scope=SCOPE.SCOPE_SPAWNED)
    assert client.call(Trigger, "cf1/reset").success
    done(client, DeleteEntity, entity="cf1")
    services = client.node.get_service_names_and_types_by_node
    client.until(
        lambda: not [n for n, _ in services("crazyflow", "/") if n.startswith("/cf1/")],
        "the end of the services",
    )
    done(client, ResetSimulation, scope=SCOPE.SCOPE_SPAWNED)
    assert client.call(Trigger, "cf1/reset").success


def _offered(client: Client, topic: str) -> bool:
    node = client.node
    infos = (
        *node.get_publishers_info_by_topic(topic),
        *node.get_subscriptions_info_by_topic(topic),
    )
    return any(info.node_name == "crazyflow" for info in infos)


def test_sensors_see_objects(client: Client, paused: None) -> None:
    ranges = client.collect(Range, "cf0/range")

    def measured() -> float:
        assert put(client, "cf0", 7.0, pose=Pose(position=Point(x=7.0, z=2.0))).result == 1
        done(client, StepSimulation)
        return client.newest(ranges, tick(client)).range

    assert measured() == pytest.approx(2.0, abs=0.03)
    assert spawn(client, name="ball", x=7.0).entity_name == "ball"  # 1 m high, radius 0.25 m
    assert measured() == pytest.approx(0.75, abs=0.03)
    done(client, DeleteEntity, entity="ball")
    assert measured() == pytest.approx(2.0, abs=0.03)


def test_names_of_objects(client: Client, paused: None) -> None:
    code = SpawnEntity.Response
    cases = (
        ({"name": "cf0"}, code.NAME_NOT_UNIQUE, "'cf0'"),
        ({"name": "9 lives"}, code.NAME_INVALID, "'9 lives'"),
        ({"name": "roof"}, code.NAME_NOT_UNIQUE, "'roof'"),  # a part of the hut
        ({"xml": NAMELESS}, code.NAME_INVALID, "''"),
        ({"name": "a", "entity_namespace": "b c"}, code.NAMESPACE_INVALID, "b c"),
    )
    for fields, number, text in cases:
        result = spawn(client, **fields).result
        assert result.result == number and text in result.error_message, result
    assert spawn(client).entity_name == "beach_ball"  # as the resource calls itself
    assert spawn(client, allow_renaming=True).entity_name == "beach_ball_1"
    assert spawn(client, NAMELESS, allow_renaming=True).entity_name == "object"
    assert spawn(client, name="a", entity_namespace="/b").entity_name == "b/a"
    assert position(client, "b/a") == [2.0, 0.0, 1.0]
    done(client, ResetSimulation)
    assert entities(client) == ["cf0", "cf1", "hut"]


def test_objects_that_are_refused(client: Client, paused: None, worlds: Path) -> None:
    code = SpawnEntity.Response
    mesh = '<mujoco><asset><mesh name="m" file="no.stl"/></asset></mujoco>'
    cases = (
        ({"xml": ""}, code.NO_RESOURCE, "neither"),
        ({"xml": "<model/>"}, code.UNSUPPORTED_FORMAT, "<model>"),
        ({"xml": "<sdf/>"}, code.RESOURCE_PARSE_ERROR, "neither a world nor a model"),
        ({"uri": "https://example.org/a.xml"}, code.UNSUPPORTED_FORMAT, "https"),
        ({"xml": "<mujoco>"}, code.RESOURCE_PARSE_ERROR, "XML"),
        ({"xml": "<mujoco><worldbody><sphere/></worldbody></mujoco>"}, 106, "sphere"),
        ({"xml": mesh}, code.MISSING_ASSETS, "no.stl"),
        ({"uri": "/no/file.xml"}, NOT_FOUND, "/no/file.xml"),
        ({"uri": "gatte"}, NOT_FOUND, "cf2x_L250; did you mean 'gate'?"),
        ({"uri": "cf21B_500"}, FAILED, "cf2x_L250, not cf21B_500"),
        ({"frame": "mars"}, NOT_FOUND, "'mars'"),
        ({"x": math.nan}, code.INVALID_POSE, "nan"),
    )
    for fields, number, text in cases:
        result = spawn(client, name="x", **fields).result
        assert result.result == number and text in result.error_message, result
    resource = Resource(resource_string=BALL)
    requests = [
        SpawnRequest(name="x", entity_resource=resource),
        SpawnRequest(name="x", entity_resource=resource),
        SpawnRequest(name="y", entity_resource=Resource(uri=f"file://{worlds}/robot.urdf")),
    ]
    several = call(client, SpawnEntities, spawn_requests=requests)
    assert several.result.result == SpawnEntities.Response.ENTITIES_SPAWN_FAILED
    codes = [result.result.result for result in several.results]
    assert codes == [OK, SpawnResult.NAME_NOT_UNIQUE, OK]
    assert entities(client) == ["cf0", "cf1", "hut", "x", "y"]
    done(client, ResetSimulation, scope=SCOPE.SCOPE_SPAWNED)


def test_spawnables_can_be_spawned(client: Client, paused: None, worlds: Path) -> None:
    own = {
        one.entity_resource.uri.rpartition("/")[2]: one
        for one in done(client, GetSpawnables).spawnables
    }
    assert set(own) == {"box.xml", "cylinder.xml", "gate.xml", "sphere.xml"}
    gate = own["gate.xml"]
    upper, _ = (numbers(point) for point in gate.spawn_bounds.points)
    np.testing.assert_allclose(upper, (0.03, 0.46, 0.46), atol=1e-6)
    assert spawn(client, uri=gate.entity_resource.uri).entity_name == "gate"
    answer = call(client, GetSpawnables, sources=[str(worlds), "/nowhere"])
    assert answer.result.result == OK
    assert "/nowhere" in answer.result.error_message
    uris = [spawnable.entity_resource.uri for spawnable in answer.spawnables]
    assert f"file://{worlds}/robot.urdf" in uris
    done(client, DeleteEntity, entity="gate")
    assert spawn(client, uri="gate").entity_name == "gate"  # its name is enough
    done(client, DeleteEntity, entity="gate")


def load(client: Client, **request: Any) -> Any:
    resource = Resource(**{k: request.pop(k) for k in ("uri", "resource_string") if k in request})
    return call(client, LoadWorld, world_resource=resource, timeout=COMPILE_TIMEOUT, **request)


def test_worlds_are_exchanged(client: Client, paused: None, worlds: Path) -> None:
    (track,) = done(client, GetAvailableWorlds, filter=TagsFilter(tags=["race"])).worlds
    assert spawn(client, name="ball").result.result == OK
    answer = load(client, uri="race_track")  # its name is enough
    assert answer.result.result == OK and answer.world == track
    assert state(client) == SimulationState.STATE_STOPPED
    assert entities(client, filter="^gate") == [f"gate{i}" for i in range(7)]
    assert len(entities(client)) == 9
    gates = done(client, GetNamedPoses, tags=TagsFilter(tags=["navigation_goal"])).poses
    assert len(gates) == 7
    text = '<mujoco model="bare"><worldbody><geom size="1" pos="0 0 -1"/></worldbody></mujoco>'
    assert load(client, resource_string=text).world.name == "bare"
    assert entities(client) == ["cf0", "cf1"]
    done(client, UnloadWorld)
    assert state(client) == SimulationState.STATE_NO_WORLD
    assert entities(client) == []
    refused(client, GetCurrentWorld, GetCurrentWorld.Response.NO_WORLD_LOADED, "no world")
    refused(client, UnloadWorld, UnloadWorld.Response.NO_WORLD_LOADED, "no world")
    for kind in (StepSimulation, ResetSimulation):
        refused(client, kind, Result.RESULT_INCORRECT_STATE, "no world")
    assert spawn(client, name="ball").result.result == Result.RESULT_INCORRECT_STATE
    result = set_state(client, SimulationState.STATE_PLAYING)
    assert result.result == SetSimulationState.Response.INCORRECT_TRANSITION
    answer = client.call(SetBool, "crazyflow/pause", data=False)
    assert not answer.success and "no world" in answer.message
    assert load(client, uri=str(worlds / "yard.xml")).result.result == OK
    assert entities(client) == ["cf0", "cf1", "hut"]
    assert set_state(client, SimulationState.STATE_PLAYING).result == OK


def test_worlds_that_are_refused(client: Client, paused: None) -> None:
    code = LoadWorld.Response
    cloth = '<flexcomp name="cloth" type="grid" dim="2" count="3 3 1" mass="1" spacing=".1 .1 .1"/>'
    cloth = f"<mujoco><worldbody>{cloth}</worldbody></mujoco>"
    mesh = '<mujoco><asset><mesh name="m" file="no.stl"/></asset></mujoco>'
    cases = (
        ({}, code.NO_RESOURCE),
        ({"resource_string": "<robot/>"}, code.UNSUPPORTED_FORMAT),
        ({"resource_string": "{}"}, code.RESOURCE_PARSE_ERROR),
        ({"resource_string": mesh}, code.MISSING_ASSETS),
        (
            {"resource_string": cloth, "fail_on_unsupported_element": True},
            code.UNSUPPORTED_ELEMENTS,
        ),
        ({"uri": "/no/file.xml"}, NOT_FOUND),
        ({"uri": "race_trck"}, NOT_FOUND),
    )
    for request, number in cases:
        result = load(client, **request).result
        assert result.result == number and result.error_message, result
    assert "did you mean 'race_track'?" in result.error_message
    assert done(client, GetCurrentWorld).world.name == "yard"


def test_time_goes_on_after_a_world_that_is_refused_late(client: Client, paused: None) -> None:
    assert set_state(client, SimulationState.STATE_PLAYING).result == OK
    boxes = '<geom type="box" size=".1 .1 .1"/>' * 1001  # as many shapes as no drone can hit
    text = f"<mujoco><worldbody>{boxes}</worldbody></mujoco>"
    result = load(client, resource_string=text).result
    assert result.result == LoadWorld.Response.RESOURCE_PARSE_ERROR, result
    assert "1000 shapes" in result.error_message
    assert state(client) == SimulationState.STATE_PLAYING


class Rival(threading.Thread):
    """A client that asks for things at random, and waits for every answer.

    Attributes:
        ticks: Steps that it was told are done.
        guest: Name of the drone that it has spawned and not deleted, or nothing.
        error: What ended it.
    """

    def __init__(self, seed: int, *, plays: bool) -> None:
        super().__init__(daemon=True)
        self._random, self._plays = random.Random(seed), plays
        self.ticks = 0
        self.name, self.guest = f"rival{seed}", ""
        self.error: BaseException | None = None

    def run(self) -> None:
        client = Client(DOMAIN)
        try:
            for _ in range(N_REQUESTS):
                self._ask(client)
        except BaseException as error:
            self.error = error
        finally:
            client.close()

    def _ask(self, client: Client) -> None:
        choice = self._random.randrange(7 if self._plays else 5)
        steps = self._random.randint(1, 900)
        if choice == 0:
            result = call(client, StepSimulation, steps=steps).result
        elif choice == 1:
            goal = Steps(client, steps)
            if self._random.random() < 0.5:
                goal.goal.cancel_goal_async()
            result = goal.result()[1]
        elif choice == 2:
            done(client, ResetSimulation, scope=SCOPE.SCOPE_STATE)
            return
        elif choice == 3 and self.guest:
            done(client, DeleteEntity, entity=self.guest)
            self.guest = ""
            return
        elif choice == 3:
            response = spawn(client, name=self.name, uri="cf2x_L250")
            assert response.result.result == OK, response.result
            self.guest = response.entity_name
            return
        else:
            target = "PAUSED" if choice == 4 else "PLAYING"
            set_state(client, getattr(SimulationState, f"STATE_{target}"))
            return
        if result.result == OK:
            self.ticks += steps
        elif (found := re.search(r"after (\d+) of", result.error_message)) is not None:
            self.ticks += int(found[1])
        else:
            assert "not paused" in result.error_message, result


@pytest.mark.parametrize("plays", [False, True])
def test_two_clients_at_random(
    client: Client, simulator: SimulatorProcess, paused: None, plays: bool
) -> None:
    times = client.collect(Clock, "/clock")
    before = tick(client)
    rivals = [Rival(seed, plays=plays) for seed in (1, 2)]
    for rival in rivals:
        rival.start()
    client.until(lambda: not any(r.is_alive() for r in rivals), "the end", 2 * COMPILE_TIMEOUT)
    for rival in rivals:
        assert rival.error is None, f"{rival.error}\n{simulator.log}"
    client.pause(True)
    if not plays:
        assert tick(client) - before == sum(rival.ticks for rival in rivals)
    guests = [rival.guest for rival in rivals if rival.guest]
    assert sorted(entities(client)) == sorted(["cf0", "cf1", "hut", *guests])
    done(client, ResetSimulation, scope=SCOPE.SCOPE_SPAWNED)
    stamps = [time_ns(message.clock) for message in times]
    assert stamps and stamps == sorted(stamps)


def test_quitting_ends_the_process(client: Client, simulator: SimulatorProcess) -> None:
    assert set_state(client, SimulationState.STATE_QUITTING).result == OK
    assert simulator.wait() == 0

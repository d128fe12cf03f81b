"""The services of mujoco_ros2_control, in a simulator of its own; texts are theirs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from ros_client import Client, SimulatorProcess, numbers, own_domain, stamp_ns, time_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from crazyflow_ros.drones import load_drone
from crazyflow_ros.scene import frames

services = pytest.importorskip("mujoco_ros2_control_msgs.srv", reason="not installed")
from mujoco_ros2_control_msgs.msg import (  # noqa: E402
    ExternalWrench,
    ExternalWrenchArray,
    FreeJointState,
    SimulationState,
)

DOMAIN = own_domain("test_mujoco_services")
NODE = "mujoco_ros2_control_node"
SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="table" pos="2 0 1" euler="0 0 90"><geom size=".1"/></body>
    <body name="target" mocap="true" pos="4 0 1"><geom size=".1"/></body>
    <body name="crate" pos="4 2 1"><freejoint/><geom size=".1"/></body>
    <body name="door" pos="4 4 1"><joint name="hinge"/><geom size=".1"/></body>
    <body name="cf1" pos="4 6 1"><geom size=".1"/></body>
  </worldbody>
  <keyframe>
    <key name="moved" mpos="5 -1 2" mquat="0 0 0 2" qpos="6 2 3 0 1 0 0 0"/>
    <key name="opened" qpos="4 2 1 1 0 0 0 1"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    scene = tmp_path_factory.mktemp("scene") / "table.xml"
    scene.write_text(SCENE)
    return ["drones:=[cf0,cf1]", f"scene:={scene}"]


@pytest.fixture(autouse=True)
def _paused(client: Client) -> None:
    for drone in ("cf0", "cf1"):
        client.collect(Odometry, f"{drone}/odom")
    client.collect(JointState, "cf0/joint_states")
    client.pause(True)
    client.reset()


def call(client: Client, kind: str, name: str, **request: Any) -> tuple[bool, str]:
    response = client.call(getattr(services, kind), name, **request)
    return response.success, response.message


def set_pause(client: Client, paused: bool) -> tuple[bool, str]:
    return call(client, "SetPause", f"{NODE}/set_pause", paused=paused)


def step(client: Client, steps: int) -> tuple[bool, str]:
    return call(client, "StepSimulation", f"{NODE}/step_simulation", steps=steps)


def put(client: Client, *states: FreeJointState) -> tuple[bool, str]:
    return call(client, "SetFreeJointState", f"{NODE}/set_free_joint_state", free_joints=states)


def reset_world(client: Client, keyframe: str = "", **overrides: Any) -> tuple[bool, str]:
    state = SimulationState(**overrides)
    name = f"{NODE}/reset_world"
    return call(client, "ResetWorld", name, keyframe=keyframe, state_overrides=state)


def push(client: Client, *wrenches: ExternalWrench) -> tuple[bool, str]:
    array = ExternalWrenchArray(external_wrenches=wrenches)
    return call(client, "ApplyExternalWrench", "external_wrench/apply_wrench", wrenches=array)


def free_joint(
    name: str, pos: tuple[float, ...] = (0.0, 0.0, 5.0), frame: str = "", twist_frame: str = ""
) -> FreeJointState:
    state = FreeJointState(name=name)
    state.pose.header.frame_id, state.twist.header.frame_id = frame, twist_frame
    position = state.pose.pose.position
    position.x, position.y, position.z = pos
    return state


def odometry(client: Client, drone: str = "cf0") -> Odometry:
    """Of a tick that nobody has seen yet."""
    messages = client.collect(Odometry, f"{drone}/odom")
    return client.newest(messages, client.advance(1))


def test_pause_and_resume(client: Client) -> None:
    assert set_pause(client, True) == (True, "Simulation is already paused.")
    assert set_pause(client, False) == (True, "Simulation resumed.")
    assert set_pause(client, False) == (True, "Simulation is already running.")
    refusal = "Cannot step simulation: simulation is not paused."
    assert step(client, 10) == (False, refusal)
    assert set_pause(client, True) == (True, "Simulation paused.")


def test_steps_are_exact(client: Client) -> None:
    clock = client.collect(Clock, "/clock")
    assert step(client, 0) == (False, "Number of steps must be positive, got: 0")
    begin = client.advance(1)
    assert step(client, 17) == (True, "Completed 17 simulation step(s).")
    expected = stamp_ns(begin + 17)
    client.until(lambda: clock and time_ns(clock[-1].clock) == expected, "time after the steps")


@pytest.mark.parametrize("end", ["resume", "reset"])
def test_steps_are_aborted(client: Client, end: str) -> None:
    service = client.node.create_client(services.StepSimulation, f"{NODE}/step_simulation")
    client.until(service.service_is_ready, "service")
    clock, begin_ns = client.collect(Clock, "/clock"), stamp_ns(client.advance(1))
    pending = service.call_async(services.StepSimulation.Request(steps=1_000_000))
    client.until(lambda: clock and time_ns(clock[-1].clock) > begin_ns, "steps under way")
    if end == "resume":
        set_pause(client, False)
        expected = "Steps aborted: simulation was resumed while steps were pending."
    else:
        client.reset()
        expected = "Steps aborted: the simulation was reset"
    response = client.response(pending, "steps")
    assert not response.success
    assert response.message.startswith(expected)


def test_drone_is_put_somewhere(client: Client) -> None:
    state = free_joint("cf0", (1.0, 2.0, 5.0))
    orientation = state.pose.pose.orientation
    orientation.z, orientation.w = math.sqrt(0.5), math.sqrt(0.5)  # looks to the north
    state.twist.twist.linear.y, state.twist.twist.angular.x = 0.5, 0.25
    before = numbers(odometry(client, "cf1").pose.pose.position)
    assert put(client, state) == (True, "Successfully set free joint state for 1 body.")
    found = odometry(client)
    np.testing.assert_allclose(numbers(found.pose.pose.position), (1, 2.001, 5), atol=1e-3)
    assert frames.yaw(numbers(found.pose.pose.orientation)) == pytest.approx(math.pi / 2, abs=1e-3)
    np.testing.assert_allclose(numbers(found.twist.twist.linear), (0.5, 0, -0.02), atol=5e-3)
    np.testing.assert_allclose(numbers(found.twist.twist.angular), (0, -0.25, 0), atol=5e-3)
    after = numbers(odometry(client, "cf1").pose.pose.position)
    np.testing.assert_allclose(after, before, atol=1e-4)


def test_drone_is_put_relative_to_bodies(client: Client) -> None:
    """The table stands at (2, 0, 1) and looks to the north."""
    state = free_joint("drone:cf0", (1.0, 0.0, 3.0), "table", "table")
    state.twist.twist.linear.x = 0.5
    other = free_joint("cf1/base_link", (0.0, 0.0, 6.0), "cf0/base_link")
    origin = numbers(odometry(client).pose.pose.position)
    text = "Successfully set free joint state for 2 bodies."
    assert put(client, free_joint("cf0", (9.0, 9.0, 9.0)), state) == (True, text)
    found = odometry(client)
    np.testing.assert_allclose(numbers(found.pose.pose.position), (2, 1.001, 4), atol=1e-3)
    np.testing.assert_allclose(numbers(found.twist.twist.linear)[:2], (0.5, 0), atol=5e-3)
    client.reset()
    put(client, other)
    found = numbers(odometry(client, "cf1").pose.pose.position)
    np.testing.assert_allclose(found, origin + np.array([0, 0, 6]), atol=1e-3)


def quaternion_of_zero() -> FreeJointState:
    state = free_joint("cf1")
    state.pose.pose.orientation.w = 0.0
    return state


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (free_joint("cf7"), "Unknown body name."),
        (free_joint("table"), "Body is not driven by a free joint."),
        (free_joint("cf1", frame="moon"), "Unknown pose frame_id body name: 'moon'."),
        (free_joint("cf1", twist_frame="moon"), "Unknown twist frame_id body name: 'moon'."),
        (free_joint("cf1", (math.nan, 0.0, 0.0)), "The position is not finite: [nan, 0.0, 0.0]."),
        (
            free_joint("cf1", (0.0, 1e12, 0.0)),
            "The position is not within 10000 m: [0.0, 1000000000000.0, 0.0].",
        ),
        (quaternion_of_zero(), "The orientation is the zero quaternion."),
    ],
)
def test_one_bad_entry_changes_nothing(client: Client, state: FreeJointState, reason: str) -> None:
    text = f"('{state.name}'): {reason}"
    assert put(client, free_joint("cf0"), state) == (False, f"Entry 1 {text}")
    assert odometry(client).pose.pose.position.z < 0.1
    refusal = f"Entry 0 {text} Not resetting world."
    assert reset_world(client, free_joints=[state]) == (False, refusal)
    assert put(client) == (True, "Successfully set free joint state for 0 bodies.")


def test_reset_world_restores_the_initial_state_and_time_goes_on(client: Client) -> None:
    begin = client.advance(5)
    initial = numbers(odometry(client).pose.pose.position)
    target = PoseStamped()
    target.pose.position.z = 1.0
    client.publish("cf0/cmd_pose", target)
    client.advance(300)
    assert odometry(client).pose.pose.position.z > 0.1
    text = "Successfully reset the MuJoCo world to the initial state."
    assert reset_world(client) == (True, text)
    messages = client.collect(Odometry, "cf0/odom")
    tick = client.advance(200)  # nobody commands it any more
    assert tick == begin + 1 + 300 + 1 + 200
    found = client.newest(messages, tick)
    np.testing.assert_allclose(numbers(found.pose.pose.position), initial, atol=2e-4)


def test_reset_world_to_a_keyframe_with_overrides(client: Client) -> None:
    joints = JointState(name=["cf0_rotor1", "rotor2:cf0"], velocity=[500.0, 700.0])
    text = "Successfully reset the MuJoCo world to the 'home' state."
    assert reset_world(client, "home") == (True, text)
    states = client.collect(JointState, "cf0/joint_states")
    assert reset_world(
        client, "home", joint_states=joints, free_joints=[free_joint("cf0", (0, 0, 3.0), "table")]
    ) == (True, f"{text} Applied 2 joint and 1 free-joint override(s).")
    client.until(lambda: states and states[-1].velocity[2] > 0, "rotor speeds")
    np.testing.assert_allclose(states[-1].velocity, [0, 500, 700, 0], rtol=1e-6)
    found = numbers(odometry(client).pose.pose.position)
    np.testing.assert_allclose(found, (2, 0, 4), atol=1e-3)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"keyframe": "k"}, "Failed to apply keyframe: 'k'."),
        ({"name": ["x"], "position": [0.0]}, "Entry 0 ('x'): Unknown joint name."),
        (
            {"name": ["free:cf0"]},
            "Entry 0 ('free:cf0'): Not a single-DOF (hinge or slide) joint. Free joints are set "
            "through 'state_overrides.free_joints' by body name.",
        ),
        ({"effort": [0.0]}, "Joint state effort is not supported; leave 'effort' empty."),
        (
            {"position": [0.0, 1.0]},
            "Joint state 'position' has 2 entries but 'name' has 1; it must be empty or the same "
            "length.",
        ),
        ({"velocity": [math.inf]}, "Joint state 'velocity' is not finite: [inf]."),
    ],
)
def test_a_reset_to_what_cannot_be_resets_nothing(
    client: Client, given: dict[str, Any], reason: str
) -> None:
    put(client, free_joint("cf0"))
    if "keyframe" not in given:
        given = {"joint_states": JointState(**{"name": ["cf0_rotor0"], **given})}
    assert reset_world(client, **given) == (False, f"{reason} Not resetting world.")
    assert odometry(client).pose.pose.position.z > 4.9


def wrench(body: str, x: float = 0.0, seconds: float = 0.1) -> ExternalWrench:
    message = ExternalWrench()
    message.wrench.header.frame_id, message.wrench.wrench.force.x = body, x
    message.duration.nanosec = round(seconds * 1e9)
    return message


def begin_push(client: Client, x: float, seconds: float = 0.1) -> Any:
    """Push cf0 in the air; returns the future of the answer, once the push acts.

    Which of several services is served first is not certain, hence the steps until it shows.
    """
    put(client, free_joint("cf0"))
    service = client.node.create_client(
        services.ApplyExternalWrench, "external_wrench/apply_wrench"
    )
    client.until(service.service_is_ready, "service")
    array = ExternalWrenchArray(external_wrenches=[wrench("cf0", x, seconds)])
    pending = service.call_async(services.ApplyExternalWrench.Request(wrenches=array))

    def acts() -> bool:
        client.advance(1)
        return odometry(client).twist.twist.linear.x > 1e-4

    client.until(acts, "effect of the wrench")
    return pending


def test_wrench_acts_for_simulated_time_and_is_answered_afterwards(client: Client) -> None:
    pending = begin_push(client, load_drone("cf2x_L250")["mass"])
    client.advance(40)
    assert not pending.done()
    client.advance(10)
    response = client.response(pending, "wrench")
    assert (response.success, response.message) == (True, "Applied 1 wrench(es) successfully.")
    # 1 m/s^2 for 0.1 s.
    assert odometry(client).twist.twist.linear.x == pytest.approx(0.1, rel=0.05)


def test_bad_wrench_is_refused_with_all_others(client: Client) -> None:
    put(client, free_joint("cf0"))
    good, long_ramp = wrench("cf0", 1.0), wrench("cf0")
    long_ramp.ramp_down_duration.sec = 1
    for bad, reason in (
        (wrench("cf7"), "Body 'cf7' not found in MuJoCo model."),
        (wrench("cf1", math.nan), "force must be 3 finite numbers, got [nan, 0.0, 0.0]"),
        (long_ramp, "ramp_down must be from 0 s to the duration of 0.1 s, got 1.0"),
    ):
        assert push(client, good, bad) == (False, reason)
    assert push(client) == (True, "No wrenches provided; nothing applied.")
    client.advance(20)
    assert abs(odometry(client).twist.twist.linear.x) < 0.01


def test_reset_aborts_a_wrench(client: Client) -> None:
    pending = begin_push(client, 1.0, seconds=10.0)
    client.reset()
    response = client.response(pending, "wrench")
    assert (response.success, response.message) == (
        False,
        "Wrenches aborted: the simulation was reset.",
    )


def place(client: Client, name: str) -> list[float]:
    """Position [m] of a body, then its attitude xyzw."""
    entities = pytest.importorskip("simulation_interfaces.srv")
    response = client.call(entities.GetEntityState, "crazyflow/get_entity_state", entity=name)
    pose = response.state.pose
    return [*numbers(pose.position), *numbers(pose.orientation)]


def test_a_keyframe_moves_bodies_of_the_scene(client: Client) -> None:
    start = {name: place(client, name) for name in ("target", "crate", "table", "door")}
    done = "Successfully reset the MuJoCo world to the '{}' state."
    for _ in range(2):  # the second time they are there already
        assert reset_world(client, "moved") == (True, done.format("moved"))
        assert place(client, "target") == pytest.approx([5, -1, 2, 0, 0, 1, 0])
        assert place(client, "crate") == pytest.approx([6, 2, 3, 1, 0, 0, 0])
    assert reset_world(client, "opened") == (True, done.format("opened"))
    opened = {name: place(client, name) for name in start}
    assert opened.pop("door") == pytest.approx([4, 4, 1, 0, 0, math.sin(0.5), math.cos(0.5)])
    assert opened.items() <= start.items()
    assert reset_world(client, "moved")[0]
    refusals = (
        reset_world(client, "nowhere"),
        reset_world(client, "opened", joint_states=JointState(name=["none"], position=[0.0])),
    )
    for is_done, text in refusals:
        assert not is_done and "Not resetting world." in text
    assert place(client, "target")[:3] == pytest.approx([5, -1, 2])
    assert reset_world(client)[0]  # to the initial state
    assert {name: place(client, name) for name in start} == start


def test_a_body_with_the_name_of_a_drone_is_named(simulator: SimulatorProcess) -> None:
    text = "the body 'cf1' of the world is no entity, because a drone has its name"
    assert simulator.log.count(text) == 1


def entity(client: Client, name: str) -> Any:
    """State of a body of the world."""
    interfaces = pytest.importorskip("simulation_interfaces.srv", reason="not installed")
    return client.call(interfaces.GetEntityState, "crazyflow/get_entity_state", entity=name).state


def test_free_bodies_of_the_world_are_put(client: Client) -> None:
    state = free_joint("crate", (1.0, 0.0, 3.0), frame="table")
    state.twist.twist.angular.z = 2.0
    text = "Successfully set free joint state for 2 bodies."
    assert put(client, free_joint("cf0", (0.0, 0.0, 6.0)), state) == (True, text)
    crate = entity(client, "crate")
    assert numbers(crate.pose.position) == pytest.approx((2.0, 1.0, 4.0))
    assert crate.twist.angular.z == pytest.approx(2.0)
    assert odometry(client).pose.pose.position.z == pytest.approx(6.0, abs=1e-3)


def test_a_reset_overrides_joints_of_the_world(client: Client) -> None:
    joints = JointState(name=["hinge", "cf0_rotor1"], position=[0.5, 0.1], velocity=[0.2, 0.0])
    reset, message = reset_world(client, joint_states=joints)
    assert reset and "Applied 2 joint and 0 free-joint override(s)." in message
    door = entity(client, "door")
    assert door.pose.orientation.z == pytest.approx(math.sin(0.25))
    assert door.twist.angular.z == pytest.approx(0.2)
    assert reset_world(client)[0]
    assert entity(client, "door").pose.orientation.z == pytest.approx(0.0, abs=1e-9)

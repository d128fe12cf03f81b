"""Stock controllers of a real controller manager fly drones of a simulator, both as processes."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from real_manager import ACCURACY, CHAIN, DynamicJointState, Flight, Manager, flight, positions_of
from ros_client import Client, numbers, own_domain, stamp_ns, time_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, Range
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from crazyflow_ros.description.interfaces import AXES, BODY, GOAL, SENSORS, rotors
from crazyflow_ros.drones import load_drone
from crazyflow_ros.scene import frames

DOMAIN = own_domain(__name__)
OTHER_DOMAIN = DOMAIN % 100 + 1  # of simulators beside the one of the module
RATE = 500  # Hz, each tick of physics
PUBLISHED = 5  # ticks between two messages
COMPONENTS = (*rotors(4), *SENSORS, *AXES, BODY, GOAL)
BROADCASTERS = ("cf0_imu_broadcaster", "cf0_pose_broadcaster", "cf0_range_broadcaster")
POSITION = [f"cf0_{name}" for name in CHAIN]
WAITING = [f"cf0_waiting_{name}" for name in CHAIN]
HOME = (0.5, 0.3, 1.0)
WEIGHT = load_drone("cf2x_L250")["mass"] * 9.81
HOVER_TIME = 60.0  # s


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Flight, Manager]]:
    """One drone with all broadcasters, hovering under its position controller."""
    given = {"ros2_control.rate": RATE}
    with (
        flight(DOMAIN, **given) as flying,
        Manager(flying.client, tmp_path_factory.mktemp("flown"), ["cf0"], RATE) as manager,
    ):
        manager.start("joint_state_broadcaster", *BROADCASTERS, *POSITION)
        manager.load("all_states", *WAITING, "cf0_attitude", "cf0_rotor_velocity")
        yield flying, manager


@pytest.fixture
def hovering(flown: tuple[Flight, Manager]) -> Iterator[tuple[Flight, Manager]]:
    """It hovers at `HOME` before the test, and no command was missed in it."""
    flying, manager = flown
    flying.fly_to(HOME)
    before = flying.control()
    yield flown
    flying.client.pause(False)
    after = flying.control()
    assert after["control_cycles"] > before["control_cycles"]
    assert after["control_timeouts"] == before["control_timeouts"], flying.simulator.log
    assert manager.process.poll() is None, manager.log


def assert_at(positions: np.ndarray, where: tuple[float, ...] = HOME) -> None:
    np.testing.assert_allclose(positions, np.broadcast_to(where, positions.shape), atol=ACCURACY)


def test_all_interfaces_are_listed(flown: tuple[Flight, Manager]) -> None:
    _, manager = flown
    listed = manager.interfaces()
    # Others, of more parts, are a controller's.
    states = {i.name: i for i in listed.state_interfaces if i.name.count("/") == 1}
    commands = {i.name: i for i in listed.command_interfaces if i.name.count("/") == 1}
    assert states.keys() == {f"{c.name('cf0')}/{name}" for c in COMPONENTS for name in c.states}
    assert commands.keys() == {f"{c.name('cf0')}/{name}" for c in COMPONENTS for name in c.commands}
    assert all(interface.is_available for interface in (*states.values(), *commands.values()))
    claimed = {name for name, interface in commands.items() if interface.is_claimed}
    assert claimed == {f"cf0_{axis}/acceleration" for axis in "xyz"}


def test_of_the_manager_one_node_follows_the_clock(flown: tuple[Flight, Manager]) -> None:
    flying, _ = flown
    followers = flying.client.node.get_subscriptions_info_by_topic("/clock")
    assert [follower.node_name for follower in followers] == ["controller_manager"]


def by_stamp(messages: list[Any]) -> dict[int, Any]:
    return {time_ns(message.header.stamp): message for message in messages}


def test_broadcasters_publish_what_the_simulator_does(hovering: tuple[Flight, Manager]) -> None:
    flying, manager = hovering
    topics = {
        (Imu, "/cf0/imu"): (Imu, "/cf0_imu_broadcaster/imu"),
        (PoseStamped, "/cf0/pose"): (PoseStamped, "/cf0_pose_broadcaster/pose"),
        (Range, "/cf0/range"): (Range, "/cf0_range_broadcaster/range"),
        (JointState, "/cf0/joint_states"): (JointState, "/joint_states"),
        (Odometry, "/cf0/odom"): (DynamicJointState, "/all_states/dynamic_joint_states"),
    }
    checks = (same_imu, same_pose, same_range, same_rotors, same_state)
    assert manager.switch(start=["all_states"])
    period = RATE // 50  # ticks between two measurements of the range
    tick = flying.client.pause(True)
    flying.client.advance(period - tick % period)
    with closing(Client(DOMAIN)) as client:
        pairs = [
            (client.collect(*ours), client.collect(*theirs)) for ours, theirs in topics.items()
        ]
        flying.tell((-0.5, 0.2, 1.5))  # with moving rotors, at an angle

        def in_common(ours: list[Any], theirs: list[Any]) -> list[tuple[Any, Any]]:
            truth, seen = by_stamp(ours), by_stamp(theirs)
            return [(truth[stamp], seen[stamp]) for stamp in truth.keys() & seen.keys()]

        def enough() -> bool:
            client.advance(period)
            client.spin_for(0.02)  # not faster than they can be received
            return all(len(in_common(*pair)) >= 10 for pair in pairs)

        try:
            client.until(enough, "messages")
        finally:
            flying.client.pause(False)
            assert manager.switch(stop=["all_states"])
    for pair, check in zip(pairs, checks, strict=True):
        for ours, theirs in in_common(*pair):
            check(ours, theirs)


def same_imu(ours: Imu, theirs: Imu) -> None:
    assert theirs.header.frame_id == ours.header.frame_id == "cf0/imu_link"
    for name in ("orientation", "angular_velocity", "linear_acceleration"):
        np.testing.assert_array_equal(numbers(getattr(ours, name)), numbers(getattr(theirs, name)))


def same_pose(ours: PoseStamped, theirs: PoseStamped) -> None:
    assert theirs.header.frame_id == ours.header.frame_id == "map"
    for name in ("position", "orientation"):
        expected = numbers(getattr(ours.pose, name))
        np.testing.assert_array_equal(numbers(getattr(theirs.pose, name)), expected)


def same_range(ours: Range, theirs: Range) -> None:
    assert theirs.header.frame_id == ours.header.frame_id == "cf0/range_link"
    assert theirs.range == ours.range
    assert theirs.radiation_type == ours.radiation_type
    for name in ("field_of_view", "min_range", "max_range"):
        assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=1e-3)


def same_rotors(ours: JointState, theirs: JointState) -> None:
    assert sorted(theirs.name) == sorted(ours.name) == [f"cf0_rotor{i}" for i in range(4)]
    order = [theirs.name.index(name) for name in ours.name]
    for name in ("position", "velocity"):
        expected = np.array(getattr(ours, name))
        assert (expected != 0).all()
        np.testing.assert_array_equal(np.array(getattr(theirs, name))[order], expected)


def same_state(ours: Odometry, theirs: DynamicJointState) -> None:
    seen = {
        f"{group}/{name}": value
        for group, values in zip(theirs.joint_names, theirs.interface_values)
        for name, value in zip(values.interface_names, values.values)
    }
    assert seen.keys() >= {f"{c.name('cf0')}/{name}" for c in COMPONENTS for name in c.states}
    quat = numbers(ours.pose.pose.orientation)
    twist, rates = numbers(ours.twist.twist.linear), numbers(ours.twist.twist.angular)
    roll, pitch, yaw = frames.rpy(quat)
    vel = frames.body_to_world(quat, twist)
    expected = {
        "body/roll": roll,
        "body/pitch": pitch,
        "body/yaw": yaw,
        "body/level": 4,
        "yaw/position": yaw,
        "yaw/velocity": frames.body_to_world(quat, rates)[2],
        **{f"{axis}/velocity": vel[i] for i, axis in enumerate("xyz")},
        **{f"twist/linear.{axis}": twist[i] for i, axis in enumerate("xyz")},
        **{f"twist/angular.{axis}": rates[i] for i, axis in enumerate("xyz")},
        **{f"body/{name}_rate": rates[i] for i, name in enumerate(("roll", "pitch", "yaw"))},
    }
    assert {name: seen[f"cf0_{name}"] for name in expected} == pytest.approx(expected, abs=1e-7)
    assert 0.5 * WEIGHT < seen["cf0_body/thrust"] < 2 * WEIGHT


def test_hovers_for_a_minute_at_500_hz(hovering: tuple[Flight, Manager]) -> None:
    flying, _ = hovering
    assert_at(flying.positions(HOVER_TIME))


def test_goes_on_after_a_pause(hovering: tuple[Flight, Manager]) -> None:
    flying, manager = hovering
    client = flying.client
    clock = client.collect(Clock, "/clock")
    paused_at = stamp_ns(client.pause(True))
    began = time.monotonic()
    while time.monotonic() < began + 5.0:
        assert manager.states()["cf0_position"] == "active"  # it answers meanwhile
        client.spin_for(0.5)
    assert len(clock) >= 5  # those who come late are told the time, too
    assert {time_ns(message.clock) for message in clock[-5:]} == {paused_at}
    client.pause(False)
    assert_at(flying.positions(2.0))


def test_flies_back_after_a_reset(hovering: tuple[Flight, Manager]) -> None:
    flying, manager = hovering
    client = flying.client
    client.pause(True)
    poses = client.collect(PoseStamped, "/cf0/pose")
    tick = client.reset()
    start = positions_of(client.newest(poses, tick))
    assert start[2] < 0.1 and math.hypot(start[0] - HOME[0], start[1] - HOME[1]) > 0.1
    client.pause(False)
    np.testing.assert_allclose(flying.positions(0.1)[0], start, atol=0.05)
    flying.client.until(lambda: flying.arrive(HOME), "the flight back", timeout=60)
    assert manager.states()["cf0_position"] == "active"


def test_switches_controllers_in_flight(hovering: tuple[Flight, Manager]) -> None:
    flying, manager = hovering
    assert not manager.switch(start=["cf0_rotor_velocity"])  # one level at a time
    assert manager.switch(start=["cf0_attitude"], stop=POSITION)
    # The last command of the former holds, until there is one.
    topic = "/cf0_attitude/commands"

    def turned() -> bool:
        # Its reader is best-effort: it may miss the first message of a publisher.
        flying.client.publish(topic, Float64MultiArray(data=[WEIGHT, 0.0, 0.0, 0.5]))
        x, y, z, w = numbers(flying.poses(0.1)[-1].pose.orientation)
        return abs(2 * math.atan2(z, w) - 0.5) < 0.02 and math.hypot(x, y) < 0.01

    flying.client.until(turned, "the turn")
    assert flying.positions(0.1)[-1, 2] == pytest.approx(HOME[2], abs=0.3)
    flying.client.publish(topic, Float64MultiArray(data=[WEIGHT, 0.1, 0.0, 0.0]))
    flying.positions(0.2)
    assert manager.switch(stop=["cf0_attitude"]) and manager.switch(start=["cf0_attitude"])
    held = flying.positions(0.5)
    assert (held == held[0]).all()  # what it was told before is of the past
    assert manager.switch(start=POSITION, stop=["cf0_attitude"])
    flying.fly_to(HOME)


def test_keeps_its_velocity_without_its_position_controller(
    hovering: tuple[Flight, Manager],
) -> None:
    flying, manager = hovering
    assert manager.switch(stop=["cf0_position"])  # which restarts the one that it has commanded
    assert manager.states()["cf0_velocity"] == "active"
    assert_at(flying.positions(1.0))

    def climbs() -> bool:
        flying.tell((0.0, 0.0, 0.5), topic="/cf0_velocity/reference")
        moved = np.ptp(flying.positions(1.0), axis=0)
        return moved[2] > 0.4 and (moved[:2] < ACCURACY).all()

    flying.client.until(climbs, "the climb")
    assert manager.switch(start=["cf0_position"])
    flying.fly_to(HOME)


def test_is_held_while_its_controller_is_restarted(hovering: tuple[Flight, Manager]) -> None:
    flying, manager = hovering
    assert manager.switch(stop=POSITION)
    flying.positions(0.1)
    held = flying.positions(1.0)
    assert (held == held[0]).all()
    assert manager.switch(start=POSITION)
    np.testing.assert_allclose(flying.positions(1.0)[-1], held[0], atol=1e-4)  # its reference
    flying.fly_to((0.0, 0.0, 0.5))


def test_steps_wait_for_the_manager(hovering: tuple[Flight, Manager]) -> None:
    flying, _ = hovering
    client = flying.client
    client.pause(True)
    cycles = flying.control()["control_cycles"]
    client.advance(50)
    assert client.call(Trigger, "/crazyflow/step").success
    assert flying.control()["control_cycles"] == cycles + 100
    client.pause(False)


def test_the_same_flight_gives_the_same_bits(flown: tuple[Flight, Manager], tmp_path: Any) -> None:
    """Twice at each factor, and with a manager that is started anew: the last test of this one."""
    flying, manager = flown
    flights = []
    for factor in (0.0, 0.0, 1.0, 1.0):
        assert flying.client.set_parameter("real_time_factor", factor).successful
        flights.append(recorded(flying, manager))
    manager.end(signal.SIGINT)
    flying.positions(1.0)  # time runs on
    with Manager(flying.client, tmp_path, ["cf0"], RATE) as another:
        another.load(*WAITING)
        flights.append(recorded(flying, another))
    for other in flights[1:]:
        common = flights[0].keys() & other.keys()
        assert len(common) > 100
        assert all(flights[0][stamp] == other[stamp] for stamp in common)
    last = max(flights[0].keys() & flights[-1].keys())
    assert last > 1_500_000_000 and flights[0][last][2] > 0.3  # it has flown


def recorded(flying: Flight, manager: Manager) -> dict[int, tuple[float, ...]]:
    """State of the drone by time since it was told to fly, for two seconds."""
    with closing(Client(DOMAIN)) as client:
        odom = client.collect(Odometry, "/cf0/odom")
        joints = client.collect(JointState, "/cf0/joint_states")
        attempts = (told_to_fly(flying, manager, client, joints) for _ in range(20))
        tick = next(tick for tick in attempts if tick is not None)
        client.pause(False)
        begin = tick * 1_000_000_000 // RATE
        end = begin + 2_000_000_000
        client.until(lambda: odom and time_ns(odom[-1].header.stamp) > end, "the flight")
    rotors = by_stamp(joints)
    states = {}
    for stamp, message in by_stamp(odom).items():
        if stamp in rotors and begin < stamp <= end:
            pose, twist = message.pose.pose, message.twist.twist
            parts = (pose.position, pose.orientation, twist.linear, twist.angular)
            state = np.concatenate([numbers(part) for part in parts])
            states[stamp - begin] = (*state, *rotors[stamp].position, *rotors[stamp].velocity)
    return states


def told_to_fly(flying: Flight, manager: Manager, client: Client, joints: list[Any]) -> int | None:
    """The tick after which a drone at rest is told to fly; None if that came late.

    Time stands, so that the manager commands nothing for this tick; it reads what it is told in a
    thread of its own, and should have by the next.
    """
    client.pause(False)
    active = [name for name, state in manager.states().items() if state == "active"]
    assert manager.switch(stop=[name for name in active if "broadcaster" not in name])
    client.reset()
    assert manager.switch(start=WAITING)  # without memory of the flight before
    tick = client.pause(True)
    tick = client.advance(PUBLISHED - tick % PUBLISHED)
    flying.tell(HOME, topic="/cf0_waiting_position/reference")
    turning = [any(client.newest(joints, client.advance(1)).velocity) for _ in range(2)]
    return tick if turning == [False, True] else None


def test_one_manager_flies_ten_drones(tmp_path: Any) -> None:
    drones = [f"cf{index}" for index in range(10)]
    with (
        flight(OTHER_DOMAIN, drones, **{"ros2_control.rate": 100}) as flying,
        Manager(flying.client, tmp_path, drones, 100) as manager,
    ):
        manager.start(*(f"{drone}_{name}" for drone in drones for name in CHAIN))
        goals = {}
        for drone in drones:
            x, y, _ = flying.positions(0.0, drone)[0]
            goals[drone] = (x, y, 1.0)
        for drone, goal in goals.items():
            flying.tell(goal, drone)
        for drone, goal in goals.items():
            flying.fly_to(goal, drone)
        seen = flying.control()
        assert seen["control_timeouts"] == 0 and seen["refused_commands"] == 0


def test_a_manager_in_each_namespace_makes_one_lock_step(tmp_path: Any) -> None:
    goals = {"cf0": (0.5, 0.5, 1.0), "cf1": (0.5, -0.5, 1.0)}  # out of each other's downwash
    drones = [*goals]
    given = {"ros2_control.rate": 100, "publish_rates.joint_states": 0}
    with (
        flight(OTHER_DOMAIN, drones, **given) as flying,
        Manager(flying.client, tmp_path, ["cf0"], 100, "cf0") as first,
        Manager(flying.client, tmp_path, ["cf1"], 100, "cf1") as second,
    ):
        for drone, manager in zip(drones, (first, second)):
            manager.start("joint_state_broadcaster", *CHAIN)
            flying.fly_to(goals[drone], drone, f"/{drone}/position/reference")
            names = flying.client.latest(JointState, f"/{drone}/joint_states").name
            assert {name for name in names if "rotor" in name} == {
                f"{drone}_rotor{index}" for index in range(4)
            }
        seen = flying.control()
        assert seen["control_timeouts"] == 0 and seen["refused_commands"] == 0
        first.end(signal.SIGINT)  # the other flies on
        assert_at(flying.positions(1.0, "cf1"), goals["cf1"])
        assert_at(flying.positions(0.2, "cf0"), goals["cf0"])
        flying.simulator.end(signal.SIGINT)  # and with it the clock, so that no cycle sees it
        second.wait_for("has ended, and the clock with it")

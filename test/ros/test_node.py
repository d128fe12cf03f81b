"""The running node from a second process: time, topics, commands, tables of its interface."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, Transform, TwistStamped, Vector3, WrenchStamped
from nav_msgs.msg import Odometry, Path
from ros_client import (
    FREQ,
    LATCHED,
    ROOT,
    Client,
    SimulatorProcess,
    numbers,
    own_domain,
    stamp_ns,
    tick_of,
    time_ns,
)
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState, Range
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint
from visualization_msgs.msg import Marker, MarkerArray
from wire import Wire

from crazyflow_ros.scene import frames

DOMAIN = own_domain("test_ros_node")
DRONES = ("cf0", "cf1", "cf2")
DISPLAY = {"odometry": MultiDOFJointState, "joint_states": JointState}


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [
        f"checkpoint_folder:={tmp_path_factory.mktemp('checkpoints')}",
        f"drones:=[{','.join(DRONES)}]",
        "flight.velocity_timeout:=5.0",  # a test sends a velocity once
        "flight.takeoff_height:=1.0",
    ]


@pytest.fixture(scope="module")
def clock(client: Client) -> list[Clock]:
    """All times, as they come."""
    return client.collect(Clock, "/clock")


@pytest.fixture
def running(client: Client) -> Iterator[None]:
    """Time runs as fast as it should."""
    client.pause(False)
    yield
    assert client.set_parameter("real_time_factor", 1.0).successful


@pytest.fixture
def paused(client: Client) -> None:
    """Time stands still, all drones stand on the floor."""
    client.pause(True)
    client.reset()


def pose(x: float, y: float, z: float, yaw: float = 0.0) -> PoseStamped:
    message = PoseStamped()
    message.pose.position.x, message.pose.position.y, message.pose.position.z = x, y, z
    message.pose.orientation.z, message.pose.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
    return message


def twist(x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw_rate: float = 0.0) -> TwistStamped:
    message = TwistStamped()
    linear = message.twist.linear
    linear.x, linear.y, linear.z = x, y, z
    message.twist.angular.z = yaw_rate
    return message


def transform(message: PoseStamped) -> Transform:
    result, position = Transform(rotation=message.pose.orientation), message.pose.position
    result.translation = Vector3(x=position.x, y=position.y, z=position.z)
    return result


def above(odometry: Odometry, yaw: float = 0.0) -> PoseStamped:
    """One metre above a place on the floor."""
    position = odometry.pose.pose.position
    return pose(position.x, position.y, 1.0, yaw)


@contextmanager
def command_load() -> Iterator[list[int]]:
    """Poses for all drones, as fast as this process can; yields the number of messages."""
    client, count, stop = Client(DOMAIN), [0], threading.Event()
    publishers = [client.publisher(PoseStamped, f"{drone}/cmd_pose") for drone in DRONES]

    def publish() -> None:
        while not stop.is_set():
            for i, publisher in enumerate(publishers):
                publisher.publish(pose(i, 0.0, 1.0 + 0.1 * math.sin(count[0])))
            count[0] += len(publishers)
            time.sleep(0.0005)

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()
        client.close()


# Time.


@pytest.mark.usefixtures("running")
def test_no_tick_follows_the_reply_of_pause(client: Client, clock: list[Clock]) -> None:
    """50 times, at the highest speed, while commands pour in."""
    odometry = client.collect(Odometry, "cf0/odom")
    assert client.set_parameter("real_time_factor", 0.0).successful
    clock.clear()
    with command_load() as commands:
        for _ in range(50):
            before = commands[0]
            client.pause(False)
            client.until(
                lambda n=before: clock and odometry and commands[0] > n,
                "messages and commands while it runs",
            )
            tick = client.pause(True)
            assert client.pause(True) == tick  # an answer later
            last_ns = stamp_ns(tick)
            assert max(time_ns(message.clock) for message in clock) <= last_ns
            assert max(time_ns(message.header.stamp) for message in odometry) <= last_ns
            clock.clear()
            odometry.clear()
    # Earlier ones may be on their way yet.
    stands = [last_ns, last_ns]
    client.until(lambda: [time_ns(m.clock) for m in clock[-2:]] == stands, "time that stands still")
    assert max(time_ns(message.clock) for message in clock) == last_ns


@pytest.mark.usefixtures("paused")
@pytest.mark.parametrize("ticks", [1, 7, 3001])
def test_step_is_exact(client: Client, clock: list[Clock], ticks: int) -> None:
    begin = client.advance(1)
    assert client.advance(ticks) == begin + ticks
    expected_ns = stamp_ns(begin + ticks)
    client.until(lambda: time_ns(clock[-1].clock) == expected_ns, "time after the step")


@pytest.mark.usefixtures("paused")
def test_step_is_one_control_period_by_default(client: Client) -> None:
    assert client.set_parameter("step_ticks", 0).successful
    begin = tick_of(client.call(Trigger, "crazyflow/step"))
    assert tick_of(client.call(Trigger, "crazyflow/step")) == begin + 5


def test_reset_under_command_load(client: Client, clock: list[Clock]) -> None:
    poses = {drone: client.collect(PoseStamped, f"{drone}/pose") for drone in DRONES}
    client.pause(True)
    client.reset()
    tick = client.advance(5)
    initial = {d: numbers(client.newest(poses[d], tick).pose.position) for d in DRONES}
    assert client.set_parameter("real_time_factor", 0.0).successful
    client.pause(False)
    with command_load():
        for _ in range(20):
            seen = len(poses["cf0"])
            client.until(lambda n=seen: len(poses["cf0"]) > n, "a pose between two resets")
            client.reset()
        client.until(lambda: poses["cf0"][-1].pose.position.z > 0.2, "take-off")
        client.pause(True)
    client.reset()
    tick = client.advance(100)
    for drone in DRONES:
        position = numbers(client.newest(poses[drone], tick).pose.position)
        assert np.allclose(position, initial[drone], atol=1e-4), drone
    times = [time_ns(message.clock) for message in clock]
    assert (np.diff(times) >= 0).all()
    assert client.set_parameter("real_time_factor", 1.0).successful


# Topics.


@pytest.mark.usefixtures("paused")
def test_newcomer_is_served_while_time_stands_still(client: Client) -> None:
    same = {name: client.listen(kind, f"crazyflow/{name}") for name, kind in DISPLAY.items()}
    tick = client.advance(5)
    for _ in range(2):
        newcomer = Client(DOMAIN)
        for kind, name in ((Odometry, "odom"), (Imu, "imu"), (JointState, "joint_states")):
            message = newcomer.latest(kind, f"cf1/{name}")
            assert time_ns(message.header.stamp) == stamp_ns(tick)
        assert time_ns(newcomer.latest(Clock, "/clock").clock) == stamp_ns(tick)
        for name, kind in DISPLAY.items():
            shown = newcomer.collect(kind, f"crazyflow/display/{name}")
            assert newcomer.newest(shown, tick) == client.newest(same[name], tick)
        newcomer.close()


def test_displays_get_each_step_and_at_full_speed_a_part(
    client: Client, clock: list[Clock], paused: None, running: None
) -> None:
    client.pause(True)
    shown = client.collect(MultiDOFJointState, "crazyflow/display/odometry")
    for _ in range(5):
        client.newest(shown, client.advance(1))
    assert client.set_parameter("real_time_factor", 0.0).successful
    client.newest(shown, client.advance(5))
    shown.clear()
    clock.clear()
    client.pause(False)
    client.until(lambda: len(shown) >= 10, "messages")
    last = client.pause(True)
    client.newest(shown, last)  # the last of all is not left out
    times = [time_ns(message.header.stamp) for message in shown]
    assert times == sorted(times)
    client.until(lambda: time_ns(clock[-1].clock) >= times[-1], "the clock")
    assert len(shown) < len({time_ns(message.clock) for message in clock})


@pytest.mark.usefixtures("paused")
def test_transform_odometry_and_pose_are_the_same(client: Client) -> None:
    tf2_msgs = pytest.importorskip("tf2_msgs.msg", reason="tf2_msgs is not installed")
    odometry = client.listen(Odometry, "cf1/odom")
    poses = client.listen(PoseStamped, "cf1/pose")
    transforms = client.listen(tf2_msgs.TFMessage, "/tf")
    place = client.newest(odometry, client.advance(5))
    client.publish("cf1/cmd_pose", above(place, yaw=2.0))
    for _ in range(20):
        tick = client.advance(50)
        odom, stamped = client.newest(odometry, tick), client.newest(poses, tick)
        assert (odom.header.frame_id, odom.child_frame_id) == ("cf1/odom", "cf1/base_link")
        assert stamped.header.frame_id == "map"
        assert odom.pose.pose == stamped.pose
        attitude = numbers(stamped.pose.orientation)
        assert np.linalg.norm(attitude) == pytest.approx(1.0, abs=1e-6)
        sent = client.until(
            lambda odom=odom: [
                t
                for message in transforms
                for t in message.transforms
                if t.child_frame_id == "cf1/base_link" and t.header.stamp == odom.header.stamp
            ],
            "transform",
        )
        assert [t.header.frame_id for t in sent] == ["cf1/odom"]
        assert sent[0].transform == transform(stamped)
    assert stamped.pose.position.z > 0.3


def test_every_frame_has_one_parent(client: Client) -> None:
    tf2_msgs = pytest.importorskip("tf2_msgs.msg", reason="tf2_msgs is not installed")
    client.pause(False)
    moving = client.latest(tf2_msgs.TFMessage, "/tf").transforms
    static = client.collect(tf2_msgs.TFMessage, "/tf_static", LATCHED)
    fixed = client.until(lambda: static and static[0], "static transforms").transforms
    parents = {t.child_frame_id: t.header.frame_id for t in [*moving, *fixed]}
    assert len(parents) == len(moving) + len(fixed)
    for drone in DRONES:
        for frame in (f"{drone}/imu_link", f"{drone}/fpv_camera_optical_frame"):
            path = [frame]
            while path[-1] in parents:
                path.append(parents[path[-1]])
            assert path[-3:] == [f"{drone}/base_link", f"{drone}/odom", "map"]


@pytest.mark.usefixtures("paused")
def test_twist_is_in_the_axes_of_the_drone(client: Client) -> None:
    """A drone that looks north (yaw 90 degrees) and flies east moves to its right."""
    odometry = client.listen(Odometry, "cf0/odom")
    place = client.newest(odometry, client.advance(5))
    client.publish("cf0/cmd_pose", above(place, yaw=math.pi / 2))
    client.advance(2000)
    client.publish("cf0/cmd_vel", twist(y=-0.5))
    client.advance(1000)
    before = client.newest(odometry, client.advance(5))
    odom = client.newest(odometry, client.advance(5))
    moved = numbers(odom.pose.pose.position) - numbers(before.pose.pose.position)
    assert np.allclose(moved / 0.01, [0.5, 0.0, 0.0], atol=0.1)
    assert np.allclose(numbers(odom.twist.twist.linear), [0.0, -0.5, 0.0], atol=0.1)
    # Exactly, from finite differences and the attitude, which is not quite level.
    attitude = numbers(odom.pose.pose.orientation)
    assert np.allclose(
        frames.body_to_world(attitude, numbers(odom.twist.twist.linear)), moved / 0.01, atol=5e-3
    )


@pytest.mark.usefixtures("paused")
def test_velocity_is_forward_left_up(client: Client) -> None:
    odometry = {drone: client.listen(Odometry, f"{drone}/odom") for drone in DRONES}
    for drone in DRONES:
        client.publish(f"{drone}/cmd_vel", twist(z=0.5))
    lifted = client.advance(1000)
    for drone in DRONES:
        client.publish(f"{drone}/cmd_vel", twist())
    hovering = client.advance(1000)
    client.publish("cf0/cmd_vel", twist(x=0.5))
    client.publish("cf1/cmd_vel", twist(y=0.5))
    client.publish("cf2/cmd_vel", twist(yaw_rate=0.5))
    ended = client.advance(1000)
    risen = client.newest(odometry["cf0"], lifted).pose.pose.position
    assert risen.z == pytest.approx(1.0, abs=0.1)
    begin = {d: client.newest(odometry[d], hovering).pose.pose for d in DRONES}
    end = {d: client.newest(odometry[d], ended).pose.pose for d in DRONES}
    moved = {d: numbers(end[d].position) - numbers(begin[d].position) for d in DRONES}
    assert moved["cf0"][0] > 0.5
    assert abs(moved["cf0"][1]) < 0.1
    assert moved["cf1"][1] > 0.5
    assert abs(moved["cf1"][0]) < 0.1
    assert frames.yaw(numbers(end["cf2"].orientation)) == pytest.approx(1.0, abs=0.1)
    turning = client.newest(odometry["cf2"], ended).twist.twist.angular
    assert numbers(turning) == pytest.approx([0.0, 0.0, 0.5], abs=0.1)


@pytest.mark.usefixtures("paused")
def test_a_drone_at_rest_feels_and_sees_the_floor_until_its_rotors_turn(client: Client) -> None:
    kinds = {"range": Range, "imu": Imu, "joint_states": JointState}
    topics = {name: client.collect(kind, f"cf0/{name}") for name, kind in kinds.items()}
    client.reset()
    tick = client.advance(500)
    reading, imu, rotors = (client.newest(messages, tick) for messages in topics.values())
    assert reading.header.frame_id == "cf0/range_link"
    assert reading.radiation_type == Range.INFRARED
    assert (reading.min_range, reading.max_range) == (0.0, 4.0)
    assert reading.range == pytest.approx(0.011, abs=1e-3)
    assert imu.header.frame_id == "cf0/imu_link"
    assert numbers(imu.linear_acceleration) == pytest.approx([0, 0, 9.81], abs=0.02)
    assert numbers(imu.angular_velocity) == pytest.approx([0, 0, 0], abs=1e-3)
    assert imu.orientation_covariance.tolist() == (1e-9 * np.eye(3)).ravel().tolist()  # exact
    assert set(rotors.velocity) == {0.0}
    client.publish("cf0/cmd_vel", twist(z=0.5))
    speeds = client.newest(topics["joint_states"], client.advance(1000)).velocity
    assert all(1000 < speed < 3000 for speed in speeds)  # rad/s


@pytest.mark.usefixtures("paused")
def test_swarm_topics_say_the_same_as_those_of_the_drones(client: Client) -> None:
    swarm = client.listen(MultiDOFJointState, "crazyflow/odometry")
    swarm_rotors = client.listen(JointState, "crazyflow/joint_states")
    odometry = [client.listen(Odometry, f"{drone}/odom") for drone in DRONES]
    rotors = [client.listen(JointState, f"{drone}/joint_states") for drone in DRONES]
    place = client.newest(odometry[1], client.advance(5))
    client.publish("cf1/cmd_pose", above(place, yaw=2.0))
    tick = client.advance(FREQ)
    together = client.newest(swarm, tick)
    assert together.header.frame_id == "map" and together.joint_names == list(DRONES)
    for i, messages in enumerate(odometry):
        alone = client.newest(messages, tick)
        assert together.transforms[i] == transform(alone.pose)
        assert together.twist[i] == alone.twist.twist
    assert together.twist[1].linear.z > 0.1 > abs(together.twist[0].linear.z)
    alone = [client.newest(messages, tick) for messages in rotors]
    joints = client.newest(swarm_rotors, tick)
    assert joints.name == [name for states in alone for name in states.name]
    assert list(joints.velocity) == [speed for states in alone for speed in states.velocity]
    assert list(joints.position) == [angle for states in alone for angle in states.position]


@pytest.mark.usefixtures("running")
def test_status_says_how_it_is_doing(client: Client) -> None:
    assert client.set_parameter("real_time_factor", 2.0).successful
    message = client.latest(DiagnosticArray, "crazyflow/status")
    (status,) = message.status
    values = {item.key: item.value for item in status.values}
    assert status.name == "/crazyflow: simulation"
    assert float(values["requested_factor"]) == 2.0
    assert values["paused"] == "false"
    assert time_ns(message.header.stamp) == stamp_ns(int(values["tick"]))
    for key in ("achieved_factor", "overruns", "stalls", "epoch"):
        assert float(values[key]) >= 0


@pytest.mark.usefixtures("paused")
def test_lost_drone_is_told_until_its_reset_which_is_told_too(client: Client) -> None:
    events = client.collect(DiagnosticArray, "crazyflow/reset_event")
    statuses = client.collect(DiagnosticArray, "crazyflow/status")
    odometry = {drone: client.collect(Odometry, f"{drone}/odom") for drone in DRONES}
    client.advance(5)
    for drone in DRONES:
        client.until(lambda drone=drone: odometry[drone], f"odometry of {drone}")
        client.publish(f"{drone}/cmd_pose", above(odometry[drone][-1]))
    client.advance(300)
    push = WrenchStamped()
    push.header.frame_id, push.wrench.force.x = "map", 1e3  # N, more than a drone survives
    client.publish("cf1/wrench", push)
    tick = client.advance(200)

    def told(kind: bytes) -> Any:
        return statuses and [s for s in statuses[-1].status if s.level == kind and "cf1" in s.name]

    (lost,) = client.until(lambda: told(DiagnosticStatus.ERROR), "error about cf1")
    assert lost.name == "/crazyflow: cf1" and "lost by" in lost.message
    held = client.newest(odometry["cf1"], tick)
    assert np.isfinite(numbers(held.pose.pose.position)).all()
    assert not numbers(held.twist.twist.linear).any()
    assert client.newest(odometry["cf0"], tick).pose.pose.position.z > 0.2
    events.clear()
    assert tick_of(client.call(Trigger, "cf1/reset")) == tick
    message = client.until(lambda: events and events[0], "reset event")
    values = {item.key: item.value for item in message.status[0].values}
    assert values["drones"] == "cf1" and values["scope"] == "state"
    assert time_ns(message.header.stamp) == stamp_ns(tick) == stamp_ns(int(values["tick"]))
    client.until(lambda: not told(DiagnosticStatus.ERROR), "status without the error")
    flying, standing = (odometry[d][-1].pose.pose.position.z for d in ("cf0", "cf1"))
    assert flying > 0.2 and standing < 0.02
    client.reset()
    told_again = client.until(lambda: len(events) > 1 and events[1], "reset event")
    values = {item.key: item.value for item in told_again.status[0].values}
    assert values["drones"] == "cf0, cf1, cf2"


@pytest.mark.usefixtures("paused")
def test_other_readers_accept_the_messages_of_all_topics(client: Client) -> None:
    push = WrenchStamped()
    push.header.frame_id, push.wrench.force.x = "map", 10.0

    def crash() -> None:
        client.reset()
        for drone in DRONES:
            client.publish(f"{drone}/cmd_pose", pose(5.0, 5.0, 1.0))
        client.advance(750)  # the event is that of a drone in the air
        client.publish("cf1/wrench", push)
        client.advance(250)  # by then it is metres off its course

    published = names("published topic").keys()
    client.until(lambda: published <= set(dict(client.node.get_topic_names_and_types())), "topics")
    Wire(client, "crazyflow").check(crash)
    client.reset()


@pytest.mark.usefixtures("paused")
def test_a_plan_leads_from_the_drone_to_its_goal(client: Client) -> None:
    odometry, plans = client.collect(Odometry, "cf0/odom"), client.collect(Path, "cf0/plan")
    place = client.newest(odometry, client.advance(5))
    goal = pose(place.pose.pose.position.x + 0.5, place.pose.pose.position.y, 1.0, yaw=2.0)
    client.publish("cf0/cmd_pose", goal)
    client.advance(5)
    plan = client.until(lambda: [plan for plan in plans if plan.poses], "plan")[0]
    assert plan.header.frame_id == "map"
    begin, end = (numbers(plan.poses[i].pose.position) for i in (0, -1))
    np.testing.assert_allclose(begin, numbers(place.pose.pose.position), atol=0.02)
    np.testing.assert_allclose(end, numbers(goal.pose.position), atol=1e-3)
    np.testing.assert_allclose(
        numbers(plan.poses[-1].pose.orientation), numbers(goal.pose.orientation), atol=1e-3
    )
    # The drone is on it when it says.
    half = plan.poses[len(plan.poses) // 2]
    ticks = (time_ns(half.header.stamp) - time_ns(plan.header.stamp)) * FREQ // 10**9
    there = client.newest(odometry, client.advance(round(ticks / 5) * 5))
    np.testing.assert_allclose(
        numbers(there.pose.pose.position), numbers(half.pose.position), atol=0.1
    )
    client.until(lambda: client.advance(500) and not plans[-1].poses, "end of the plan")


def test_the_scene_is_published_for_late_comers(client: Client) -> None:
    markers = client.until(
        lambda: client.collect(MarkerArray, "crazyflow/scene", LATCHED)[-1:], "scene"
    )[0].markers
    first, floor = markers  # all earlier ones are deleted first
    assert first.action == Marker.DELETEALL
    assert floor.type == Marker.CUBE and floor.header.frame_id == "map"
    assert floor.pose.position.z + floor.scale.z / 2 == pytest.approx(0.0, abs=1e-9)


# Commands.


def test_bad_commands_change_nothing(client: Client, simulator: SimulatorProcess) -> None:
    """The same flight twice, the second time with bad commands to one of the drones."""
    odometry = {drone: client.listen(Odometry, f"{drone}/odom") for drone in DRONES}
    not_rising = MultiDOFJointTrajectory(points=[MultiDOFJointTrajectoryPoint()] * 2)
    for point in not_rising.points:
        point.transforms = [transform(pose(0.0, 0.0, 1.0))]
    lost = twist(x=1.0)
    lost.header.frame_id = "cf1/base_link"
    bad = (
        ("cf0/cmd_pose", pose(math.nan, 0.0, 1.0), "nan"),
        ("cf0/cmd_vel", lost, "got 'cf1/base_link'"),
        ("cf0/cmd_trajectory", not_rising, "times must rise"),
        ("cf0/command", Float64MultiArray(data=[1.0, 2.0]), "got 2"),
    )

    def positions(tick: int) -> list[Any]:
        poses = [client.newest(odometry[drone], tick).pose.pose for drone in DRONES]
        return [numbers(pose.position) for pose in poses]

    flights = []
    for commands in ((), bad):
        client.pause(True)
        client.reset()
        tick = client.advance(5)
        for drone in DRONES:
            place = client.newest(odometry[drone], tick)
            client.publish(f"{drone}/cmd_pose", above(place, yaw=0.5))
        middle = positions(client.advance(500))  # before a busy reader loses it to later messages
        for topic, message, reason in commands:
            client.publish(topic, message)
            simulator.wait_for(f"{topic} is ignored: ", 10.0)
            (line,) = [n for n in simulator.log.splitlines() if f"{topic} is ignored: " in n]
            assert reason in line
        flights.append([*middle, *positions(client.advance(495))])
    assert np.array_equal(*flights)


# The table.


def rows(header: str) -> list[list[str]]:
    """Cells of the table in docs/reference/interface.md whose first column is called `header`."""
    text = (ROOT / "docs" / "reference" / "interface.md").read_text()
    found = re.search(rf"^\| {header} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found, f"no table of {header}"
    lines = found[1].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def full_names(cell: str) -> list[str]:
    """The names in a cell, of one drone."""
    found = re.findall("`(.+?)`", cell)
    relative = [name.replace("~", "crazyflow").replace("<drone>", "cf0") for name in found]
    return [f"/{name.removeprefix('/')}" for name in relative]


def names(header: str) -> dict[str, str]:
    """Full names in a table, with their types."""
    return {name: kind.strip("`") for cell, kind, *_ in rows(header) for name in full_names(cell)}


def of_node(listed: list[tuple[str, list[str]]]) -> dict[str, str]:
    """What the graph says, without the other drones and what every node has."""
    others = [f"/{drone}/" for drone in DRONES[1:]]
    ours = {name: kinds[0] for name, kinds in listed if not name.startswith(tuple(others))}
    return {
        name: kind
        for name, kind in ours.items()
        if name not in ("/rosout", "/parameter_events")
        and not re.fullmatch(r"/crazyflow/(\w+_parameters?\w*|get_type_description)", name)
        # These have a table of their own.
        and not (kind.startswith("simulation_interfaces/") or "/_action/" in name)
    }


@pytest.fixture
def found(client: Client) -> None:
    """This process has discovered the node."""
    client.until(lambda: "crazyflow" in client.node.get_node_names(), "node in the graph")


@pytest.mark.usefixtures("found")
def test_page_lists_the_topics(client: Client) -> None:
    node = client.node
    published = names("published topic")
    client.until(
        lambda: of_node(node.get_publisher_names_and_types_by_node("crazyflow", "/")) == published,
        f"published topics, which are to be {published}",
    )
    subscribed = names("subscribed topic")
    client.until(
        lambda: (
            of_node(node.get_subscriber_names_and_types_by_node("crazyflow", "/")) == subscribed
        ),
        f"subscribed topics, which are to be {subscribed}",
    )


@pytest.mark.usefixtures("found")
def test_page_lists_the_services(client: Client) -> None:
    node, services = client.node, names("service")
    client.until(
        lambda: of_node(node.get_service_names_and_types_by_node("crazyflow", "/")) == services,
        f"services, which are to be {services}",
    )


@pytest.mark.usefixtures("found")
def test_page_lists_the_quality_of_service(client: Client) -> None:
    found = dict.fromkeys(names("subscribed topic"), "")
    found |= {n: qos for cell, _, qos, _ in rows("published topic") for n in full_names(cell)}
    for topic, quality in found.items():
        infos = client.node.get_publishers_info_by_topic
        if topic in names("subscribed topic"):
            infos = client.node.get_subscriptions_info_by_topic
        (qos,) = client.until(
            lambda infos=infos, topic=topic: [
                i.qos_profile for i in infos(topic) if i.node_name == "crazyflow"
            ],
            f"endpoint of {topic}",
        )
        assert qos.reliability.name.lower() == "reliable"
        assert (qos.durability.name == "TRANSIENT_LOCAL") == (quality == "latched"), topic


def test_page_lists_the_parameters(client: Client) -> None:
    page = (ROOT / "docs" / "reference" / "parameters.md").read_text()
    own = page.partition("\n## Extensions")[0]  # of which none is on here
    listed = re.findall(r"^\| \[?`([\w.]+)`", own, re.MULTILINE)
    every_node = {"use_sim_time", "start_type_description_service"}
    running = {n for n in client.parameter_names() if not n.startswith("qos_overrides.")}
    assert sorted(running - every_node) == sorted(listed)

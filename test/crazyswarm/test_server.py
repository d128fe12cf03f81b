"""crazyswarm2's server, from outside: services, topics and parameters as its clients use them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from crazyflie_helpers import connected, free_port
from crazyflie_interfaces.msg import (
    ConnectionStatisticsArray,
    FullState,
    LogDataGeneric,
    Position,
    Status,
    VelocityWorld,
)
from crazyflie_interfaces.srv import (
    AddLogging,
    Arm,
    GoTo,
    Land,
    NotifySetpointsStop,
    RemoveLogging,
    StartTrajectory,
    Takeoff,
)
from crazyswarm import SERVER, ServerProcess, configuration
from geometry_msgs.msg import Point, PoseStamped, Vector3
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, GetParameters
from rclpy.duration import Duration as Deadline
from rclpy.qos import QoSProfile, ReliabilityPolicy
from ros_client import LATCHED, Client, RosProcess, numbers, own_domain, time_ns
from sensor_msgs.msg import Imu, LaserScan
from std_msgs.msg import String
from std_srvs.srv import Empty, Trigger
from tf2_msgs.msg import TFMessage
from wire import Wire

DOMAIN = own_domain(__name__)
STANDING = 0.014  # m
_AXES = ("x", "y", "z", "vx", "vy", "vz", "ax")
NEAR = 0.05  # m
ARMED, AUTO_ARM, FLYING, LOCKED = 2, 4, 16, 64
SENSOR = QoSProfile(
    depth=100,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    deadline=Deadline(nanoseconds=10_000_000),
)
"""Of crazyswarm2's own subscription to /poses."""


def content() -> dict[str, Any]:
    found = configuration("cf1", "cf2")
    logging = found["all"]["firmware_logging"]
    logging["default_topics"] |= {"odom": {"frequency": 30}, "scan": {"frequency": 20}}
    logging["custom_topics"] = {"own": {"frequency": 10, "vars": ["pm.vbat", "stateEstimate.z"]}}
    found["robots"]["cf2"]["firmware_params"] = {"led": {"bitmask": 5}, "no": {"such": 1}}
    logging["default_topics"]["imu"] = {"frequency": 50}
    found["robots"]["cf2"]["reference_frame"] = "mocap"
    found["robot_types"]["cf21"]["firmware_params"] = {"led": {"bitmask": 3}}
    found["warnings"] = {"frequency": 10.0, "communication": {"publish_stats": True}}
    found["robot_description"] = "<robot name='$NAME'><link name='$NAME'/></robot>"
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    arguments = (
        *("-p", "real_time_factor:=5.0", "-p", "motion_capture.dropout:=0.2"),
        *("-p", f"crazyflie.port:={free_port(2)}"),
    )
    folder = tmp_path_factory.mktemp("server")
    with ServerProcess(DOMAIN, folder, content(), arguments) as process:
        yield process


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    client = Client(DOMAIN, simulator=SERVER)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def on_the_floor(client: Client) -> None:
    client.call(Trigger, f"{SERVER}/reset")


def place(client: Client, drone: str = "cf1") -> np.ndarray:
    return numbers(client.latest(PoseStamped, f"{drone}/pose").pose.position)


def until_at(client: Client, drone: str, *where: float | None, near: float = NEAR) -> None:
    def is_there() -> bool:
        return all(
            p is None or abs(p - x) < near for p, x in zip(where, place(client, drone).tolist())
        )

    client.until(is_there, f"{drone} at {where}", 60)


def takeoff(client: Client, who: str = "all", height: float = 1.0, **others: Any) -> None:
    client.call(Takeoff, f"{who}/takeoff", height=height, duration=Duration(sec=2), **others)


def value_of(client: Client, *names: str) -> list[Any]:
    found = client.call(GetParameters, f"{SERVER}/get_parameters", names=list(names)).values
    fields = {
        ParameterType.PARAMETER_INTEGER: "integer_value",
        ParameterType.PARAMETER_DOUBLE: "double_value",
        ParameterType.PARAMETER_STRING: "string_value",
        ParameterType.PARAMETER_DOUBLE_ARRAY: "double_array_value",
    }
    return [getattr(value, fields[value.type]) for value in found]


def test_parameters_are_those_that_clients_ask_for(client: Client) -> None:
    asked = ("robots.cf2.initial_position", "robots.cf2.uri", "all.reference_frame")
    position, uri, frame = value_of(client, *asked)
    assert (list(position), uri, frame) == ([0.0, 0.4, 0.0], "radio://0/80/2M/E7E7E7E7E6", "world")
    names = [name for name in client.parameter_names() if ".params." in name]
    owners = {name.partition(".params.")[0] for name in names}
    assert owners == {"all", "cf1", "cf2"} and len(names) > 300
    few = ["all.params.led.bitmask", "cf1.params.locSrv.extPosStdDev"]
    described = client.call(DescribeParameters, f"{SERVER}/describe_parameters", names=few)
    types = [descriptor.type for descriptor in described.descriptors]
    assert types == [ParameterType.PARAMETER_INTEGER, ParameterType.PARAMETER_DOUBLE]


def test_firmware_parameters_of_robots_types_and_all(client: Client, server: ServerProcess) -> None:
    led = ("cf1.params.led.bitmask", "cf2.params.led.bitmask")
    given = [*led, "cf1.params.locSrv.extPosStdDev"]
    values = [3, 5, pytest.approx(1e-3)]
    client.until(lambda: value_of(client, *given) == values, "the values of the file")
    assert "cf2: the firmware has no parameter no.such" in server.log
    assert client.set_parameter("cf1.params.led.bitmask", 128).successful
    assert value_of(client, *led) == [128, 5]
    assert client.set_parameter("all.params.led.bitmask", 0).successful
    assert value_of(client, *led) == [0, 0]
    refused = client.set_parameter("cf1.params.led.bitmask", 300)
    assert not refused.successful and refused.reason == "led.bitmask is a uint8, got 300"
    assert not client.set_parameter("cf1.params.led.bitmask", "on").successful
    assert value_of(client, *led) == [0, 0]


def test_go_to_of_all_is_relative(client: Client) -> None:
    takeoff(client)
    until_at(client, "cf1", 0.0, 0.0, 1.0, near=NEAR / 3)  # where it goes from is where it ends
    until_at(client, "cf2", 0.0, 0.4, 1.0, near=NEAR / 3)
    client.call(GoTo, "all/go_to", goal=Point(x=0.5), duration=Duration(sec=2))
    until_at(client, "cf1", 0.5, 0.0, 1.0)
    until_at(client, "cf2", 0.5, 0.4, 1.0)
    client.call(Land, "all/land", height=0.04, duration=Duration(sec=2))
    until_at(client, "cf1", 0.5, 0.0, STANDING)


def test_durations_are_those_of_the_firmware(client: Client, server: ServerProcess) -> None:
    """One metre in two seconds is more than the planner allows itself elsewhere."""
    client.latest(TFMessage, "/tf")
    messages = client.collect(TFMessage, "/tf")
    takeoff(client, "cf1")

    def heights() -> dict[int, float]:
        ways = [message.transforms[0] for message in messages]
        return {time_ns(way.header.stamp): way.transform.translation.z for way in ways}

    client.until(lambda: max(heights().values(), default=0.0) > 0.9, "the end of the takeoff")
    begin = min(time for time, z in heights().items() if z > 0.1)
    end = min(time for time, z in heights().items() if z > 0.9)
    assert (end - begin) * 1e-9 == pytest.approx(0.85, abs=0.1)  # the rest is slow
    assert "the fastest allowed" not in server.log


def test_a_trajectory_that_only_some_have(client: Client, server: ServerProcess) -> None:
    client.call(StartTrajectory, "all/start_trajectory", trajectory_id=9, timescale=1.0)
    server.wait_for("cf1: there is no trajectory 9, uploaded are: none; cf2: there is no")


def test_streamed_setpoints_in_the_units_of_the_servers(client: Client) -> None:
    takeoff(client, "cf1")
    until_at(client, "cf1", 0.0, 0.0, 1.0)
    publisher, steps = client.publisher(Position, "cf1/cmd_position"), count(1)

    def is_there() -> bool:
        """On the way: a step to the goal would be an error of half a metre for the controller."""
        share = min(next(steps) / 100, 1.0)
        message = Position(x=0.5 * share, y=0.2 * share, z=1 - 0.2 * share, yaw=90.0 * share)
        message.header.frame_id = "whatever"
        publisher.publish(message)
        return bool(np.abs(place(client) - [0.5, 0.2, 0.8]).max() < NEAR)

    client.until(is_there, "the position", 60)
    orientation = client.latest(PoseStamped, "cf1/pose").pose.orientation
    yaw = 2 * math.atan2(orientation.z, orientation.w)
    assert yaw == pytest.approx(math.pi / 2, abs=0.3)  # degrees, not radians; it still turns
    publisher = client.publisher(VelocityWorld, "cf1/cmd_velocity_world")

    def has_sunk() -> bool:
        publisher.publish(VelocityWorld(vel=Vector3(y=-0.4)))
        return bool(place(client)[2] < 0.4)

    # As in the firmware, Mellinger's controller follows no velocities: height 0 is what they give.
    client.until(has_sunk, "the descent", 60)
    client.call(NotifySetpointsStop, "all/notify_setpoints_stop")
    client.call(Land, "cf1/land", height=0.04, duration=Duration(sec=2))
    until_at(client, "cf1", None, None, STANDING)


def test_full_state_for_all(client: Client) -> None:
    takeoff(client)
    until_at(client, "cf1", 0.0, 0.0, 1.0)
    until_at(client, "cf2", 0.0, 0.4, 1.0)
    message = FullState()
    message.header.frame_id, message.pose.orientation.w = "/world", 1.0
    message.pose.position.z = 1.2
    publisher = client.publisher(FullState, "all/cmd_full_state")

    def are_there() -> bool:
        publisher.publish(message)
        found = [place(client, drone)[2] for drone in ("cf1", "cf2")]
        return all(abs(z - 1.2) < 0.1 for z in found)

    client.until(are_there, "the height", 60)


def test_cflib_and_ros_share_the_parameters(
    client: Client, server: ServerProcess, tmp_path: Path
) -> None:
    """A value set here is seen there, and the reverse; also by a client that is connected."""
    pytest.importorskip("cflib", reason="cflib is not installed")
    found = re.search(r"Crazyflies for cflib: (udp://\S+)", server.log)
    assert found, server.log
    with connected(found[1], tmp_path) as cf:
        values = cf.param
        assert values.get_value("locSrv.extPosStdDev") == "0.0010000000474974513"
        values.set_value("ring.effect", 7)
        client.until(lambda: value_of(client, "cf1.params.ring.effect") == [7], "the effect", 30)
        assert value_of(client, "cf2.params.ring.effect") == [6]
        assert client.set_parameter("cf1.params.ring.effect", 3).successful
        client.until(lambda: values.get_value("ring.effect") == "3", "the effect in cflib", 30)
        assert client.set_parameter("all.params.ring.effect", 2).successful
        client.until(lambda: values.get_value("ring.effect") == "2", "that of all", 30)
        assert client.set_parameter("cf1.params.ctrlMel.kp_xy", 0.5).successful
        client.until(lambda: values.get_value("ctrlMel.kp_xy") == "0.5", "the gain in cflib", 30)


def test_status_follows_the_supervisor(client: Client) -> None:
    def info(drone: str = "cf1") -> int:
        return int(client.latest(Status, f"{drone}/status").supervisor_info)

    assert info() & (ARMED | AUTO_ARM | FLYING) == ARMED | AUTO_ARM
    takeoff(client, "cf1")
    client.until(lambda: info() & FLYING, "flying", 60)
    status = client.latest(Status, "cf1/status")
    assert (status.battery_voltage, status.pm_state) == (pytest.approx(4.2), 0)
    client.call(Empty, "all/emergency")
    client.until(lambda: info() & LOCKED, "locked", 60)
    takeoff(client, "cf1")
    assert not info() & FLYING
    client.call(Trigger, f"{SERVER}/reset")
    client.call(Arm, "all/arm", arm=False)  # a brushed Crazyflie arms itself again
    client.until(lambda: info() & ARMED, "armed", 60)


def test_topics_have_frames_and_periods_of_the_configuration(client: Client) -> None:
    def two(kind: Any, topic: str) -> Any:
        messages = client.collect(kind, topic)
        client.until(lambda: len(messages) > 3, topic)
        stamps = np.array([time_ns(message.header.stamp) for message in messages])
        return messages[-1], set(np.diff(stamps).tolist())

    pose, periods = two(PoseStamped, "cf1/pose")
    assert (pose.header.frame_id, periods) == ("world", {100_000_000})
    pose, _ = two(PoseStamped, "cf2/pose")
    assert (pose.header.frame_id, pose.pose.position.y) == ("mocap", pytest.approx(0.4))
    odom, periods = two(Odometry, "cf2/odom")
    assert (odom.header.frame_id, odom.child_frame_id) == ("mocap", "cf2")
    assert periods == {30_000_000}  # a multiple of 10 ms, as in the firmware
    for covariance in (odom.pose.covariance, odom.twist.covariance):
        np.testing.assert_array_equal(np.reshape(covariance, (6, 6)), 1e-9 * np.eye(6))  # exact
    scan, periods = two(LaserScan, "cf1/scan")
    assert (scan.header.frame_id, periods) == ("cf1", {50_000_000})
    assert scan.angle_min == pytest.approx(-math.pi) and scan.angle_max == pytest.approx(
        math.pi / 2
    )
    back, right, front, left = scan.ranges
    # Nearer than the other drone, on the left at 0.4 m, is the floor in a cone of 27 degrees.
    to_floor = STANDING / math.sin(math.radians(13.5))
    assert [back, right, front, left] == pytest.approx([to_floor] * 4, abs=0.05)
    own, periods = two(LogDataGeneric, "cf1/own")
    assert (list(own.values), periods) == (
        [pytest.approx(4.2), pytest.approx(STANDING, abs=1e-3)],
        {100_000_000},
    )
    assert own.timestamp == time_ns(own.header.stamp) // 1_000_000


def test_tf_leads_from_the_reference_frame_to_the_drone(client: Client) -> None:
    first, second = client.latest(TFMessage, "/tf").transforms
    assert (first.header.frame_id, first.child_frame_id) == ("world", "cf1")
    assert (second.header.frame_id, second.child_frame_id) == ("mocap", "cf2")
    static = client.collect(TFMessage, "/tf_static", LATCHED)
    client.until(lambda: static, "/tf_static")
    edges = {(t.header.frame_id, t.child_frame_id) for t in static[-1].transforms}
    assert ("cf1", "cf1/base_link") in edges and ("cf1/base_link", "cf1/imu_link") in edges
    assert not any(child in ("cf1", "cf1/odom") for _, child in edges)


def test_robot_description_names_the_drone(client: Client) -> None:
    found = client.collect(String, "cf2/robot_description", LATCHED)
    client.until(lambda: found, "the description")
    assert found[0].data == "<robot name='cf2'><link name='cf2'/></robot>"


def test_logging_begins_and_ends_at_run_time(client: Client, server: ServerProcess) -> None:
    def begin(topic: str, frequency: int, *variables: str) -> bool:
        return bool(
            client.call(
                AddLogging, "cf2/add_logging", topic_name=topic, frequency=frequency,
                vars=list(variables),
            ).success
        )  # fmt: skip

    def end(topic: str) -> bool:
        return bool(client.call(RemoveLogging, "cf2/remove_logging", topic_name=topic).success)

    to_floor = STANDING / math.sin(math.radians(13.5))
    assert begin("more", 50, "range.left", "stabilizer.yaw")
    values = client.latest(LogDataGeneric, "cf2/more").values
    assert len(values) == 2 and values[0] == pytest.approx(1e3 * to_floor, abs=50)
    assert not begin("more", 50, "gyro.x")
    server.wait_for("cf2/more is published already")
    assert not begin("imu2", 50, "gyro.w")
    server.wait_for("there is no log variable 'gyro.w'; gyro.* are ['gyro.x', 'gyro.y', 'gyro.z']")
    assert not begin("big", 50, *(f"stateEstimate.{axis}" for axis in _AXES))
    server.wait_for("variables must have at most 26 bytes, got 28")
    assert not begin("fast", 1000, "gyro.x")
    server.wait_for("add_logging.frequency: expected a number from 0.4 to 100 Hz, got 1000")
    assert end("more") and not end("more")
    server.wait_for("cf2 does not log 'more', but ")
    assert end("pose") and begin("pose", 20)


def test_motion_capture_sees_the_drones_with_gaps(client: Client) -> None:
    from motion_capture_tracking_interfaces.msg import NamedPoseArray

    messages: list[Any] = []
    subscription = client.node.create_subscription(
        NamedPoseArray, "/poses", messages.append, SENSOR
    )
    client.until(lambda: sum(len(m.poses) for m in messages) > 300, "poses")
    assert {m.header.frame_id for m in messages} == {"world"}
    names = [pose.name for m in messages for pose in m.poses]
    assert set(names) == {"cf1", "cf2"}
    # Each is missing in a fifth of them, both in one of 25, for which there is no message.
    assert 0.7 < names.count("cf1") / len(messages) < 0.95
    seen = {p.name: numbers(p.pose.position) for m in messages[-20:] for p in m.poses}
    np.testing.assert_allclose(seen["cf2"], [0.0, 0.4, STANDING], atol=1e-3)
    client.node.destroy_subscription(subscription)


def test_other_readers_accept_the_messages_of_all_topics(client: Client) -> None:
    events = {f"/{SERVER}/{name}" for name in ("flight_events", "reset_event")}
    Wire(client, SERVER).check(lambda: None, events)


def test_statistics_count_commands(client: Client) -> None:
    messages = client.collect(ConnectionStatisticsArray, "all/connection_statistics")
    client.call(Land, "all/land", duration=Duration(sec=1))
    client.until(lambda: any(m.stats[0].sent_count for m in messages), "a command")
    assert messages[-1].stats[0].uri == "radio://0/80/2M/FFE7E7E7E7"
    one = client.latest(ConnectionStatisticsArray, "cf2/connection_statistics")
    assert (one.header.frame_id, one.stats[0].uri) == ("mocap", "radio://0/80/2M/E7E7E7E7E6")


@pytest.mark.parametrize("estimator", ["none", pytest.param("kalman", marks=pytest.mark.soak)])
def test_drones_measure_the_poses_of_another_node(tmp_path: Path, estimator: str) -> None:
    """With an estimator, a drone believes them; impossible ones, or of others, change nothing."""
    from motion_capture_tracking_interfaces.msg import NamedPose, NamedPoseArray

    given = content()
    logging = given["all"]["firmware_logging"]
    logging["custom_topics"] = {"told": {"frequency": 50, "vars": ["locSrv.x", "locSrv.qw"]}}
    given["all"]["firmware_params"] |= {"locSrv": {"extPosStdDev": 1e-3, "extQuatStdDev": 0.05}}
    domain = own_domain(f"{__name__}.external")
    arguments = ("-p", "motion_capture.external:=true", "-p", f"estimator:={estimator}")
    patience = 1500.0  # s; the filter compiles for a minute, and for many on a busy computer
    with ServerProcess(domain, tmp_path, given, arguments, patience) as process:
        client = Client(domain, simulator=SERVER)
        publisher = client.publisher(NamedPoseArray, "poses")

        def tell(name: str, x: float, w: float) -> None:
            pose = NamedPose(name=name)
            pose.pose.position.x, pose.pose.position.z = x, STANDING
            pose.pose.orientation.w = w
            publisher.publish(NamedPoseArray(poses=[pose]))

        def knows(drone: str, x: float, w: float) -> bool:
            for name in ("ball", "cf1"):
                tell(name, 0.2, 1.0)
            tell("cf2", 0.1, math.nan)
            told = client.latest(LogDataGeneric, f"{drone}/told").values
            believed = estimator == "none" or abs(place(client, drone)[0] - x) < 0.02
            return bool(np.allclose(told, (x, w), atol=1e-6)) and believed

        client.until(lambda: knows("cf1", 0.2, 1.0), "a pose", 60)
        client.until(lambda: knows("cf2", 0.1, 0.0), "a position", 60)
        variance = client.latest(Odometry, "cf1/odom").pose.covariance[0]
        assert 0 < variance < 1e-3 if estimator == "kalman" else variance == 1e-9
        for x, w, refusal in (
            (math.inf, 1.0, "cf1: external position must be 3 finite numbers, got"),
            (0.2, 0.0, "cf1: external attitude"),
        ):

            def is_refused(x: float = x, w: float = w, refusal: str = refusal) -> bool:
                tell("cf1", x, w)
                return refusal in process.log

            client.until(is_refused, refusal, 30)
        client.close()


class Failing(ServerProcess):
    """A server that does not get ready."""

    __enter__ = RosProcess.__enter__


def test_a_server_that_cannot_start_says_why(tmp_path: Any) -> None:
    with Failing(
        DOMAIN, tmp_path, content(), ("-p", "crazyflies_yaml_file:=/no/such.yaml")
    ) as process:
        assert process.wait() == 2
        assert "crazyflies_yaml_file: /no/such.yaml cannot be read" in process.log


def test_imu_has_the_readings_without_an_attitude(client: Client) -> None:
    """At rest 1 g upwards, and the rate of a turn, in the axes of the drone and SI units."""
    messages = client.collect(Imu, "cf1/imu")
    client.until(lambda: len(messages) > 5, "messages")
    at_rest = messages[-1]
    assert at_rest.header.frame_id == "cf1" and at_rest.orientation_covariance[0] == -1.0
    np.testing.assert_allclose(numbers(at_rest.linear_acceleration), (0, 0, 9.81), atol=0.02)
    stamps = np.diff([time_ns(message.header.stamp) for message in messages])
    assert set(stamps.tolist()) <= {20_000_000, 0}
    takeoff(client, "cf1", 0.6)
    until_at(client, "cf1", None, None, 0.6)
    client.call(
        *(GoTo, "cf1/go_to"),
        goal=Point(),
        relative=True,
        yaw=2.0,
        duration=Duration(sec=2),
    )
    client.until(lambda: messages[-1].angular_velocity.z > 0.5, "a turn")


def test_lights_get_a_colour(server: ServerProcess, client: Client) -> None:
    """That of the firmware's parameter; other texts are refused with what is right."""

    name = "cf1.params.led_deck_ctrl.rgb888"
    for text, colour in (("00ff10", 0x00FF10), ("#102030", 0x102030), ("0xAbCdEf", 0xABCDEF)):
        client.publish("cf1/cmd_led", String(data=text))
        client.until(lambda colour=colour: value_of(client, name) == [colour], text)
    client.publish("cf1/cmd_led", String(data="purple"))
    client.until(lambda: "a colour has six hexadecimal digits" in server.log, "a refusal")
    assert value_of(client, name) == [0xABCDEF]


def test_a_reboot_starts_the_firmware_anew_where_the_drone_is(client: Client) -> None:
    """With the settings of the files, as when the server connects; the rest is forgotten."""

    names = ("cf1.params.led.bitmask", "cf1.params.ring.effect")
    client.until(lambda: value_of(client, *names) == [3, 6], "the settings of the files")
    for name, value in zip(names, (7, 9)):
        assert client.set_parameter(name, value).successful
    assert value_of(client, *names) == [7, 9]
    takeoff(client, "cf1", 0.5)
    until_at(client, "cf1", None, None, 0.5)
    client.call(Empty, "cf1/emergency")
    until_at(client, "cf1", None, None, STANDING, near=1e-3)
    status = client.collect(Status, "cf1/status")
    client.until(lambda: status and status[-1].supervisor_info & LOCKED, "a locked drone")
    where = place(client)
    client.call(Empty, "cf1/reboot")
    client.until(lambda: not status[-1].supervisor_info & LOCKED, "a drone that is ready")
    np.testing.assert_allclose(place(client), where, atol=0.01)
    client.until(lambda: value_of(client, *names) == [3, 6], "the settings again")
    client.call(Empty, "all/emergency")
    client.call(Empty, "all/reboot")
    takeoff(client, "all", 0.5)
    for drone in ("cf1", "cf2"):
        until_at(client, drone, None, None, 0.5)

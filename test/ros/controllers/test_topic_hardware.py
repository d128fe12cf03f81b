"""ros2_control through topics: the simulator, and a double of the stock plugins beside it."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from ros_client import LATCHED, Client, SimulatorProcess, own_domain
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from wire import Wire

from crazyflow_ros.drones import load_drone
from crazyflow_ros.runtime import Level

pytest.importorskip("pal_statistics_msgs.msg", reason="pal_statistics_msgs is not installed")
from topic_plugins import Manager  # imports them

DOMAIN = own_domain(__name__)
HEIGHT, YAW = 1.5, 0.5  # m and rad at the start; a range sensor sees a grey floor up to 1.7 m
RATE = 100  # Hz
ARGUMENTS = [
    "drones:=[cf0,cf1]",
    f"initial_poses:=[0.0,0.0,{HEIGHT},0.0, 1.0,0.0,{HEIGHT},{YAW}]",
    "ros2_control.mode:=topic",
]
FIGURES = load_drone("cf2x_L250")
WEIGHT = FIGURES["mass"] * 9.81


def hover_speed() -> float:
    """rad/s of each rotor."""
    k0, k1, k2 = FIGURES["rpm2thrust"]
    rpm = (-k1 + math.sqrt(k1**2 - 4 * k2 * (k0 - WEIGHT / 4))) / (2 * k2)
    return rpm * math.tau / 60


HOVER = hover_speed()


@pytest.fixture(scope="module")
def description(client: Client) -> str:
    """The simulator's own, which is what a controller manager subscribes."""
    messages = client.collect(String, "crazyflow/robot_description", LATCHED)
    return client.until(lambda: messages and messages[0].data, "robot description")


@pytest.fixture
def start(client: Client, description: str) -> Iterator[Callable[..., Manager]]:
    """Starts a manager, which ends with the test; the drones are held then."""
    managers = []

    def start(
        change: Callable[[ET.Element], object] = lambda robot: None,
        description: str = description,
        namespace: str = "",
    ) -> Manager:
        robot = ET.fromstring(description)
        change(robot)
        manager = Manager(DOMAIN, ET.tostring(robot, encoding="unicode"), namespace)
        managers.append(manager)
        return manager

    yield start
    for manager in managers:
        manager.close()
    client.reset()
    commands = client.node.count_publishers
    client.until(lambda: not commands("/robot_joint_commands"), "end of the publishers")


@pytest.fixture
def manager(client: Client, start: Callable[..., Manager]) -> Manager:
    manager = start()
    client.until(lambda: is_complete(manager), "states of all interfaces")
    return manager


def is_complete(manager: Manager) -> bool:
    assert not manager.errors
    return not np.isnan(list(manager.states.values())).any()


def run(client: Client, manager: Manager, cycles: int) -> None:
    last = manager.cycles + cycles
    client.until(lambda: manager.cycles >= last, f"{cycles} cycles")


def reach(client: Client, manager: Manager, what: str, holds: Callable[[dict], object]) -> dict:
    """States, once they fulfil a condition."""
    return client.until(lambda: (s := manager.states) and holds(s) and s, what)


def climb(client: Client, manager: Manager, component: str = "cf0") -> None:
    manager.command(component, [1.1 * HOVER] * 4)
    reach(client, manager, "climb", lambda s: s["cf0_z/velocity"] > 0.2)


def controlled(client: Client) -> str:
    status = client.latest(DiagnosticArray, "crazyflow/status").status[0]
    return {v.key: v.value for v in status.values}["controlled_drones"]


def test_held_while_commands_are_nan_and_every_state_is_right(
    client: Client, manager: Manager
) -> None:
    before = [manager.published(drone) for drone in ("cf0", "cf1")]
    run(client, manager, RATE)
    after = [manager.published(drone) for drone in ("cf0", "cf1")]
    assert min(np.subtract(after, before)) >= RATE - 1  # NaN, in every cycle
    states = manager.states

    def values(component: str, quantity: str, axes: str = "xyz") -> list[float]:
        return [states[f"cf1_{component}/{quantity}.{axis}"] for axis in axes]

    attitude = [0, 0, math.sin(YAW / 2), math.cos(YAW / 2)]
    assert values("pose", "position") == pytest.approx([1, 0, HEIGHT])
    assert values("pose", "orientation", "xyzw") == pytest.approx(attitude)
    assert values("imu", "orientation", "xyzw") == pytest.approx(attitude)
    assert values("imu", "linear_acceleration") == pytest.approx([0, 0, 9.81])
    assert values("imu", "angular_velocity") == values("twist", "linear") == [0, 0, 0]
    assert states["cf1_range/range"] == pytest.approx(HEIGHT, abs=0.01)
    assert [states[f"cf1_{axis}/position"] for axis in "xyz"] == pytest.approx([1, 0, HEIGHT])
    assert states["cf1_yaw/position"] == states["cf1_body/yaw"] == pytest.approx(YAW)
    assert states["cf1_body/thrust"] == states["cf1_body/level"] == 0
    assert states["cf1_rotor2/velocity"] == states["cf0_body/level"] == 0


@pytest.mark.usefixtures("manager")
def test_other_readers_accept_the_messages_of_all_topics(client: Client) -> None:
    events = {f"/crazyflow/{name}" for name in ("flight_events", "reset_event")}
    Wire(client, "crazyflow").check(lambda: None, events | {"/cf0/plan", "/cf1/plan"})


def test_manager_in_the_namespace_of_its_drone(
    client: Client, start: Callable[..., Manager]
) -> None:
    texts = client.collect(String, "cf1/robot_description", LATCHED)
    client.until(lambda: texts, "robot description")
    manager = start(description=texts[0].data, namespace="cf1")
    client.until(lambda: is_complete(manager), "states of all interfaces")
    assert {name.partition("_")[0] for name in manager.states} == {"cf1"}
    assert manager.states["cf1_x/position"] == pytest.approx(1)


def test_last_command_holds_when_the_plugin_falls_silent(
    client: Client, start: Callable[..., Manager]
) -> None:
    def set_threshold(robot: ET.Element) -> None:
        for parameter in robot.iterfind(".//param[@name='trigger_joint_command_threshold']"):
            parameter.text = "4.0"  # rad/s, the sum of all rotors

    manager = start(set_threshold)
    manager.command("cf0", [HOVER] * 4)
    reach(client, manager, "speed", lambda s: abs(s["cf0_rotor0/velocity"] - HOVER) < 0.5)
    before = manager.published("cf0")
    assert before > 0
    run(client, manager, RATE // 2)
    assert manager.published("cf0") == before
    assert not manager.errors
    states = manager.states
    assert states["cf0_body/level"] == Level.rotor_velocity
    assert states["cf0_rotor0/velocity"] == pytest.approx(HOVER, rel=1e-4)
    assert states["cf0_body/thrust"] == pytest.approx(WEIGHT, rel=1e-3)
    torque = np.polynomial.Polynomial(FIGURES["rpm2torque"])(HOVER * 60 / math.tau)
    assert states["cf0_rotor3/effort"] == pytest.approx(torque, rel=1e-3)
    assert states["cf1_z/position"] == pytest.approx(HEIGHT)  # still NaN: held
    assert controlled(client) == "cf0"


def test_reset_while_flying_holds_until_the_controller_answers_it(
    client: Client, manager: Manager
) -> None:
    climb(client, manager)
    manager.command("cf0", [math.nan] * 4)
    client.reset()
    reach(client, manager, "held", lambda s: s["cf0_body/level"] == Level.held)
    run(client, manager, RATE // 4)
    assert manager.states["cf0_z/position"] == pytest.approx(HEIGHT)
    manager.command("cf0", [0.8 * HOVER] * 4)
    reach(client, manager, "fall", lambda s: s["cf0_z/position"] < HEIGHT - 0.05)
    odometry = client.collect(Odometry, "cf0/odom")
    client.until(lambda: odometry, "odometry")
    odometry.clear()
    client.reset()  # its controller goes on

    def restarted() -> list[Odometry]:
        return [m for m in odometry if m.pose.pose.position.z > HEIGHT - 0.05]

    fallen = client.until(restarted, "restart")[0]
    assert fallen.twist.twist.linear.z > -0.5
    reach(client, manager, "fall again", lambda s: s["cf0_z/position"] < HEIGHT - 0.05)


@pytest.mark.parametrize("how", ["NaN", "end"])
def test_drone_whose_commands_end_is_held(client: Client, manager: Manager, how: str) -> None:
    climb(client, manager)
    if how == "NaN":
        manager.command("cf0", [math.nan] * 4)
    else:
        manager.close()
    odometry = client.collect(Odometry, "cf0/odom")
    client.until(lambda: odometry and odometry[-1].twist.twist.linear.z == 0.0, "hold")
    height = odometry[-1].pose.pose.position.z
    assert abs(height - HEIGHT) > 0.01  # where it is, not where it began
    client.until(lambda: controlled(client) == "", "no controller in the status")
    assert client.latest(Odometry, "cf0/odom").pose.pose.position.z == height


def test_flight_goes_on_after_a_pause(client: Client, manager: Manager) -> None:
    climb(client, manager)
    tick = client.pause(True)
    assert client.pause(True) == tick
    client.pause(False)
    height = manager.states["cf0_z/position"]
    reach(client, manager, "climb", lambda s: s["cf0_z/position"] > height + 0.2)
    assert not manager.errors


ROTORS = [f"cf1_rotor{i}" for i in range(4)]


def follow(client: Client, names: list[str], velocity: list[float]) -> None:
    """Publish a command until the rotors of cf1 do what it says."""
    publisher = client.publisher(JointState, "/robot_joint_commands")
    message = JointState(name=names, velocity=velocity)
    expected = [velocity[names.index(rotor)] for rotor in ROTORS]
    states = client.collect(JointState, "/robot_joint_states")

    def agrees() -> bool:
        publisher.publish(message)
        return states and states[-1].velocity[4:].tolist() == pytest.approx(expected, rel=1e-3)

    client.until(agrees, f"rotors at {expected}")


@pytest.mark.parametrize(
    ("names", "velocity", "warning"),
    [
        (ROTORS, [1e3], "cf1: message with 1 velocities for 4 joints is refused"),
        (ROTORS[:3], [1e3] * 3, "rotor2 1000 rad/s, rotor3 nan rad/s is refused"),
        (ROTORS, [1e3, math.inf, 1e3, 1e3], "cf1: command rotor0 1000 rad/s, rotor1 inf rad/s, "),
        (
            ["rotor0", "arm"],
            [1.0, 2.0],
            "robot_joint_commands: there is no rotor of a drone among rotor0, ",
        ),
    ],
    ids=["short", "incomplete", "infinite", "unknown"],
)
def test_bad_command_changes_nothing(
    client: Client,
    simulator: SimulatorProcess,
    names: list[str],
    velocity: list[float],
    warning: str,
) -> None:
    publisher = client.publisher(JointState, "/robot_joint_commands")
    for speed in (900.0, HOVER):  # rotors that change show that a valid command has arrived
        follow(client, ROTORS, [speed] * 4)

    def said() -> bool:  # the log has at most one warning a second for each drone
        publisher.publish(JointState(name=names, velocity=velocity))
        return warning in simulator.log

    client.until(said, warning)
    states = client.collect(JointState, "/robot_joint_states")
    client.until(lambda: len(states) > 20, "states")
    assert states[-1].velocity[4:].tolist() == pytest.approx([HOVER] * 4, rel=1e-3)


def test_others_in_a_message_are_left_alone(client: Client) -> None:
    follow(client, ["arm", *reversed(ROTORS)], [3.0, 900.0, 1000.0, 1100.0, 1200.0])

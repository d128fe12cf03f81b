"""The life of the simulator's process: signals, failures, arguments, several at once."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from paths import ROOT
from rcl_interfaces.msg import Log
from ros_client import Client, SimulatorProcess, numbers, own_domain, stamp_ns, time_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from simulation_interfaces.msg import Resource, Result
from simulation_interfaces.srv import LoadWorld
from std_msgs.msg import Float64MultiArray

from crazyflow_ros.drones import load_drone
from crazyflow_ros.scene import frames

DOMAIN = own_domain("test_ros_process")
LONG = 60.0  # s

Start = Callable[..., SimulatorProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that end with the test."""
    with ExitStack() as stack:

        def run(
            *arguments: str, domain: int = DOMAIN, prelude: str = "", cache: str = ""
        ) -> SimulatorProcess:
            process = SimulatorProcess(domain, arguments, prelude, cache)
            stack.push(process)
            return process

        yield run


def check_end(simulator: SimulatorProcess, number: signal.Signals) -> None:
    code, _ = simulator.end(number)
    assert code == 0
    assert "Traceback" not in simulator.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_compilation(start: Start, number: signal.Signals, tmp_path: Path) -> None:
    simulator = start(cache=str(tmp_path)).wait_for("compiling")
    check_end(simulator, number)
    assert "ready" not in simulator.log


def test_wrong_arguments_end_it_with_one_line(start: Start) -> None:
    """All that `declare` of the parameters refuses, for example this; see test_node_parameters."""
    simulator = start("scene:=raze_track")
    assert simulator.wait() == 2
    (line,) = [line for line in simulator.log.splitlines() if "FATAL" in line]
    assert "there is no scene 'raze_track', only carried_bar, door, " in line
    assert "Traceback" not in simulator.log and "compiling" not in simulator.log


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "-p", "freq:=1"],
            "arguments of ROS follow --ros-args: write --ros-args -p freq:=1",
        ),
        (["--ros-args", "freq:=1"], "expected arguments of ROS, such as -p name:=value, got "),
    ],
)
def test_arguments_that_nobody_reads_are_refused(words: list[str], message: str) -> None:
    command = [sys.executable, "-m", "crazyflow_ros", *words]
    done = subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, timeout=LONG, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"simulator: {message}") and done.stderr.count("\n") == 1


def test_a_list_that_ros_cannot_read_is_refused_with_what_helps(start: Start) -> None:
    simulator = start("wind:=[1, 0.5, 0]")
    assert simulator.wait() == 2
    assert "wind:=[1, 0.5, 0]" in simulator.log
    assert "; write all numbers of a list with a point, as in [0.0, 0.5]" in simulator.log


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing(closed: str) -> None:
    words = f"{sys.executable} -m crazyflow_ros --ros-args -p drones:=[] {closed}"
    done = subprocess.run(words, shell=True, cwd=ROOT, timeout=LONG, check=False)
    assert done.returncode == 2  # as with open ones, see above


FAILING = """
import crazyflow_ros.engine.engine as engine
advance, calls = engine.Engine.advance, iter(range(100))
def fail(self, *arguments):
    if next(calls, None) is None:
        raise FloatingPointError("the drones are gone")
    return advance(self, *arguments)
engine.Engine.advance = fail
"""


def test_failure_of_the_physics_ends_it(start: Start) -> None:
    simulator = start(prelude=FAILING)
    assert simulator.wait() == 1
    assert "FATAL" in simulator.log
    assert "FloatingPointError: the drones are gone" in simulator.log


# The first one keeps the interpreter's lock, as a function of the middleware may.
STUCK = """
import ctypes, rclpy, signal
import crazyflow_ros.ros.process as process
process._LAST_RESORT = 1.0
def stuck():
    {wait}
"""
DESTROYING = """
import sys, types
class Node:
    def __del__(self):
        stuck()
def build():
    node = Node()
    raise ValueError("the node is no good")
sys.modules["crazyflow_ros.ros.node"] = types.SimpleNamespace(build=build)
"""
SHUTTING_DOWN = "rclpy.try_shutdown = stuck"


@pytest.mark.parametrize(
    ("wait", "where"),
    [("ctypes.PyDLL(None).pause()", DESTROYING), ("signal.pause()", SHUTTING_DOWN)],
    ids=["destroying the node", "shutting down"],
)
def test_an_end_that_hangs_is_ended(start: Start, wait: str, where: str) -> None:
    simulator = start("drones:=[]", prelude=STUCK.format(wait=wait) + where)
    assert simulator.wait() == 1
    log = simulator.log
    assert log.index("FATAL") < log.index("Timeout (0:00:01)!") < log.index("in stuck")


def test_missing_message_package_switches_its_topics_off_until_sigint(start: Start) -> None:
    missing = ("tf2_msgs", "pal_statistics_msgs", "simulation_interfaces")
    prelude = f"import sys; sys.modules.update(dict.fromkeys({missing}))"
    simulator = start("ros2_control.mode:=topic", prelude=prelude).wait_for("ready: ")
    assert simulator.log.count("simulation_interfaces is off") == 1
    assert "topic_sensors is off: the package pal_statistics_msgs is missing" in simulator.log
    (line,) = [line for line in simulator.log.splitlines() if "tf2" in line]
    assert "tf is off: the package tf2_msgs is missing. On a ROS machine, 'rosdep install" in line
    assert "apt" not in line  # which has not all of them
    client = Client(DOMAIN)
    assert client.latest(Odometry, "cf0/odom")
    assert client.latest(JointState, "robot_joint_states")
    assert not client.node.count_publishers("/tf")
    client.close()
    check_end(simulator, signal.SIGINT)


def test_it_makes_simulated_time_without_temporary_files_until_sigterm(
    start: Start, tmp_path: Path
) -> None:
    prelude = f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}"
    simulator = start("use_sim_time:=true", prelude=prelude).wait_for("ready: ")
    assert "use_sim_time is ignored" in simulator.log
    assert f"in ROS domain {DOMAIN}: those on this machine (" in simulator.log
    # The middleware complains of message packages that lack some of their code.
    assert all(re.match(r"\[(INFO|WARN)\] ", line) for line in simulator.log.splitlines())
    client = Client(DOMAIN)
    clock = client.collect(Clock, "/clock")
    client.until(lambda: clock, "clock")
    assert not [
        info
        for info in client.node.get_subscriptions_info_by_topic("/clock")
        if info.node_name == "crazyflow"
    ]
    world = Resource(resource_string='<mujoco model="bare"/>')
    result = client.call(LoadWorld, "crazyflow/load_world", LONG, world_resource=world).result
    assert result.result == Result.RESULT_OK, result.error_message
    client.close()
    check_end(simulator, signal.SIGTERM)
    assert not list(tmp_path.iterdir())


# Two simulators in one domain. In /a drones are commanded by attitude, in /b by state.

PAIR_DOMAIN = own_domain("test_ros_process pair")
DRONES = ("rolled", "pitched", "yawed")


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Client, Client]]:
    def arguments(namespace: str) -> list[str]:
        remaps = ["__ns:=/" + namespace, "/clock:=clock", "/tf:=tf", "/tf_static:=tf_static"]
        return [word for remap in remaps for word in ("-r", remap)]

    poses = "[0,0,5,0, 2,0,5,0, 4,0,5,0]"
    with ExitStack() as stack:
        settings = [f"drones:=[{','.join(DRONES)}]", "control:=attitude", f"initial_poses:={poses}"]
        first = arguments("a") + settings
        simulators = [
            SimulatorProcess(PAIR_DOMAIN, first),
            SimulatorProcess(PAIR_DOMAIN, arguments("b")),
        ]
        for simulator in simulators:
            stack.push(simulator)
        for simulator in simulators:
            simulator.wait_for("ready: ")
        clients = Client(PAIR_DOMAIN, "a"), Client(PAIR_DOMAIN, "b")
        yield clients
        for client in clients:
            client.close()


def test_two_simulators_do_not_disturb_each_other(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a_clock, b_clock = a.collect(Clock, "clock"), b.collect(Clock, "clock")
    a.until(lambda: a_clock, "clock of a")
    stopped = a.pause(True)
    b.pause(False)
    b.until(lambda: len(b_clock) > 50, "clock of b")
    assert a.pause(True) == stopped
    a_clock.clear()
    a.until(lambda: a_clock, "clock of a, which repeats its time")
    assert time_ns(a_clock[-1].clock) == stamp_ns(stopped)
    topics = {"/a/rolled/odom", "/b/cf0/odom", "/a/clock", "/b/clock", "/a/tf", "/b/tf"}
    a.until(lambda: topics <= dict(a.node.get_topic_names_and_types()).keys(), "topics of both")
    for absolute in ("/clock", "/tf", "/tf_static"):
        assert not a.node.count_publishers(absolute)
    status = b.latest(DiagnosticArray, "crazyflow/status").status[0]
    assert status.name == "/b/crazyflow: simulation"


def test_refusals_in_a_namespace_are_on_rosout(pair: tuple[Client, Client]) -> None:
    client, _ = pair
    log = client.collect(Log, "/rosout")
    client.publish("rolled/command", Float64MultiArray(data=[0.0]))

    def told() -> list[Log]:
        return [message for message in log if "rolled/command is ignored" in message.msg]

    client.until(told, "the refusal")
    assert [message.name for message in told()] == ["a.crazyflow"]


def test_attitude_commands_are_forward_left_up(pair: tuple[Client, Client]) -> None:
    """Positive roll moves a drone to its right, pitch ahead, and positive yaw turns it left."""
    client, _ = pair
    figures = load_drone("cf2x_L250")
    hover = float(figures["mass"] * -figures["gravity_vec"][2])
    angles = {"rolled": (0.2, 0.0, 0.0), "pitched": (0.0, 0.2, 0.0), "yawed": (0.0, 0.0, 0.2)}
    odometry = {drone: client.collect(Odometry, f"{drone}/odom") for drone in DRONES}
    client.pause(True)
    client.reset()
    for drone, rpy in angles.items():
        client.publish(f"{drone}/command", Float64MultiArray(data=[*rpy, hover]))
    tick = client.advance(300)
    odom = {drone: client.newest(odometry[drone], tick) for drone in DRONES}
    assert odom["rolled"].twist.twist.linear.y < -0.2
    assert odom["pitched"].twist.twist.linear.x > 0.2
    yaw = frames.yaw(numbers(odom["yawed"].pose.pose.orientation))
    assert yaw == pytest.approx(0.2, abs=0.1)

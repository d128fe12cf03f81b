"""`ros2_control.launch.py` and `robots.launch.py`, as installed, from the start to Ctrl-C."""

from __future__ import annotations

import math
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Odometry
from real_manager import CHAIN, PREFIX, Flight, controller_states, installed, memory_name
from ros_client import READY_TIMEOUT, Client, RosProcess, own_domain
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from crazyflow_ros.client import SimulationError

DOMAIN = own_domain(__name__)
BROADCASTERS = ("imu_broadcaster", "pose_broadcaster", "range_broadcaster")
HOME = (0.3, 0.2, 0.7)
POSTURE = (0.8, 0.5, -0.7)

if shutil.which("ros2") is None:
    pytest.skip("there is no ros2 launch: install ros2launch", allow_module_level=True)

Start = Callable[..., RosProcess]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Start]:
    """Starts `ros2 launch` in a process group of its own, as a shell does."""
    parameters = tmp_path / "simulator.yaml"
    given = f"{{shared_memory: {memory_name()}, timeout: 10.0}}"
    parameters.write_text(f"/**: {{ros__parameters: {{ros2_control: {given}}}}}")
    with ExitStack() as stack:

        def start(file: str = "ros2_control", **arguments: str) -> RosProcess:
            words = [f"{name}:={value}" for name, value in arguments.items()]
            ros2 = f"exec setsid ros2 launch crazyflow_ros {file}.launch.py"
            command = ["sh", "-c", f'{ros2} "$@" >&2', "sh", f"params_file:={parameters}", *words]
            process = RosProcess(command, DOMAIN, {"ROS_LOG_DIR": str(tmp_path)})
            stack.callback(kill, process)
            return process

        yield start


def kill(process: RosProcess) -> None:
    if running(process):
        os.killpg(process.process.pid, signal.SIGKILL)
        process.wait()


def running(process: RosProcess) -> bool:
    try:
        os.killpg(process.process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def end(process: RosProcess) -> None:
    """Ctrl-C: all of it ends by itself, without an error."""
    os.killpg(process.process.pid, signal.SIGINT)
    assert process.wait() == 0, process.log
    assert not running(process)
    assert "[simulator-1]: process has finished cleanly" in process.log
    # Of ros2_control_node 5.16 this cannot be said: its statistics thread sometimes aborts it.
    # -11 is a crash.
    for word in ("signal 'SIGTERM'", "signal 'SIGKILL'", "Traceback", "exit code -11"):
        assert word not in process.log, process.log


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(DOMAIN) as client:
        yield client


def wait_for(
    client: Client, process: RosProcess, controllers: set[str], namespace: str = ""
) -> None:
    def active() -> bool:
        assert process.process.poll() is None, process.log
        try:
            states = controller_states(client, namespace, timeout=5.0)
        except SimulationError:  # the answer to a client that has just been found may be lost
            return False
        return controllers <= {name for name, state in states.items() if state == "active"}

    client.until(active, f"controllers of {namespace}/controller_manager", READY_TIMEOUT)


def test_position(launch: Start, client: Client) -> None:
    process = launch(controller="position", real_time_factor="0", rate="200", freq="1000")
    names = {f"cf0_{name}" for name in (*BROADCASTERS, *CHAIN)}
    wait_for(client, process, {"joint_state_broadcaster", *names})
    Flight(process, client).fly_to(HOME)
    end(process)


def test_rotor_velocity(launch: Start, client: Client) -> None:
    process = launch(n_drones="2", real_time_factor="0")
    names = {f"cf{i}_{name}" for i in (0, 1) for name in (*BROADCASTERS, "rotor_velocity")}
    wait_for(client, process, {"joint_state_broadcaster", *names})
    flying = Flight(process, client)
    publisher = client.publisher(Float64MultiArray, "/cf1_rotor_velocity/commands")

    def rises() -> bool:
        publisher.publish(Float64MultiArray(data=[2200.0] * 4))  # the first one may be lost
        return flying.positions(0.5, "cf1")[-1, 2] > 0.5

    client.until(rises, "the take-off")
    rest = flying.positions(0.1, "cf0")
    assert (rest == rest[0]).all()  # nobody has told it anything
    end(process)


def test_a_script_flies_over_the_attitude_controller(launch: Start, client: Client) -> None:
    process = launch(controller="attitude", drones="[cf0,cf1]", managers="each")
    for drone in ("cf0", "cf1"):
        expected = {"joint_state_broadcaster", *BROADCASTERS, "attitude"}
        wait_for(client, process, expected, drone)
    arguments = ["-p", "drone:=cf1", "-p", f"position:=[{','.join(map(str, HOME))}]"]
    remapping = ["-r", "cf1_attitude/commands:=cf1/attitude/commands"]
    fly_to = str(PREFIX / "lib" / "crazyflow_ros" / "fly_to")
    with RosProcess([fly_to, "--ros-args", *arguments, *remapping], DOMAIN) as script:
        flying = Flight(process, client)
        client.until(lambda: flying.arrive(HOME, "cf1"), "the flight", timeout=60)
        assert script.end(signal.SIGINT)[0] == 0, script.log
    end(process)


@pytest.mark.parametrize("managers", ["one", "each"])
def test_robots_drive_and_move_beside_a_drone(launch: Start, client: Client, managers: str) -> None:
    """As docs/guides/ros2_control.md has it, in one manager, or in two."""
    for package in ("diff_drive_controller", "joint_trajectory_controller"):
        installed(package, "install ros2_controllers")
    alone = managers == "each"
    names = {f"{'' if alone else 'cf0_'}{name}" for name in (*BROADCASTERS, *CHAIN)}
    names |= {"joint_state_broadcaster"}
    robots = {"robot_states", "rover_imu_broadcaster", "rover_drive", "arm_trajectory"}
    process = launch("robots", controller="position", managers=managers)
    here, there = ("/cf0", "/robots") if alone else ("", "")
    wait_for(client, process, names if alone else names | robots, here)
    wait_for(client, process, robots, there)
    flying = Flight(process, client)
    flying.fly_to(HOME, topic="/cf0/position/reference" if alone else "")
    drive = TwistStamped()
    drive.twist.linear.x, drive.twist.angular.z = 0.3, 0.4
    point = JointTrajectoryPoint(positions=list(POSTURE))
    point.time_from_start.sec = 2
    arm = JointTrajectory(joint_names=[f"arm_joint{i}" for i in (1, 2, 3)], points=[point])
    drives = client.publisher(TwistStamped, f"{there}/rover_drive/cmd_vel")
    moves = client.publisher(JointTrajectory, f"{there}/arm_trajectory/joint_trajectory")
    begin = odometry(client, there)
    moves.publish(arm)  # once: each one begins anew

    def moved() -> bool:
        drives.publish(drive)  # the rover stops 0.5 s after the last one
        joints = client.latest(JointState, f"{there}/robot_states/joint_states")
        at = dict(zip(joints.name, joints.position))
        arrived = np.allclose([at[name] for name in arm.joint_names], POSTURE, atol=0.03)
        return arrived and math.dist(begin, odometry(client, there)) > 0.2

    client.until(moved, "rover and arm", timeout=60)
    assert flying.arrive(HOME)
    end(process)


def odometry(client: Client, namespace: str) -> tuple[float, float]:
    """Where the rover's controller believes it to be [m]."""
    position = client.latest(Odometry, f"{namespace}/rover_drive/odom").pose.pose.position
    return position.x, position.y


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("rate", "300", "ros2_control.rate"),  # does not divide 500
        ("dynamics", "so_rpy", "needs first_principles, got 'so_rpy'"),
    ],
)
def test_wrong_argument_ends_it(launch: Start, argument: str, value: str, message: str) -> None:
    process = launch(**{argument: value})
    process.wait_for(message)
    process.wait()
    assert not running(process)
    assert value in process.log

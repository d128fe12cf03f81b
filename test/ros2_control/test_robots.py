"""Stock controllers drive a rover and move an arm beside a flown drone, in one lock-step."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Odometry
from real_manager import Flight, Manager, flight, installed
from ros_client import Client, numbers, own_domain, time_ns
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

installed("diff_drive_controller", "install ros2_controllers")
installed("joint_trajectory_controller", "install ros2_controllers")

DOMAIN = own_domain(__name__)
RATE = 100  # Hz
PERIOD = 5  # ticks
TICK = 2_000_000  # ns
WHEELS, JOINTS = slice(7, 9), slice(9, 12)  # their positions in a state
ARM = ("arm_joint1", "arm_joint2", "arm_joint3")
ROBOTS = ("rover_drive", "arm_trajectory")
WAITING = ("cf0_waiting_velocity", "cf0_waiting_position")
GOAL = (0.3, 0.4, 1.0)
POSTURE = (0.8, 0.5, -0.7)
SECONDS = 3
STATES = "/robot_states/joint_states"


def session(tmp_path: Any, name: str) -> dict[int, tuple[float, ...]]:
    """States of drone, rover and arm by time since they were told to move, for some seconds."""
    given = {"ros2_control.rate": RATE, "scene": "robots", "ros2_control.robots": "robots"}
    folder = tmp_path / name
    folder.mkdir()
    with (
        flight(DOMAIN, **given) as flying,
        Manager(flying.client, folder, ["cf0"], RATE, robots=True) as manager,
        closing(Client(DOMAIN)) as client,
    ):
        manager.load("robot_states", "rover_imu_broadcaster", *ROBOTS, *WAITING)
        assert manager.switch(start=["robot_states", "rover_imu_broadcaster"])
        odom = client.collect(Odometry, "/cf0/odom")
        joints = client.collect(JointState, STATES)
        attempts = (moved(flying, manager, client, odom, joints) for _ in range(20))
        states = next(found for found in attempts if found)
        seen = flying.control()
        assert seen["control_timeouts"] == 0 and seen["refused_commands"] == 0
    return states


def moved(
    flying: Flight, manager: Manager, client: Client, odom: list[Any], joints: list[Any]
) -> dict[int, tuple[float, ...]] | None:
    """States of a session; None if a command came late."""
    client.pause(False)
    active = [name for name, state in manager.states().items() if state == "active"]
    assert manager.switch(stop=[name for name in active if name in (*ROBOTS, *WAITING)])
    client.reset()  # for the position that the arm holds
    assert manager.switch(start=[*ROBOTS, *WAITING])
    tick = client.pause(True)
    tick = client.advance(PERIOD - tick % PERIOD)
    client.reset()
    tell(flying, client)
    time.sleep(0.5)  # for the manager's threads
    begin = tick * TICK
    odom.clear()
    joints.clear()
    end = client.advance(SECONDS * 500) * TICK
    client.until(lambda: joints and stamp(joints[-1]) >= end, "the session")
    flown = {stamp(message) - begin: message for message in odom}
    driven = {stamp(message) - begin: message for message in joints}
    states = {}
    for at in sorted(flown.keys() & driven.keys()):
        pose, now = flown[at].pose.pose, driven[at]
        state = *numbers(pose.position), *numbers(pose.orientation)
        states[at] = (*state, *now.position, *now.velocity, *now.effort)
    # In the first period nothing moves, because the manager had answered before the reset.
    rest, first = states[PERIOD * TICK], states[2 * PERIOD * TICK]
    moving = np.array(first) != rest
    all_move = moving[2] and moving[WHEELS].all() and moving[JOINTS].all()
    return states if all_move else None


def stamp(message: Any) -> int:
    return time_ns(message.header.stamp)


def tell(flying: Flight, client: Client) -> None:
    """Tell the drone to fly, the rover to drive and the arm to move."""
    publish(client)
    flying.tell(GOAL, topic="/cf0_waiting_position/reference")


def publish(client: Client, namespace: str = "") -> None:
    """Publish where the rover and the arm shall go."""
    drive = TwistStamped()
    drive.twist.linear.x, drive.twist.angular.z = 0.4, 0.5
    point = JointTrajectoryPoint(positions=list(POSTURE))
    point.time_from_start.sec = 2
    arm = JointTrajectory(joint_names=list(ARM), points=[point])
    for kind, topic, message in (
        (TwistStamped, "rover_drive/cmd_vel", drive),
        (JointTrajectory, "arm_trajectory/joint_trajectory", arm),
    ):
        publisher = client.publisher(kind, f"{namespace}/{topic}")
        publisher.publish(message)
        assert publisher.wait_for_all_acked()


def test_a_rover_an_arm_and_a_drone_move_in_one_session_and_twice_alike(tmp_path: Any) -> None:
    first, second = session(tmp_path, "first"), session(tmp_path, "second")
    common = first.keys() & second.keys()
    assert len(common) > 100
    assert all(first[at] == second[at] for at in common)
    last = first[max(common)]
    np.testing.assert_allclose(last[:3], GOAL, atol=0.1)
    np.testing.assert_allclose(last[JOINTS], POSTURE, atol=0.03)
    assert min(last[WHEELS]) > 2.0  # rad


def test_robots_have_a_manager_of_their_own_in_the_same_lock_step(tmp_path: Any) -> None:
    given = {"ros2_control.rate": RATE, "scene": "robots", "ros2_control.robots": "robots"}
    given |= {"publish_rates.joint_states": 0}
    with (
        flight(DOMAIN, **given) as flying,
        Manager(flying.client, tmp_path, ["cf0"], RATE, "cf0") as drones,
        Manager(flying.client, tmp_path, [], RATE, "robots", robots=True) as robots,
        closing(Client(DOMAIN)) as client,
    ):
        drones.start("joint_state_broadcaster", "velocity", "position")
        robots.start("robot_states", "rover_imu_broadcaster", *ROBOTS)
        listed = robots.interfaces()
        states = {i.name for i in listed.state_interfaces if i.name.count("/") == 1}
        assert {"wrist_ft/force.x", "tip_pose/position.z", "arm_joint3/effort"} <= states
        claimed = {i.name for i in listed.command_interfaces if i.is_claimed}
        assert claimed == {
            *(f"{joint}/position" for joint in ARM),
            *(f"{side}_wheel_joint/velocity" for side in ("left", "right")),
        }
        flying.fly_to(GOAL, "cf0", "/cf0/position/reference")
        for _ in range(10):  # the first message of a new publisher can be lost
            publish(client, "/robots")
            client.pass_time(4.0)
            now = client.latest(JointState, f"/robots{STATES}")
            if is_there := np.allclose(now.position[2:], POSTURE, atol=0.03):
                break
        assert is_there
        imu = client.latest(Imu, "/robots/rover_imu_broadcaster/imu")
        assert imu.header.frame_id == "rover"
        assert imu.linear_acceleration.z == pytest.approx(9.81, abs=0.5)
        seen = flying.control()
        assert seen["control_timeouts"] == 0 and seen["refused_commands"] == 0

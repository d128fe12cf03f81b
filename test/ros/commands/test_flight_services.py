"""Take-off, landing, trajectories and teleoperation of a running simulator, as a second process."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Point, PointStamped, Pose, PoseStamped, Quaternion, Twist, Vector3
from nav_msgs.msg import Odometry
from ros_client import Client, SimulatorProcess, numbers, own_domain
from std_srvs.srv import Empty, Trigger

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")
from crazyflie_interfaces.msg import FullState, Hover, TrajectoryPolynomialPiece
from crazyflie_interfaces.srv import (
    Arm,
    GoTo,
    Land,
    NotifySetpointsStop,
    SetGroupMask,
    StartTrajectory,
    Takeoff,
    UploadTrajectory,
)

DOMAIN = own_domain("test_ros_flight")
ARGUMENTS = ["drones:=[cf0,cf1]", "real_time_factor:=3.0", "true_mass:=true"]
NEAR = 0.05  # m
STANDING = 0.02  # m
ARRIVAL = 60.0  # s of wall time on a busy machine


@pytest.fixture(scope="module")
def pilot(client: Client) -> Pilot:
    return Pilot(client)


@pytest.fixture(autouse=True)
def on_the_floor(pilot: Pilot) -> None:
    pilot.client.call(Trigger, "crazyflow/reset")


class Pilot:
    """Calls services, and follows both drones."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._odometry = {name: client.collect(Odometry, f"{name}/odom") for name in ("cf0", "cf1")}
        self.events = client.collect(DiagnosticStatus, "crazyflow/flight_events")

    def call(self, kind: Any, name: str, **request: Any) -> None:
        self.client.call(kind, name, **request)

    def place(self, drone: str = "cf0") -> tuple[float, float, float]:
        """Where a drone is now."""
        received = self._odometry[drone]
        received.clear()
        self.client.until(lambda: received, f"odometry of {drone}")
        x, y, z = numbers(received[-1].pose.pose.position)
        return x, y, z

    def until_at(self, *place: float | None, drone: str = "cf0") -> None:
        """Wait until a drone is at a place; None is anywhere."""

        def is_there() -> bool:
            now = self.place(drone)
            return all(p is None or abs(p - x) < NEAR for p, x in zip(place, now))

        self.client.until(is_there, f"{drone} at {place}", ARRIVAL)

    def until_still(self, drone: str = "cf0") -> None:
        received = self._odometry[drone]

        def is_still() -> bool:
            received.clear()
            self.client.until(lambda: received, f"odometry of {drone}")
            twist = received[-1].twist.twist
            return max(map(abs, (*numbers(twist.linear), *numbers(twist.angular)))) < 0.02

        self.client.until(is_still, f"{drone} at rest", ARRIVAL)

    def takeoff(self, height: float = 1.0, who: str = "cf0") -> None:
        self.call(Takeoff, f"{who}/takeoff", height=height, duration=Duration(sec=2))


def test_takeoff_go_to_and_land(pilot: Pilot) -> None:
    pilot.takeoff()
    pilot.until_at(-0.5, -0.5, 1.0)
    pilot.until_still()  # a distance counts from where the drone is to be by then
    turn = {"duration": Duration(sec=1), "yaw": math.pi / 2}
    pilot.call(GoTo, "cf0/go_to", relative=True, goal=Point(x=1.0), **turn)
    pilot.until_at(0.5, -0.5, 1.0)
    pilot.call(Land, "cf0/land", height=0.0, duration=Duration(sec=2))
    pilot.until_at(0.5, -0.5, STANDING)
    pilot.until_still()


def test_all_drones_at_once_but_for_other_groups(pilot: Pilot) -> None:
    pilot.takeoff(0.8, "all")
    pilot.until_at(None, None, 0.8, drone="cf0")
    pilot.until_at(None, None, 0.8, drone="cf1")
    pilot.call(SetGroupMask, "cf1/set_group_mask", group_mask=4)
    pilot.call(Land, "all/land", group_mask=4, duration=Duration(sec=1))
    pilot.until_at(None, None, STANDING, drone="cf1")
    assert pilot.place("cf0")[2] == pytest.approx(0.8, abs=NEAR)


def test_a_trajectory_that_was_uploaded(pilot: Pilot, simulator: SimulatorProcess) -> None:
    still = [0.0] * 8
    pieces = [
        TrajectoryPolynomialPiece(
            poly_x=still, poly_y=still, poly_z=[0.0, 0.2, *still[2:]], poly_yaw=still,
            duration=Duration(sec=2),
        ),
        TrajectoryPolynomialPiece(
            poly_x=still, poly_y=still, poly_z=[0.4, *still[1:]], poly_yaw=still,
            duration=Duration(sec=1),
        ),
    ]  # fmt: skip
    pilot.takeoff()
    pilot.until_at(None, None, 1.0)
    pilot.until_still()
    pilot.call(UploadTrajectory, "cf0/upload_trajectory", trajectory_id=2, pieces=pieces)
    run = {"trajectory_id": 2, "timescale": 1.5, "relative": True}
    pilot.call(StartTrajectory, "cf0/start_trajectory", **run)
    pilot.until_at(-0.5, -0.5, 1.4)
    pilot.call(StartTrajectory, "cf0/start_trajectory", **run | {"reversed": True})
    pilot.until_at(-0.5, -0.5, 1.0)
    pilot.call(StartTrajectory, "cf0/start_trajectory", trajectory_id=7, timescale=1.0)
    simulator.wait_for("there is no trajectory 7, uploaded are: 2")
    pieces[0].poly_yaw = [0.0] * 7
    pilot.call(UploadTrajectory, "cf0/upload_trajectory", trajectory_id=2, pieces=pieces)
    simulator.wait_for("poly_yaw of piece 0 has 7 numbers, not 8")


def test_what_makes_no_sense_is_said(pilot: Pilot, simulator: SimulatorProcess) -> None:
    pilot.call(Land, "cf0/land")
    simulator.wait_for("cf0/land is refused: cf0: land needs a drone in the air, it is idle")
    pilot.call(GoTo, "all/go_to")
    simulator.wait_for("all/go_to must be relative: drones cannot all be at one place")
    pilot.call(Takeoff, "cf0/takeoff", height=math.nan)
    simulator.wait_for("height must be finite, got nan")
    pilot.call(Takeoff, "cf1/takeoff", height=1.0, duration=Duration(sec=-1))
    simulator.wait_for("duration must not be negative, got -1 s")


def test_arming_and_the_emergency_stop(pilot: Pilot, simulator: SimulatorProcess) -> None:
    pilot.call(Arm, "cf0/arm", arm=False)
    pilot.takeoff()
    simulator.wait_for("cf0/takeoff is refused: cf0: it is not armed: call arm first")
    pilot.call(Arm, "cf0/arm", arm=True)
    pilot.takeoff()
    pilot.until_at(None, None, 1.0)
    pilot.call(Empty, "cf0/emergency")
    pilot.until_at(None, None, STANDING)
    pilot.takeoff()
    simulator.wait_for("cf0/takeoff is refused: cf0: it is locked: reset it first")
    pilot.call(Trigger, "cf0/reset")
    pilot.takeoff()
    pilot.until_at(None, None, 1.0)
    pilot.call(NotifySetpointsStop, "cf0/notify_setpoints_stop")  # nothing was streamed
    pilot.until_at(None, None, 1.0)


def put(pilot: Pilot, drone: str, **fields: Any) -> None:
    """Set the state of a drone; time goes on."""
    from simulation_interfaces.msg import EntityState
    from simulation_interfaces.srv import SetEntityState

    given = {f"set_{name}": True for name in fields}
    name, state = "crazyflow/set_entity_state", EntityState(**fields)
    pilot.call(SetEntityState, name, entity=drone, state=state, **given)


def stream(pilot: Pilot, message: Any, seconds: float, topic: str = "cmd_vel") -> None:
    """Publish as teleoperation programs do, at 20 Hz of wall time, from a context of its own."""
    client = Client(DOMAIN)  # a node can publish only one type on a topic
    publisher = client.publisher(type(message), f"cf0/{topic}")
    for _ in range(round(seconds * 20)):
        publisher.publish(message)
        pilot.client.spin_for(0.05)
    client.close()


def test_streamed_setpoints_have_priority_until_they_stop(
    pilot: Pilot, simulator: SimulatorProcess
) -> None:
    pilot.takeoff()
    pilot.until_at(None, None, 1.0)
    stream(pilot, Hover(vx=0.5, z_distance=0.7), 3.0, "cmd_hover")
    pilot.until_still()
    x, _, z = pilot.place()
    assert x > 0.0 and z == pytest.approx(0.7, abs=NEAR)
    pilot.call(Land, "cf0/land", duration=Duration(sec=1))
    simulator.wait_for("cf0: it follows streamed setpoints: call notify_setpoints_stop first")
    pilot.call(NotifySetpointsStop, "cf0/notify_setpoints_stop")
    pilot.call(Land, "cf0/land", duration=Duration(sec=1))
    pilot.until_at(None, None, STANDING)


def test_a_program_that_falls_silent(pilot: Pilot, simulator: SimulatorProcess) -> None:
    pilot.takeoff()
    pilot.until_at(-0.5, -0.5, 1.0)
    pilot.events.clear()
    full = FullState()
    full.header.frame_id, full.pose.orientation.w = "/world", 1.0
    p = full.pose.position
    p.x, p.y, p.z = -0.4, -0.5, 1.0
    stream(pilot, full, 2.0, "cmd_full_state")
    stream(pilot, Twist(linear=Vector3(z=30000.0)), 0.5, "cmd_vel_legacy")
    pilot.until_at(None, None, STANDING)
    pilot.client.until(lambda: pilot.events, "an event")
    event = pilot.events[-1]
    assert (event.name, event.level) == ("cf0", DiagnosticStatus.WARN)
    assert event.message == "no setpoint for 2 s: rotors stopped"
    simulator.wait_for("cf0: no setpoint for 2 s: rotors stopped")


def test_goals_of_rviz_keep_the_height(pilot: Pilot) -> None:
    goal = PoseStamped()
    goal.header.frame_id, goal.pose.orientation = "map", Quaternion(w=1.0)
    goal.pose.position.x = 1.0
    pilot.client.publisher(PoseStamped, "cf0/goal_pose").publish(goal)
    pilot.until_at(1.0, 0.0, 0.5)
    pilot.takeoff(1.2, "cf1")
    pilot.until_at(None, None, 1.2, drone="cf1")
    pilot.until_still("cf1")
    point = PointStamped()
    point.header.frame_id, point.point.y = "map", 1.0
    pilot.client.publisher(PointStamped, "cf1/clicked_point").publish(point)
    pilot.until_at(0.0, 1.0, 1.2, drone="cf1")


def test_misspelt_topics_and_services_are_named(pilot: Pilot, simulator: SimulatorProcess) -> None:
    node = pilot.client.node
    publisher = node.create_publisher(PoseStamped, "crazyflow/cf1/cmd_pose", 1)
    client = node.create_client(Takeoff, "cf1/take_off")
    simulator.wait_for("nobody listens on /crazyflow/cf1/cmd_pose, where")
    simulator.wait_for("there is no service /cf1/take_off, which")
    assert "did you mean /cf1/cmd_pose?" in simulator.log
    assert "did you mean /cf1/takeoff?" in simulator.log
    node.destroy_publisher(publisher)
    node.destroy_client(client)


def test_a_hovering_drone_that_is_put_elsewhere_flies_on(pilot: Pilot) -> None:
    """It comes back without a fall: its course used to restart at the speed of a fall."""
    pilot.takeoff(1.2, "cf1")
    pilot.until_at(0.5, -0.5, 1.2, drone="cf1")
    pilot.events.clear()
    turned = Quaternion(z=math.sin(1.0), w=math.cos(1.0))
    pose = Pose(position=Point(x=-3.5, y=2.0, z=2.3), orientation=turned)
    put(pilot, "cf1", pose=pose, twist=Twist(linear=Vector3(x=0.4, y=-0.3, z=-0.5)))
    pilot.until_at(0.5, -0.5, 1.2, drone="cf1")
    pilot.until_still("cf1")
    kinds = {event.message.split(" at ")[0] for event in pilot.events}
    assert kinds <= {"off course"}, pilot.events


def test_a_drone_that_fell_says_so(pilot: Pilot, simulator: SimulatorProcess) -> None:
    status = pilot.client.collect(DiagnosticArray, "crazyflow/status")
    pilot.takeoff()
    pilot.until_at(None, None, 1.0)
    pilot.events.clear()
    upside_down = Pose(position=Point(z=0.5), orientation=Quaternion(x=1.0, w=0.0))
    put(pilot, "cf0", pose=upside_down)

    def crashes() -> list[DiagnosticStatus]:
        return [event for event in pilot.events if event.level == DiagnosticStatus.ERROR]

    pilot.client.until(crashes, "a crash")
    (event,), turned = crashes(), pilot.events[0]
    assert event.name == turned.name == "cf0"
    place = re.match(r"upside down at \(0\.00, 0\.00, (0\.\d\d)\) m, and falls", turned.message)
    assert place, turned.message
    assert 0.5 - 9.81 / 2 * 0.2**2 < float(place[1]) <= 0.5  # it fell for 0.2 s at most
    assert re.match(r"crashed at \(-?\d\.\d\d, -?\d\.\d\d, 0\.\d\d\) m: ", event.message)
    assert "upside down; rotors stopped, call cf0/reset" in event.message
    simulator.wait_for("cf0: crashed at")

    def has_crashed() -> bool:
        return any(
            entry.name.endswith("cf0") and "crashed" in entry.message
            for message in status
            for entry in message.status
        )

    pilot.client.until(has_crashed, "the crash in ~/status")
    pilot.takeoff()
    simulator.wait_for("cf0: it is crashed (upside down): reset it first")

"""Real drones that motion capture shows, beside simulated ones of crazyswarm2's server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from crazyflie_interfaces.srv import Takeoff
from crazyflow_ros_interfaces.srv import CommandDrones
from crazyswarm import SERVER, ServerProcess, configuration
from geometry_msgs.msg import Point, Pose, PoseStamped
from mcap.reader import make_reader
from motion_capture_tracking_interfaces.msg import NamedPose, NamedPoseArray
from rclpy.publisher import Publisher
from ros_client import Client, RosProcess, SimulatorProcess, numbers, own_domain
from sensor_msgs.msg import MultiDOFJointState
from std_srvs.srv import Trigger

from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.recording.replay import replay

DOMAIN = own_domain(__name__)
REAL = "cf9"
GONE = f"no pose of the real drone {REAL} on /poses: it stays where"
REFUSED = f"{REAL}: pos of {REAL} must be 3 finite numbers"


def seen(time_ns: int, x: float, z: float, w: float = 1.0) -> NamedPoseArray:
    message = NamedPoseArray()
    message.header.stamp = time_of(time_ns)
    pose = Pose(position=Point(x=x, y=-1.0, z=z))
    pose.orientation.w = w
    message.poses = [NamedPose(name=name, pose=pose) for name in (REAL, "a_wand")]
    return message


def read_publisher(client: Client, simulator: RosProcess) -> Publisher:
    """The publisher of poses, once the simulator reads them: what came before is lost."""
    publisher = client.publisher(NamedPoseArray, "poses")

    def is_read() -> bool:
        publisher.publish(seen(0, np.nan, 0.8))
        return REFUSED in simulator.log

    client.until(is_read, "refusal of a bad pose")
    return publisher


def test_one_script_flies_simulated_drones_beside_a_real_one(tmp_path: Path) -> None:
    """The real one flies where motion capture says, and hears nothing from here."""
    content = configuration("cf1", "cf2", REAL)
    content["robots"][REAL]["enabled"] = False  # for this server
    arguments = ["-p", f"real.drones:=[{REAL}]", "-p", "real_time_factor:=2.0"]
    with (
        ServerProcess(DOMAIN, tmp_path, content, arguments) as server,
        Client(DOMAIN, simulator=SERVER) as client,
    ):
        server.wait_for(f"{GONE} it starts")
        client.call(Takeoff, "all/takeoff", height=1.0, duration=Duration(sec=1))
        poses = client.collect(PoseStamped, "cf2/pose")
        states = client.collect(MultiDOFJointState, f"{SERVER}/odometry")
        publisher = client.publisher(NamedPoseArray, "poses")
        for i in range(200):
            publisher.publish(seen(i * 10_000_000, 0.01 * i, 0.8, np.nan if i == 150 else 1.0))
            client.pass_time(0.01)

        def led() -> bool:  # the last messages may be lost
            return bool(states) and states[-1].transforms[2].translation.x > 1.9

        client.until(led, "the last poses")
        newest = states[-1]
        assert newest.joint_names == ["cf1", "cf2", REAL]
        x, *others = numbers(newest.transforms[2].translation)
        assert 100 * x == pytest.approx(round(100 * x), abs=1e-4)
        np.testing.assert_allclose(others, [-1.0, 0.8])
        assert newest.twist[2].linear.x == pytest.approx(1.0, abs=1e-3)  # 0.01 m in 10 ms
        client.until(lambda: poses[-1].pose.position.z > 0.95, "take-off of the others", 60)
        names = {name.partition("/")[0] for name, _ in _topics(client)}
        assert {"cf1", "cf2"} <= names and REAL not in names  # whose topics others publish
        asked = client.call(CommandDrones, f"{SERVER}/drones/arm", drones=["cf1", REAL])
        assert not asked.success and f"{REAL} obeys the real drone alone" in asked.message
        client.call(Trigger, f"{SERVER}/reset")
        client.publish("poses", seen(3_000_000_000, 0.5, 1.2))
        client.until(lambda: states[-1].transforms[2].translation.x == 0.5, "pose after a reset")
        server.wait_for(f"{GONE} it was seen last")
        warnings = [x for x in server.log.splitlines() if "[WARN]" in x or "[ERROR]" in x]
        assert all(GONE in line for line in warnings), warnings


def test_bad_poses_and_jumps_give_no_velocities_and_a_lost_drone_is_at_rest(tmp_path: Path) -> None:
    other = "cf8"
    arguments = ["-p", f"real.drones:=[{REAL},{other}]", "-p", "real.timeout:=2.0"]
    with (
        ServerProcess(DOMAIN, tmp_path, configuration("cf1", other, REAL), arguments) as server,
        Client(DOMAIN, simulator=SERVER) as client,
    ):
        states = client.collect(MultiDOFJointState, f"{SERVER}/odometry")

        def told(time_ns: int, x: float) -> tuple[list[float], list[float]]:
            """Places and speeds of the real drones after a message whose first pose is bad."""
            message = seen(time_ns, x, 0.8)
            message.poses[1].name = other
            message.poses = [*seen(time_ns, np.nan, 0.8).poses[:1], *message.poses]
            publisher.publish(message)
            client.until(lambda: _along(states[-1])[0] == [x, x] if states else False, f"at {x}")
            return _along(states[-1])

        publisher = read_publisher(client, server)
        told(1_000_000_000, 1.0)
        server.wait_for(f"{REFUSED}, got [nan, -1.0, 0.8]")
        assert told(1_010_000_000, 5.0)[1] == [0, 0]  # 400 m/s
        assert told(1_020_000_000, 5.02)[1] == pytest.approx([2, 2])
        server.wait_for(f"{GONE} it was seen last")
        client.until(lambda: _along(states[-1]) == ([5.02, 5.02], [0, 0]), "rest")


def _along(state: MultiDOFJointState) -> tuple[list[float], list[float]]:
    """Places and speeds along x of all but the first drone."""
    at = [transform.translation.x for transform in state.transforms[1:]]
    return [round(x, 9) for x in at], [twist.linear.x for twist in state.twist[1:]]


def _topics(client: Client) -> list[tuple[str, list[str]]]:
    found = client.node.get_topic_names_and_types()
    return [(name.removeprefix("/"), kinds) for name, kinds in found]


def test_a_flight_below_a_real_drone_replays(tmp_path: Path) -> None:
    path = tmp_path / "flight.mcap"
    parameters = ["drones:=[cf0,cf9]", "real.drones:=[cf9]", "downwash:=true", f"record:={path}"]
    parameters.append("real.timeout:=60.0")  # or it would be led to rest
    with (
        SimulatorProcess(DOMAIN, [*parameters, "start_paused:=true"]) as process,
        Client(DOMAIN) as client,
    ):
        client.publish("cf0/cmd_pose", PoseStamped(pose=Pose(position=Point(y=-1.0, z=0.5))))
        client.advance(3000)
        publisher = read_publisher(client, process)
        for i in range(5):  # it passes above cf0
            publisher.publish(seen(i * 400_000_000, 0.4 * i - 0.8, 1.0))
            client.advance(200)
        client.reset()
        client.advance(200)
        assert process.end()[0] == 0
        log = process.log
    provoked = GONE, REFUSED
    warnings = [line for line in log.splitlines() if "WARN" in line]
    unsaid = [line for line in warnings if not any(text in line for text in provoked)]
    assert "[ERROR]" not in log and not unsaid, log
    report = replay(path)
    assert not report.difference and report.states > 500, report
    with path.open("rb") as file:
        told = [m.data for _, _, m in make_reader(file).iter_messages(["/crazyflow/changes"])]
    assert sum(b'"lead"' in data for data in told) == 5


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("[nobody]", "there is no robot 'nobody'"),
        ("[cf1,cf2]", "no robot has enabled: true"),
        ("[cf2] -p real.topic:=1poses", "real.topic: expected the name of a topic, got '1poses'"),
    ],
)
def test_robots_that_cannot_be_real_are_refused(tmp_path: Path, given: str, why: str) -> None:
    process = ServerProcess(
        DOMAIN,
        tmp_path,
        configuration("cf1", "cf2"),
        ["-p", *f"real.drones:={given}".split()],
    )
    with pytest.raises(AssertionError, match=why):
        process.__enter__()

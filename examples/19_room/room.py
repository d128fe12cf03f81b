"""A drone flies through a room, and what its sensors see is drawn: `make demo-sensors`.

    .venv/bin/python examples/19_room/room.py

It starts the simulator, flies one round, and draws the messages of the drone's sensors into `out/`:
`scan.png`, `cloud.png` from above, `camera.png` and `depth.png`.
"""

from __future__ import annotations

import sys
from math import cos, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crazyflow_ros.client import SimulatorError, SimulatorProcess, choose_domain, interruptible

if TYPE_CHECKING:
    from trajectory_msgs.msg import MultiDOFJointTrajectory

    from crazyflow_ros.client import SimulatorClient

OUT = Path("out")
SENSORS = Path(__file__).resolve().parents[2] / "config" / "sensors.yaml"
DRONE = "cf0"
SIZE = np.array([1.9, 1.4, 0.3])  # m, half extents of the round
ALTITUDE = 1.1  # m
RISE, ROUND, REST = 3.0, 20.0, 2.0  # s: take-off, round, and time to stop
RATE = 10  # points per second
NS = 1_000_000_000
LEAD = NS // 2  # ns of simulated time, from sending the trajectory to its start
READY_TIMEOUT = 120.0  # s of wall time for the first readings
SILENCE = 20.0  # s of wall time
SLICE = 0.05  # s of wall time between two checks


def main() -> int:
    """Fly once.

    Returns:
        Exit code: 0 after a flight with all pictures written.
    """
    choose_domain()
    from room_pictures import save_cloud, save_pictures, save_scan

    from crazyflow_ros.client import SimulationError, SimulatorClient  # after the domain is chosen

    _, pos, yaw = plan()
    parameters = {
        "drones": f"[{DRONE}]",
        "scene": "room",
        "initial_poses": f"[{pos[0, 0]}, {pos[0, 1]}, 0.02, {yaw[0]}]",
        "sensors": str(SENSORS),
    }
    log = OUT / "simulator.log"
    takes = "which takes up to a minute the first time"
    print(f"starting the simulator with a room, {takes} (log: {log})", flush=True)
    with interruptible():
        try:
            with (
                SimulatorProcess(parameters, log) as simulator,
                SimulatorClient(check=simulator.check) as simulation,
            ):
                flight = RoomFlight(simulation)
                flight.fly()
                if simulator.has_complained():
                    return 1
        except (SimulatorError, SimulationError, ImportError, OSError) as error:
            print(f"\nFAILED: {error}", file=sys.stderr)
            return 1
        print(", ".join(f"{len(kept)} x {topic}" for topic, kept in flight.messages.items()))
        save_scan(flight, OUT / "scan.png")
        save_cloud(flight, OUT / "cloud.png")
        middles = flight.start_ns + (RISE + ROUND * (np.arange(6) + 0.5) / 6) * NS
        save_pictures(flight, middles, OUT / "camera.png", OUT / "depth.png")
        print(f"pictures in {OUT}/: scan.png, cloud.png, camera.png, depth.png")
    return 0


def plan() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times (K,) [s], positions (K, 3) [m] and headings along the path (K,) [rad]."""
    times = np.arange(0.0, RISE + ROUND + REST, 1 / RATE)
    height, part = (np.clip(u, 0, 1) for u in (times / RISE, (times - RISE) / ROUND))
    phase = 2 * np.pi * part**2 * (3 - 2 * part)
    sine, cosine = np.sin(phase), np.cos(phase)
    pos = SIZE * np.stack([cosine, sine, np.sin(2 * phase)], axis=-1)
    pos[:, 2] += ALTITUDE * height**2 * (3 - 2 * height)
    return times, pos, np.arctan2(SIZE[1] * cosine, -SIZE[0] * sine)


def trajectory(start_ns: int) -> MultiDOFJointTrajectory:
    """Convert the flight, starting at a simulated time [ns], to a message."""
    from geometry_msgs.msg import Quaternion, Transform, Vector3
    from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

    message = MultiDOFJointTrajectory(joint_names=[f"{DRONE}/base_link"])
    message.header.frame_id = "map"
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(start_ns, NS)
    for time, (x, y, z), yaw in zip(*(values.tolist() for values in plan())):
        pose = Transform(
            translation=Vector3(x=x, y=y, z=z),
            rotation=Quaternion(z=sin(yaw / 2), w=cos(yaw / 2)),
        )
        point = MultiDOFJointTrajectoryPoint(transforms=[pose])
        after = point.time_from_start
        after.sec, after.nanosec = divmod(round(time * NS), NS)
        message.points.append(point)
    return message


class RoomFlight:
    """A client that flies one round and keeps the messages of the drone's sensors.

    Attributes:
        poses: Position [m] and attitude xyzw in the map, (7,), by stamp [ns].
        messages: Messages of the sensors by topic and stamp [ns].
        start_ns: Time of the take-off [ns].
    """

    def __init__(self, simulation: SimulatorClient) -> None:
        from geometry_msgs.msg import PoseStamped
        from sensor_msgs.msg import Image, LaserScan, PointCloud2
        from trajectory_msgs.msg import MultiDOFJointTrajectory

        self._simulation, self.start_ns = simulation, 0
        node = simulation.node
        self.poses: dict[int, np.ndarray] = {}
        self.messages: dict[str, dict[int, Any]] = {}
        node.create_subscription(PoseStamped, f"{DRONE}/pose", self._keep_pose, 100)
        for kind, topic in (
            (LaserScan, "scan"),
            (PointCloud2, "cloud"),
            (Image, "camera/image_raw"),
            (Image, "camera/depth/image_raw"),
        ):
            kept = self.messages[topic] = {}
            node.create_subscription(
                kind, f"{DRONE}/{topic}", lambda m, kept=kept: kept.update({stamp(m): m}), 10
            )
        self._commands = node.create_publisher(
            MultiDOFJointTrajectory, f"{DRONE}/cmd_trajectory", 1
        )

    def fly(self) -> None:
        """Fly one round.

        Raises:
            SimulationError: The simulator does not publish.
        """
        from crazyflow_ros.client import SimulationError

        simulation, found = self._simulation, self._commands.get_subscription_count
        simulation.wait(
            lambda: self.poses and all(self.messages.values()) and found(),
            "there is no pose, scan, cloud or picture",
            READY_TIMEOUT,
        )
        print(f"flying through the room for {RISE + ROUND + REST:g} s", flush=True)
        self.start_ns = max(self.poses) + LEAD
        self._commands.publish(trajectory(self.start_ns))
        end = self.start_ns + int((RISE + ROUND + REST) * NS)
        while max(self.poses) < end:
            simulation.spin_for(SLICE)
            if simulation.silence > SILENCE:
                raise SimulationError(f"the simulator has been silent for {SILENCE:g} s")

    def _keep_pose(self, message: Any) -> None:
        pos, quat = message.pose.position, message.pose.orientation
        self.poses[stamp(message)] = np.array([pos.x, pos.y, pos.z, quat.x, quat.y, quat.z, quat.w])


def stamp(message: Any) -> int:
    """Return the stamp of a message [ns]."""
    return int(message.header.stamp.sec) * NS + int(message.header.stamp.nanosec)


if __name__ == "__main__":
    sys.exit(main())

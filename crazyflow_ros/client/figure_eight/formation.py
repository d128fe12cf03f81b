"""Flies all drones of a running simulator at once, through topics and services."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from trajectory_msgs.msg import MultiDOFJointTrajectory

from crazyflow_ros.client import SimulationError, SimulatorClient
from crazyflow_ros.client.figure_eight.flight_path import (
    ALTITUDE,
    MOST_LAG,
    FlightPath,
    plan_flight,
)
from crazyflow_ros.client.figure_eight.flight_record import FlightRecord, Track
from crazyflow_ros.client.figure_eight.trajectory_messages import (
    read_pose,
    read_poses,
    trajectory_message,
)
from crazyflow_ros.client.progress import ProgressLine
from crazyflow_ros.ros.messages import NS

LEAD_NS = NS // 2  # of simulated time, from sending the trajectories to their start
SLICE = 0.05  # s for which callbacks run between two checks
SILENCE = 10.0  # s of wall time without a message, after which the simulator counts as gone
STOREY = 0.15  # m, difference in altitude between drones
STANDING = 0.1  # m, highest centre of mass of a drone on the floor
SETTLING_NS = 5 * NS  # of simulated time, in which drones stop their rotors after the flight

# Monitoring needs no reliability, which would slow down a simulator faster than this client.
_FOLLOW = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)


@dataclass
class _Drone:
    name: str
    publisher: Publisher[Any]
    poses: list[bytes] = field(default_factory=list)
    """All received messages, deserialised on demand: that takes longer than receiving them."""
    flight: FlightPath | None = None

    def receive(self, message: bytes) -> None:
        self.poses.append(message)

    def latest(self) -> tuple[int, np.ndarray]:
        """Return time in ns and position (3,) of the last pose."""
        return read_pose(self.poses[-1])

    def planned(self) -> FlightPath:
        assert self.flight is not None, "plans come first"
        return self.flight

    def track(self, start_ns: int) -> Track:
        stamps_ns, pos = read_poses(self.poses)
        times = (stamps_ns - start_ns) / NS
        flown = (times >= 0) & (times <= self.planned().duration + SETTLING_NS / NS)
        return Track(self.name, self.planned(), times[flown], pos[flown])


def fly(simulation: SimulatorClient, duration: float) -> FlightRecord:
    """Take off, fly figure-eights and land with all drones; show the progress.

    The simulation is paused until the trajectories have arrived, so that all drones start at the
    same instant at any real-time factor.

    Args:
        simulation: The simulator; its drones stand on the floor.
        duration: Duration of the flight, simulated s, at least `SHORTEST`.

    Raises:
        SimulationError: The simulator does not respond or refuses a request.
    """
    formation, progress = _Formation(simulation), ProgressLine()
    print(f"{_list(simulation.drones)} ready", flush=True)
    try:
        return formation.fly(duration, progress)
    finally:
        progress.close()


def _list(names: list[str]) -> str:
    return " ".join(names) if len(names) <= 8 else f"{len(names)} drones, {names[0]}..{names[-1]},"


class _Formation:
    """All drones of a simulator, with what has been heard of them."""

    def __init__(self, simulation: SimulatorClient) -> None:
        self._simulation, node = simulation, simulation.node
        self._drones = [
            _Drone(
                name, node.create_publisher(MultiDOFJointTrajectory, f"{name}/cmd_trajectory", 1)
            )
            for name in simulation.drones
        ]
        for drone in self._drones:
            node.create_subscription(
                PoseStamped, f"{drone.name}/pose", drone.receive, _FOLLOW, raw=True
            )

    def fly(self, duration: float, progress: ProgressLine) -> FlightRecord:
        simulation = self._simulation
        # Before the pause: while time stands still each pose comes once, and may be lost.
        simulation.wait(
            lambda: all(d.poses and d.publisher.get_subscription_count() for d in self._drones),
            "there is no pose, or no subscription to cmd_trajectory, of each drone",
        )
        simulation.pause()
        try:
            for index, drone in enumerate(self._drones):
                drone.flight = self._plan(drone, duration, index % 4)
            simulation.look_at_time()
            paused_ns = simulation.time_ns
            start_ns = paused_ns + LEAD_NS
            self._send(start_ns)
        finally:
            simulation.resume()

        simulation.wait(lambda: simulation.time_ns > paused_ns, "time does not go on")
        begin_ns, begin = simulation.time_ns, time.monotonic()
        end_ns = start_ns + int(duration * NS)
        while min(drone.latest()[0] for drone in self._drones) < end_ns:
            simulation.spin_for(SLICE)
            seconds = (simulation.time_ns - start_ns) / NS
            progress.show(seconds, duration, self._status(start_ns))
            if simulation.silence > SILENCE:
                raise SimulationError(f"the simulator has been silent for {SILENCE:g} s")
        elapsed = time.monotonic() - simulation.silence - begin
        simulated = (simulation.time_ns - begin_ns) / NS
        not_landed = self._not_landed()  # on the cushion of air, a drone ends above the floor
        return FlightRecord(
            tuple(drone.track(start_ns) for drone in self._drones),
            simulated=simulated,
            elapsed=elapsed,
            received=sum(len(drone.poses) for drone in self._drones),
            not_landed=not_landed,
        )

    def _not_landed(self) -> dict[str, str]:
        """Wait until all drones have landed; return the states of those that have not, by name."""
        simulation = self._simulation
        end_ns = simulation.time_ns + SETTLING_NS
        while True:
            is_over = simulation.time_ns > end_ns
            states = {drone.name: drone.state for drone in simulation.drone_status()}
            left = {drone.name: states.get(drone.name, "gone") for drone in self._drones}
            left = {name: state for name, state in left.items() if state != "landed"}
            if is_over or not left:
                return left

    def _plan(self, drone: _Drone, duration: float, storey: int) -> FlightPath:
        _, pad = drone.latest()
        if pad[2] > STANDING:
            raise SimulationError(
                f"{drone.name} is {pad[2]:.2f} m above the floor; the flight starts on the floor,"
                f" which a call of {self._simulation.name}/reset brings it back to"
            )
        lag = MOST_LAG * storey / 3
        return plan_flight(pad, duration, lag, ALTITUDE + STOREY * storey)

    def _send(self, start_ns: int) -> None:
        for drone in self._drones:
            drone.publisher.publish(trajectory_message(drone.name, drone.planned(), start_ns))
        for drone in self._drones:
            self._simulation.wait(
                partial(drone.publisher.wait_for_all_acked, Duration(seconds=SLICE)),
                f"the trajectory of {drone.name} was not received",
            )

    def _status(self, start_ns: int) -> str:
        """Return the phase of the flight, or the largest present tracking error."""
        errors = []
        for drone in self._drones:
            begin, end = drone.planned().airborne
            time_ns, pos = drone.latest()
            seconds = (time_ns - start_ns) / NS
            if not begin <= seconds <= end:
                return "taking off" if seconds < begin else "landing"
            target = drone.planned()(np.array([seconds])).pos[0]
            errors.append((float(np.linalg.norm(target - pos)), drone.name))
        error, name = max(errors)
        return f"tracking error {error:.3f} m ({name})"

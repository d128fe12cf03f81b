"""A ROS client that flies all drones of a running simulator through topics and services."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.client import Client
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter_client import AsyncParameterClient
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from rosgraph_msgs.msg import Clock
from std_srvs.srv import SetBool
from trajectory_msgs.msg import MultiDOFJointTrajectory

from crazyflow_ros.demo.messages import read_pose, read_poses, trajectory_message
from crazyflow_ros.demo.progress import Progress
from crazyflow_ros.demo.record import Record, Track
from crazyflow_ros.demo.spin import make_executor, spin_for
from crazyflow_ros.demo.trajectory import ALTITUDE, MOST_LAG, FlightPath, plan_flight
from crazyflow_ros.ros.messages.times import NS, nanoseconds

LEAD_NS = NS // 2  # of simulated time, from sending the trajectories to their start
SLICE = 0.05  # s for which callbacks run between two checks
READY_TIMEOUT = 120.0  # s, for a simulator that compiles on a slow machine
REPLY_TIMEOUT = 10.0  # s, for a simulator that is ready
STOREY = 0.15  # m, difference in altitude between drones
STANDING = 0.1  # m, highest centre of mass of a drone on the floor

# Monitoring needs no reliability, which would slow down a simulator faster than this client.
_FOLLOW = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)


class FlightError(RuntimeError):
    """A flight that cannot continue; the message has the reason."""


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


class FlightClient:
    """A client that flies the drones in the simulator's parameter `drones`."""

    def __init__(self, node: Node, check: Callable[[], None], simulator: str = "crazyflow") -> None:
        """Connect.

        Args:
            node: Node of the client, in the namespace of the simulator.
            check: Called often; raises an exception to end the flight.
            simulator: Name of the simulator's node.
        """
        self._node, self._check, self._simulator = node, check, simulator
        self._executor = make_executor()
        self._executor.add_node(node)
        self._pause: Client[Any, Any] = node.create_client(SetBool, f"{simulator}/pause")
        self._parameters = AsyncParameterClient(node, simulator)
        self._drones: list[_Drone] = []
        self._clock_ns = 0
        self._heard = time.monotonic()
        self._first_tick: tuple[int, float] | None = None  # ns simulated, s of wall time
        node.create_subscription(Clock, "/clock", self._on_clock, _FOLLOW)

    def close(self) -> None:
        """Stop running callbacks."""
        self._executor.shutdown()

    def connect(self) -> list[str]:
        """Wait for the simulator.

        Returns:
            Names of the drones.
        """
        self._wait_for(
            lambda: self._pause.service_is_ready() and self._parameters.services_are_ready(),
            f"the node {self._simulator!r} offers no services",
            READY_TIMEOUT,
        )
        (value,) = self._call(
            self._parameters.get_parameters(["drones"]), "parameter drones"
        ).values
        names = list(value.string_array_value)
        if not names:
            raise FlightError(f"the node {self._simulator!r} has no drones")
        self._drones = [
            _Drone(
                name,
                self._node.create_publisher(MultiDOFJointTrajectory, f"{name}/cmd_trajectory", 1),
            )
            for name in names
        ]
        for drone in self._drones:
            self._node.create_subscription(
                PoseStamped, f"{drone.name}/pose", drone.receive, _FOLLOW, raw=True
            )
        return names

    def fly(self, duration: float, progress: Progress) -> Record:
        """Take off, fly figure-eights and land.

        The simulation is paused until the trajectories have arrived, so that all drones start at
        the same instant at any real-time factor.

        Args:
            duration: Duration of the flight, simulated s.
            progress: Display of the progress.
        """
        self._set_paused(True)
        try:
            self._wait_for(
                lambda: all(d.poses and d.publisher.get_subscription_count() for d in self._drones),
                "no pose, or no subscription to cmd_trajectory, from each drone",
                REPLY_TIMEOUT,
            )
            for index, drone in enumerate(self._drones):
                drone.flight = self._plan(drone, duration, index % 4)
            start_ns = self._pause_time() + LEAD_NS
            self._send(start_ns)
            self._first_tick = None
        finally:
            self._set_paused(False)

        end_ns = start_ns + int(duration * NS)
        while min(drone.latest()[0] for drone in self._drones) < end_ns:
            self._run_callbacks()
            progress.show((self._clock_ns - start_ns) / NS, self._status(start_ns))
            self._check_silence()
        return self._record(start_ns)

    def _plan(self, drone: _Drone, duration: float, storey: int) -> FlightPath:
        _, pad = drone.latest()
        if pad[2] > STANDING:
            raise FlightError(
                f"{drone.name} is {pad[2]:.2f} m above the floor; the flight starts on the floor,"
                f" which a call of {self._simulator}/reset brings it back to"
            )
        lag = MOST_LAG * storey / 3
        return plan_flight(pad, duration, lag, ALTITUDE + STOREY * storey)

    def _send(self, start_ns: int) -> None:
        for drone in self._drones:
            drone.publisher.publish(trajectory_message(drone.name, drone.planned(), start_ns))
        for drone in self._drones:
            self._wait_for(
                partial(drone.publisher.wait_for_all_acked, Duration(seconds=SLICE)),
                f"the trajectory of {drone.name} was not received",
                REPLY_TIMEOUT,
            )

    def _on_clock(self, message: Clock) -> None:
        time_ns, self._heard = nanoseconds(message.clock), time.monotonic()
        if self._first_tick is None and time_ns > self._clock_ns:
            self._first_tick = (time_ns, self._heard)
        self._clock_ns = time_ns

    def _run_callbacks(self) -> None:
        spin_for(self._executor, SLICE)
        self._check()

    def _wait_for(self, condition: Callable[[], bool], problem: str, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise FlightError(f"{problem} after {timeout:g} s")
            self._run_callbacks()

    def _check_silence(self) -> None:
        if time.monotonic() - self._heard > REPLY_TIMEOUT:
            raise FlightError(f"the simulator has been silent for {REPLY_TIMEOUT:g} s")

    def _call(self, future: Future[Any], what: str) -> Any:
        deadline = time.monotonic() + REPLY_TIMEOUT
        while not future.done():
            if time.monotonic() > deadline:
                raise FlightError(f"{self._simulator}: no reply to {what} in {REPLY_TIMEOUT:g} s")
            self._executor.spin_once(timeout_sec=SLICE)
            self._check()
        return future.result()

    def _set_paused(self, paused: bool) -> None:
        reply = self._call(self._pause.call_async(SetBool.Request(data=paused)), "pause")
        if not reply.success:
            raise FlightError(f"{self._simulator}/pause was refused: {reply.message}")

    def _pause_time(self) -> int:
        """Return the simulated time of the last tick in ns, which the paused clock repeats."""
        seen = -1

        def settled() -> bool:
            nonlocal seen
            before, seen = seen, self._clock_ns
            return before == seen and self._heard > asked

        asked = time.monotonic()
        self._wait_for(settled, "the clock does not show the time of the pause", REPLY_TIMEOUT)
        return seen

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

    def _record(self, start_ns: int) -> Record:
        assert self._first_tick is not None
        first_ns, first_heard = self._first_tick
        tracks = []
        for drone in self._drones:
            stamps_ns, pos = read_poses(drone.poses)
            times = (stamps_ns - start_ns) / NS
            flown = (times >= 0) & (times <= drone.planned().duration + 1)
            tracks.append(Track(drone.name, drone.planned(), times[flown], pos[flown]))
        return Record(
            tuple(tracks),
            simulated=(self._clock_ns - first_ns) / NS,
            elapsed=self._heard - first_heard,
            received=sum(len(drone.poses) for drone in self._drones),
        )

"""A drone of a running simulator, to be flown by scripts."""

from __future__ import annotations

from contextlib import suppress
from math import nan
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from simulation_interfaces.srv import GetEntityState
from std_srvs.srv import Trigger

from crazyflow_ros.client.arrival import Arrival
from crazyflow_ros.client.connection import LATEST, Connection, checked
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.ros.messages.geometry import point, vector, xyz, xyzw
from crazyflow_ros.ros.messages.times import duration_of, nanoseconds
from crazyflow_ros.ros.recording.message_definitions import type_of

TIMEOUT = 300.0
"""s of simulated time, in addition to its duration, after which a flight has failed."""

_LOOK = 0.1  # s of simulated time between two checks of a flying drone
_GLANCE = 1.0  # s of wall time for the first message of a topic
_LOW = 0.1  # m, height below which a drone at rest stands on the floor


class DroneClient:
    """A drone of a running simulator."""

    def __init__(self, simulation: Connection, name: str) -> None:
        self.name, self._simulation = name, simulation
        self._odometry: Odometry | None = None
        simulation.node.create_subscription(Odometry, f"{name}/odom", self._note, LATEST)

    @property
    def odometry(self) -> Odometry:
        """Latest message of the topic `odom`; when stepping, the one at the end of the step.

        As long as nothing has come on that topic, because it is off or time stands still, the same
        from a service, without covariances.
        """
        simulation, topic = self._simulation, f"{self.name}/odom"
        is_on = simulation.node.count_publishers(topic) > 0
        if self._odometry is None and not (is_on and simulation.stepping):
            with suppress(SimulationError):
                simulation.wait(self._is_recent, "", _GLANCE if is_on else 0.0)
            if self._odometry is None:
                return self._asked()
        simulation.wait(self._is_recent, f"there is no message on {topic}")
        assert self._odometry is not None
        return self._odometry

    @property
    def position(self) -> np.ndarray:
        """Position in the map [m], shape (3,)."""
        return xyz(self.odometry.pose.pose.position)

    @property
    def velocity(self) -> np.ndarray:
        """Velocity in body axes [m/s], shape (3,)."""
        return xyz(self.odometry.twist.twist.linear)

    def takeoff(self, height: float = 1.0, duration: float = 0.0, timeout: float = TIMEOUT) -> None:
        """Take off vertically, and return when the drone hovers.

        Args:
            height: Height above the floor [m].
            duration: Duration [s]; 0 is as fast as allowed.
            timeout: Simulated time after the duration in which it has to arrive [s].

        Raises:
            SimulationError: It did not; the message has its distance and the simulator's warnings.
        """
        self._simulation.need_time()
        self.start_takeoff(height, duration).wait(timeout)

    def start_takeoff(self, height: float = 1.0, duration: float = 0.0) -> OngoingFlight:
        """Start a take-off, and return immediately."""
        self._call("Takeoff", "takeoff", height=float(height), duration=duration_of(duration))
        return OngoingFlight(self, self._simulation, (nan, nan, height), duration)

    def go_to(
        self,
        x: float,
        y: float,
        z: float,
        yaw: float = 0.0,
        duration: float = 0.0,
        timeout: float = TIMEOUT,
    ) -> None:
        """Fly to a position in the map, and return when the drone hovers there.

        The drone has arrived once the duration is over and it is slower than 2 cm/s within 2 cm of
        the position, or at rest within 20 cm: it then has moved less than 1 cm for a second. Wind,
        or a policy or controller with a steady-state error, may keep it that far away.

        Args:
            x: x [m].
            y: y [m].
            z: Height above the floor [m].
            yaw: Heading [rad].
            duration: Duration [s]; 0 is as fast as allowed.
            timeout: Simulated time after the duration in which it has to arrive [s].

        Raises:
            SimulationError: It did not; the message has its distance and the simulator's warnings.
        """
        self._simulation.need_time()
        goal = point((x, y, z))
        self._call("GoTo", "go_to", goal=goal, yaw=float(yaw), duration=duration_of(duration))
        OngoingFlight(self, self._simulation, (x, y, z), duration).wait(timeout)

    def land(self, duration: float = 0.0, timeout: float = TIMEOUT) -> None:
        """Land vertically, and return when the drone stands on the floor.

        Raises:
            SimulationError: It did not; the message has its place and the simulator's warnings.
        """
        self._simulation.need_time()
        self.start_landing(duration).wait(timeout)

    def start_landing(self, duration: float = 0.0) -> OngoingFlight:
        """Start a landing, and return immediately."""
        self._call("Land", "land", duration=duration_of(duration))
        return OngoingFlight(self, self._simulation, (nan, nan, nan), duration)

    def arm(self, arm: bool = True) -> None:
        """Allow the drone to take off, or with False stop its rotors."""
        self._call("Arm", "arm", arm=arm)

    def emergency(self) -> None:
        """Stop the rotors immediately; the drone then needs a reset."""
        self._call("Empty", "emergency", package="std_srvs")

    def reset(self) -> None:
        """Reset this drone to its initial state."""
        checked(self._simulation.call(Trigger, f"{self.name}/reset"))

    def _call(
        self, kind: str, service: str, *, package: str = "crazyflie_interfaces", **request: Any
    ) -> None:
        try:
            found = type_of(f"{package}/srv/{kind}")
        except ValueError:
            text = f"{self.name}/{service} needs the ROS package {package}, which is not installed"
            raise SimulationError(text) from None
        name = f"{self.name}/{service}"
        self._simulation.warnings()
        self._simulation.call(found, name, **request)
        if refused := self._simulation.refusal(name):
            raise SimulationError(refused)

    def _asked(self) -> Odometry:
        """Return the odometry of the present tick from a service."""
        from crazyflow_ros.scene.frames import world_to_body  # takes a second: it imports JAX

        service = f"{self._simulation.name}/get_entity_state"
        state = checked(self._simulation.call(GetEntityState, service, entity=self.name)).state
        made = Odometry(header=state.header, child_frame_id=f"{self.name}/base_link")
        made.header.frame_id = f"{self.name}/odom"
        made.pose.pose = state.pose
        quat, twist = xyzw(state.pose.orientation), made.twist.twist
        twist.linear = vector(world_to_body(quat, xyz(state.twist.linear)))
        twist.angular = vector(world_to_body(quat, xyz(state.twist.angular)))
        return made

    def _is_recent(self) -> bool:
        """Return whether odometry has arrived; when stepping, from the end of the step."""
        if self._odometry is None or not self._simulation.stepping:
            return self._odometry is not None
        return nanoseconds(self._odometry.header.stamp) >= self._simulation.time_ns

    def _note(self, message: Odometry) -> None:
        self._odometry = message


class OngoingFlight:
    """A flight to a place, from its begin on.

    Args:
        drone: The drone.
        simulation: The simulator.
        goal: Position [m], shape (3,); NaN where it does not matter. If its z is NaN, the drone
            has arrived when it stands on the floor.
        duration: Minimum duration [s].
    """

    def __init__(
        self,
        drone: DroneClient,
        simulation: Connection,
        goal: tuple[float, float, float],
        duration: float,
    ) -> None:
        self._drone, self._simulation = drone, simulation
        self._is_landing, self._duration = bool(np.isnan(goal[2])), duration
        self._begin = simulation.time
        self._arrival = Arrival(np.array(goal), self._begin, duration)

    def wait(self, timeout: float = TIMEOUT) -> None:
        """Wait until the drone has arrived, see `DroneClient.go_to`.

        Args:
            timeout: Simulated time after the duration in which it has to arrive [s].

        Raises:
            SimulationError: It did not; the message has its place and the simulator's warnings.
        """
        simulation, arrival, name = self._simulation, self._arrival, self._drone.name
        while not self._has_arrived():
            fell = simulation.has_warned(f"{name}: crashed")
            took = simulation.time - self._begin
            if fell or arrival.is_stuck or took > self._duration + timeout:
                place, warnings = np.round(self._drone.position, 2).tolist(), simulation.warnings()
                away = "" if self._is_landing else f"{arrival.distance:.2f} m from its goal, "
                text = f"{name} has not arrived within {took:.1f} s, it "
                text += f"{'rests' if arrival.is_stuck else 'is'} {away}at {place} m"
                raise SimulationError(f"{text}; {warnings}" if warnings else text)
            simulation.sleep(_LOOK)

    def _has_arrived(self) -> bool:
        drone = self._drone
        position, speed = drone.position, float(np.linalg.norm(drone.velocity))
        arrived = self._arrival.look(self._simulation.time, position, speed)
        return arrived and (not self._is_landing or position[2] < _LOW)

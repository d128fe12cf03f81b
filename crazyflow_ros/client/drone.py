"""A drone of a running simulator, to be flown by scripts."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from crazyflie_interfaces.srv import GoTo, Land, Takeoff
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from std_srvs.srv import Empty, Trigger

from crazyflow_ros.client.arrival import Arrival
from crazyflow_ros.client.connection import LATEST, Connection, SimulationError, checked
from crazyflow_ros.ros.messages.times import duration_of, nanoseconds

TIMEOUT = 300.0
"""s of simulated time, in addition to its duration, after which a flight has failed."""

_LOOK = 0.1  # s of simulated time between two checks of a flying drone
_LOW = 0.1  # m, height below which a drone at rest stands on the floor


class DroneClient:
    """A drone of a running simulator."""

    def __init__(self, simulation: Connection, name: str) -> None:
        self.name, self._simulation = name, simulation
        self._odometry: Odometry | None = None
        simulation.node.create_subscription(Odometry, f"{name}/odom", self._note, LATEST)

    @property
    def odometry(self) -> Odometry:
        """Latest message of the topic `odom`; when stepping, the one at the end of the step."""
        self._simulation.wait(self._is_recent, f"there is no odometry of {self.name}")
        assert self._odometry is not None
        return self._odometry

    @property
    def position(self) -> np.ndarray:
        """Position in the map [m], shape (3,)."""
        position = self.odometry.pose.pose.position
        return np.array([position.x, position.y, position.z])

    @property
    def velocity(self) -> np.ndarray:
        """Velocity in body axes [m/s], shape (3,)."""
        linear = self.odometry.twist.twist.linear
        return np.array([linear.x, linear.y, linear.z])

    def takeoff(self, height: float = 1.0, duration: float = 0.0, timeout: float = TIMEOUT) -> None:
        """Take off vertically, and return when the drone hovers.

        Args:
            height: Height above the floor [m].
            duration: Duration [s]; 0 is as fast as allowed.
            timeout: Simulated time after the duration in which it has to arrive [s].

        Raises:
            SimulationError: It did not; the message has its distance and the simulator's warnings.
        """
        x, y, _ = self.position
        self.start_takeoff(height, duration)
        self._arrive((x, y, height), duration, timeout)

    def start_takeoff(self, height: float = 1.0, duration: float = 0.0) -> None:
        """Start a take-off and return immediately."""
        self._call(Takeoff, "takeoff", height=float(height), duration=duration_of(duration))

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
        goal = Point(x=float(x), y=float(y), z=float(z))
        self._call(GoTo, "go_to", goal=goal, yaw=float(yaw), duration=duration_of(duration))
        self._arrive((x, y, z), duration, timeout)

    def land(self, duration: float = 0.0, timeout: float = TIMEOUT) -> None:
        """Land vertically, and return when the drone stands on the floor.

        Raises:
            SimulationError: It did not; the message has its place and the simulator's warnings.
        """
        self.start_landing(duration)
        self._arrive((nan, nan, nan), duration, timeout)

    def start_landing(self, duration: float = 0.0) -> None:
        """Start a landing and return immediately."""
        self._call(Land, "land", duration=duration_of(duration))

    def emergency(self) -> None:
        """Stop the rotors immediately; the drone then needs a reset."""
        self._call(Empty, "emergency")

    def reset(self) -> None:
        """Reset this drone to its initial state."""
        checked(self._simulation.call(Trigger, f"{self.name}/reset"))

    def _call(self, kind: Any, service: str, **request: Any) -> None:
        self._simulation.warnings()
        self._simulation.call(kind, f"{self.name}/{service}", **request)
        refused = self._simulation.warnings()
        if f"{self.name}/{service} is refused" in refused:
            raise SimulationError(refused)

    def _arrive(self, goal: tuple[float, ...], duration: float, timeout: float) -> None:
        """Wait until the drone has arrived, see `arrival`; if the goal's z is NaN, on the floor."""
        simulation, low = self._simulation, np.isnan(goal[2])
        begin, far = simulation.time, np.array(goal)
        arrival = Arrival(far, begin, duration)
        while not self._has_arrived(arrival, low=low):
            fell = simulation.has_warned(f"{self.name}: crashed")
            if fell or arrival.is_stuck or simulation.time - begin > duration + timeout:
                place, warnings = np.round(self.position, 2).tolist(), simulation.warnings()
                away = "" if low else f"{arrival.distance:.2f} m from its goal, "
                text = f"{self.name} has not arrived within {simulation.time - begin:.1f} s, it "
                text += f"{'rests' if arrival.is_stuck else 'is'} {away}at {place} m"
                raise SimulationError(f"{text}; {warnings}" if warnings else text)
            simulation.sleep(_LOOK)

    def _has_arrived(self, arrival: Arrival, *, low: bool) -> bool:
        position, speed = self.position, float(np.linalg.norm(self.velocity))
        arrived = arrival.look(self._simulation.time, position, speed)
        return arrived and (not low or position[2] < _LOW)

    def _is_recent(self) -> bool:
        """Return whether odometry has arrived; when stepping, from the end of the step."""
        if self._odometry is None or not self._simulation.stepping:
            return self._odometry is not None
        return nanoseconds(self._odometry.header.stamp) >= self._simulation.time_ns

    def _note(self, message: Odometry) -> None:
        self._odometry = message

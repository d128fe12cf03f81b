"""A drone of a running simulator, to be flown by scripts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import nan
from typing import Any
from weakref import WeakSet

import numpy as np
from nav_msgs.msg import Odometry, Path
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from simulation_interfaces.srv import GetEntityState
from std_srvs.srv import Trigger

from crazyflow_ros.client.connection import LATEST, Connection, checked
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.ongoing_flight import OngoingFlight
from crazyflow_ros.client.world import LOADING
from crazyflow_ros.ros.messages import duration_of, nanoseconds, point, type_of, vector, xyz, xyzw

_GLANCE = 1.0  # s of wall time for the first message of a topic
_PLANS = QoSProfile(
    depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


class DroneClient:
    """A drone of a running simulator."""

    def __init__(self, simulation: Connection, name: str) -> None:
        self.name, self._simulation = name, simulation
        self._odometry: Odometry | None = None
        self._flights: WeakSet[OngoingFlight] = WeakSet()
        self._subscriptions: dict[str, Any] = {}
        self._hear(Odometry, "odom", self._note, LATEST)

    def forget(self) -> None:
        """Discard all data of a drone that was removed; one of the same name may come back."""
        for subscription in self._subscriptions.values():
            self._simulation.node.destroy_subscription(subscription)
        self._subscriptions.clear()
        self._odometry = None

    @property
    def odometry(self) -> Odometry:
        """Latest message of the topic `odom`; when stepping, the one at the end of the step.

        Until the first message arrives, because the topic is off or time stands still, it comes
        from a service, without covariances.
        """
        simulation, topic = self._simulation, f"{self.name}/odom"
        self._hear(Odometry, "odom", self._note, LATEST)
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

    @property
    def state(self) -> str:
        """State of its flight, which the simulator tells once a second, see `DroneStatus`."""
        return self._simulation.status().state_of(self.name)

    def takeoff(
        self, height: float = 1.0, duration: float = 0.0, timeout: float | None = None
    ) -> None:
        """Take off vertically, and return when the drone hovers.

        Args:
            height: Height above the floor [m].
            duration: Duration [s]; 0 is as fast as allowed.
            timeout: See `OngoingFlight.wait`.

        Raises:
            SimulationError: It did not; the message has its distance, why it did not arrive, and
                the simulator's warnings.
        """
        self._simulation.need_time()
        self.start_takeoff(height, duration).wait(timeout)

    def start_takeoff(self, height: float = 1.0, duration: float = 0.0) -> OngoingFlight:
        """Start a take-off, and return immediately."""
        return self._fly("Takeoff", "takeoff", (nan, nan, height), duration, height=float(height))

    def go_to(
        self,
        x: float,
        y: float,
        z: float,
        yaw: float = 0.0,
        duration: float = 0.0,
        timeout: float | None = None,
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
            timeout: See `OngoingFlight.wait`.

        Raises:
            SimulationError: It did not; the message has its distance, why it did not arrive, and
                the simulator's warnings.
        """
        self._simulation.need_time()
        self.start_go_to(x, y, z, yaw, duration).wait(timeout)

    def start_go_to(
        self, x: float, y: float, z: float, yaw: float = 0.0, duration: float = 0.0
    ) -> OngoingFlight:
        """Start a flight to a position, and return immediately."""
        goal = point((x, y, z))
        return self._fly("GoTo", "go_to", (x, y, z), duration, goal=goal, yaw=float(yaw))

    def land(self, duration: float = 0.0, timeout: float | None = None) -> None:
        """Land vertically, and return when the drone stands, with its rotors stopped.

        Raises:
            SimulationError: It did not; the message has its place, why it did not land, and the
                simulator's warnings.
        """
        self._simulation.need_time()
        self.start_landing(duration).wait(timeout)

    def start_landing(self, duration: float = 0.0) -> OngoingFlight:
        """Start a landing, and return immediately."""
        return self._fly("Land", "land", (nan, nan, nan), duration)

    def arm(self, arm: bool = True) -> None:
        """Allow the drone to take off, or with False stop its rotors."""
        self._call("Arm", "arm", arm=arm)

    def emergency(self) -> None:
        """Stop the rotors immediately; the drone then needs a reset."""
        self._call("Empty", "emergency", package="std_srvs")

    def attach(self, body: str = "", **how: Any) -> str:
        """Hold a body or another drone, until `detach` or a reset.

        Args:
            body: Its name; empty for the nearest within reach.
            **how: Other fields of the request, see `crazyflow_ros_interfaces/srv/Attach`.

        Returns:
            What the drone holds, and how, as a sentence.

        Raises:
            SimulationError: There is no such body, it is out of reach, or the drone holds another.
        """
        kind = type_of("crazyflow_ros_interfaces/srv/Attach")
        request = {k: point(x) if k.endswith("_point") else x for k, x in how.items()}
        called = self._simulation.call(kind, f"{self.name}/attach", LOADING, body=body, **request)
        return str(checked(called).message)

    def detach(self) -> str:
        """Let go of what the drone holds, and say what this was."""
        called = self._simulation.call(Trigger, f"{self.name}/detach", LOADING)
        return str(checked(called).message)

    def reset(self) -> None:
        """Reset this drone to its initial state."""
        checked(self._simulation.call(Trigger, f"{self.name}/reset"))

    def _fly(
        self,
        kind: str,
        service: str,
        to: tuple[float, float, float],
        duration: float,
        **request: Any,
    ) -> OngoingFlight:
        """Call a service that starts a flight, and watch the drone's plan from then on."""
        flight = OngoingFlight(self, self._simulation, to, duration)
        self._flights.add(flight)
        self._hear(Path, "plan", self._plan, _PLANS)
        self._call(kind, service, duration=duration_of(duration), **request)
        return flight

    def _hear(self, kind: Any, topic: str, note: Callable[[Any], None], qos: QoSProfile) -> None:
        if topic not in self._subscriptions:
            self._subscriptions[topic] = self._simulation.node.create_subscription(
                kind, f"{self.name}/{topic}", note, qos
            )

    def _plan(self, plan: Path) -> None:
        for flight in self._flights:
            flight.plans.append(plan)

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

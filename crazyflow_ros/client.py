"""Python client of a running simulator for scripts: flies drones and sleeps in simulated time.

    from crazyflow_ros.client import SimulatorClient

    with SimulatorClient() as simulation:
        cf0 = simulation.drone("cf0")
        cf0.takeoff(1.0)
        for x, y in ((1, 0), (1, 1), (0, 1), (0, 0)):
            cf0.go_to(x, y, 1.0)
        cf0.land()

It uses only topics and services that are open to any other program.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import nan
from types import TracebackType
from typing import Any, Self

import numpy as np
import rclpy
import yaml
from crazyflie_interfaces.srv import GoTo, Land, Takeoff
from geometry_msgs.msg import Point, PoseStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Log
from rcl_interfaces.srv import GetParameters
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node, NodeNameNonExistentError
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from simulation_interfaces.srv import GetEntityState, StepSimulation
from std_srvs.srv import Empty, SetBool, Trigger

from crazyflow_ros.ros.messages.times import NS, duration_of, nanoseconds
from crazyflow_ros.ros.recording.message_definitions import type_of

ANSWER = 30.0  # s of wall time for a service's response
STALL = 10.0  # s of wall time without a tick until the clock counts as stopped
ARRIVAL = 300.0  # s of simulated time for a drone to arrive

_SLICE = 0.05  # s of wall time between two checks
_LOOK = 0.1  # s of simulated time between two checks of a flying drone
_WARN = 30  # rcl_interfaces/msg/Log.WARN, whose type differs between distributions
_NEAR, _SLOW = 0.02, 0.02  # m, m/s: limits for arrival
_LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
_COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


class SimulationError(RuntimeError):
    """A request that the simulator did not fulfil; the message has the reason."""


class SimulatorClient:
    """A connection to a simulator. It runs callbacks only while one of its methods waits.

    Args:
        name: Name of the simulator's node.
        namespace: Namespace of the simulator.
        timeout: Wall time to wait for the simulator [s], which may be compiling.
        stepping: Advance time only while this client sleeps, in exact steps, so that the same
            script gives the same flight bit for bit.

    Attributes:
        name: As given.
        drones: Names of the drones at the simulator's start.
        freq: Ticks per simulated second.
        stepping: As given.
        time_ns: Latest known simulated time [ns].

    Raises:
        SimulationError: No simulator was found.
    """

    def __init__(
        self,
        name: str = "crazyflow",
        namespace: str = "/",
        timeout: float = 120.0,
        *,
        stepping: bool = False,
    ) -> None:
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node(
            "crazyflow_client",
            namespace=namespace,
            context=self._context,
            use_global_arguments=False,
            start_parameter_services=False,
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self.name, self._services = name, dict[str, Any]()
        self.time_ns, self.stepping = 0, False
        self._warnings: deque[str] = deque(maxlen=3)
        self.node.create_subscription(Log, "/rosout", self._note_log, 100)
        try:
            values = self.call(
                GetParameters, f"{name}/get_parameters", timeout, names=["drones", "freq"]
            )
            drones, freq = values.values
            self.drones: list[str] = list(drones.string_array_value)
            self.freq: int = freq.integer_value
            self._until(self._clocks, timeout, "there is no /clock")
            self.node.create_subscription(Clock, self._clocks()[0], self._note_clock, _LATEST)
            self._until(lambda: self.time_ns > 0, timeout, "/clock has no messages")
            if stepping:
                self.stepping = True
                self.pause()
                self._look_at_time()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; drones continue with their last command."""
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()

    @property
    def time(self) -> float:
        """Simulated time of the latest clock message [s]."""
        self._executor.spin_once(0.0)
        return self.time_ns * 1e-9

    def drone(self, name: str) -> DroneClient:
        """Return a drone.

        Raises:
            SimulationError: There is no drone of this name.
        """
        if name not in self.drones:
            raise SimulationError(f"there is no drone {name!r}, have {', '.join(self.drones)}")
        return DroneClient(self, name)

    def sleep(self, seconds: float) -> None:
        """Sleep in simulated time, rounded to ticks when stepping.

        Raises:
            SimulationError: Time does not advance, and this client does not step.
        """
        if self.stepping:
            if ticks := round(seconds * self.freq):
                self.step(ticks)
            return
        self._executor.spin_once(0.0)
        end = self.time_ns + round(seconds * NS)
        while self.time_ns < end:
            before, deadline = self.time_ns, time.monotonic() + STALL
            while self.time_ns == before:
                if time.monotonic() > deadline:
                    text = f"simulated time does not advance from {before * 1e-9:.3f} s"
                    raise SimulationError(f"{text}; call resume() or step()")
                self._executor.spin_once(_SLICE)

    def pause(self) -> None:
        """Pause; no tick follows the response."""
        self._checked(self.call(SetBool, f"{self.name}/pause", data=True))

    def resume(self) -> None:
        """Resume."""
        self._checked(self.call(SetBool, f"{self.name}/pause", data=False))

    def step(self, ticks: int) -> None:
        """Advance a paused simulation by exactly this number of ticks."""
        name = f"{self.name}/step_simulation"
        answer = self.call(StepSimulation, name, ANSWER + ticks * 0.01, steps=ticks)
        if answer.result.result != answer.result.RESULT_OK:
            raise SimulationError(answer.result.error_message)
        self._look_at_time()

    def reset(self) -> None:
        """Reset all drones to their initial states."""
        self._checked(self.call(Trigger, f"{self.name}/reset"))
        self._look_at_time()

    def call(self, kind: Any, name: str, timeout: float = ANSWER, **request: Any) -> Any:
        """Call a service, and return its response.

        Args:
            kind: Type of the service.
            name: Name of the service.
            timeout: Wall time to wait for the service, and again for its response [s].
            **request: Fields of the request.

        Raises:
            SimulationError: The service does not exist or does not respond.
        """
        if name not in self._services:
            self._services[name] = self.node.create_client(kind, name)
        client = self._services[name]
        self._until(client.service_is_ready, timeout, f"there is no service {name}")
        future = client.call_async(kind.Request(**request))
        self._until(future.done, timeout, f"{name} does not respond")
        return future.result()

    def echo(self, topic: str, *, once: bool = False) -> None:
        """Print the messages of a topic.

        Args:
            topic: Name of the topic.
            once: Whether to stop after one message; otherwise it never returns.

        Raises:
            SimulationError: The topic does not exist.
        """
        full, found = self.node.resolve_topic_name(topic), dict[str, list[str]]()

        def is_there() -> bool:
            found.update(self.node.get_topic_names_and_types())
            return full in found

        self._until(is_there, ANSWER, f"there is no topic {full}")
        kind = type_of(found[full][0])
        received: list[Any] = []
        self.node.create_subscription(kind, full, received.append, _LATEST)
        while not (once and received):
            self._executor.spin_once(_SLICE)
            if received:
                print(
                    yaml.safe_dump(_plain(received[-1]), sort_keys=False), end="---\n", flush=True
                )
                del received[: -1 if once else None]

    def warnings(self) -> str:
        """Return the latest warnings of the simulator and clear them."""
        self._executor.spin_once(_SLICE)
        found = "; ".join(self._warnings)
        self._warnings.clear()
        return found

    def wait(self, condition: Callable[[], object], what: str, timeout: float = ANSWER) -> None:
        """Run callbacks until a condition holds.

        Args:
            condition: The condition.
            what: Message of the error.
            timeout: Wall time to wait [s].

        Raises:
            SimulationError: It did not hold in time.
        """
        self._until(condition, timeout, what)

    def _look_at_time(self) -> None:
        """Read the time from a service: earlier clock messages may still be in transit."""
        name = f"{self.name}/get_entity_state"
        stamp = self.call(GetEntityState, name, entity=self.drones[0]).state.header.stamp
        self.time_ns = max(self.time_ns, nanoseconds(stamp))

    def _checked(self, answer: Any) -> None:
        if not answer.success:
            raise SimulationError(answer.message)

    def _until(self, condition: Callable[[], object], timeout: float, what: str) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise SimulationError(f"{what}, within {timeout:g} s; is a simulator running?")
            self._executor.spin_once(_SLICE)

    def _clocks(self) -> list[str]:
        """Return the simulator's clock topic; it is not /clock if several simulators run."""
        namespace = self.node.get_namespace()
        try:
            published = self.node.get_publisher_names_and_types_by_node(self.name, namespace)
        except NodeNameNonExistentError:  # services may be discovered before the node
            return []
        return [topic for topic, types in published if "rosgraph_msgs/msg/Clock" in types]

    def _note_clock(self, message: Clock) -> None:
        time_ns = nanoseconds(message.clock)
        is_late = self.stepping and time_ns < self.time_ns
        self.time_ns = self.time_ns if is_late else time_ns

    def _note_log(self, message: Log) -> None:
        if message.name.rpartition(".")[2] == self.name and message.level >= _WARN:
            self._warnings.append(message.msg)


class DroneClient:
    """A drone of a running simulator."""

    def __init__(self, simulation: SimulatorClient, name: str) -> None:
        self.name, self._simulation = name, simulation
        self._odometry: Odometry | None = None
        node = simulation.node
        node.create_subscription(Odometry, f"{name}/odom", self._note, _LATEST)
        self._poses = node.create_publisher(PoseStamped, f"{name}/cmd_pose", _COMMAND)

    @property
    def odometry(self) -> Odometry:
        """Latest message of the topic `odom`; when stepping, that at the end of the step."""
        text = f"there is no odometry of {self.name}"
        self._simulation._until(self._is_recent, ANSWER, text)
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

    def takeoff(self, height: float = 1.0, duration: float = 0.0) -> None:
        """Take off vertically, and return when the drone hovers.

        Args:
            height: Height above the floor [m].
            duration: Duration [s]; 0 is as fast as allowed.

        Raises:
            SimulationError: The drone did not arrive; the message has the simulator's warnings.
        """
        x, y, _ = self.position
        self.start_takeoff(height, duration)
        self._arrive((x, y, height))

    def start_takeoff(self, height: float = 1.0, duration: float = 0.0) -> None:
        """Start a take-off and return immediately."""
        self._call(Takeoff, "takeoff", height=float(height), duration=duration_of(duration))

    def go_to(self, x: float, y: float, z: float, yaw: float = 0.0, duration: float = 0.0) -> None:
        """Fly to a position in the map, and return when the drone hovers there.

        Args:
            x: x [m].
            y: y [m].
            z: Height above the floor [m].
            yaw: Heading [rad].
            duration: Duration [s]; 0 is as fast as allowed.

        Raises:
            SimulationError: The drone did not arrive; the message has the simulator's warnings.
        """
        goal = Point(x=float(x), y=float(y), z=float(z))
        self._call(GoTo, "go_to", goal=goal, yaw=float(yaw), duration=duration_of(duration))
        self._arrive((x, y, z))

    def land(self, duration: float = 0.0) -> None:
        """Land vertically, and return when the drone stands on the floor.

        Raises:
            SimulationError: The drone did not arrive; the message has the simulator's warnings.
        """
        self.start_landing(duration)
        self._arrive((nan, nan, nan), standing=True)

    def start_landing(self, duration: float = 0.0) -> None:
        """Start a landing and return immediately."""
        self._call(Land, "land", duration=duration_of(duration))

    def emergency(self) -> None:
        """Stop the rotors immediately; the drone then needs a reset."""
        self._call(Empty, "emergency")

    def reset(self) -> None:
        """Reset this drone to its initial state."""
        answer = self._simulation.call(Trigger, f"{self.name}/reset")
        if not answer.success:
            raise SimulationError(answer.message)

    def _call(self, kind: Any, service: str, **request: Any) -> None:
        self._simulation.warnings()
        self._simulation.call(kind, f"{self.name}/{service}", **request)
        refused = self._simulation.warnings()
        if f"{self.name}/{service} is refused" in refused:
            raise SimulationError(refused)

    def _arrive(self, goal: tuple[float, float, float], *, standing: bool = False) -> None:
        simulation = self._simulation
        begin = simulation.time
        simulation.sleep(_LOOK)
        while not self._is_at(goal) or (standing and self.position[2] > 0.1):
            if simulation.time - begin > ARRIVAL:
                place = np.round(self.position, 2).tolist()
                warnings = simulation.warnings()
                raise SimulationError(
                    f"{self.name} has not arrived, it is at {place} m; {warnings}"
                )
            simulation.sleep(_LOOK)

    def _is_at(self, goal: tuple[float, float, float]) -> bool:
        away = np.array(goal) - self.position
        near = bool(np.nanmax(np.abs(away), initial=0.0) < _NEAR)
        return near and bool(np.abs(self.velocity).max() < _SLOW)

    def _is_recent(self) -> bool:
        """Return whether odometry has arrived; when stepping, from the end of the step."""
        if self._odometry is None or not self._simulation.stepping:
            return self._odometry is not None
        return nanoseconds(self._odometry.header.stamp) >= self._simulation.time_ns

    def _note(self, message: Odometry) -> None:
        self._odometry = message


def _plain(value: Any) -> Any:
    """Convert a message or a field to YAML values."""
    if hasattr(value, "get_fields_and_field_types"):
        return {name: _plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes):
        return list(value)
    return [_plain(element) for element in value]

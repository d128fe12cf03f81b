"""The connection of a script to a running simulator: services, time and warnings."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import Log
from rcl_interfaces.srv import GetParameters
from rclpy.exceptions import InvalidNodeNameException
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.validate_node_name import validate_node_name
from rosgraph_msgs.msg import Clock
from simulation_interfaces.msg import EntityCategory, EntityFilters
from simulation_interfaces.srv import (
    GetEntities,
    GetEntityState,
    GetSimulationState,
    StepSimulation,
)
from std_srvs.srv import SetBool

from crazyflow_ros.client.errors import NoSimulator, SimulationError
from crazyflow_ros.client.log import WarningLog
from crazyflow_ros.client.service_calls import ANSWER, problem_of
from crazyflow_ros.client.session import SLICE, Session, one_line
from crazyflow_ros.client.status import SimulatorStatus
from crazyflow_ros.ros import published, simulators
from crazyflow_ros.ros.messages import NS, nanoseconds

COMPILING = 120.0  # s of wall time without a word of a simulator that may be compiling
STALL = 10.0  # s of wall time without a tick, after which the clock counts as stopped
_EVERY = 100  # messages in a queue from which none may be lost
LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class Connection(Session):
    """A connection to a simulator. It runs callbacks only while one of its methods waits.

    Args:
        name: Name of the simulator's node.
        namespace: Namespace of the simulator.
        timeout: Wall time to wait for the simulator to appear [s]. One that has appeared may be
            compiling; its answer is waited for longer, see `COMPILING`.
        stepping: Advance time only while this client sleeps, in exact steps, so that the same
            script gives the same flight bit for bit.
        check: See `Session`.

    Attributes:
        name: As given.
        freq: Ticks per simulated second.
        stepping: As given.
        time_ns: Latest known simulated time [ns].

    Raises:
        NoSimulator: No simulator was found.
        SimulationError: It does not answer, a name is not valid, or ROS cannot start, for example
            because of a wrong ROS_DOMAIN_ID.
    """

    def __init__(
        self,
        name: str = "crazyflow",
        namespace: str = "/",
        timeout: float = 120.0,
        *,
        stepping: bool = False,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        try:
            validate_node_name(name)
        except InvalidNodeNameException as error:
            raise SimulationError(one_line(error)) from None
        super().__init__("crazyflow_client", namespace, check=check)
        self.name, self.time_ns, self.stepping = name, 0, False
        self._log = WarningLog(self.full_name)
        self.node.create_subscription(Log, "/rosout", self._log.note, _EVERY)
        self.node.create_subscription(
            DiagnosticStatus, f"{name}/flight_events", self._log.note_event, _EVERY
        )
        self._heard: float | None = None
        self._late_ns: int | None = None
        try:
            drones, freq = self._find(timeout)
            self._timekeeper: str = drones.string_array_value[0]
            self.freq: int = freq.integer_value
            self.wait(self._clocks, "there is no /clock")
            self.node.create_subscription(Clock, self._clocks()[0], self._note_clock, LATEST)
            self.wait(lambda: self._heard, "/clock has no messages")
            if stepping:
                self.stepping = True
                self.pause()
                self.look_at_time()
        except BaseException:
            self.close()
            raise

    @property
    def full_name(self) -> str:
        """Name of the simulator's node with its namespace, for example /a/crazyflow."""
        return self.node.resolve_topic_name(self.name)

    @property
    def drones(self) -> list[str]:
        """Names of the present drones, including those spawned since the simulator's start."""
        robots = EntityCategory(category=EntityCategory.CATEGORY_ROBOT)
        filters = EntityFilters(categories=[robots])
        answer = checked(self.call(GetEntities, f"{self.name}/get_entities", filters=filters))
        return list(answer.entities)

    @property
    def time(self) -> float:
        """Simulated time of the latest clock message [s]."""
        self.spin(0.0)
        return self.time_ns * 1e-9

    @property
    def silence(self) -> float:
        """Wall time since the latest clock message [s]. A paused simulator repeats its time."""
        assert self._heard is not None, "the constructor waits for it"
        return time.monotonic() - self._heard

    def sleep(self, seconds: float) -> None:
        """Sleep in simulated time, rounded to ticks when stepping.

        If time jumps back meanwhile, for example at a reset, the remaining time stays the same.

        Raises:
            SimulationError: Time does not advance, and this client does not step.
        """
        if self.stepping:
            if ticks := round(seconds * self.freq):
                self.step(ticks)
            return
        self.spin(0.0)
        end = self.time_ns + round(seconds * NS)
        while self.time_ns < end:
            before, deadline = self.time_ns, time.monotonic() + STALL
            while self.time_ns == before:
                if time.monotonic() > deadline:
                    text = f"simulated time does not advance from {before * 1e-9:.3f} s"
                    raise SimulationError(f"{text}; is it paused? Resume or step it")
                self._spin_once(SLICE)
            end += min(self.time_ns - before, 0)

    def need_time(self) -> None:
        """Check that time advances, or that this client steps it.

        Raises:
            SimulationError: Time stands still.
        """
        if self.stepping:
            return
        state = self.call(GetSimulationState, f"{self.name}/get_simulation_state").state
        if state.state == state.STATE_NO_WORLD:
            raise SimulationError("time stands still: no world is loaded")
        if state.state != state.STATE_PLAYING:
            raise SimulationError("time stands still: resume the simulation first")

    def pause(self) -> None:
        """Pause; no tick follows the response."""
        checked(self.call(SetBool, f"{self.name}/pause", data=True))

    def resume(self) -> None:
        """Resume."""
        checked(self.call(SetBool, f"{self.name}/pause", data=False))

    def step(self, ticks: int) -> None:
        """Advance a paused simulation by exactly this number of ticks."""
        name = f"{self.name}/step_simulation"
        checked(self.call(StepSimulation, name, ANSWER + ticks * 0.01, steps=ticks))
        self.look_at_time()

    def warnings(self) -> str:
        """Return the latest warnings of the simulator and clear them."""
        self.spin(SLICE)
        found = self._log.text()
        self._log.clear()
        return found

    def has_warned(self, text: str) -> bool:
        """Return whether one of the latest warnings of the simulator contains a text."""
        return self._log.has(text)

    def refusal(self, what: str, *, is_topic: bool = False) -> str:
        """Return why the latest message or request was refused, or an empty string.

        The services of crazyswarm2 have empty responses, and topics have none, so a refusal is only
        a flight event or in the log. The simulator handles requests in order, so it has reported
        the refusal before it answers the request that this method sends.

        Args:
            what: Name of the topic or service.
            is_topic: Whether it is a topic: then the drone may refuse the message some ticks later.
        """
        self.call(GetParameters, f"{self.name}/get_parameters", names=["freq"])
        heard = -1
        while heard != self._log.heard:
            heard = self._log.heard
            self.spin(0.0)
        prefix = self.node.get_namespace().rstrip("/")
        name = self.node.resolve_topic_name(what).removeprefix(prefix)
        return self._log.against(name, is_topic=is_topic)

    def look_at_time(self) -> None:
        """Read the time from a service: earlier clock messages may still be in transit."""
        name = f"{self.name}/get_entity_state"
        answer = self.call(GetEntityState, name, entity=self._timekeeper)
        if answer.result.result != answer.result.RESULT_OK:  # the entity was deleted
            self._timekeeper = self.drones[0]
            answer = self.call(GetEntityState, name, entity=self._timekeeper)
        self.time_ns, self._late_ns = nanoseconds(answer.state.header.stamp), None

    def status(self) -> SimulatorStatus:
        """Return the simulator's status, which it publishes once a second."""
        found: list[DiagnosticArray] = []
        topic = f"{self.name}/status"
        subscription = self.node.create_subscription(DiagnosticArray, topic, found.append, 1)
        try:
            self.wait(lambda: found, f"there is no message on {topic}")
        finally:
            self.node.destroy_subscription(subscription)
        return SimulatorStatus.of(found[-1])

    def _find(self, timeout: float) -> tuple[Any, Any]:
        """Wait until the simulator appears and answers; return its `drones` and `freq`.

        Raises:
            NoSimulator: It does not appear.
            SimulationError: It does not answer, or is not a simulator.
        """
        service = f"{self.name}/get_parameters"
        try:
            what = f"there is no simulator {self.full_name} in ROS domain {self.domain}"
            self.wait(lambda: self._calls.is_ready(GetParameters, service), what, timeout)
        except SimulationError as error:
            others = ", ".join(simulators(self.node))
            raise NoSimulator(f"{error}; there is {others}" if others else str(error)) from None
        asked = self.call_async(GetParameters, service, inf, names=["drones", "freq"])
        what = f"{self.full_name}, which may be compiling, does not answer"
        self.wait(lambda: asked.done() or self._log.latest, what, COMPILING)
        heard, since = "", time.monotonic()
        while not asked.done():
            if self._log.latest != heard:
                heard, since = self._log.latest, time.monotonic()
                self.node.get_logger().info(f"{self.full_name}: {heard}")
            if time.monotonic() - since > COMPILING:
                raise SimulationError(f"{what}, waited {COMPILING:g} s")
            self._spin_once(SLICE)
        values = asked.result().values
        if len(values) != 2 or not values[0].string_array_value:
            raise SimulationError(f"the node {self.full_name} is not a simulator")
        return values[0], values[1]

    def _clocks(self) -> list[str]:
        return published(self.node, self.name, "rosgraph_msgs/msg/Clock")

    def _note_clock(self, message: Clock) -> None:
        time_ns = nanoseconds(message.clock)
        if not self.stepping or time_ns >= self.time_ns or time_ns == self._late_ns:
            self.time_ns = time_ns
        else:  # it was in transit, unless it is repeated: then time has jumped back
            self._late_ns = time_ns
        self._heard = time.monotonic()


def checked(answer: Any) -> Any:
    """Return the answer of a service.

    Raises:
        SimulationError: It says that the service failed.
    """
    if problem := problem_of(answer):
        raise SimulationError(problem)
    return answer

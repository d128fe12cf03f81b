"""The connection of a script to a simulator: here to one that computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Log, ParameterValue
from rcl_interfaces.srv import GetParameters
from ros_client import own_domain
from rosgraph_msgs.msg import Clock
from simulation_interfaces.srv import (
    GetAvailableWorlds,
    GetEntities,
    GetEntityState,
    LoadWorld,
    UnloadWorld,
)
from std_srvs.srv import SetBool

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.client import Session, SimulationError, SimulatorClient
from crazyflow_ros.ros.messages.times import NS, time_of

DOMAIN = own_domain(__name__)
NAME = "crazyflow"
FREQ = 2  # Hz
PERIOD_NS = NS // FREQ
SOON = 3.0  # s of simulated time, in which a client takes all that is due


class Simulator(Session):
    """Has what a client asks for. Each second time that it serves, a tick has passed."""

    def __init__(self, namespace: str) -> None:
        super().__init__(NAME, namespace, domain=DOMAIN)
        self.time_ns, self.is_paused, self.drones = 0, False, ["cf0", "cf1"]
        self.at_next_tick: list[str] = []  # what it warns of then
        self.jumps: dict[int, int] = {}  # when time jumps, and to which time [ns]
        self.told: list[tuple[Any, Any]] = []  # publishers, and what they repeat
        self._has_told = False
        self._clock = self.node.create_publisher(Clock, "clock", 1)
        self.answer(GetParameters, f"{NAME}/get_parameters", self._describe)
        self.answer(GetEntities, f"{NAME}/get_entities", self._list)
        self.answer(GetEntityState, f"{NAME}/get_entity_state", self._tell_time)
        self.answer(SetBool, f"{NAME}/pause", self._pause)

    def answer(self, kind: Any, service: str, work: Callable[[Any], object]) -> None:
        """Have a service that succeeds; `work` may fill in its response."""

        def respond(_: Any, response: Any) -> Any:
            if hasattr(response, "success"):
                response.success = True
            if hasattr(response, "result"):
                response.result.result = response.result.RESULT_OK
            work(response)
            return response

        self.node.create_service(kind, service, respond)

    def serve(self) -> None:
        """Answer what is due, and then tell the time after the next tick, unless it just has."""
        self._has_told = not self._has_told  # or clients would never see the end of what is due
        if self._has_told:
            self.spin(0.0)
            return
        late, self.at_next_tick = self.at_next_tick, []
        for text in late:
            self.node.get_logger().warning(text)
        self.time_ns += 0 if self.is_paused else PERIOD_NS
        self.time_ns = self.jumps.pop(self.time_ns, self.time_ns)
        self._clock.publish(Clock(clock=time_of(self.time_ns)))
        for publisher, message in self.told:
            publisher.publish(message)

    def refuse(self, _: Any) -> None:
        """Have each drone ignore a command at the next tick."""
        self.at_next_tick = [f"{drone} ignores a speed: it is locked" for drone in self.drones]

    def rewind(self, _: Any) -> None:
        """Begin anew."""
        self.time_ns = 0

    def _describe(self, response: Any) -> None:
        drones = ParameterValue(string_array_value=self.drones)
        response.values = [drones, ParameterValue(integer_value=FREQ)]

    def _list(self, response: Any) -> None:
        response.entities = self.drones

    def _tell_time(self, response: Any) -> None:
        response.state.header.stamp = time_of(self.time_ns)

    def _pause(self, _: Any) -> None:
        self.is_paused = True


@pytest.fixture(scope="module")
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        yield stack


@pytest.fixture(scope="module")
def simulator(stack: ExitStack) -> Simulator:
    return stack.enter_context(Simulator("/a"))


@pytest.fixture(scope="module")
def client(stack: ExitStack, simulator: Simulator) -> SimulatorClient:
    return stack.enter_context(SimulatorClient(namespace="/a", check=simulator.serve))


def test_warnings_of_a_namesake_in_another_namespace_do_not_count(
    client: SimulatorClient, simulator: Simulator
) -> None:
    heard: list[str] = []
    subscription = client.node.create_subscription(
        Log, "/rosout", lambda message: heard.append(message.msg), 100
    )
    with Simulator("/b") as other:
        other.wait(lambda: other.node.count_subscribers("/rosout") > 1, "nobody listens")
        for one, text in ((other, "of /b"), (simulator, "of /a")) * 2:
            one.node.get_logger().warning(text)
        client.wait(lambda: {"of /a", "of /b"} <= {*heard}, "there is no warning")
    client.node.destroy_subscription(subscription)
    client.spin(0.0)
    assert set(client.warnings().split("; ")) == {"of /a"}


def test_a_command_that_its_drone_ignores_at_a_later_tick_is_refused(
    client: SimulatorClient, simulator: Simulator
) -> None:
    simulator.node.create_subscription(Twist, "cf1/cmd_vel", simulator.refuse, 1)
    with pytest.raises(SimulationError, match=r"^cf1 ignores a speed: it is locked$"):
        client.graph.publish("cf1/cmd_vel", {})


def test_a_command_that_a_drone_ignores_is_no_answer_to_others(
    client: SimulatorClient, simulator: Simulator
) -> None:
    simulator.node.create_subscription(Twist, "cf2/cmd_vel", simulator.refuse, 1)
    assert client.graph.publish("cf2/cmd_vel", {}) == 1
    assert client.has_warned("cf1 ignores a speed")
    assert client.refusal("cf1/arm") == ""


def test_a_sleep_goes_on_when_time_jumps_back(
    client: SimulatorClient, simulator: Simulator
) -> None:
    """By what is left of it, again and again."""
    simulator.time_ns = 990 * NS
    client.wait(lambda: client.time_ns >= 990 * NS, "time has not come")
    simulator.jumps = {995 * NS: 950 * NS, 951 * NS: 940 * NS}
    client.sleep(10.0)
    took = 5.0 + 1.0
    assert not simulator.jumps
    assert client.time_ns / NS == pytest.approx(940.0 + 10.0 - took, abs=SOON)


@pytest.fixture
def stepping(stack: object) -> Iterator[tuple[Simulator, SimulatorClient]]:
    """A client that steps time, at 50 s."""
    with Simulator("/c") as simulator:
        simulator.time_ns = 50 * NS
        with SimulatorClient(namespace="/c", stepping=True, check=simulator.serve) as client:
            assert client.time_ns >= 50 * NS
            yield simulator, client


def test_a_world_that_is_loaded_or_unloaded_starts_at_time_zero(
    stepping: tuple[Simulator, SimulatorClient], tmp_path: Path
) -> None:
    simulator, client = stepping
    (world := tmp_path / "world.xml").write_text("<mujoco/>")
    simulator.answer(GetAvailableWorlds, f"{NAME}/get_available_worlds", lambda _: None)
    for kind, name in ((LoadWorld, "load_world"), (UnloadWorld, "unload_world")):
        simulator.answer(kind, f"{NAME}/{name}", simulator.rewind)
    client.world.load(str(world))
    assert client.time == 0.0
    simulator.time_ns = 50 * NS
    client.look_at_time()
    client.world.unload()  # after which no entity has a time
    client.wait(lambda: client.time == 0.0, "time has not gone back", 10.0)


def test_a_client_that_steps_follows_when_somebody_else_moves_time_back(
    stepping: tuple[Simulator, SimulatorClient],
) -> None:
    simulator, client = stepping
    simulator.time_ns = 20 * NS
    client.wait(lambda: client.time_ns == 20 * NS, "time is not known", 10.0)


def test_a_refusal_counts_again_that_the_log_leaves_out(
    client: SimulatorClient, simulator: Simulator
) -> None:
    """The flight events have each."""
    services = pytest.importorskip("crazyflie_interfaces.srv", reason="not installed")
    log = ThrottledLogger(simulator.node.get_logger())
    events = simulator.node.create_publisher(DiagnosticStatus, f"{NAME}/flight_events", 100)
    client.wait(events.get_subscription_count, "nobody listens to flight events")

    def refuse(_: Any) -> None:
        log.warning("cf1/arm is refused: cf1: it is locked")
        values = [KeyValue(key="kind", value="refused")]
        text = "arm: cf1: it is locked"
        events.publish(DiagnosticStatus(name="cf1", message=text, values=values))

    simulator.answer(services.Arm, "cf1/arm", refuse)
    told = "^cf1/arm is refused: cf1: it is locked$"
    for _ in range(2):
        with pytest.raises(SimulationError, match=told):
            client.drone("cf1").arm()
        with pytest.raises(SimulationError, match=told):
            client.graph.call("/a/cf1/arm", {"arm": True})


def test_a_drone_is_heard_once_and_only_while_it_is_there(
    client: SimulatorClient, simulator: Simulator
) -> None:
    def wait_for_listeners(number: int) -> None:
        found = simulator.node.count_subscribers
        client.wait(lambda: found("/a/cf9/odom") == number, f"not {number} listen")

    def move(x: float) -> None:
        message = Odometry()
        message.pose.pose.position.x = x
        simulator.told = [(publisher, message)]

    publisher = simulator.node.create_publisher(Odometry, "cf9/odom", 1)
    simulator.drones.append("cf9")
    move(1.0)
    cf9 = client.drone("cf9")
    assert all(client.drone("cf9") is cf9 for _ in range(3))
    wait_for_listeners(1)
    np.testing.assert_array_equal(cf9.position, (1.0, 0.0, 0.0))
    simulator.drones.remove("cf9")
    assert client.drone("cf1").name == "cf1"
    wait_for_listeners(0)
    simulator.drones.append("cf9")
    move(2.0)
    np.testing.assert_array_equal(cf9.position, (2.0, 0.0, 0.0))
    wait_for_listeners(1)
    simulator.told.clear()

"""What the page knows of crashes, from what the simulator publishes."""

from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

pytest.importorskip("viser", reason="the page needs viser")

from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.view.panel.state import Battery, Crash, SimulatorState

WHY = "crashed at (0.10, 0.20, 0.01): on its side; rotors stopped, reset it"


class Node:
    """In place of the connection and its node: the test is the simulator."""

    def __init__(self) -> None:
        self.node, self.name = self, "crazyflow"
        self.topics: dict[str, Any] = {}

    def in_thread(self, work: Any) -> None:
        work()

    def create_subscription(self, _: Any, topic: str, note: Any, __: Any) -> None:
        self.topics[topic] = note

    def status(self, time_ns: int, **values: str) -> None:
        message = DiagnosticArray(status=[_values(paused="false", achieved_factor="1", **values)])
        message.header.stamp = time_of(time_ns)
        self.topics["crazyflow/status"](message)

    def event(self, drone: str, kind: str, text: str, time_ns: int) -> None:
        message = _values(kind=kind, time_ns=str(time_ns))
        message.name, message.message = drone, text
        self.topics["crazyflow/flight_events"](message)

    def reset(self, drones: str) -> None:
        message = DiagnosticArray(status=[_values(drones=drones)])
        self.topics["crazyflow/reset_event"](message)


def _values(**values: str) -> DiagnosticStatus:
    pairs = [KeyValue(key=key.replace("_of_", " of "), value=v) for key, v in values.items()]
    return DiagnosticStatus(values=pairs)


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def state(node: Node) -> SimulatorState:
    return SimulatorState(node, None)  # type: ignore[arg-type]


def test_a_crash_is_known_from_its_event_until_the_drone_is_reset(
    state: SimulatorState, node: Node
) -> None:
    node.status(1, state_of_cf0="flying", state_of_cf1="flying")
    node.event("cf0", "crashed", WHY, 5)
    node.event("cf1", "hit", "hit wall", 5)
    assert state.crashes == {"cf0": Crash("cf0", 5, WHY)}
    node.status(4, state_of_cf0="flying", state_of_cf1="flying")  # from before
    assert "cf0" in state.crashes
    node.status(9, state_of_cf0="crashed", state_of_cf1="flying")
    assert state.crashes == {"cf0": Crash("cf0", 5, WHY)}
    node.reset("cf0, cf1")
    assert not state.crashes and state.resets == {"cf0": 1, "cf1": 1}
    assert state.flight["cf0"] == "idle"


def test_a_drone_that_has_recovered_has_not_crashed(state: SimulatorState, node: Node) -> None:
    node.event("cf0", "crashed", WHY, 5)
    node.status(9, state_of_cf0="crashed")
    node.status(20, state_of_cf0="flying")
    assert not state.crashes


def test_a_crash_before_the_page_was_there_is_known(state: SimulatorState, node: Node) -> None:
    node.status(9, state_of_cf0="crashed")
    assert state.crashes == {"cf0": Crash("cf0", None, "crashed")}


def test_batteries_are_read(state: SimulatorState, node: Node) -> None:
    node.status(9, battery_of_cf0="3.82 V, 31%", state_of_cf0="flying")
    assert state.batteries == {"cf0": Battery(3.82, 0.31)}

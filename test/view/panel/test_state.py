"""What the panel knows of the drones, from what the simulator publishes."""

from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

pytest.importorskip("viser", reason="the page needs viser")

from page_tab import frame_of

from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.view.panel.state import BatteryLevel, SimulatorState


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


def test_states_of_flight_are_read_and_a_reset_is_known_at_once(
    state: SimulatorState, node: Node
) -> None:
    node.status(1, state_of_cf0="crashed", state_of_cf1="flying")
    node.reset("cf0")
    assert state.flight == {"cf0": "idle", "cf1": "flying"} and state.resets == {"cf0": 1}


def test_a_drone_whose_rotors_turn_flies_whatever_the_last_status_says(
    state: SimulatorState, node: Node
) -> None:
    node.status(1, state_of_cf0="idle", state_of_cf1="flying")
    still, turning = (frame_of(np.zeros((2, 3)), rotors=speed) for speed in (0, 1500))
    assert not state.flies(still, "cf0") and state.flies(still, "cf1")
    assert state.flies(turning, "cf0")


def test_batteries_are_read(state: SimulatorState, node: Node) -> None:
    node.status(9, battery_of_cf0="3.82 V, 31%", state_of_cf0="flying")
    assert state.batteries == {"cf0": BatteryLevel(3.82, 0.31)}

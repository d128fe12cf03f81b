"""What the status line shows of what a simulator reports, without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the page needs viser")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from page_tab import frame_of, until
from ros_client import Client, own_domain

from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.panel.page_log import Log
from crazyflow_ros.view.panel.service_requests import ServiceRequests
from crazyflow_ros.view.panel.state import SimulatorState
from crazyflow_ros.view.status_line import StatusLine

DOMAIN = own_domain("test_status_line")
FRAME = frame_of(np.zeros((2, 3)), time=1.25)
USUAL = {
    "achieved_factor": "0.9731",
    "paused": "false",
    "state of cf0": "taking off",
    "battery of cf0": "3.05 V, 12%",
}


class Shown:
    """The shell of a page, with the latest content of each kind."""

    def __init__(self) -> None:
        self.latest: dict[str, Any] = {}

    def show(self, kind: str, content: Any) -> None:
        self.latest[kind] = json.loads(json.dumps(content, allow_nan=False))


@pytest.fixture
def client() -> Iterator[Client]:
    with closing(Client(DOMAIN)) as client:
        yield client


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    with closing(Follower()) as follower:
        yield follower


def diagnostics(name: str, level: bytes, message: str, values: dict[str, str]) -> DiagnosticStatus:
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticStatus(name=name, level=level, message=message, values=pairs)


def status(**values: str) -> DiagnosticArray:
    kept = USUAL | {key.replace("_of_", " of "): value for key, value in values.items()}
    return DiagnosticArray(
        status=[diagnostics("/crazyflow: simulation", DiagnosticStatus.OK, "", kept)]
    )


def event(time_ns: str, text: str, kind: str = "crashed") -> DiagnosticStatus:
    values = {"kind": kind, "time_ns": time_ns}
    return diagnostics("cf0", DiagnosticStatus.ERROR, text, values)


def test_reports_become_a_line_and_alarms(client: Client, follower: Follower) -> None:
    """Whatever a node of the graph says, the page can send it, and goes on."""
    shown, records, log = Shown(), [False], Log()
    state = SimulatorState(follower, ServiceRequests(follower, log))
    line = StatusLine(shown, follower, state, log, lambda: records[0])  # type: ignore[arg-type]
    assert shown.latest["status"]["state"] == "waiting"
    assert shown.latest["start"]["domain"] == DOMAIN

    def shows(**expected: Any) -> None:
        def is_shown() -> bool:
            line.update(FRAME, "cf0")
            return {key: shown.latest["status"].get(key) for key in expected} == expected

        until(is_shown, f"{expected}, not {shown.latest}")

    shows(state="running", drones=2, factor=None)
    client.publish("crazyflow/status", status())
    drone = {"name": "cf0", "state": "taking off", "battery": 12}
    shows(factor=0.97, drone=drone, records=False, word="")
    assert shown.latest["time"] == 1.2
    (low,) = shown.latest["alarms"]
    assert (low["text"], low["button"]) == ("cf0: the battery is low", "Land cf0")
    records[0] = True
    client.publish("crazyflow/status", status(paused="true", achieved_factor="0"))
    shows(state="paused", factor=None, word="paused", records=True)
    for wrong in (
        DiagnosticArray(),
        status(achieved_factor="fast"),
        status(battery_of_cf0="nan V, nan%"),
        status(achieved_factor="nan"),
        status(achieved_factor="-inf"),
    ):
        client.publish("crazyflow/status", wrong)
    shows(state="running", factor=None)
    for wrong_event in (event("soon", ""), event("9" * 400, "x" * 5000), DiagnosticStatus()):
        client.publish("crazyflow/flight_events", wrong_event)
    shows(word="crash")
    assert all(len(alarm["text"]) <= 300 for alarm in shown.latest["alarms"])
    what = "crashed at (1, 2, 0); rotors stopped"
    told = event("7500000000", f"{what}, call cf0/reset")
    told.values.append(KeyValue(key="remedy", value="call cf0/reset"))
    client.publish("crazyflow/flight_events", told)

    def alarms() -> list[tuple[Any, ...]]:
        line.update(FRAME, "cf0")
        return [
            tuple(one[key] for key in ("time", "text", "button")) for one in shown.latest["alarms"]
        ]

    # What it advises is the label of its button.
    until(lambda: (7.5, f"cf0: {what}", "Reset cf0") in alarms(), f"the crash, not {alarms()}")

"""Who shares a time: settings, comparison of configurations, coming and going."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from host_network import ENDPOINT, Network

from crazyflow_ros.hosts import Hosts
from crazyflow_ros.hosts.members import Members, configuration
from crazyflow_ros.hosts.words import PROTOCOL, Hello, unpacked
from crazyflow_ros.runtime import SimulationConfig

DRONES = ("cf0", "cf1", "cf2")
LEFT = Hosts("left", ("right",), ("cf0",), listen=(ENDPOINT,))
RIGHT = Hosts("right", ("left",), ("cf1", "cf2"), listen=(ENDPOINT,))


class Simulator:
    """The members as a simulator sees them, without physics."""

    def __init__(self, network: Network, settings: Hosts, **configured: Any) -> None:
        self.said: list[str] = []
        self.end = network.end(settings.name)
        values = {"freq": 500, **configured}
        self.members = Members(settings, DRONES, values, self.end, self.said.append)
        self.end.open(self._noticed, self._heard)
        self.members.renew()

    def _noticed(self, name: str, life: str, here: bool) -> None:
        self.members.noticed(name, life, here=here)

    def _heard(self, name: str, life: str, message: bytes) -> None:
        hello = unpacked(message)
        assert isinstance(hello, Hello)
        self.members.heard(name, life, hello)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a b"}, "hosts.name or peers: .*'a b'"),
        ({"world": "over/there"}, "hosts.world: .*'over/there'"),
        ({"peers": ()}, "hosts.peers: expected 1 to 63 names"),
        ({"peers": ("left",)}, "hosts.peers: expected names that differ"),
        ({"drones": ("cf7",)}, "hosts.drones: there is no drone 'cf7'"),
        ({"drones": ("cf0", "cf0")}, "hosts.drones: expected names that differ"),
        ({"listen": ()}, "hosts.connect: expected an endpoint"),
        ({"timeout": 0.0}, "timeout: expected a number from 0.5 to 3600"),
    ],
)
def test_settings_are_refused_with_the_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(LEFT, **changes).check(DRONES)


def test_simulators_find_each_other_whoever_comes_first() -> None:
    network = Network()
    left = Simulator(network, LEFT)
    assert left.members.missing == ["right"]
    right = Simulator(network, RIGHT)
    assert not left.members.missing and not right.members.missing
    assert left.members.view == right.members.view
    assert left.members.owners() == {"cf0": "left", "cf1": "right", "cf2": "right"}
    assert not left.said and not right.said


def test_greetings_that_were_lost_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network()
    network.change = lambda _, message: None
    left, right = Simulator(network, LEFT), Simulator(network, RIGHT)
    assert left.members.missing and right.members.missing
    network.change = lambda _, message: message
    monkeypatch.setattr("crazyflow_ros.hosts.members._REPEAT", -1.0)
    left.members.remind()
    assert left.members.missing and not right.members.missing
    right.members.remind()
    assert left.members.view == right.members.view


def test_each_coming_and_going_makes_a_new_view() -> None:
    network = Network()
    left, right = Simulator(network, LEFT), Simulator(network, RIGHT)
    views = {left.members.view}
    network.cut("right")
    assert left.members.missing == ["right"]
    right = Simulator(network, RIGHT)
    assert left.members.view == right.members.view not in views
    # The left one vanishes for the right one alone, which therefore begins anew.
    views.add(left.members.view)
    before = left.end.life
    right.members.noticed("left", before, here=False)
    right.members.noticed("left", before, here=True)
    assert not left.members.missing and not right.members.missing
    assert left.members.view == right.members.view not in views


@pytest.mark.parametrize(
    ("configured", "settings", "message"),
    [
        (
            {"freq": 1000},
            RIGHT,
            "right cannot share a time with left: it has freq=1000, here is 500",
        ),
        ({"wind": 3}, RIGHT, "it has wind=3, here is None"),
        ({}, replace(RIGHT, drones=("cf1",)), "cf2 has none"),
        ({}, replace(RIGHT, drones=DRONES), "cf0 has 2"),
    ],
)
def test_what_differs_is_named(configured: dict[str, Any], settings: Hosts, message: str) -> None:
    network = Network()
    left, right = Simulator(network, LEFT), Simulator(network, settings, **configured)
    assert message in left.members.refusal
    assert right.members.refusal


def test_another_version_of_the_protocol_is_refused() -> None:
    network = Network()
    left = Simulator(network, LEFT)
    left.members.noticed("right", "1", here=True)
    left.members.heard("right", "1", Hello(PROTOCOL + 1, {"freq": 500}, ("cf1", "cf2")))
    assert f"version {PROTOCOL + 1} of the protocol, here is {PROTOCOL}" in left.members.refusal


def test_strangers_and_namesakes_are_named() -> None:
    network = Network()
    left = Simulator(network, LEFT)
    Simulator(network, replace(RIGHT, name="third"))
    assert left.said == ["the simulator third is none of the peers right: ignored"]
    left.members.noticed("left", "another life", here=True)
    assert "there is another simulator left" in left.said[-1]
    left.members.noticed("left", "another life", here=False)
    # Of two lives of a name the first one counts, until it has gone.
    for life in ("first", "second"):
        left.members.noticed("right", life, here=True)
    left.members.heard("right", "second", Hello(PROTOCOL, {"freq": 500}, ("cf1", "cf2")))
    assert left.members.missing == ["right"]
    left.members.noticed("right", "first", here=False)
    left.members.heard("right", "second", Hello(PROTOCOL, {"freq": 500}, ("cf1", "cf2")))
    assert not left.members.missing


def test_a_configuration_has_what_flights_depend_on() -> None:
    base = SimulationConfig()
    same = replace(base, real_time_factor=0.0, start_paused=True, watchdog_timeout=1.0)
    assert configuration(base, DRONES) == configuration(same, DRONES)
    for other in (
        replace(base, seed=1),
        replace(base, wind=(1.0, 0.0, 0.0)),
        replace(base, drone_model="cf21B_500"),
        replace(base, initial_poses=np.array([[x, 0, 1, 0, 0, 0, 1] for x in range(3)])),
        replace(base, flight=replace(base.flight, speed=1.0)),
    ):
        assert configuration(base, DRONES) != configuration(other, DRONES)
    assert configuration(base, DRONES) != configuration(base, DRONES[::-1])

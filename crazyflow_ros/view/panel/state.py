"""What the page knows about a simulator in addition to its drones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSProfile

from crazyflow_ros.ros.messages import nanoseconds
from crazyflow_ros.view.alarms import Alarms
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.service_requests import ServiceRequests

_LATEST, _EVERY = QoSProfile(depth=10), QoSProfile(depth=100)
_LATEST_NS = 2**63 - 1  # ns, that messages of ROS can have
_PATIENCE = 1.0  # s of wall time until a list that did not arrive is requested again
_SRV = "simulation_interfaces/srv"
_IDLE, CRASHED = "idle", "crashed"  # states of ~/status
_FLYING = ("taking off", "flying", "landing")
_TURNS = 100.0  # rad/s, above which a rotor was not just left to stop


class BatteryLevel(NamedTuple):
    """The battery of a drone."""

    volts: float
    charge: float
    """0 to 1."""


class SimulatorState:
    """The latest ~/status, and what can be loaded, spawned and deleted.

    Args:
        follower: The connection to the simulator.
        requests: Calls its services.

    Attributes:
        follower: As given.
        requests: As given.
        paused: Whether time stands still.
        factor: Achieved real-time factor; 0 if not known yet.
        worlds: URIs of the worlds that can be loaded, by name.
        world: Name of the loaded world; empty if there is none or it is not known.
        spawnables: URIs of what can be spawned, by name.
        entities: Names of what can be deleted.
        resets: Number of resets seen so far, by drone.
        flight: State of flight, such as `taking off`, by drone.
        batteries: The batteries, by drone.
        alarms: What is wrong.
        heard: Wall time of the latest ~/status [s], of the monotonic clock.
    """

    def __init__(self, follower: Follower, requests: ServiceRequests) -> None:
        self.follower, self.requests = follower, requests
        self._lists: dict[str, tuple[str, Callable[[Any], None]]] = {
            "get_available_worlds": ("GetAvailableWorlds", self._note_worlds),
            "get_spawnables": ("GetSpawnables", self._note_spawnables),
            "get_entities": ("GetEntities", self._note_entities),
            "get_current_world": ("GetCurrentWorld", self._note_world),
        }
        self._forget()
        self.resets: Counter[str] = Counter()
        follower.in_thread(self._subscribe)

    def _subscribe(self) -> None:
        node, name = self.follower.node, self.follower.name
        for topic, note in (("status", self._note_status), ("reset_event", self._note_reset)):
            node.create_subscription(DiagnosticArray, f"{name}/{topic}", note, _LATEST)
        events = f"{name}/flight_events"
        node.create_subscription(DiagnosticStatus, events, self._note_event, _EVERY)

    def _forget(self) -> None:
        self._missing = set(self._lists)
        self._changed_at: object = None
        self._due = 0.0
        self.paused, self.factor = False, 0.0
        self.worlds: dict[str, str] = {}
        self.world = ""
        self.spawnables: dict[str, str] = {}
        self.entities: tuple[str, ...] = ()
        self.flight: dict[str, str] = {}
        self.batteries: dict[str, BatteryLevel] = {}
        self.alarms, self.heard = Alarms(), time.monotonic()

    def update(self, frame: Frame | None) -> None:
        """Request the lists again after the simulator, the world or the drones have changed."""
        follower = self.follower
        if not follower.is_there or frame is None:
            self._forget()
            return
        if self._changed_at != (now := (follower.world, frame.names)):
            self._changed_at = now
            self._missing |= {"get_entities", "get_current_world"}
        if self._missing and time.monotonic() > self._due:
            self._due = time.monotonic() + _PATIENCE
            for service in tuple(self._missing):
                kind, note = self._lists[service]
                then = partial(self._note_list, service, note)
                self.requests.ask(None, "", f"{_SRV}/{kind}", f"~/{service}", then=then)

    def _note_list(self, service: str, note: Callable[[Any], None], answer: Any) -> None:
        self._missing.discard(service)
        note(answer)

    def _note_worlds(self, answer: Any) -> None:
        self.worlds = {world.name: world.world_resource.uri for world in answer.worlds}

    def _note_spawnables(self, answer: Any) -> None:
        uris = [spawnable.entity_resource.uri for spawnable in answer.spawnables]
        self.spawnables = {_short(uri): uri for uri in uris}

    def _note_entities(self, answer: Any) -> None:
        self.entities = tuple(sorted(answer.entities))

    def _note_world(self, answer: Any) -> None:
        self.world = answer.world.name

    def _note_status(self, message: DiagnosticArray) -> None:
        first, *others = message.status
        values = _values(first)
        batteries = {
            drone: _battery(text) for drone, text in _of_drones(values, "battery of ").items()
        }
        self.factor = float(values["achieved_factor"])
        self.paused = values["paused"] == "true"
        troubles = {status.name.rpartition(": ")[2]: status.message for status in others}
        if first.level == first.ERROR:
            troubles["simulation"] = first.message
        self.flight, self.batteries = _of_drones(values, "state of "), batteries
        self.heard = time.monotonic()
        charges = {drone: battery.charge for drone, battery in batteries.items()}
        time_ns = nanoseconds(message.header.stamp)
        self.alarms.note_status(time_ns, troubles, charges, self.flight)

    def _note_event(self, message: DiagnosticStatus) -> None:
        values = _values(message)
        time_ns = min(max(int(values["time_ns"]), 0), _LATEST_NS)
        # The alarm has a button for it.
        text = message.message.removesuffix(values.get("remedy", "")).rstrip(" ,:")
        self.alarms.note_event(time_ns, message.name, values["kind"], text)

    def flies(self, frame: Frame, drone: str) -> bool:
        """Return whether a drone would fall if its rotors stopped now."""
        row = frame.names.index(drone)
        turns = frame.rotor_speed[row].max() > _TURNS  # known at once, the state after a second
        return turns or self.flight.get(drone) in _FLYING

    def _note_reset(self, message: DiagnosticArray) -> None:
        drones = _values(message.status[0])["drones"].split(", ")
        self.resets.update(drones)
        self.alarms.note_reset(drones)
        self.flight = {**self.flight, **dict.fromkeys(drones, _IDLE)}  # ~/status says so later


def _values(status: DiagnosticStatus) -> dict[str, str]:
    return {pair.key: pair.value for pair in status.values}


def _of_drones(values: dict[str, str], prefix: str) -> dict[str, str]:
    """Return the values of a status whose keys have a prefix, by the drone's name after it."""
    return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}


def _battery(text: str) -> BatteryLevel:
    """Return what a status says of a battery, such as `3.80 V, 82%`."""
    volts, charge = text.removesuffix("%").split(" V, ")
    return BatteryLevel(float(volts), float(charge) / 100)


def _short(uri: str) -> str:
    """Return the name of a file without folder and ending, or the URI itself."""
    return uri.rpartition("/")[2].removesuffix(".xml").removesuffix(".urdf")

"""What has to hold after each step: time, sensors, drones and entities against the model."""

from __future__ import annotations

import struct
import time
from functools import partial
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from mcap.reader import make_reader
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile, ReliabilityPolicy
from ros_client import Client
from rosgraph_msgs.msg import Clock
from simulation_interfaces.srv import GetEntitiesStates, GetSimulationState

from journeys.lives import SENSORS
from journeys.model import ASTRAY, FREE, LANES, Model
from journeys.step import Broken

if TYPE_CHECKING:
    from journeys.walk import Walk

PATIENCE = 900.0  # s of wall time for a message, of a machine that is busy and may be compiling
PERIOD = 10_000_000  # ns, of the clock
FULL = 300.0  # s, for which a battery that was full lasts in any case
CEILING = 2.5  # m, above which nobody sends a drone
_ERROR = 2  # of a DiagnosticStatus
_STAMP = struct.Struct("<iI")
_LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class Watch:
    """Listens to a simulator.

    Args:
        client: Client of the simulator.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._clock, self._back, self._may_go_back = 0, list[str](), 0
        self._looked_ns = 0
        self._status: list[DiagnosticArray] = []
        self._stamps: dict[str, int] = {}
        self._streams: dict[str, Any] = {}
        listen = client.node.create_subscription
        self._always = [
            listen(Clock, "/clock", self._note_clock, 100, raw=True),
            listen(DiagnosticArray, "crazyflow/status", self._status.append, 10),
        ]

    def close(self) -> None:
        """Listen no more."""
        self.look_away()
        for subscription in self._always:
            self._client.node.destroy_subscription(subscription)

    def look_away(self) -> None:
        """Leave sensors without listeners until the next look."""
        for topic in list(self._streams):
            self._forget(topic)

    def go_back(self) -> None:
        """The clock may go back once."""
        self._may_go_back += 1

    @property
    def now_ns(self) -> int:
        """Latest time of the clock."""
        return self._clock

    def _note_clock(self, message: bytes) -> None:
        now = _time_of(message)
        if now < self._clock:
            self._may_go_back -= 1
            if self._may_go_back < 0:
                self._back.append(f"from {self._clock} to {now} ns")
                self._may_go_back = 0
        self._clock = now

    def look(self, walk: Walk) -> None:
        """Compare with the model.

        Raises:
            Broken: Something differs.
        """
        model = walk.model
        self._client.spin(0.0)
        self._note_flights(walk)
        self._status.clear()  # which may be from before the step
        self._check_entities(walk)
        self._check_state(walk)
        if model.moves:
            self._check_streams(walk)
        self._client.spin(0.0)
        if self._back:
            raise Broken("time went back", "; ".join(self._back))
        self._check_status(model)

    def _note_flights(self, walk: Walk) -> None:
        """Note for how long drones have flown: their batteries may be empty."""
        passed, self._looked_ns = self._clock - self._looked_ns, self._clock
        for drone in walk.model.drones.values():
            drone.flown += max(0, passed) * 1e-9 if drone.airborne else 0.0
            if walk.life.variant == "battery" and drone.flown > FULL:
                drone.wild = True

    def _check_entities(self, walk: Walk) -> None:
        model = walk.model
        answer = walk.ask(GetEntitiesStates, "crazyflow/get_entities_states", fails=None)
        expected = {*model.drones, *model.objects} if model.world else set()
        found = set(answer.entities)
        if found != expected:
            raise Broken(
                "other entities",
                f"missing {sorted(expected - found)}, unexpected {sorted(found - expected)}",
            )
        for name, state in zip(answer.entities, answer.states):
            if name in model.drones and not model.may_fall(name):
                at = state.pose.position
                x, y = LANES[model.drones[name].lane]
                if hypot(at.x - x, at.y - y) > FREE + ASTRAY or not -0.05 < at.z < CEILING:
                    place = f"({at.x:.2f}, {at.y:.2f}, {at.z:.2f}) m"
                    raise Broken("a drone is astray", f"{name} of lane ({x}, {y}) is at {place}")

    def _check_state(self, walk: Walk) -> None:
        model = walk.model
        state = walk.ask(GetSimulationState, "crazyflow/get_simulation_state").state
        if not model.world:
            good = state.state == state.STATE_NO_WORLD
        elif model.playing:
            good = state.state == state.STATE_PLAYING
        else:
            good = state.state in (state.STATE_PAUSED, state.STATE_STOPPED)
        if not good:
            raise Broken("another state", f"{state.state}, {model.world=}, {model.playing=}")

    def _check_streams(self, walk: Walk) -> None:
        """Each topic that has to publish has a message that is not older than this look."""
        model = walk.model
        wanted = {f"{drone}/odom": Odometry for drone in model.drones} | {
            f"{drone}/{sensor}{suffix}": kind
            for drone in model.drones
            for sensor in walk.life.sensors
            for suffix, kind in SENSORS[sensor].topics
        }
        for topic in self._streams.keys() - wanted.keys():
            self._forget(topic)
        for topic in wanted.keys() - self._streams.keys():
            self._streams[topic] = self._client.node.create_subscription(
                wanted[topic], topic, partial(self._note, topic), _LATEST, raw=True
            )
        since = walk.time_ns()
        silent = set(wanted)

        def all_heard() -> bool:
            silent.difference_update(
                [topic for topic in silent if self._stamps.get(topic, -1) >= since]
            )
            return not silent

        deadline = time.monotonic() + PATIENCE
        while not all_heard():
            walk.check_process()
            walk.check_log()
            if time.monotonic() > deadline:
                first = sorted(silent)[0]
                raise Broken(
                    f"{first.partition('/')[2]} is silent",
                    f"{', '.join(sorted(silent))} since {since} ns; the clock says {self._clock}",
                )
            self._client.spin(0.05)

    def _note(self, topic: str, message: bytes) -> None:
        self._stamps[topic] = _time_of(message)

    def _forget(self, topic: str) -> None:
        self._client.node.destroy_subscription(self._streams.pop(topic))
        self._stamps.pop(topic, None)

    def _check_status(self, model: Model) -> None:
        if not self._status:
            return
        first, *others = self._status[-1].status
        values = {pair.key: pair.value for pair in first.values}
        if values["failed_inputs"] != "0":
            raise Broken("failed inputs", values["failed_inputs"])
        for other in others:
            name = other.name.rpartition(": ")[2]
            if other.level >= bytes([_ERROR]) and not model.may_fall(name):
                raise Broken("an error in the status", f"{other.name}: {other.message}")


def check_clock(recording: Path, rewinds: int) -> None:
    """Check that the clock of a recording missed nothing, and jumped only where it was to.

    Args:
        recording: The file.
        rewinds: How often something may have made it jump.

    Raises:
        Broken: It did not.
    """
    with recording.open("rb") as file:
        messages = make_reader(file).iter_messages(["/clock"], log_time_order=False)
        times = np.array([_time_of(message.data) for _, _, message in messages])
    jumps = np.diff(times)
    jumps = jumps[(jumps < 0) | (jumps > PERIOD)]
    if len(jumps) > rewinds:
        raise Broken("the clock misses ticks", f"{len(jumps)} jumps {jumps[:9]} ns, {rewinds=}")


def _time_of(message: bytes) -> int:
    """Time at the beginning of a serialised message [ns]."""
    seconds, rest = _STAMP.unpack_from(message, 4)
    return int(seconds) * 1_000_000_000 + int(rest)

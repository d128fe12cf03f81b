"""The simulators that share a time, if they are present and alike, and their drones."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import mujoco

from crazyflow_ros.checks.limits import read_bytes, shown
from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.initial_poses import initial_poses
from crazyflow_ros.hosts.settings import Hosts
from crazyflow_ros.hosts.transport import Transport
from crazyflow_ros.hosts.words import PROTOCOL, Hello, packed
from crazyflow_ros.runtime import PhysicsThread, ResetEvent, ResetScope
from crazyflow_ros.sim.policies import MOST_BYTES

_REPEAT = 1.0  # s between greetings, as long as some have not answered
_FREE = ("real_time_factor", "start_paused", "watchdog_timeout")
_FILES = ("drone_model", "scene", "policy", "randomize")  # in other folders on other hosts


class Members:
    """The simulators of a world. Physics thread.

    Args:
        settings: Names of all.
        drones: Names of the drones of the world.
        configuration: What must be the same in all simulators, as JSON values.
        transport: Reaches the others.
        warn: Logs a warning.

    Attributes:
        refusal: Why this simulator cannot share a time with the others; empty if it can.
    """

    def __init__(
        self,
        settings: Hosts,
        drones: tuple[str, ...],
        configuration: Mapping[str, object],
        transport: Transport,
        warn: Callable[[str], None],
    ) -> None:
        self.own, self._peers = settings.name, sorted(settings.peers)
        self._drones, self._transport, self._warn = drones, transport, warn
        self._hello = Hello(PROTOCOL, dict(configuration), settings.drones)
        self._life, self._greeted = "", 0.0
        # Several lives of one name: it is renewed, or the end of the first one has not been noticed
        # yet, or two simulators have the same name. The first one counts.
        self._lives: dict[str, list[str]] = {name: [] for name in (self.own, *self._peers)}
        self._hellos: dict[str, tuple[str, Hello]] = {}
        self.refusal = ""

    @property
    def names(self) -> list[str]:
        """Names of all simulators, in their order."""
        return sorted((self.own, *self._peers))

    @property
    def missing(self) -> list[str]:
        """Names of simulators that are absent or not yet compared."""
        return [name for name in self._peers if not self._is_here(name)]

    @property
    def view(self) -> str:
        """Identifies the present lives of all simulators; no earlier view is equal."""
        lives = [self._life, *(self._lives[name][0] for name in self._peers)]
        return hashlib.blake2b(" ".join(sorted(lives)).encode(), digest_size=8).hexdigest()

    def is_present(self, name: str, life: str) -> bool:
        """Whether a life of a simulator is the one that counts."""
        return life in self._lives.get(name, [])[:1]

    def noticed(self, name: str, life: str, *, here: bool) -> None:
        """Record that a simulator has come or gone."""
        if name == self.own:
            self._noticed_namesake(life, here=here)
            return
        if name not in self._lives:
            if here:
                known = ", ".join(self._peers)
                self._warn(f"the simulator {shown(name)} is none of the peers {known}: ignored")
            return
        lives = self._lives[name]
        if here and life not in lives:
            lives.append(life)
            self._greet()
        elif not here and life in lives:
            lives.remove(life)
            if not lives:
                self.renew()  # the other one may not have noticed that it was gone

    def heard(self, name: str, life: str, hello: Hello) -> None:
        """Compare a simulator with this one."""
        if not self.is_present(name, life):
            return
        self._hellos[name] = life, hello
        others = [kept for _, (_, kept) in sorted(self._hellos.items())]
        self.refusal = self._difference(name, hello)
        if not self.refusal and not self.missing:
            self.refusal = self._shares([self._hello, *others])
        if self.refusal:
            self._warn(self.refusal)

    def owners(self) -> dict[str, str]:
        """Return the owner of each drone at the start, once nobody is missing."""
        hellos = {name: hello for name, (_, hello) in self._hellos.items()} | {
            self.own: self._hello
        }
        return {drone: name for name, hello in hellos.items() for drone in hello.drones}

    def remind(self) -> None:
        """Greet again from time to time, because the transport reaches only those known to it."""
        if time.monotonic() - self._greeted > _REPEAT:
            self._greet()

    def _is_here(self, name: str) -> bool:
        lives = self._lives[name]
        return bool(lives) and self._hellos.get(name, ("",))[0] == lives[0]

    def _noticed_namesake(self, life: str, *, here: bool) -> None:
        others = self._lives[self.own]
        if here and life != self._life and life not in others:
            others.append(life)
            self._warn(
                f"there is another simulator {self.own}, or its end has not been noticed yet"
            )
        elif not here and life in others:
            others.remove(life)

    def renew(self) -> None:
        """Announce a new life."""
        self._life = uuid.uuid4().hex
        self._transport.announce(self._life)
        self._greet()

    def _greet(self) -> None:
        if not self._life:  # not present yet
            return
        self._greeted = time.monotonic()
        self._transport.send(packed(self._hello))

    def _difference(self, name: str, hello: Hello) -> str:
        """Return why a simulator cannot share the time of this one; empty if it can."""
        own, other = self._hello, hello
        what = f"the simulator {name} cannot share a time with {self.own}: it has"
        if own.protocol != other.protocol:
            return f"{what} version {other.protocol} of the protocol, here is {own.protocol}"
        for key in sorted(own.configuration.keys() | other.configuration.keys()):
            ours, theirs = own.configuration.get(key), other.configuration.get(key)
            if ours != theirs:
                return f"{what} {shown(key)}={shown(theirs)}, here is {shown(ours)}"
        return ""

    def _shares(self, hellos: list[Hello]) -> str:
        """Return what is wrong with who owns which drones; empty if nothing is."""
        owned = [drone for hello in hellos for drone in hello.drones]
        if unknown := [drone for drone in owned if drone not in self._drones]:
            return f"hosts.drones: there is no drone {shown(unknown[0])}"
        for drone in self._drones:
            if owned.count(drone) != 1:
                n = owned.count(drone) or "none"
                return f"hosts.drones: each drone needs one simulator that owns it, {drone} has {n}"
        return ""


class Owners:
    """Which simulator owns, and thus commands and pushes, which drone. Physics thread.

    Args:
        members: All simulators.
        drones: Drones that this simulator owns at the start.
        physics: Its physics thread, which refuses commands of its users to other drones.

    Attributes:
        of: The owner of each drone; empty as long as some have not said what they own.
    """

    def __init__(self, members: Members, drones: Sequence[str], physics: PhysicsThread) -> None:
        self._members, self._physics = members, physics
        self.of: dict[str, str] = {}
        others = set(physics.snapshot.names).difference(drones)
        physics.masters = dict.fromkeys(others, "another simulator")
        physics.news.on_reset(self._note_reset)

    def use(self, owners: dict[str, str]) -> None:
        """Replace the owners of all drones."""
        self.of = owners
        others = {drone: name for drone, name in owners.items() if name != self._members.own}
        self._physics.masters = {drone: f"the simulator {name}" for drone, name in others.items()}

    def drones_of(self, owner: str) -> list[str]:
        """Return the present drones of a simulator, in the order of all drones."""
        return [name for name in self._physics.snapshot.names if self.of.get(name) == owner]

    def _note_reset(self, event: ResetEvent) -> None:
        if ResetScope.spawned in event.scope:
            self.use(self._members.owners())


def configuration(config: SimulationConfig, drones: Sequence[str]) -> dict[str, Any]:
    """Return everything that flights depend on, by name, as JSON values."""
    values = {name: value for name, value in asdict(config).items() if name not in _FREE}
    values |= {name: Path(values[name]).name for name in _FILES}
    values |= {
        "drones": list(drones),
        "initial_poses": initial_poses(config, len(drones)),
        "figures": _digest((folder_of(config.drone_model) / FIGURES).read_bytes()),
        "drawn": _digest(Path(config.randomize).read_bytes()) if config.randomize else "",
        "weights": _digest(read_bytes(config.policy, MOST_BYTES)) if config.policy else "",
        "versions": f"jax {jax.__version__}, mujoco {mujoco.__version__}",
    }
    plain_values: dict[str, Any] = json.loads(json.dumps(plain(values), default=str))
    return plain_values


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]

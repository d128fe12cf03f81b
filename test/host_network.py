"""Simulators in this process that share a time, and a network between them that can fail."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from physics_helpers import until

from crazyflow_ros.flight import Setpoint
from crazyflow_ros.hosts import Hosts, SharedThread
from crazyflow_ros.hosts.transport import OnMessage, OnPresence
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig

T = 120.0  # s, no wait is longer
ENDPOINT = "tcp/127.0.0.1:7447"  # of which a network in the process makes nothing


class Network:
    """Delivers at once, in the sender's thread.

    Attributes:
        change: Changes each message, by its sender; may return None to lose it.
    """

    def __init__(self) -> None:
        self._ends: dict[str, End] = {}
        self.change: Callable[[str, bytes], bytes | None] = lambda _, message: message

    def end(self, name: str) -> End:
        """Return the end of a simulator."""
        self._ends[name] = end = End(self, name)
        return end

    def others(self, name: str) -> list[End]:
        """The ends that listen, but for one."""
        return [end for end in [*self._ends.values()] if end.name != name and end.listens]

    def present(self) -> list[tuple[str, str]]:
        """Names and lives."""
        return [(end.name, end.life) for end in self._ends.values() if end.life]

    def cut(self, name: str) -> None:
        """Let a simulator vanish for the others, as if its host had lost power."""
        self._ends[name].vanish()


class End:
    """A `Transport`."""

    def __init__(self, network: Network, name: str) -> None:
        self._network, self.name, self.life, self.listens = network, name, "", False

    def open(self, on_presence: OnPresence, on_message: OnMessage) -> None:
        self.on_presence, self.on_message, self.listens = on_presence, on_message, True
        for name, life in self._network.present():
            on_presence(name, life, True)

    def announce(self, life: str) -> None:
        before, self.life = self.life, life
        for end in self._network.others(self.name):
            end.on_presence(self.name, life, True)
            if before:
                end.on_presence(self.name, before, False)

    def send(self, message: bytes) -> None:
        changed = self._network.change(self.name, message)
        for end in self._network.others(self.name) if self.life else ():
            if changed is not None:
                end.on_message(self.name, self.life, changed)

    def vanish(self) -> None:
        before, self.life, self.listens = self.life, "", False
        for end in self._network.others(self.name) if before else ():
            end.on_presence(self.name, before, False)

    def close(self) -> None:
        self.vanish()


class Fleet:
    """One or several simulators that fly the same drones.

    Args:
        config: The simulation.
        owned: The drones of each simulator, by its name; one simulator is alone.
        names: Names of all drones.
    """

    def __init__(
        self, config: SimulationConfig, owned: Mapping[str, tuple[str, ...]], names: Iterable[str]
    ) -> None:
        self.config, self.owned, self.names = config, owned, tuple(names)
        self.network = Network()
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(5e-4)  # as the node does; all these threads share one interpreter
        self.threads: dict[str, PhysicsThread] = {}
        for name in owned:
            self.start(name)

    def start(self, name: str) -> PhysicsThread:
        """Start a simulator, perhaps once more."""
        if len(self.owned) == 1:
            thread = PhysicsThread(self.config, self.names)
        else:
            thread = SharedThread(
                self.config, self.names, self.hosts(name), transport=self.network.end(name)
            )
        self.threads[name] = thread
        thread.start()
        return thread

    def hosts(self, name: str) -> Hosts:
        """The settings of a simulator."""
        peers = tuple(other for other in self.owned if other != name)
        return Hosts(name, peers, self.owned[name], listen=(ENDPOINT,))

    @property
    def asked(self) -> PhysicsThread:
        """The simulator that is asked next: another one each time."""
        name = next(iter(self.threads))
        self.threads[name] = self.threads.pop(name)
        return self.threads[name]

    def command(self, setpoints: Mapping[str, Setpoint]) -> None:
        """Command drones where they are owned."""
        for name, drones in self.owned.items():
            own = {drone: setpoint for drone, setpoint in setpoints.items() if drone in drones}
            self.threads[name].command_all(own)

    def owner(self, drone: str) -> PhysicsThread:
        """The simulator that owns a drone."""
        return next(self.threads[name] for name, drones in self.owned.items() if drone in drones)

    def step(self, n_ticks: int) -> None:
        """Advance, and wait for all."""
        tick = self.asked.step(n_ticks).result(T).tick
        for thread in self.threads.values():
            until(lambda thread=thread: thread.snapshot.tick == tick, "all simulators", T)

    def stop(self) -> None:
        """End all."""
        sys.setswitchinterval(self._interval)
        for thread in self.threads.values():
            with suppress(TimeoutError):
                thread.stop(T)

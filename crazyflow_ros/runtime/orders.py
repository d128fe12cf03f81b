"""Orders: what each drone is told, from the tick on at which it takes effect."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crazyflow_ros.control import Control
from crazyflow_ros.runtime.checkpoint import from_setpoint, to_setpoint
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.setpoints import Setpoint, Start
from crazyflow_ros.runtime.snapshot import Snapshot
from crazyflow_ros.scene.frames import yaw

CommandCallback = Callable[[str, Setpoint, int], None]
"""Is told which drone follows which setpoint, from which tick on."""


@dataclass
class Order:
    """A setpoint in force, with what the drone was told before it."""

    setpoint: Setpoint
    start: Start
    ahead_ns: int = 0
    """By how much its time is ahead of the clock, which was rewound."""

    def command(self, time_ns: int) -> np.ndarray:
        """The command at a time."""
        return self.setpoint.command(self.start, time_ns + self.ahead_ns)

    def settled(self, time_ns: int) -> bool:
        """From this time on the command is always the same."""
        return self.setpoint.settled(self.start) <= time_ns + self.ahead_ns


class Orders:
    """The latest setpoint of each drone. One thread follows, any thread posts.

    Args:
        control: Control mode of the drones.
        health: Takes note of callbacks that fail.
    """

    def __init__(self, control: Control, health: Health) -> None:
        self._control, self._health = control, health
        self._in_force: dict[str, Order] = {}
        self._moving: set[str] = set()
        self._lock = threading.Lock()  # guards what is posted
        self._posted: dict[str, Setpoint] = {}
        self.callbacks: list[CommandCallback] = []
        """Are called when a setpoint takes effect."""

    @property
    def moving(self) -> bool:
        """Some command changes with time."""
        return bool(self._moving)

    def post(self, name: str, setpoint: Setpoint) -> None:
        """Tell a drone something; the latest setpoint wins. From any thread."""
        with self._lock:
            self._posted[name] = setpoint

    def clear(self, names: Iterable[str]) -> None:
        """Forget what drones are told, what was posted too: it was meant for the flight so far."""
        with self._lock:
            for name in names:
                self._posted.pop(name, None)
                self._in_force.pop(name, None)
                self._moving.discard(name)

    def rewind(self, time_ns: int) -> None:
        """The clock goes back by so much: what is in force goes on, what was posted is dropped."""
        with self._lock:
            self._posted.clear()
        for order in self._in_force.values():
            order.ahead_ns += time_ns

    def capture(self) -> dict[str, Any]:
        """What is in force, as JSON can hold it; `take` has been called for the present state.

        Raises:
            ValueError: A setpoint is of a kind of its own.
        """
        return {
            name: {
                "setpoint": from_setpoint(order.setpoint),
                "start": [order.start.time_ns, *map(float, order.start.pos), order.start.yaw],
                "ahead_ns": order.ahead_ns,
                "moving": name in self._moving,
            }
            for name, order in self._in_force.items()
        }

    def restore(self, orders: Mapping[str, Any]) -> None:
        """Follow what `capture` gave, and nothing else."""
        with self._lock:
            self._posted.clear()
        self._moving = {name for name, order in orders.items() if order["moving"]}
        self._in_force = {}
        for name, order in orders.items():
            time_ns, *pos, yaw_angle = order["start"]
            start = Start(time_ns, np.array(pos), yaw_angle)
            setpoint = to_setpoint(order["setpoint"])
            self._in_force[name] = Order(setpoint, start, order["ahead_ns"])

    def take(self, now: Snapshot) -> dict[str, np.ndarray]:
        """Put into force what was posted.

        Returns:
            The commands that are new or have changed, by drone.
        """
        if not self._posted and not self._moving:
            return {}
        with self._lock:
            posted, self._posted = self._posted, {}
        for name, setpoint in posted.items():
            if name not in now.names:  # it went while somebody told it something
                continue
            self._in_force[name] = Order(setpoint, self._told(name, now))
            self._moving.add(name)
            for callback in self.callbacks:
                self._health.call("command callback", callback, name, setpoint, now.tick)
        told = {name: self._in_force[name].command(now.time_ns) for name in self._moving}
        self._moving = {n for n in self._moving if not self._in_force[n].settled(now.time_ns)}
        return told

    def _told(self, name: str, now: Snapshot) -> Start:
        """Where the drone was told to be, or is, if it was not told."""
        order = self._in_force.get(name)
        if order is not None and self._control is Control.state:
            command = order.command(now.time_ns)
            return Start(now.time_ns, command[:3].copy(), float(yaw(command[9:13])))
        i = now.names.index(name)
        return Start(now.time_ns, now.pos[i], float(yaw(now.quat[i])))

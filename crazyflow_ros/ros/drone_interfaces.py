"""Which drones have topics and services of their own, and since when other nodes look for them.

The middleware takes 50 ms to create the 45 topics and services of one drone among a hundred, and
twenty times as long among a thousand, because Fast DDS compares each new endpoint with all others.
Large swarms therefore share topics, and their drones get their own on demand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.parameters.parameter_groups import Interfaces

if TYPE_CHECKING:
    from crazyflow_ros.ros.listeners import Listeners
    from crazyflow_ros.ros.other_nodes import OtherNodes
    from crazyflow_ros.ros.regular_calls import RegularCalls

_SPENT = 0.05  # s in a row in which topics and services are created; then callbacks have their turn
_KEPT = 30.0  # s of wall time for which they stay after the last node that looked for them


class SwarmNode(Protocol):
    """The parts of a simulator's node that matter here, see `Host`."""

    other_nodes: OtherNodes
    regular_calls: RegularCalls
    listeners: Listeners

    @property
    def own_drones(self) -> tuple[str, ...]:
        """Names of the drones that can have topics and services of their own."""

    def resolve_topic_name(self, topic: str) -> str:
        """Return the full name of a topic."""

    def remove_entities(self, prefix: str) -> None:
        """Destroy the topics and services whose names begin with a prefix."""


class DroneInterfaces:
    """The topics and services of single drones. Used in the executor's thread.

    Args:
        node: The node.
        rule: When a drone has them.
        always: Drones that have them whatever the rule is.
        clock: Wall time [s].

    Attributes:
        rule: As given; may be changed, see `adapt`.
        always: As given; may be changed, see `check` and `adapt`.
        drones: The drones that have them, in the order of the simulation.
    """

    def __init__(
        self,
        node: SwarmNode,
        rule: Interfaces,
        always: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node, self.rule, self._clock = node, rule, clock
        self._namespace = node.resolve_topic_name("x")[:-1]
        self._present = frozenset(node.own_drones)
        self._sought: dict[str, float] = {}  # when another node last looked for a drone
        self._adders: list[Callable[[str], None]] = []
        self._followers: list[Callable[[], None]] = []
        self.check(always)
        self.always = frozenset(always)
        self.drones = tuple(d for d in node.own_drones if rule == Interfaces.each or d in always)
        node.other_nodes.follow(self._note_sought)
        node.regular_calls.add(self.adapt)

    def check(self, always: Iterable[str]) -> None:
        """Check the names for `always`.

        Raises:
            ValueError: There is no such drone.
        """
        for name in always:
            if name not in self._present:
                raise ValueError(f"with_interfaces: {limits.unknown('drone', name, self._present)}")

    def for_each(self, add: Callable[[str], None]) -> None:
        """Call a function for each drone that has them, now and whenever one gets them."""
        self._adders.append(add)
        for drone in self.drones:
            add(drone)

    def follow(self, callback: Callable[[], None]) -> None:
        """Call a function now and whenever `drones`, or those of the node, have changed."""
        self._followers.append(callback)
        callback()

    def follow_drones(self) -> None:
        """Adapt to the present drones of the node at once.

        A drone that comes back while its name is sought gets them, too, for its old services refuse
        calls.
        """
        self._present = frozenset(self._node.own_drones)
        deleted = [drone for drone in self.drones if drone not in self._present]
        self._change(deleted, [d for d in self._missing() if self._is_wanted(d)])

    def owner(self, name: str) -> str:
        """Return the drone below whose name a topic or service is; empty if there is none."""
        if not name.startswith(self._namespace):
            return ""
        drone = name[len(self._namespace) :].partition("/")[0]
        return drone if drone in self._present else ""

    def is_without(self, drone: str) -> bool:
        """Return whether a drone has none and will not get any on demand."""
        return drone not in self.drones and not self._is_wanted(drone)

    def adapt(self) -> None:
        """Create and remove topics and services of drones, for a limited time.

        Call it after a change of `rule` or `always`; regular calls do the rest.
        """
        unwanted = [drone for drone in self.drones if not self._is_wanted(drone)]
        wanted = [drone for drone in self._missing() if self._is_wanted(drone)]
        if unwanted or wanted:
            end = self._clock() + _SPENT
            self._change(unwanted, wanted, lambda: self._clock() >= end)
            self._node.listeners.look()

    def _note_sought(self) -> None:
        """Note the drones below whose names other nodes publish, subscribe or call."""
        nodes, now = self._node.other_nodes, self._clock()
        ends = chain(nodes.publishers, nodes.subscriptions, nodes.clients)
        sought = dict.fromkeys((self.owner(end.name) for end in ends), now)
        kept = {drone: since for drone, since in self._sought.items() if now < since + _KEPT}
        self._sought = kept | sought

    def _is_permanent(self, drone: str) -> bool:
        return self.rule == Interfaces.each or drone in self.always

    def _is_wanted(self, drone: str) -> bool:
        is_sought = self.rule == Interfaces.swarm and drone in self._sought
        return is_sought or self._is_permanent(drone)

    def _missing(self) -> list[str]:
        has = set(self.drones)
        return [drone for drone in self._node.own_drones if drone not in has]

    def _change(
        self,
        unwanted: Sequence[str],
        wanted: Sequence[str],
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Remove topics and services of some drones, and create others until `is_over`."""
        node, has = self._node, set(self.drones).difference(unwanted)
        for drone in unwanted:
            prefix = f"{self._namespace}{drone}/"
            node.listeners.forget(prefix)
            node.remove_entities(prefix)
        for drone in wanted:
            for add in self._adders:
                add(drone)
            has.add(drone)
            if is_over():
                break
        present = [drone for drone in node.own_drones if drone in has]
        self.drones = *present, *has.difference(present)  # the latter stay until `follow_drones`
        for callback in self._followers:
            callback()

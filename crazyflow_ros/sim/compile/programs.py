"""Functions of data that are compiled on packed data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from jax import Array

from crazyflow_ros.sim.compile.advance import advance
from crazyflow_ros.sim.compile.ticks import Ending, Packed, Ticks
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.worlds import Worlds


class Program(Protocol):
    """A function of data and other arguments that is compiled on packed data."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Plugins to which the first arguments are written, (worlds, drones, k)."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """Plugins that are returned as results, read-only NumPy arrays (k, worlds, drones).

        Empty if the function returns the results.
        """
        ...

    @property
    def by_world(self) -> bool:
        """Whether the result for a world depends on no other world."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether simulations share the program and its compiled code."""
        ...

    def layout(self, data: SimData, owned: list[bool], *inputs: Any) -> Ticks:
        """Return how the data are packed, from what the function reads and changes."""
        ...

    def run(self, ticks: Ticks, packed: Packed, worlds: Worlds, *inputs: Any) -> tuple[Packed, Any]:
        """Return the packed data after the program, and its results."""
        ...


@dataclass(frozen=True, eq=False)
class Stepping:
    """Ticks and what comes after them; the last argument is the number of ticks."""

    tick: Stage
    last: Ending | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    is_shared: bool = False
    by_world: bool = field(default=True, init=False)

    def layout(self, data: SimData, owned: list[bool], *_: Any) -> Ticks:
        """See `Program`."""
        apart = (*((name,) for name in self.inputs), self.outputs)
        return Ticks(self.tick, self.last, data, owned, together=True, apart=apart)

    def run(self, ticks: Ticks, packed: Packed, worlds: Worlds, n: Array) -> tuple[Packed, Any]:
        """See `Program`."""
        return advance(ticks, packed, n, worlds), None


@dataclass(frozen=True, eq=False)
class Composed:
    """Any function of data and arguments that returns data and results."""

    fn: Callable[..., tuple[SimData, Any]]
    inputs: tuple[str, ...] = field(default=(), init=False)
    outputs: tuple[str, ...] = field(default=(), init=False)
    by_world: bool = field(default=False, init=False)
    is_shared: bool = field(default=False, init=False)

    def layout(self, data: SimData, owned: list[bool], *inputs: Any) -> Ticks:
        """See `Program`."""
        return Ticks(lambda data: self.fn(data, *inputs)[0], None, data, owned, together=True)

    def run(self, ticks: Ticks, packed: Packed, _: Worlds, *inputs: Any) -> tuple[Packed, Any]:
        """See `Program`."""
        data, results = self.fn(ticks.whole(packed), *inputs)
        return ticks.pack(data), results

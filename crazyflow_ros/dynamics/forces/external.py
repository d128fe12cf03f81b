"""External influences on drones: forces, and contacts, which answer to all the forces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from crazyflow_ros.drones import resolve
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, Wrench
from crazyflow_ros.dynamics.rigid_body import RigidBody

Force: TypeAlias = Callable[[BodyState, RigidBody], Wrench]
"""An external influence on the drones: a pure function that each integrator stage evaluates."""

ContactLaw: TypeAlias = Callable[[BodyState, BodyDerivative, RigidBody], Wrench]
"""Wrench on drones that touch something, from their motion without it."""


@dataclass(frozen=True)
class _ForDrones:
    """Something made for certain drones, and perhaps for one length of the ticks.

    Attributes:
        name: Its name.
        drones: Name of each drone of a world, or the one that all are.
        freq: Step frequency in Hz, if it depends on it.
    """

    name: str
    drones: tuple[str, ...]
    freq: float | None

    def __post_init__(self) -> None:
        """Refuse what nobody steps at.

        Raises:
            ValueError: `freq` is not a positive number.
        """
        if self.freq is not None and not (isfinite(self.freq) and self.freq > 0):
            raise ValueError(f"{self.name} needs a positive freq, got {self.freq}")

    def check(self, drones: tuple[str, ...], freq: float) -> None:
        """Refuse to act on drones that this was not made for.

        Args:
            drones: Name of each drone of a world.
            freq: Step frequency in Hz.

        Raises:
            ValueError: They are others, or `freq` is.
        """
        if drones not in (self.drones, self.drones * len(drones)):
            own, there = (_listed(names) for names in (self.drones, drones))
            raise ValueError(f"{self.name} is made for {own}, the simulation has {there}")
        if self.freq not in (None, freq):
            raise ValueError(f"{self.name} is made for a freq of {self.freq}, here it is {freq}")


@dataclass(frozen=True)
class DroneForce(_ForDrones):
    """A force made for certain drones.

    Attributes:
        law: The force.
    """

    law: Force

    def __call__(self, state: BodyState, params: RigidBody) -> Wrench:
        """The force."""
        return self.law(state, params)


@dataclass(frozen=True)
class DroneContact(_ForDrones):
    """A contact made for certain drones and one length of the ticks.

    Attributes:
        law: The law of the contact.
    """

    law: ContactLaw

    def __call__(self, state: BodyState, free: BodyDerivative, params: RigidBody) -> Wrench:
        """Wrench of the contact on drones.

        Args:
            state: State of the drones.
            free: How they move without this contact.
            params: Figures of the drones, and what stands in the world.
        """
        return self.law(state, free, params)


External: TypeAlias = Force | DroneContact
"""Something that acts on drones: each contact answers to all forces, and to the contacts before."""


def _listed(names: tuple[str, ...]) -> str:
    one = len(set(names)) == 1
    return f"{len(names)} {names[0]}" if one and len(names) > 1 else ", ".join(names)


def each_of(drone: str | Sequence[str]) -> tuple[str, ...]:
    """The names of drones, or the absolute paths of their folders, of one or several."""
    return tuple(map(resolve, [drone] if isinstance(drone, str) else drone))

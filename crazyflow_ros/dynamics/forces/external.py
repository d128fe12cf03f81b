"""External forces on drones, and contacts, which react to all forces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from inspect import signature
from math import isfinite
from typing import ParamSpec, TypeAlias, TypeVar

from crazyflow_ros.drones import resolve
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, Wrench
from crazyflow_ros.dynamics.rigid_body import RigidBody

Force: TypeAlias = Callable[[BodyState, RigidBody], Wrench]
"""An external force on the drones: a pure function that each integrator stage evaluates."""

ContactLaw: TypeAlias = Callable[[BodyState, BodyDerivative, RigidBody], Wrench]
"""The wrench of a contact, given the motion without it."""


@dataclass(frozen=True)
class _ForDrones:
    """A force or contact for given drones, and perhaps for one tick length.

    Attributes:
        name: Name in error messages.
        drones: Name of each drone of a world, or one name for all.
        freq: Step frequency in Hz; None if the force does not depend on it.
        is_shared: Whether the law depends on nothing that changes later, so that simulations with
            equal forces share compiled code.
    """

    name: str
    drones: tuple[str, ...]
    freq: float | None
    is_shared: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the frequency.

        Raises:
            ValueError: `freq` is not a positive number.
        """
        if self.freq is not None and not (isfinite(self.freq) and self.freq > 0):
            raise ValueError(f"{self.name} needs a positive freq, got {self.freq}")

    def check(self, drones: tuple[str, ...], freq: float) -> None:
        """Check that the force was built for the drones and step frequency of a simulation.

        Args:
            drones: Name of each drone of a world.
            freq: Step frequency in Hz.

        Raises:
            ValueError: The force was built for other drones or another frequency.
        """
        if drones not in (self.drones, self.drones * len(drones)):
            own, there = (_listed(names) for names in (self.drones, drones))
            raise ValueError(f"{self.name} was built for {own}, the simulation has {there}")
        if self.freq not in (None, freq):
            raise ValueError(f"{self.name} was built for {self.freq} Hz, the simulation has {freq}")


@dataclass(frozen=True)
class DroneForce(_ForDrones):
    """A force for given drones.

    Attributes:
        law: The force.
    """

    law: Force

    def __call__(self, state: BodyState, params: RigidBody) -> Wrench:
        """Return the force."""
        return self.law(state, params)


@dataclass(frozen=True)
class DroneContact(_ForDrones):
    """A contact for given drones and one tick length.

    Attributes:
        law: The wrench of the contact.
    """

    law: ContactLaw

    def __call__(self, state: BodyState, free: BodyDerivative, params: RigidBody) -> Wrench:
        """Return the wrench of the contact.

        Args:
            state: State of the drones.
            free: Derivative of the state without this contact.
            params: Parameters of the drones, and the obstacles.
        """
        return self.law(state, free, params)


External: TypeAlias = Force | DroneContact
"""An external force or contact; each contact reacts to all forces, and to the contacts
before it."""


P = ParamSpec("P")
F = TypeVar("F", bound=DroneForce | DroneContact)
_MOST = 64  # forces of a kind


def built_once(build: Callable[P, F]) -> Callable[P, F]:
    """Make `build` return the same force for the same drones and other arguments.

    Otherwise equal laws would be different functions, and each simulation would be compiled anew.
    """
    kept, arguments = lru_cache(_MOST, typed=True)(build), signature(build)

    @wraps(build)
    def once(*args: P.args, **kwargs: P.kwargs) -> F:
        drone, *others = arguments.bind(*args, **kwargs).args
        names = resolve(drone) if isinstance(drone, str) else each_of(drone)
        return kept(names, *others)

    return once


def _listed(names: tuple[str, ...]) -> str:
    one = len(set(names)) == 1
    return f"{len(names)} {names[0]}" if one and len(names) > 1 else ", ".join(names)


def each_of(drone: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of drones, or the absolute paths of their folders."""
    return tuple(map(resolve, [drone] if isinstance(drone, str) else drone))

"""The integrators by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from crazyflow_ros.checks.enum_members import OpenEnum

if TYPE_CHECKING:
    from collections.abc import Callable

    from crazyflow_ros.dynamics.components import BodyDerivative, BodyState

    DerivativeFn: TypeAlias = Callable[[BodyState], BodyDerivative]
    IntegratorFn: TypeAlias = Callable[[BodyState, DerivativeFn, float], BodyState]


class Integrator(OpenEnum):
    """Integration scheme: an `IntegratorFn`, with a fixed step."""

    euler = "euler"
    """Explicit Euler, order 1."""
    symplectic_euler = "symplectic_euler"
    """Semi-implicit Euler, order 1: poses advance with the new velocities. Rotation gains energy as
    with `euler`; `rk4` keeps it."""
    rk4 = "rk4"
    """Runge-Kutta on the rotation group, order 4."""
    default = "euler"

    @classmethod
    def group(cls) -> str:
        """See `OpenEnum`."""
        return "crazyflow_ros.integrators"

    @property
    def fn(self) -> IntegratorFn:
        """The integrator as a function of state, derivative and step in s.

        Raises:
            ValueError: It cannot be imported, or is no function.
        """
        fn: IntegratorFn = self.load("a function of state, derivative and step", callable)
        return fn

"""The estimators by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.checks.enum_members import OpenEnum

if TYPE_CHECKING:
    from crazyflow_ros.estimation.estimate import Estimate


class Estimator(OpenEnum):
    """The source of the state that the controllers of a drone use: an `Estimate`, or `none`."""

    none = "none"
    """The true state."""
    kalman = "kalman"
    """The estimate of the firmware's Kalman filter, see `kalman`."""
    default = "none"

    @classmethod
    def group(cls) -> str:
        """See `OpenEnum`."""
        return "crazyflow_ros.estimators"

    @property
    def estimate(self) -> type[Estimate]:
        """Class of the estimates.

        Raises:
            ValueError: There is no class, it cannot be imported, or is no subclass of `Estimate`.
        """
        from crazyflow_ros.estimation.estimate import Estimate  # with JAX

        def is_estimate(cls: object) -> bool:
            return isinstance(cls, type) and issubclass(cls, Estimate)

        estimate: type[Estimate] = self.load("a subclass of Estimate", is_estimate)
        return estimate

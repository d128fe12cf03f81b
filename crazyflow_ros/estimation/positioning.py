"""The estimators, and what they measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crazyflow_ros.checks import limits
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
            ValueError: There is none, it cannot be imported, or it is no such class.
        """
        from crazyflow_ros.estimation.estimate import Estimate  # with JAX

        def is_estimate(cls: object) -> bool:
            return isinstance(cls, type) and issubclass(cls, Estimate)

        estimate: type[Estimate] = self.load("a subclass of Estimate", is_estimate)
        return estimate


@dataclass(frozen=True)
class Positioning:
    """Sources of a drone's position, besides its gyroscope and accelerometer.

    Raises:
        ValueError: An anchor is not three finite numbers, or they are too large.
    """

    flow: bool = True
    """The Flow deck's camera, over a floor z = 0."""
    range: bool = True
    """The distance sensor of the Flow and Z-ranger decks, over a floor z = 0."""
    motion_capture: bool = False
    """Poses at the rate of the filter, with the errors that the firmware expects of them."""
    external: bool = False
    """Poses that others send, see `Estimate.external`."""
    anchors: tuple[tuple[float, float, float], ...] = ()
    """Positions [m] of radio anchors of the Loco deck, whose distances are measured in turn."""

    @property
    def drifts(self) -> bool:
        """Whether no source tells the position, so that the estimate drifts."""
        return not (self.motion_capture or self.external or self.anchors)

    def __post_init__(self) -> None:
        for anchor in self.anchors:
            limits.vector("an anchor", anchor, (3,), limits.POSITION)

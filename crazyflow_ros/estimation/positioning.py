"""Sources of a drone's position for its estimator."""

from __future__ import annotations

from dataclasses import dataclass

from crazyflow_ros.checks import limits


@dataclass(frozen=True)
class Positioning:
    """Sources of a drone's position, besides its gyroscope and accelerometer.

    Raises:
        ValueError: An anchor is not three finite numbers, or they are too large.
    """

    flow: bool = True
    """The Flow deck's camera."""
    range: bool = True
    """The distance sensor of the Flow and Z-ranger decks."""
    motion_capture: bool = False
    """Poses at the rate of the filter, with the errors that the firmware expects of them."""
    external: bool = False
    """Poses that others send, see `Estimate.external`."""
    anchors: tuple[tuple[float, float, float], ...] = ()
    """Positions [m] of radio anchors of the Loco deck, whose distances are measured in turn."""

    @property
    def drifts(self) -> bool:
        """Whether the estimate drifts, because no source gives the position."""
        return not (self.motion_capture or self.external or self.anchors)

    def __post_init__(self) -> None:
        for anchor in self.anchors:
            limits.vector("an anchor", anchor, (3,), limits.POSITION)

"""Sources of a drone's position for its estimator."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.enum_members import member

if TYPE_CHECKING:
    from crazyflow_ros.estimation.base_stations import BaseStation

MOST_DELAY = 0.2
"""Largest delay of motion capture, s."""


class Ranging(StrEnum):
    """How anchors and the Loco deck measure."""

    twr = "twr"
    """Distances from one anchor after the other."""
    tdoa2 = "tdoa2"
    """Differences of distances from two anchors, which send in turn."""
    tdoa3 = "tdoa3"
    """Differences of distances from two anchors, which send at random."""

    @property
    def number(self) -> int:
        """The firmware's number, see its parameter `loco.mode`."""
        return 1 + list(Ranging).index(self)


@dataclass(frozen=True)
class Positioning:
    """Sources of a drone's position, besides its gyroscope and accelerometer.

    Raises:
        ValueError: An anchor is not three finite numbers, or they are too large; there is one
            anchor alone for differences; two base stations have one channel; there is no such kind
            of ranging; or errors of motion capture are out of range.
    """

    flow: bool = True
    """The Flow deck's camera."""
    range: bool = True
    """The distance sensor of the Flow and Z-ranger decks."""
    motion_capture: bool = False
    """Poses at the rate of the filter, with the errors that the firmware expects of them."""
    capture_dropout: float = 0.0
    """Probability that motion capture does not see a drone in a run of its filter."""
    capture_delay: float = 0.0
    """Age of the poses of motion capture, s; short beside the time in which a motion changes."""
    external: bool = False
    """Poses that others send, see `Estimate.external`."""
    anchors: tuple[tuple[float, float, float], ...] = ()
    """Positions [m] of radio anchors of the Loco deck."""
    ranging: str = Ranging.twr
    """A `Ranging`: how the Loco deck measures them."""
    stations: tuple[BaseStation, ...] = ()
    """Base stations that the Lighthouse deck sees."""

    @property
    def drifts(self) -> bool:
        """Whether the estimate drifts, because no source gives the position."""
        return not (self.motion_capture or self.external or self.anchors or self.stations)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranging", member(Ranging, self.ranging))
        if not 0.0 <= self.capture_dropout < 1.0:
            rule = "must be from 0 to less than 1"
            raise ValueError(f"capture_dropout {rule}, got {self.capture_dropout:g}")
        if not 0.0 <= self.capture_delay <= MOST_DELAY:
            rule = f"must be from 0 to {MOST_DELAY:g} s"
            raise ValueError(f"capture_delay {rule}, got {self.capture_delay:g}")
        for anchor in self.anchors:
            limits.vector("an anchor", anchor, (3,), limits.POSITION)
        if len(self.anchors) == 1 and self.ranging != Ranging.twr:
            raise ValueError(f"{self.ranging} needs two anchors or more, got 1")
        channels = [station.channel for station in self.stations]
        if len(set(channels)) < len(channels):
            raise ValueError(f"channels of base stations must differ, got {channels}")

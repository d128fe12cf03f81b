"""Expansion decks of Crazyflies, and what the estimator of a drone measures with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.checks.plain_values import Names, Numbers, Spec
from crazyflow_ros.estimation.positioning import Positioning, Ranging

if TYPE_CHECKING:
    from crazyflow_ros.estimation.base_stations import BaseStation

DECKS = {
    "bcLedRing": 0x01,
    "bcMultiranger": 0x0C,
    "bcZRanger2": 0x0E,
    "bcFlow2": 0x0F,
    "bcLighthouse4": 0x10,
    "bcDWM1000": 0x06,
    "bcLoco": 0x06,
    "bcColorLedBot": 0x13,
    "bcColorLedTop": 0x14,
}
"""Product numbers of decks by their names in the parameters of the group `deck`."""
LOCO = ("bcLoco", "bcDWM1000")
"""Names of the Loco deck: that of its driver in the firmware, and the former one."""
USUAL = ("bcFlow2", "bcMultiranger")
"""Default decks of a drone."""


def _check_decks(name: str, decks: Sequence[str]) -> None:
    for deck in decks:
        if deck not in DECKS:
            raise ValueError(f"{name}: {unknown('deck', deck, DECKS)}")


DeckNames = Annotated[
    Names, Spec(f"Expansion decks of each drone, of {', '.join(DECKS)}", check=_check_decks)
]
Anchors = Annotated[Numbers, Spec("x, y, z [m] of each radio anchor, for the deck bcLoco")]
RangingName = Annotated[
    str,
    Spec("How anchors and the deck bcLoco measure", choices=list(Ranging)),
]
Stations = Annotated[
    str,
    Spec(
        "File of base stations that cfclient wrote, for the deck bcLighthouse4; empty: two, 2.5 m "
        "high in opposite corners of 5 m x 5 m"
    ),
]


def positioning(
    decks: Sequence[str],
    anchors: Sequence[float] = (),
    ranging: str = Ranging.twr,
    lighthouse: str = "",
) -> Positioning:
    """Return the measurements that a drone's estimator receives.

    Args:
        decks: Names of the drone's decks, see `DECKS`.
        anchors: x, y, z [m] of each radio anchor, one after the other.
        ranging: A `Ranging`: how the Loco deck measures them.
        lighthouse: Path of a file of base stations; empty for `USUAL_STATIONS`.

    Raises:
        ValueError: The anchors are incomplete, there is a radio deck without anchors, or the file
            of base stations cannot be used.
    """
    if len(anchors) % 3:
        raise ValueError(f"anchors have 3 coordinates each, got {len(anchors)} numbers")
    has_flow, radio = "bcFlow2" in decks, [deck for deck in LOCO if deck in decks]
    if radio and not len(anchors):
        raise ValueError(f"the deck {radio[0]} needs anchors, got none")
    stations: tuple[BaseStation, ...] = ()
    if lighthouse or "bcLighthouse4" in decks:
        # With NumPy, before which the ports of Crazyflies have to be open.
        from crazyflow_ros.estimation.base_stations import USUAL_STATIONS, read_stations

        stations = read_stations(lighthouse) if lighthouse else USUAL_STATIONS
    points = [(x, y, z) for x, y, z in zip(anchors[::3], anchors[1::3], anchors[2::3])]
    return Positioning(
        flow=has_flow,
        range=has_flow or "bcZRanger2" in decks,
        anchors=tuple(points) if radio else (),
        ranging=ranging,
        stations=stations if "bcLighthouse4" in decks else (),
    )

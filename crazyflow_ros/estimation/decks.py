"""Expansion decks of Crazyflies, and what the estimator of a drone measures with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.checks.plain_values import Names, Numbers, Spec
from crazyflow_ros.estimation.positioning import Positioning

DECKS = {
    "bcLedRing": 0x01,
    "bcMultiranger": 0x0C,
    "bcZRanger2": 0x0E,
    "bcFlow2": 0x0F,
    "bcLighthouse4": 0x10,
    "bcDWM1000": 0x06,
    "bcColorLedBot": 0x13,
    "bcColorLedTop": 0x14,
}
"""Product numbers of decks by their names in the parameters of the group `deck`."""
USUAL = ("bcFlow2", "bcMultiranger")
"""Default decks of a drone."""


def _check_decks(name: str, decks: Sequence[str]) -> None:
    for deck in decks:
        if deck not in DECKS:
            raise ValueError(f"{name}: {unknown('deck', deck, DECKS)}")


DeckNames = Annotated[
    Names, Spec(f"Expansion decks of each drone, of {', '.join(DECKS)}", check=_check_decks)
]
Anchors = Annotated[Numbers, Spec("x, y, z [m] of each radio anchor, for the deck bcDWM1000")]


def positioning(decks: Sequence[str], anchors: Sequence[float] = ()) -> Positioning:
    """Return the measurements that a drone's estimator receives.

    Args:
        decks: Names of the drone's decks, see `DECKS`.
        anchors: x, y, z [m] of each radio anchor, one after the other.

    Raises:
        ValueError: The anchors are incomplete, or there is a radio deck without anchors.
    """
    if len(anchors) % 3:
        raise ValueError(f"anchors have 3 coordinates each, got {len(anchors)} numbers")
    has_flow, has_radio = "bcFlow2" in decks, "bcDWM1000" in decks
    if has_radio and not len(anchors):
        raise ValueError("the deck bcDWM1000 needs anchors, got none")
    points = [(x, y, z) for x, y, z in zip(anchors[::3], anchors[1::3], anchors[2::3])]
    return Positioning(
        flow=has_flow,
        range=has_flow or "bcZRanger2" in decks,
        anchors=tuple(points) if has_radio else (),
    )

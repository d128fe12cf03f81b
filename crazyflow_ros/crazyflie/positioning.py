"""The positioning that the decks of a Crazyflie provide."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.estimation import Positioning


def positioning(decks: Sequence[str], anchors: Sequence[float] = ()) -> Positioning:
    """Return the measurements that a drone's estimator receives.

    Args:
        decks: Names of the drone's decks, see `decks.DECKS`.
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

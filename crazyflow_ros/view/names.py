"""Names of the drones in the picture of each tab, beside their drones, where they hide none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import viser

from crazyflow_ros.view.lens import Look

MOST_NAMES = 30  # drones whose names are shown: moving each takes a message
_NAMES_A_FRAME = 5  # on average
_SCALE = 0.9  # of viser's size of labels
_HEIGHT, _LETTER = 19.0, 7.0  # CSS pixels, of a label and of each of its letters
_MOVED = 0.03  # of a drone's drawn radius, the smallest movement of a name
_FLATTEST = 0.35  # height of a drone that is seen from the side, relative to its width
_OUTSIDE = 0.5  # what it costs to be out of sight, relative to hiding a drone
_DETOUR, _STAY = 0.04, 0.1  # of a label's area, the cost of a later side, and of another one


class _Side(NamedTuple):
    """A side of a drone where its name can be."""

    away: tuple[float, float]
    """From the drone's middle to the label, right and down [drawn radii]."""
    middle: tuple[float, float]
    """From there to the label's middle, right and down [the label's width and height]."""
    anchor: str


_SIDES = (  # the best one first
    _Side((0.0, -1.0), (0.0, -0.5), "bottom-center"),
    _Side((0.7, -0.7), (0.5, -0.5), "bottom-left"),
    _Side((-0.7, -0.7), (-0.5, -0.5), "bottom-right"),
    _Side((1.05, 0.0), (0.5, 0.0), "center-left"),
    _Side((-1.05, 0.0), (-0.5, 0.0), "center-right"),
    _Side((0.0, 1.0), (0.0, 0.5), "top-center"),
)
_AWAY, _MIDDLE = (np.array([side[i] for side in _SIDES]) for i in (0, 1))


class Names:
    """The names in all tabs."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._tabs: dict[int, _TabNames] = {}  # by viser's number of the tab
        server.on_client_disconnect(self._forget)

    def _forget(self, client: viser.ClientHandle) -> None:
        self._tabs.pop(client.client_id, None)

    def show(
        self,
        client: viser.ClientHandle,
        look: Look,
        drones: Sequence[str],
        position: np.ndarray,
        radii: np.ndarray,
        *,
        visible: bool,
    ) -> None:
        """Show the names in a tab, or move them with the drones and its camera.

        Args:
            client: The tab.
            look: Its camera and its picture.
            drones: The drones, of which the first ones have names.
            position: Their places [m], shape (M, 3).
            radii: Their drawn radii [m], shape (M,).
            visible: Whether to show the names.
        """
        names = self._tabs.get(client.client_id)
        with client.atomic():
            if names is None or names.drones != drones:
                if names is not None:
                    names.remove()
                names = self._tabs[client.client_id] = _TabNames(client.scene, drones)
            names.show(look, position, radii, visible=visible)


class _TabNames:
    """The names in a tab; many names are moved less often."""

    def __init__(self, scene: Any, drones: Sequence[str]) -> None:
        self.drones = drones
        self._labels = [
            scene.add_label(f"/names/{drone}", drone, font_screen_scale=_SCALE, visible=False)
            for drone in drones[:MOST_NAMES]
        ]
        self._widths = _LETTER * np.array([len(drone) + 1 for drone in drones[:MOST_NAMES]])
        self._places = np.full((len(self._labels), 3), np.inf)
        self._sides = np.zeros(len(self._labels), int)
        self._is_visible, self._turn = False, 0

    def remove(self) -> None:
        """Remove the names."""
        for label in self._labels:
            label.remove()

    def show(self, look: Look, position: np.ndarray, radii: np.ndarray, *, visible: bool) -> None:
        """See `Names.show`."""
        self._turn = (self._turn + 1) % (1 + len(self._labels) // _NAMES_A_FRAME)
        if visible == self._is_visible and (self._turn != 0 or not visible):
            return
        self._is_visible = visible
        if visible:
            self._sides = sides_of(look, position, radii, self._widths, self._sides)
        right, down, _ = look.axes
        for row, (label, side) in enumerate(zip(self._labels, self._sides)):
            label.visible = visible
            label.anchor = _SIDES[side].anchor
            place = position[row] + radii[row] * (_AWAY[side] @ np.stack([right, down]))
            if visible and np.abs(place - self._places[row]).max() > _MOVED * radii[row]:
                self._places[row] = label.position = place


def sides_of(
    look: Look, position: np.ndarray, radii: np.ndarray, widths: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """Choose the side of its drone for each name, as numbers of `_SIDES`, shape (K,).

    Args:
        look: The camera and the picture.
        position: Places of the drones [m], shape (M, 3).
        radii: Their drawn radii [m], shape (M,).
        widths: Widths of the names of the first K drones [CSS pixels], shape (K,).
        before: On which side they are now, shape (K,).
    """
    middles, depths = look.project(position)
    across = look.focal * radii / np.maximum(depths, 1e-3)
    is_seen = depths > 0
    flat = max(abs(float(look.axes[2][2])), _FLATTEST)
    drones = _boxes(middles, np.column_stack([across, flat * across]))[is_seen]
    picture, chosen = look.picture, before.copy()
    sight = np.array([[picture.left, picture.top], [picture.right, picture.bottom]])
    placed = np.empty((0, 2, 2))
    for row in np.argsort(depths[: len(widths)]):  # the nearest ones have the choice
        if not is_seen[row]:
            continue
        half = np.array([widths[row], _HEIGHT]) / 2
        boxes = _boxes(middles[row] + across[row] * _AWAY + 2 * half * _MIDDLE, half)
        area = float(np.prod(2 * half))
        cost = area * _DETOUR * np.arange(len(_SIDES))
        cost += np.where(np.arange(len(_SIDES)) == before[row], 0.0, area * _STAY)
        cost += _shared(boxes, drones).sum(axis=1) + _shared(boxes, placed).sum(axis=1)
        cost += _OUTSIDE * (area - _shared(boxes, sight[None])[:, 0])
        chosen[row] = int(cost.argmin())
        placed = np.concatenate([placed, boxes[[chosen[row]]]])
    return chosen


def _boxes(middles: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Return first and last corners of boxes around middles (n, 2), shape (n, 2, 2)."""
    return np.stack([middles - halves, middles + halves], axis=1)


def _shared(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the areas that boxes (n, 2, 2) share with others (m, 2, 2), shape (n, m)."""
    low = np.maximum(first[:, None, 0], second[None, :, 0])
    high = np.minimum(first[:, None, 1], second[None, :, 1])
    return np.asarray(np.maximum(high - low, 0.0).prod(axis=2))

"""The stage of the world: sky, light, and a floor that fades into the horizon, light or dark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
import viser

from crazyflow_ros.view.glb import GlbPart, band, circle, glb_of, unlit

_SKY, _REACH = 450.0, 400.0  # m, radii of the sky and of the floor; cameras see 1000 m
_FADED = 45.0  # m from the middle, where the floor has become the horizon
_FINE, _COARSE = 1.0, 5.0  # m between lines of the floor
_LINES = {_FINE: (0.006, 9.0, 0.55), _COARSE: (0.012, 30.0, 1.0)}
"""Half their width and how far they reach [m], and their strength."""
_TILE = 0.16  # strength of every second tile between fine lines
_TILES = np.array([(x, y) for x in range(-9, 9) for y in range(-9, 9) if (x + y) % 2])
_STEP = _COARSE  # m by which the floor goes along with a camera, so that its lines stay
_ABOVE = 0.003  # m, lines above the floor, to be seen
_RIM = 96  # corners of a circle

Color = tuple[float, float, float]
"""Red, green and blue as seen, from 0 to 1."""


def _rgb(code: str) -> Color:
    red, green, blue = bytes.fromhex(code)
    return red / 255, green / 255, blue / 255


@dataclass(frozen=True)
class Palette:
    """Colours and light of a stage."""

    zenith: Color
    horizon: Color
    floor: Color
    line: Color
    sun: float
    """Intensity of the light from above, one side."""
    fill: float
    """Intensity of the light from the other side."""
    ambient: float
    """Intensity of the light from the whole sky."""


LIGHT = Palette(
    zenith=_rgb("5b95d3"),
    horizon=_rgb("ebeef0"),
    floor=_rgb("d3d1cc"),
    line=_rgb("aaa69e"),
    sun=2.9,
    fill=0.7,
    ambient=2.0,
)
DARK = Palette(
    zenith=_rgb("0a0f17"),
    horizon=_rgb("1d2936"),
    floor=_rgb("5f6b78"),
    line=_rgb("8392a1"),
    sun=1.5,
    fill=0.6,
    ambient=1.1,
)


class Stage:
    """Floor, sky and light: a light stage for all tabs, and others for tabs that need them.

    The first message to a tab has the light stage, so that its renderer compiles everything for
    the final number of lights. Tabs that are dark or look elsewhere get their own stage.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        # viser's own light greys everything, and its reflections take a browser seconds.
        server.scene.configure_environment_map(None)
        server.scene.configure_default_lights(enabled=False, cast_shadow=False)
        self._of_all = _Surroundings(server, LIGHT, np.zeros(3))
        self._own: dict[int, _Surroundings] = {}  # by viser's number of the tab
        server.on_client_disconnect(self._forget)

    def _forget(self, client: viser.ClientHandle) -> None:
        self._own.pop(client.client_id, None)

    def _of(self, client: viser.ClientHandle) -> _Surroundings:
        return self._own.get(client.client_id, self._of_all)

    def set_dark(self, client: viser.ClientHandle, is_dark: bool) -> None:
        """Give a tab the dark or the light stage."""
        palette, before = DARK if is_dark else LIGHT, self._of(client)
        if before.palette is palette:
            return
        with client.atomic():
            self._own[client.client_id] = _Surroundings(client, palette, before.place)

    def set_floor(self, height: float) -> None:
        """Move the floor to a height [m]."""
        for stage in (self._of_all, *self._own.values()):
            stage.move(np.array([*stage.place[:2], height]))

    def centre(self, client: viser.ClientHandle, x: float, y: float) -> None:
        """Centre the floor and the sky of a tab at a place [m]."""
        stage, place = self._of(client), np.array([x, y])
        if np.abs(place - stage.place[:2]).max() <= _STEP:
            return
        moved = np.append(_STEP * np.round(place / _STEP), stage.place[2])
        if stage is self._of_all:
            with client.atomic():
                self._own[client.client_id] = _Surroundings(client, stage.palette, moved)
        else:
            stage.move(moved)


class _Surroundings:
    """Floor, sky and light, which replace those of the tab."""

    def __init__(
        self, owner: viser.ViserServer | viser.ClientHandle, palette: Palette, place: np.ndarray
    ) -> None:
        self.palette, self.place = palette, place
        scene = owner.scene
        self._surface = scene.add_glb(
            "/stage/surface",
            surface_glb(palette),
            position=place,
            cast_shadow=False,
            receive_shadow=False,
        )
        scene.add_light_directional(
            "/stage/sun", intensity=palette.sun, color=(255, 246, 230), position=(4, -7, 11)
        )
        scene.add_light_directional(
            "/stage/fill", intensity=palette.fill, color=(214, 230, 255), position=(-8, 5, 3)
        )
        scene.add_light_hemisphere(
            "/stage/ambient",
            sky_color=(235, 243, 255),
            ground_color=(150, 150, 150),
            intensity=palette.ambient,
        )

    def move(self, place: np.ndarray) -> None:
        """Move floor and sky to a place [m], shape (3,)."""
        self.place = self._surface.position = place


@cache
def surface_glb(palette: Palette) -> bytes:
    """Return floor, lines and sky as a GLB file, around the origin.

    Each is seen from one side, so that a renderer compiles a single program for them.
    """
    return glb_of([_floor(palette), _lines(palette), _sky(palette)])


def _mix(first: Color, second: Color, share: np.ndarray) -> np.ndarray:
    """Return opaque colours (n, 4) between two, at the shares (n,) of the second one."""
    share = np.asarray(share, float)[:, None]
    rgb = (1 - share) * np.array(first) + share * np.array(second)
    return np.column_stack([rgb, np.ones(len(rgb))])


def _smooth(share: np.ndarray) -> np.ndarray:
    share = np.clip(share, 0.0, 1.0)
    return share**2 * (3 - 2 * share)


def _rings(radii: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return corners and faces of a surface of revolution, ring by ring."""
    ring = circle(_RIM)
    corners = [np.column_stack([r * ring, np.full(_RIM, z)]) for r, z in zip(radii, heights)]
    faces = chain(*(band(number * _RIM, _RIM) for number in range(len(radii) - 1)))
    return np.concatenate(corners), np.concatenate([*faces])


def _floor(palette: Palette) -> GlbPart:
    radii = np.array([0.0, 4, 8, 12, 16, 20, 25, 30, 36, _FADED, _REACH])
    corners, faces = _rings(radii, np.zeros_like(radii))
    return unlit(corners, _floor_color(palette, np.repeat(radii, _RIM)), faces)


def _floor_color(palette: Palette, radii: np.ndarray) -> np.ndarray:
    """Return the colours (n, 4) of the floor at distances (n,) from the middle [m]."""
    return _mix(palette.floor, palette.horizon, _smooth(radii / _FADED))


def _lines(palette: Palette) -> GlbPart:
    """Return tiles and lines that fade far from the middle, before they could flicker.

    They are opaque, in the colour of the floor where they fade, so that shadows fall on them.
    """
    corners: list[np.ndarray] = []
    seen: list[np.ndarray] = []
    faces: list[np.ndarray] = []
    for spacing, (half, reach, strength) in _LINES.items():
        for at in np.arange(-reach, reach + spacing / 2, spacing):
            if spacing == _FINE and at % _COARSE == 0:
                continue  # the coarse one lies there
            along = np.arange(-reach, reach + 0.5, 1.0)
            radii = np.hypot(along, at)
            share = strength * _smooth(1 - radii / reach)[:, None]
            color = (1 - share) * _floor_color(palette, radii) + share * [*palette.line, 1.0]
            is_seen = np.maximum(share[:-1, 0], share[1:, 0]) > 0
            for axis in (0, 1):
                first = sum(len(own) for own in corners)
                for side in (-half, half):
                    line = np.full((len(along), 3), _ABOVE)
                    line[:, axis], line[:, 1 - axis] = along, at + side
                    corners.append(line)
                    seen.append(color)
                a = first + np.arange(len(along) - 1)
                c = a + len(along)
                quads = np.column_stack([a, a + 1, c + 1, a, c + 1, c])[is_seen].reshape(-1, 3)
                faces.append(quads[:, ::-1] if axis else quads)
    for x, y in _TILES[np.hypot(*(_TILES + 0.5).T) < _LINES[_FINE][1]]:
        square = np.array([(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)], float)
        share = _TILE * _smooth(1 - np.hypot(*square.T) / _LINES[_FINE][1])[:, None]
        color = _floor_color(palette, np.hypot(*square.T))
        faces.append(sum(map(len, corners)) + np.array([(0, 1, 2), (0, 2, 3)]))
        corners.append(np.column_stack([square, np.full(4, _ABOVE / 2)]))
        seen.append((1 - share) * color + share * [*palette.line, 1.0])
    every = np.concatenate(faces)
    return unlit(np.concatenate(corners), np.concatenate(seen), every)


def _sky(palette: Palette) -> GlbPart:
    """Return a dome whose colours change fastest near the horizon, as in nature."""
    elevation = np.deg2rad([-30.0, 0, 2, 4, 7, 11, 16, 23, 32, 45, 60, 75, 90])
    corners, faces = _rings(_SKY * np.cos(elevation), _SKY * np.sin(elevation))
    share = np.sqrt(np.clip(np.sin(elevation), 0.0, 1.0))
    seen = _mix(palette.horizon, palette.zenith, np.repeat(share, _RIM))
    return unlit(corners, seen, faces)

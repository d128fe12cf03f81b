"""Drones with turning rotors."""

from __future__ import annotations

import colorsys
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import trimesh

from crazyflow_ros.scene.frames import body_to_world, multiply, xyzw_to_wxyz
from crazyflow_ros.scene.shapes import VisibleShape, moved
from crazyflow_ros.view.frame import Frame, Looks, Rotor
from crazyflow_ros.view.glb import GlbPart, glb_of, linear, unlit
from crazyflow_ros.view.meshes import mesh_of, outline, parts_of, transformed

MOST_TURNING = 10  # drones whose rotors turn: moving them is most of what the page sends
_SLOWEST_TURN, _FASTEST_TURN = 2.0, 25.0  # rad/s, of rotors: faster ones would seem to stand still
_TYPICAL_SPEED = 2000.0  # rad/s
_RIM, _OUTLINE = (0.09, 0.022)  # radii of the rotor, and of the drone: widths of lines
_OUTLINE_COLOR = (0.97, 0.98, 1.0)  # drones are dark: one of the two is seen before anything
REAR = 245, 247, 250  # colour of the rear rotors; the front ones have that of the drone
_DISC = np.array([0.12, 0.14, 0.17, 0.75])  # what the blades sweep
_OPAQUE, _SECTIONS = 0.99, 32


class Swarm:
    """Drones that look alike, in as few nodes of the scene as possible.

    Args:
        scene: The scene.
        looks: How they look.
        rows: Which drones of a frame these are.
        frame: The first frame.
    """

    def __init__(self, scene: Any, looks: Looks, rows: np.ndarray, frame: Frame) -> None:
        self._looks, self._rows, self._size = looks, rows, 1.0
        self._angles = np.zeros((len(rows), len(looks.rotors)))
        self._turns = len(frame.names) <= MOST_TURNING
        upright = np.tile(np.array([1, 0, 0, 0], np.float32), (len(rows), 1))
        positions, name = frame.position[rows], f"/drones{rows[0]}"
        content = body_glb(looks, has_rear=not self._turns)
        self._body = scene.add_batched_glb(name, content, upright, positions, lod="off")
        front = [number for number, rotor in enumerate(looks.rotors) if rotor.position[0] > 0]
        self._rotors = []
        for numbers in _alike(looks) if self._turns else filter(None, [front]):
            mesh: Any = rotor_mesh(looks.rotors[numbers[0]])
            count = len(numbers) if self._turns else 1
            if not self._turns:  # all of a drone in one mesh
                rotors = [looks.rotors[number] for number in numbers]
                placed = [
                    transformed(rotor_mesh(own), own.position, own.attitude) for own in rotors
                ]
                mesh = trimesh.util.concatenate(placed)
            colors = [
                [color_of(int(row)) if number in front else REAR for row in rows]
                for number in numbers[:count]
            ]
            handle = scene.add_batched_meshes_simple(
                f"{name}/rotors{numbers[0]}",
                mesh.vertices,
                mesh.faces,
                np.tile(upright, (count, 1)),
                np.tile(positions, (count, 1)),
                # Linear ones, as viser's browser takes them.
                batched_colors=np.uint8(255 * linear(np.concatenate(colors) / 255)),
                lod="off",
                side="double",
                cast_shadow=False,
                receive_shadow=False,
            )
            self._rotors.append((handle, numbers))

    def remove(self) -> None:
        """Remove the drones."""
        self._body.remove()  # and the rotors below it

    def show(self, frame: Frame, seconds: float, size: float) -> None:
        """Move the drones, and turn the rotors for `seconds`; `size` multiplies their real size."""
        if size != self._size:
            self._size = size
            for handle in (self._body, *(handle for handle, _ in self._rotors)):
                count = len(handle.batched_positions)
                handle.batched_scales = np.full(count, size, np.float32)
        position, attitude = frame.position[self._rows], frame.attitude[self._rows]
        places, turned = position.astype(np.float32), xyzw_to_wxyz(attitude).astype(np.float32)
        self._body.batched_positions, self._body.batched_wxyzs = places, turned
        if not self._turns:
            for handle, _ in self._rotors:
                handle.batched_positions, handle.batched_wxyzs = places, turned
            return
        speed = frame.rotor_speed[self._rows]
        if speed.shape != self._angles.shape:  # no speeds are known yet
            speed = np.zeros_like(self._angles)
        shown = _FASTEST_TURN / _TYPICAL_SPEED * np.abs(speed)
        turning = np.where(speed == 0, 0.0, np.clip(shown, _SLOWEST_TURN, _FASTEST_TURN))
        self._angles += np.sign(speed) * turning * seconds
        self._angles %= math.tau
        for handle, numbers in self._rotors:
            of_each = [self._pose(number, position, attitude, size) for number in numbers]
            positions, attitudes = map(np.concatenate, zip(*of_each))
            handle.batched_positions = positions.astype(np.float32)
            handle.batched_wxyzs = xyzw_to_wxyz(attitudes).astype(np.float32)

    def _pose(
        self, number: int, position: np.ndarray, attitude: np.ndarray, size: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (M, 3) and attitudes xyzw (M, 4) of a rotor of all drones."""
        rotor = self._looks.rotors[number]
        half = rotor.spin * self._angles[:, number] / 2
        zero = np.zeros_like(half)
        turn = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
        in_drone = multiply(np.broadcast_to(rotor.attitude, turn.shape), turn)
        place = position + body_to_world(attitude, size * rotor.position)
        return place, multiply(attitude, in_drone)


@cache
def radius_of(looks: Looks) -> float:
    """Return the radius of a drone seen from above, with its rotors [m]."""
    if not looks.rotors:
        corners = [np.abs(mesh_of(shape).vertices[:, :2]).max() for shape in looks.body]
        return float(max(corners, default=0.05))
    reaches = [np.abs(rotor.position[:2]).max() + _radius(rotor) for rotor in looks.rotors]
    return float(max(reaches))


def color_of(number: int) -> tuple[int, int, int]:
    """Return the RGB colour of a drone, 0 to 255; neighbouring numbers have different colours."""
    hue = 0.58 + number * 0.381966
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.75, 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)


def _radius(rotor: Rotor) -> float:
    corners = [np.abs(mesh_of(shape).vertices[:, :2]).max() for shape in rotor.shapes]
    return float(max(corners, default=0.02))


def _alike(looks: Looks) -> list[list[int]]:
    """Return the numbers of the rotors, those with the same mesh together."""
    groups: dict[bytes, list[int]] = {}
    for number, rotor in enumerate(looks.rotors):
        groups.setdefault(rotor_mesh(rotor).vertices.tobytes(), []).append(number)
    return list(groups.values())


def rotor_mesh(rotor: Rotor) -> trimesh.Trimesh:
    """Return blades, hub and the rim of the circle in which they turn."""
    meshes = [mesh_of(shape) for shape in rotor.shapes if shape.rgba[3] > _OPAQUE]
    mesh: Any = trimesh.util.concatenate([*meshes, _rim(_radius(rotor), 0.0)])
    return mesh


def _rim(radius: float, extra: float) -> trimesh.Trimesh:
    """Return a ring of a rotor, `extra` wider on all sides [m]."""
    width = _RIM * radius
    return trimesh.creation.annulus(
        r_min=radius - width - extra,
        r_max=radius + extra,
        height=width + 2 * extra,
        sections=_SECTIONS,
    )


@cache
def body_glb(looks: Looks, has_rear: bool) -> bytes:
    """Return the parts of a drone that do not turn, with a bright line around them.

    Args:
        looks: How the drone looks.
        has_rear: Whether its rear rotors do not turn.
    """
    width = _OUTLINE * radius_of(looks)
    discs: list[VisibleShape] = []
    parts: list[GlbPart] = []
    for rotor in looks.rotors:
        clear = [replace(s, rgba=_DISC) for s in rotor.shapes if s.rgba[3] <= _OPAQUE]
        discs += moved(clear, rotor.position, rotor.attitude)
        ring = transformed(_rim(_radius(rotor), width), rotor.position, rotor.attitude)
        parts.append(unlit(ring.vertices, np.array([*_OUTLINE_COLOR, 1.0]), ring.faces[:, ::-1]))
        if has_rear and rotor.position[0] <= 0:
            rear = transformed(rotor_mesh(rotor), rotor.position, rotor.attitude)
            parts.append(
                GlbPart(
                    rear.vertices,
                    rear.faces,
                    np.append(linear(np.array(REAR) / 255), 1.0),
                    is_double_sided=True,
                )
            )
    # Transparent ones with two sides would be drawn twice, by a renderer's program for each.
    parts += [replace(part, is_double_sided=False) for part in parts_of(discs)]
    parts += [*parts_of(looks.body), outline(looks.body, width, _OUTLINE_COLOR)]
    return glb_of(parts)

"""Lines, points and capsules in the pictures of a `Sim`, and colours of LEDs.

Shapes appear in the next picture only, and in the window until `Sim.render` updates it; draw them
again for the next one. Sensors do not see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.sim.sim import Sim

if TYPE_CHECKING:
    from crazyflow_ros.scene.markers import Marker

__all__ = [
    "change_material",
    "draw_capsule",
    "draw_line",
    "draw_points",
]

_RED = (1.0, 0.0, 0.0, 1.0)


def draw_line(
    sim: Sim,
    points: ArrayLike,
    rgba: ArrayLike | None = None,
    start_size: float = 3.0,
    end_size: float = 3.0,
) -> None:
    """Draw a line through points.

    Args:
        sim: The simulation.
        points: (n, 3) with at least two points, world frame, m.
        rgba: (4,) colour and opacity, 0 to 1; by default red.
        start_size: Width of the first piece [pixels].
        end_size: Width of the last piece [pixels]; the widths in between change evenly.

    Raises:
        ValueError: An argument has another shape or a number out of range.
    """
    ends = _points("points", points)
    if len(ends) < 2:
        raise ValueError(f"a line needs at least two points, got {len(ends)}")
    sizes = np.linspace(_size("start_size", start_size), _size("end_size", end_size), len(ends) - 1)
    _mark(sim, "mjGEOM_LINE", sizes, ends[:-1], ends[1:], rgba)


def draw_points(
    sim: Sim, points: ArrayLike, rgba: ArrayLike | None = None, size: float = 0.01
) -> None:
    """Draw points as spheres.

    Args:
        sim: The simulation.
        points: (n, 3) or (3,), world frame, m.
        rgba: (4,) colour and opacity, 0 to 1; by default red.
        size: Radius [m].

    Raises:
        ValueError: An argument has another shape or a number out of range.
    """
    centres = _points("points", np.atleast_2d(points))
    _mark(sim, "mjGEOM_SPHERE", [_size("size", size)] * len(centres), centres, centres, rgba)


def draw_capsule(
    sim: Sim,
    p1: ArrayLike,
    p2: ArrayLike,
    radius: float = 0.05,
    rgba: ArrayLike | None = None,
    cylinder: bool = False,
) -> None:
    """Draw a capsule or cylinder between two points.

    Args:
        sim: The simulation.
        p1: (3,) one end of the axis, world frame, m.
        p2: (3,) the other end.
        radius: m.
        rgba: (4,) colour and opacity, 0 to 1; by default red.
        cylinder: Whether the ends are flat, at the points, instead of half spheres around them.

    Raises:
        ValueError: An argument has another shape or a number out of range.
    """
    kind = "mjGEOM_CYLINDER" if cylinder else "mjGEOM_CAPSULE"
    ends = _points("p1", _numbers("p1", p1)[None]), _points("p2", _numbers("p2", p2)[None])
    _mark(sim, kind, [_size("radius", radius)], *ends, rgba)


def change_material(
    sim: Sim,
    mat_name: str,
    drone_ids: ArrayLike,
    rgba: ArrayLike | None = None,
    emission: ArrayLike | None = None,
) -> None:
    """Change the colour of a material of which each drone has its own copy.

    The LED decks of the Crazyflies are such materials, `led_top` and `led_bot`. They are invisible
    until they get a colour, and again after `build_mjx`.

    Args:
        sim: The simulation.
        mat_name: Name of the material.
        drone_ids: (n,) indices of drones.
        rgba: (n, 4) or (4,) colour and opacity, 0 to 1; None keeps them.
        emission: (n,) or one for all, how much the material glows; None keeps it.

    Raises:
        ValueError: There is no such material or drone, or an argument has another shape or a number
            out of range.
    """
    ids = np.asarray(drone_ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(f"drone_ids must be a list of indices, got {drone_ids!r}")
    if ids.size and not 0 <= ids.min() <= ids.max() < sim.n_drones:
        raise ValueError(f"drone_ids must be 0 to {sim.n_drones - 1}, got {ids.tolist()}")
    model = sim.mj_model
    have = {model.material(number).name: number for number in range(model.nmat)}
    wanted = [f"{mat_name}:{number}" for number in ids]
    if missing := [name for name in wanted if name not in have]:
        own = sorted({name.partition(":")[0] for name in have if ":" in name})
        raise ValueError(unknown("material", missing[0].partition(":")[0], own))
    places = [have[name] for name in wanted]
    colours = None if rgba is None else _rgba(rgba, (len(ids), 4))
    if emission is not None:
        glow = _numbers("emission", emission)
        if glow.shape not in ((), (len(ids),)):
            raise ValueError(f"emission must have shape ({len(ids)},) or (), got {glow.shape}")
        model.mat_emission[places] = glow
    if colours is not None:
        model.mat_rgba[places] = colours


def _mark(
    sim: Sim,
    kind: str,
    sizes: ArrayLike,
    starts: np.ndarray,
    ends: np.ndarray,
    rgba: ArrayLike | None,
) -> None:
    import mujoco

    from crazyflow_ros.scene.markers import Marker

    colour = _rgba(_RED if rgba is None else rgba, (4,))
    if len(starts) > sim.max_visual_geom:
        raise ValueError(f"{len(starts)} shapes, max_visual_geom is {sim.max_visual_geom}")
    shape = getattr(mujoco.mjtGeom, kind)
    markers: list[Marker] = [
        Marker(shape, float(size), start, end, colour)
        for size, start, end in zip(np.asarray(sizes), starts, ends)
    ]
    sim.mark(markers)


def _points(name: str, points: ArrayLike) -> np.ndarray:
    array = _numbers(name, points)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"{name} must have shape (n, 3), got {array.shape}")
    return array


def _rgba(rgba: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    array = _numbers("rgba", rgba)
    if array.shape not in ((4,), shape):
        raise ValueError(f"rgba must have shape {' or '.join({'(4,)', str(shape)})}")
    if array.size and not 0 <= array.min() <= array.max() <= 1:
        raise ValueError(f"rgba must be 0 to 1, got {array.tolist()}")
    return np.broadcast_to(array, shape)


def _size(name: str, size: float) -> float:
    number = _numbers(name, size)
    if number.shape != () or number <= 0:
        raise ValueError(f"{name} must be a positive number, got {size!r}")
    return float(number)


def _numbers(name: str, values: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {values!r}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {values!r}")
    return array

"""Contacts of MJX, exact for balls, and for boxes with capsules and boxes: the shapes of drones.

MJX finds contacts with cylinders and ellipsoids by descent, and may stop too early. It searches one
face of a mesh for the nearest point. It measures the depth of boxes at a corner, and misses some
capsules that touch an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.obstacles import Shape, signed_distance
from crazyflow_ros.extras import extra

with extra("mjx"):
    from mujoco import mjx

    from crazyflow_ros.scene.mjx_internals import contacts, geom_pairs, with_contacts

_APART = 1e-6  # m; places that are nearer to each other differ by rounding
_HALVINGS = 40  # of the interval of a root, on a logarithmic scale
_LEAST = 1e-10  # of divisors, and of coordinates in semi-axes
_PARALLEL = 1e-3  # rad between edges, below which their common perpendicular is inaccurate

_PLANE, _FIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ["PLANE", "HFIELD", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH"]
)
_BALL_AND_MESH = _SPHERE, _MESH
_EXACT_IN_MJX = {
    *((_SPHERE, other) for other in (_SPHERE, _CAPSULE, _BOX)),
    *((_FIELD, _SPHERE), (_CAPSULE, _CAPSULE)),
}


class _Geom(NamedTuple):
    pos: Array
    """(3,) m."""
    axes: Array
    """(3, 3), in columns."""
    size: Array
    """(3,) m, as in MuJoCo."""


class _Slots(NamedTuple):
    """The contacts of a pair, in C slots."""

    distance: Array
    """(C,) m, negative where the geoms overlap."""
    pos: Array
    """(C, 3) m, in the middle between the surfaces."""
    frame: Array
    """(C, 3, 3); the first row points from the first to the second geom."""


Law: TypeAlias = Callable[[_Geom, _Geom, _Slots], _Slots]
"""Corrects the contacts that MJX found."""
Surface: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]
"""Takes a point [m] (3,) and the size of the shape as in MuJoCo [m] (3,); returns the distance [m],
negative inside, and the outward unit normal (3,), which may be zero where all are equally near."""


def collision(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """Add the contacts to the data of one world, whose frames must be up to date."""
    data = mjx.collision(model, data)
    if not any(_law(model, g1, g2) for g1, g2, _ in geom_pairs(model)):
        return data
    found, parts = contacts(data), []
    for (geom1, geom2), rows, n_slots in _groups(model, data):
        slots = _Slots(found.dist[rows], found.pos[rows], found.frame[rows])
        if law := _law(model, geom1, geom2):
            first, second = (
                _Geom(data.geom_xpos[g], data.geom_xmat[g], model.geom_size[g])
                for g in found.geom[rows][::n_slots].T
            )
            by_pair = jax.tree.map(lambda x, n=n_slots: x.reshape(-1, n, *x.shape[1:]), slots)
            by_pair = jax.vmap(law)(first, second, by_pair)
            slots = jax.tree.map(jnp.concatenate, by_pair)
        parts.append(slots)
    return with_contacts(data, *map(jnp.concatenate, zip(*parts)))


def is_exact(shapes: tuple[int, int]) -> bool:
    """Return whether contacts between shapes, `mjtGeom` in ascending order, are those of MuJoCo."""
    return shapes[0] == _PLANE or shapes in (*_LAWS, _BALL_AND_MESH) or shapes in _EXACT_IN_MJX


def _law(model: mjx.Model, geom1: int, geom2: int) -> Law | None:
    shapes = int(model.geom_type[geom1]), int(model.geom_type[geom2])
    if shapes == _BALL_AND_MESH:
        return _sphere_and(_hull(model, int(model.geom_dataid[geom2])))
    return _LAWS.get(shapes)


def _groups(model: mjx.Model, data: mjx.Data) -> Iterator[tuple[tuple[int, int], slice, int]]:
    """Yield two geoms, the neighbouring slots of pairs like these, and the slots for each pair."""
    with jax.ensure_compile_time_eval():
        zeros = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), (model, data))
        geoms = np.asarray(_geoms_of_slots(*zeros))
    kinds = np.hstack((model.geom_type[geoms], model.geom_dataid[geoms]))
    begins = np.flatnonzero((np.diff(kinds, axis=0, prepend=-2) != 0).any(axis=1))
    for start, stop in zip(begins, [*begins[1:], len(geoms)]):
        others = np.flatnonzero((geoms[start:stop] != geoms[start]).any(axis=1))
        pair = int(geoms[start, 0]), int(geoms[start, 1])
        yield pair, slice(start, stop), int(others[0] if others.size else stop - start)


@jax.jit
def _geoms_of_slots(model: mjx.Model, data: mjx.Data) -> Array:
    return contacts(mjx.collision(model, data)).geom


def _frame(normal: Array) -> Array:
    """Return a right-handed frame (3, 3) whose first row is a unit vector."""
    helper = jnp.where(jnp.abs(normal[1]) < 0.5, jnp.array([0.0, 1, 0]), jnp.array([0.0, 0, 1]))
    second = helper - normal * normal.dot(helper)
    second = second / jnp.linalg.norm(second)
    return jnp.stack([normal, second, jnp.cross(normal, second)])


def _ball(
    pos: Array, radius: Array, other: _Geom, distance: Array, outwards: Array
) -> tuple[Array, Array, Array]:
    """Return distance, position and frame of the contact of a ball with another geom.

    Args:
        pos: (3,) centre of the ball.
        radius: Radius of the ball.
        other: The other geom.
        distance: Distance of the centre from the surface of `other`.
        outwards: (3,) unit normal there, in the axes of `other`; zero if all are equally near.
    """
    outwards = jnp.where((outwards == 0).all(), jnp.array([1.0, 0, 0]), outwards)
    normal = -other.axes @ outwards
    between = pos + normal * (radius + distance) / 2
    return distance - radius, between, _frame(normal)


def _sphere_and(surface: Surface) -> Law:
    """Return the law of spheres and a shape."""

    def law(sphere: _Geom, other: _Geom, _: _Slots) -> _Slots:
        distance, outwards = surface(other.axes.T @ (sphere.pos - other.pos), other.size)
        touch = _ball(sphere.pos, sphere.size[0], other, distance, outwards)
        return _Slots(*(x[None] for x in touch))

    return law


def _hull(model: mjx.Model, mesh: int) -> Surface:
    """Return the convex hull of a mesh, as MuJoCo has built it."""
    graph = model.mesh_graph[model.mesh_graphadr[mesh] :]
    n_vertices, n_faces = graph[:2]
    faces = graph[2 + 3 * (n_vertices + n_faces) :][: 3 * n_faces].reshape(-1, 3)
    return _polytope(model.mesh_vert[model.mesh_vertadr[mesh] + faces])


def _gap(half: Array, centre: Array, axes: Array, other_half: Array) -> tuple[Array, Array]:
    """Return the gap between boxes along the axis that separates them best, and that axis.

    Where the boxes overlap, the gap is minus the shortest way apart.

    Args:
        half: (3,) half sides of the first box, in whose axes the results are.
        centre: (3,) centre of the second one.
        axes: (3, 3) axes of the second box, in columns.
        other_half: (3,) half sides of the second box; only one is not zero for a line.
    """
    edges = jnp.cross(jnp.eye(3)[:, None], axes.T).reshape(9, 3)
    square = (edges**2).sum(axis=1)
    is_known = square > _PARALLEL**2
    edges = edges / jnp.sqrt(jnp.where(is_known, square, 1.0))[:, None]
    normals = jnp.concatenate([jnp.eye(3), axes.T, edges])
    along = normals @ centre
    gaps = jnp.abs(along) - jnp.abs(normals) @ half - jnp.abs(normals @ axes) @ other_half
    gaps = jnp.where(jnp.concatenate([jnp.full(6, True), is_known]), gaps, -jnp.inf)
    best = jnp.argmax(gaps)
    return gaps[best], jnp.where(along[best] < 0, -1.0, 1.0) * normals[best]


def _capsule_and_box(capsule: _Geom, box: _Geom, slots: _Slots) -> _Slots:
    """Put the deepest contact where the axis of the capsule is nearest to the box."""
    radius, length = capsule.size[:2]
    centre = box.axes.T @ (capsule.pos - box.pos)
    axes = box.axes.T @ capsule.axes
    line, half = axes[:, 2], box.size

    def outside(place: Array) -> Array:
        point = centre + place * line
        return point - jnp.clip(point, -half, half)

    # The slope of the squared distance rises along the axis, linearly between these places.
    is_across = jnp.abs(line) > _LEAST
    crossings = (jnp.stack([-half, half]) - centre) / jnp.where(is_across, line, 1.0)
    crossings = jnp.where(is_across, crossings, length).clip(-length, length)
    places = jnp.sort(jnp.concatenate([crossings.ravel(), jnp.stack([-length, length])]))
    nearest = jnp.interp(0.0, jax.vmap(outside)(places) @ line, places)
    way = outside(nearest)
    square = way @ way
    is_apart = square > _APART**2
    distance = jnp.sqrt(jnp.where(is_apart, square, 1.0))
    gap, axis = _gap(half, centre, axes, jnp.array([0.0, 0, 1]) * length)
    deepest = -length * jnp.sign(axis @ line)
    touch = _ball(
        capsule.pos + jnp.where(is_apart, nearest, deepest) * capsule.axes[:, 2],
        radius,
        box,
        jnp.where(is_apart, distance, gap),
        jnp.where(is_apart, way / distance, axis),
    )
    return _with_deepest(slots, *touch)


def _box_and_box(first: _Geom, second: _Geom, slots: _Slots) -> _Slots:
    """Measure the deepest contact along the axis on which the boxes overlap least."""
    centre, axes = first.axes.T @ (second.pos - first.pos), first.axes.T @ second.axes
    gap, axis = _gap(first.size, centre, axes, second.size)
    place = slots.pos[jnp.argmin(slots.distance)]
    return _with_deepest(slots, gap, place, _frame(first.axes @ axis))


def _with_deepest(slots: _Slots, distance: Array, pos: Array, frame: Array) -> _Slots:
    """Replace the deepest contact, and raise others so that none is deeper."""
    deepest = jnp.argmin(slots.distance)
    return _Slots(
        jnp.maximum(slots.distance, distance).at[deepest].set(distance),
        slots.pos.at[deepest].set(pos),
        slots.frame.at[deepest].set(frame),
    )


def _cylinder(point: Array, size: Array) -> tuple[Array, Array]:
    """See `signed_distance`."""
    x, y, z = point
    radius, length, _ = size
    shape = jnp.asarray(Shape.cylinder)
    distance, normal = signed_distance(shape, (radius, length, length), (x, y, z))
    return distance, jnp.stack(normal)


def _ellipsoid(point: Array, size: Array) -> tuple[Array, Array]:
    """Return distance and outward unit normal of a point.

    After D. Eberly, "Distance from a point to an ellipse, an ellipsoid, or a hyperellipsoid"
    (2013): the nearest point follows from the root of a falling function of one variable.
    """
    sign, least = jnp.where(point < 0, -1.0, 1.0), size.min()
    ratios = (size / least) ** 2 - 1
    reach = jnp.maximum(jnp.abs(point) / size, _LEAST) * (ratios + 1)

    def foot(root: Array) -> Array:
        """Return the nearest point, divided by the semi-axes; it has length 1 for the root."""
        return reach / (root + ratios)

    def halved(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = jnp.sqrt(low * high)
        is_low = (foot(middle) ** 2).sum() > 1
        return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)

    ends = reach[jnp.argmin(ratios)], jnp.linalg.norm(reach)
    low, high = jax.lax.stop_gradient(jax.lax.fori_loop(0, _HALVINGS, halved, ends))
    # One step of Newton's method, which has the derivatives of the root.
    start = jnp.sqrt(low * high)
    square = foot(start) ** 2
    step = (square.sum() - 1) / (2 * (square / (start + ratios)).sum())
    nearest = foot(jnp.maximum(start + step, start / 2))
    nearest = sign * nearest / jnp.linalg.norm(nearest)
    normal = nearest / size
    normal = normal / jnp.linalg.norm(normal)
    return normal.dot(point - nearest * size), normal


def _polytope(corners: np.ndarray) -> Surface:
    """Return the surface of a convex polytope, which ignores the size.

    Args:
        corners: (F, 3, 3) corners of its triangles [m], counter-clockwise seen from outside.
    """
    sides = np.roll(corners, -1, axis=1) - corners
    normals = np.cross(sides[:, 0], sides[:, 1])
    area = np.linalg.norm(normals, axis=1)
    corners, sides, normals = (x[area > 0] for x in (corners, sides, normals))
    normals = normals / area[area > 0, None]
    inwards = np.cross(normals[:, None], sides)

    def surface(point: Array, _: Array) -> tuple[Array, Array]:
        arms = point - corners
        heights = (arms[:, 0] * normals).sum(axis=1)
        # Outside, the nearest point is below the point, on a face, or on a side.
        is_over = ((arms * inwards).sum(axis=2) >= 0).all(axis=1) & (heights > 0)
        share = ((arms * sides).sum(axis=2) / (sides**2).sum(axis=2)).clip(0, 1)
        ways = (arms - share[..., None] * sides).reshape(-1, 3)
        way = ways[jnp.argmin((ways**2).sum(axis=1))]
        square = way @ way
        by_face = is_over.any() | (heights.max() <= 0) | (square < _APART**2)
        face = jnp.argmax(jnp.where(is_over.any(), is_over, heights))
        length = jnp.sqrt(jnp.where(by_face, 1.0, square))
        distance = jnp.where(by_face, heights[face], length)
        return distance, jnp.where(by_face, jnp.asarray(normals)[face], way / length)

    return surface


_LAWS: dict[tuple[int, int], Law] = {
    (_SPHERE, _ELLIPSOID): _sphere_and(_ellipsoid),
    (_SPHERE, _CYLINDER): _sphere_and(_cylinder),
    (_CAPSULE, _BOX): _capsule_and_box,
    (_BOX, _BOX): _box_and_box,
}
"""Laws by the types of the geoms, in ascending order."""

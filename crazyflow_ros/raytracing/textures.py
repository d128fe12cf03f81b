"""Textures of a scene in one array, with coarser copies for what is far away."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.triangles import has_coordinates, triangles_of
from crazyflow_ros.scene.renderers import FLOOR
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.struct import Struct, static_field

_LEVELS = 12
"""Most copies of a texture, each half as wide as the one before."""
_RIM = 0.995  # of a face of a cube, beyond which its texture is not blended with the next face


class Textures(Struct):
    """All textures of a scene."""

    texels: Array
    """Red, green and blue in the bytes of a number, uint32, row by row from the top."""
    start: Array
    """First texel of each level of each texture, (ntex + 1, _LEVELS) int32; the last is white."""
    width: Array
    """Texels in a row, likewise."""
    height: Array
    """Rows, likewise."""
    cubes: Array
    """Which textures are those of cubes, six faces below one another, (ntex + 1,) bool."""
    sky: int = static_field()
    """The texture of the sky, six faces below one another; -1 without."""
    has_any: bool = static_field()
    """Whether geoms have textures."""
    has_round: bool = static_field()
    """Whether geoms that are neither planes nor boxes have textures."""
    has_cubes: bool = static_field()
    """Whether there are textures of cubes."""

    def sample(self, number: Array, u: Array, v: Array, texels: Array) -> tuple[Array, ...]:
        """Return red, green and blue from 0 to 1, each of the shape of the arguments.

        Args:
            number: Of the texture; -1 gives white.
            u: To the right; from 0 to 1 is the texture, which is repeated.
            v: Downwards, likewise.
            texels: How much of u and v a pixel covers; the greater one.
        """
        places, right, down = apart(self._corners, number, u, v, texels)
        corners = apart(lambda places: self.texels[places], places)
        result = [jnp.zeros_like(u)] * 3
        shares = ((1 - right) * (1 - down), right * (1 - down), (1 - right) * down, right * down)
        for k, share in enumerate(shares):
            for channel in range(3):
                value = ((corners[k] >> (8 * channel)) & 255).astype(u.dtype)
                result[channel] = result[channel] + share * value
        return tuple(part / 255 for part in result)

    def _corners(
        self, number: Array, u: Array, v: Array, texels: Array
    ) -> tuple[Array, Array, Array]:
        """Return the places of the four texels around points, and how far these are in between."""
        rows = self.start, self.width, self.height
        size = jnp.maximum(rows[1][number, 0], rows[2][number, 0])
        level = jnp.log2(jnp.maximum(texels * size, 1.0))
        level = jnp.clip(jnp.round(level), 0, _LEVELS - 1).astype(jnp.int32)
        start, width, height = (part[number, level] for part in rows)
        x, y = (u - jnp.floor(u)) * width - 0.5, (v - jnp.floor(v)) * height - 0.5
        left, top = jnp.floor(x), jnp.floor(y)
        columns = [_repeated(left.astype(jnp.int32) + i, width) for i in (0, 1)]
        lines = [_repeated(top.astype(jnp.int32) + i, height) for i in (0, 1)]
        places = [start + line * width + column for line in lines for column in columns]
        return jnp.stack(places), x - left, y - top

    def of_sky(self, x: Array, y: Array, z: Array) -> tuple[Array, ...]:
        """Return red, green and blue of the sky in a direction of the world."""
        number = jnp.full(x.shape, self.sky, jnp.int32)
        # The cube of OpenGL stands on its side in the world.
        return self.sample(number, *on_cube_of(x, z, -y), jnp.zeros_like(x))


def on_cube_of(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Return where in the texture of a cube a direction is, to the right and downwards."""
    size = jnp.maximum(jnp.maximum(abs(a), abs(b)), abs(c))
    on_a, on_b = abs(a) == size, (abs(b) == size)
    side = jnp.where(on_a, a, jnp.where(on_b, b, c))
    face = jnp.where(on_a, 0, jnp.where(on_b, 2, 4)) + (side < 0)
    across = jnp.where(on_a, -jnp.sign(a) * c, jnp.where(on_b, a, jnp.sign(c) * a))
    down = jnp.where(on_a | ~on_b, -b, jnp.sign(b) * c)
    u, v = ((jnp.clip(part / size, -_RIM, _RIM) + 1) / 2 for part in (across, down))
    return u, (face + v) / 6


def _repeated(index: Array, size: Array) -> Array:
    """Return an index from -1 to the size in a row that is repeated."""
    return jnp.where(index < 0, index + size, jnp.where(index >= size, index - size, index))


class TexturedGeoms(NamedTuple):
    """How textures are on geoms."""

    texture: np.ndarray
    """The texture of each geom, (ngeom,) int32, -1 for none."""
    pattern: np.ndarray
    """How often it is repeated over the geom to the right and downwards, offsets likewise, and how
    often it is repeated in a metre, (ngeom, 5). Of the texture of a cube, the first three are
    factors of the point's coordinates."""


def textures_of(model: mujoco.MjModel) -> tuple[Textures, TexturedGeoms]:
    """Return the textures of a scene, and how they are on its geoms."""
    cubes = np.append(model.tex_type != mujoco.mjtTexture.mjTEXTURE_2D, False)
    sky = np.flatnonzero(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX)
    parts, start, sizes = [], np.zeros((model.ntex + 1, _LEVELS), np.int32), []
    total = 0
    for number in range(model.ntex + 1):
        levels = _levels(_image(model, number)) if number < model.ntex else [np.ones((1, 1, 3))]
        levels += [levels[-1]] * (_LEVELS - len(levels))
        kept: list[int] = []
        for level, image in enumerate(levels):
            if level and image is levels[level - 1]:
                start[number, level] = kept[-1]
                continue
            kept.append(total)
            start[number, level] = total
            parts.append(_packed(image))
            total += parts[-1].size
        sizes.append([image.shape[:2] for image in levels])
    of_geoms = np.append(_of_materials(model), -1)[model.geom_matid]
    of_geoms[_lost(model, cubes[of_geoms])] = -1
    flat_kinds = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_BOX)
    has_round = bool(((of_geoms >= 0) & ~np.isin(model.geom_type, flat_kinds)).any())
    shape, pattern = np.array(sizes, np.int32), _pattern(model)
    cubic = cubes[of_geoms]
    pattern[cubic] = _cubic(model)[cubic]
    textures = Textures(
        texels=jnp.asarray(np.concatenate(parts)),
        start=jnp.asarray(start),
        width=jnp.asarray(shape[..., 1]),
        height=jnp.asarray(shape[..., 0]),
        cubes=jnp.asarray(cubes),
        sky=int(sky[0]) if sky.size else -1,
        has_any=bool((of_geoms >= 0).any()),
        has_round=has_round,
        has_cubes=bool(cubes.any()),
    )
    return textures, TexturedGeoms(of_geoms.astype(np.int32), pattern)


def _lost(model: mujoco.MjModel, cubic: np.ndarray) -> list[int]:
    """Return the geoms whose textures are not drawn, after a warning that names them."""
    lost = [geom for geom in np.flatnonzero(cubic).tolist() if has_coordinates(model, geom)]
    for geom in lost:
        name = model.geom(geom).name or f"number {geom}"
        warnings.warn(
            f"the texture of the geom {name} is that of a cube, but its mesh has coordinates of a "
            "texture in two dimensions: it is drawn without",
            stacklevel=2,
        )
    return lost


def _of_materials(model: mujoco.MjModel) -> np.ndarray:
    """Return the texture of the color of each material, -1 for none."""
    if not model.nmat:
        return np.zeros(0, int)
    return model.mat_texid[:, mujoco.mjtTextureRole.mjTEXROLE_RGB]


def _image(model: mujoco.MjModel, number: int) -> np.ndarray:
    """Return a texture, (height, width, 3) from 0 to 1."""
    height, width = int(model.tex_height[number]), int(model.tex_width[number])
    channels, start = int(model.tex_nchannel[number]), int(model.tex_adr[number])
    data = model.tex_data[start : start + height * width * channels]
    image = data.reshape(height, width, channels)[..., :3]
    image = np.broadcast_to(image, (height, width, 3)) / 255.0
    is_cube = model.tex_type[number] != mujoco.mjtTexture.mjTEXTURE_2D
    return np.tile(image, (6, 1, 1)) if is_cube and height == width else image


def _levels(image: np.ndarray) -> list[np.ndarray]:
    """Return an image and its halves, as OpenGL makes them."""
    levels = [image]
    while max(levels[-1].shape[:2]) > 1 and len(levels) < _LEVELS:
        last = levels[-1]
        for axis in (0, 1):
            n = last.shape[axis]
            if n > 1:
                edges = np.linspace(0, n, n // 2 + 1)
                last = _averaged(last, edges, axis)
        levels.append(last)
    return levels


def _averaged(image: np.ndarray, edges: np.ndarray, axis: int) -> np.ndarray:
    """Return means of an image between edges [pixels] along an axis."""
    sums = np.insert(np.cumsum(image, axis=axis), 0, 0.0, axis=axis)
    low = np.minimum(edges.astype(int), image.shape[axis] - 1)
    along = [-1 if i == axis else 1 for i in range(3)]
    part = (edges - low).reshape(along)
    at = np.take(sums, low, axis) + part * np.take(image, low, axis)
    return np.diff(at, axis=axis) / np.diff(edges).reshape(along)


def _packed(image: np.ndarray) -> np.ndarray:
    bytes_ = np.round(255 * image).astype(np.uint32).reshape(-1, 3)
    return bytes_[:, 0] | bytes_[:, 1] << 8 | bytes_[:, 2] << 16


def _pattern(model: mujoco.MjModel) -> np.ndarray:
    """Return `TexturedGeoms.pattern` of geoms with textures in two dimensions."""
    kinds = mujoco.mjtGeom
    size = model.geom_size[:, :2].astype(float)
    is_round = np.isin(
        model.geom_type, [kinds.mjGEOM_SPHERE, kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER]
    )
    size[is_round, 1] = size[is_round, 0]
    material = np.maximum(model.geom_matid, 0)
    repeat = model.mat_texrepeat[material].astype(float) if model.nmat else np.ones_like(size)
    repeat[repeat <= 0.0] = 1.0
    if model.nmat:
        repeat = np.where(_uniform(model) & (size > 0.0), repeat * size, repeat)
    # Textures of planes without end start in the middle of the plane, and are 2 m wide.
    plane = (model.geom_type == kinds.mjGEOM_PLANE)[:, None]
    endless = plane & (size <= 0.0)
    repeat = np.where(endless, FLOOR * repeat, repeat)
    offset = np.where(endless, -repeat / 2, 0.0)
    offset = np.where(endless.any(axis=1, keepdims=True), offset - 0.5, offset)
    own = np.array([has_coordinates(model, geom) for geom in range(model.ngeom)], bool)
    offset[np.isin(model.geom_type, [kinds.mjGEOM_MESH, kinds.mjGEOM_HFIELD]) & ~own] = -0.5
    half = np.where(endless, FLOOR, np.where(size > 0.0, size, np.inf))
    density = (repeat / (2 * half)).max(axis=1, keepdims=True)
    for geom in np.flatnonzero(own):
        density[geom] = repeat[geom].max() * _coordinates_in_a_metre(model, int(geom))
    return np.concatenate([repeat, offset, density], axis=1)


def _coordinates_in_a_metre(model: mujoco.MjModel, geom: int) -> float:
    """Return how much the texture coordinates of a mesh change in a metre, as a mean."""
    corners, _, place = triangles_of(model, geom)
    areas = [
        np.linalg.norm(np.cross(part[:, 1] - part[:, 0], part[:, 2] - part[:, 0]), axis=1).sum()
        for part in (corners, place)
    ]
    return float(np.sqrt(areas[1] / areas[0]))


def _cubic(model: mujoco.MjModel) -> np.ndarray:
    """Return `TexturedGeoms.pattern` of geoms with the textures of cubes."""
    size, kinds = model.geom_size.astype(float), mujoco.mjtGeom
    ball = model.geom_type == kinds.mjGEOM_SPHERE
    size[ball] = size[ball][:, [0, 0, 0]]
    long = np.isin(model.geom_type, [kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER])
    size[long] = size[long][:, [0, 0, 1]]
    triangles = np.isin(model.geom_type, [kinds.mjGEOM_MESH, kinds.mjGEOM_HFIELD])
    factors = np.where(triangles[:, None], size * [2.0, -2.0, 2.0], 1.0)
    plane = model.geom_type == kinds.mjGEOM_PLANE
    factors[plane] = np.where(size > 0.0, size, FLOOR)[plane]
    if model.nmat:
        factors = np.where(_uniform(model) & (size > 0.0), factors * size, factors)
    least = np.where(size > 0.0, size, np.inf).min(axis=1, keepdims=True)
    # The faces are below one another, and a pixel covers a sixth as much of all.
    return np.concatenate([factors, np.zeros_like(least), 1 / (12 * least)], axis=1)


def _uniform(model: mujoco.MjModel) -> np.ndarray:
    """Return of which geoms a texture is repeated in each unit of length, (ngeom, 1) bool."""
    return model.mat_texuniform[np.maximum(model.geom_matid, 0)].astype(bool)[:, None]

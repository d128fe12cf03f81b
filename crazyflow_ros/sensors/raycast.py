"""Distances along rays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import mujoco
import numpy as np

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.scene.frames import quat_from_matrix, xyzw_to_wxyz
from crazyflow_ros.sensors.backend import Array, Backend
from crazyflow_ros.sensors.context import ContextSensor
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.objects import ObjRef, subtree
from crazyflow_ros.sensors.patterns import GridPatternCfg, PatternCfg
from crazyflow_ros.sensors.sensor import SensorCfg
from crazyflow_ros.sensors.visualizer import Color, Visualizer

RayAlignment = Literal["base", "yaw", "world"]
COLLISIONS = (0, 1, 3)
"""Geom groups of the world, and of the collision shapes of drones."""

_FRAMES = ("body", "xbody", "site", "geom", "camera")
_LEVEL = 0.1  # projection of the x axis on the horizontal plane, below which it gives no heading


@dataclass
class RayCastSensorCfg(SensorCfg):
    """Rays from one or more frames.

    Raises:
        ValueError: The alignment, frames, geom groups or distance are invalid.
    """

    @dataclass(frozen=True)
    class VizCfg:
        """How rays are drawn. Colors are red, green, blue, opacity; sizes in `meansize`s."""

        hit_color: Color = (0.0, 1.0, 0.0, 0.8)
        """Color of rays that hit."""
        miss_color: Color = (1.0, 0.0, 0.0, 0.4)
        """Color of rays that miss."""
        hit_sphere_color: Color = (0.0, 1.0, 1.0, 1.0)
        """Color of the spheres at hit points."""
        hit_sphere_radius: float = 0.5
        """Radius of the spheres at hit points."""
        show_rays: bool = False
        """Whether to draw the rays as arrows."""
        show_normals: bool = False
        """Whether to draw surface normals at hit points."""
        normal_color: Color = (1.0, 1.0, 0.0, 1.0)
        """Color of the normals."""
        normal_length: float = 5.0
        """Length of the normals."""

    frame: ObjRef | tuple[ObjRef, ...]
    """Body, site, geom or camera that the rays are attached to; F of them share one pattern."""
    pattern: PatternCfg = field(default_factory=GridPatternCfg)
    """Origins and directions of the rays, in the axes of the frame."""
    ray_alignment: RayAlignment = "base"
    """Axes of the pattern, whose origin is always that of the frame: those of the frame
    ("base"), those level with the frame's heading ("yaw"), or those of the world ("world")."""
    max_distance: float = 10.0
    """Longest distance [m]; a longer one is a miss."""
    exclude_parent_body: bool = True
    """Whether rays pass through the geoms of the frame's body and of all bodies below it, so that a
    drone does not see its own rotors (mjlab excludes that body alone). A frame in the world itself
    excludes nothing."""
    include_geom_groups: tuple[int, ...] | None = (0, 1, 2)
    """Geom groups (0-5) that rays hit; None for all. Drones of this package are drawn as group 2,
    and collide as group 3."""
    viz: VizCfg = field(default_factory=VizCfg)
    """Colors and sizes of the drawing."""

    def __post_init__(self) -> None:
        if self.ray_alignment not in (known := ("base", "yaw", "world")):
            text = unknown("ray_alignment", self.ray_alignment, known)
            raise ValueError(f"{self.name}: {text}")
        if not self.frames:
            raise ValueError(f"{self.name}: frames is empty")
        for ref in self.frames:
            ref.check(f"{self.name}: frame", _FRAMES)
        if not self.max_distance > 0.0:
            got = f"got {self.max_distance:g}"
            raise ValueError(f"{self.name}: max_distance must be positive, {got}")
        groups = range(mujoco.mjNGROUP)
        if any(group not in groups for group in self.include_geom_groups or ()):
            raise ValueError(
                f"{self.name}: include_geom_groups must be from 0 to {mujoco.mjNGROUP - 1}, got "
                f"{self.include_geom_groups}"
            )

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """The frames as a tuple, also if there is one."""
        return (self.frame,) if isinstance(self.frame, ObjRef) else tuple(self.frame)

    def build(self) -> RayCastSensor:
        """Build the sensor."""
        return RayCastSensor(self)


@dataclass(kw_only=True)
class RaysCfg(RayCastSensorCfg):
    """Rays from a drone, with the noise and the shortest range of a real sensor.

    Raises:
        ValueError: The distances are not an interval, or the noise is not white.
    """

    include_geom_groups: tuple[int, ...] | None = COLLISIONS
    min_distance: float = 0.0
    """Shortest distance that is measured [m]."""
    noise: NoiseCfg = EXACT
    """White noise of the distances [m]: its `std`."""
    seed: int = 0
    """Seed of the noise, together with the names of sensor and drone, and the time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.min_distance < self.max_distance:
            rule = f"from 0 to less than max_distance, {self.max_distance:g} m"
            raise ValueError(f"{self.name}: min_distance must be {rule}, got {self.min_distance:g}")
        self.noise.check(f"{self.name}: noise", 1)
        if self.noise != NoiseCfg(std=self.noise.std):
            raise ValueError(f"{self.name}: noise of rays may have a std only, got {self.noise}")
        if self.seed < 0:
            raise ValueError(f"{self.name}: seed must not be negative, got {self.seed}")

    def ranges(self, distances: np.ndarray, drone: str, tick: int) -> np.ndarray:
        """Convert distances (n,) [m], negative where nothing is hit, to readings at a tick.

        Returns:
            Readings as in REP 117: infinite where nothing is hit, negative infinite where something
            is too near.
        """
        missed = distances < 0.0
        if self.noise.std:
            seed = (self.seed, tick, *f"{self.name}:{drone}".encode())
            distances = distances + np.multiply(
                self.noise.std, np.random.default_rng(seed).standard_normal(len(distances))
            )
        ranges = np.where(distances < self.min_distance, -np.inf, distances)
        ranges[missed | (ranges > self.max_distance)] = np.inf
        return ranges


@dataclass(frozen=True)
class RayCastData:
    """Hits of N = F * R rays in B worlds, frame by frame in the order of the pattern."""

    distances: Array
    """Distance to the hit point [m], shape (B, N); -1 if there is none."""
    normals_w: Array | None
    """Surface normals at the hit points, world axes, shape (B, N, 3); zero if there is none. None
    with MJX if rays can hit meshes, whose normals it does not know."""
    pos_w: Array
    """Position of the first frame in the world [m], shape (B, 3)."""
    frame_pos_w: Array
    """Positions of all frames [m], shape (B, F, 3)."""
    frame_axes_w: Array
    """Axes of all frames in the world as columns, shape (B, F, 3, 3)."""
    origins_w: Array
    """Origins in the world [m], shape (B, F, R or 1, 3): 1 if all rays of a frame share one."""
    directions_w: Array
    """Unit vectors of the rays, world axes, shape (B, F, R, 3)."""

    @cached_property
    def quat_w(self) -> Array:
        """Attitude of the first frame in the world, wxyz, shape (B, 4)."""
        return self.frame_quat_w[:, 0]

    @cached_property
    def frame_quat_w(self) -> Array:
        """Attitudes of all frames, wxyz, shape (B, F, 4)."""
        return xyzw_to_wxyz(quat_from_matrix(self.frame_axes_w))

    @cached_property
    def hit_pos_w(self) -> Array:
        """Hit points in the world [m], shape (B, N, 3); the origin of the ray if there is none."""
        length = self.distances.clip(min=0.0).reshape(*self.directions_w.shape[:-1], 1)
        return (self.origins_w + length * self.directions_w).reshape(*self.distances.shape, 3)


class RayCastSensor(ContextSensor[RayCastData]):
    """Casts rays whenever it senses, and keeps its data in between."""

    def __init__(self, cfg: RayCastSensorCfg) -> None:
        super().__init__()
        self.cfg = cfg

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add nothing: rays need no elements in the model."""

    def initialize(self, backend: Backend) -> None:
        """Generate the rays and prepare to cast them."""
        cfg, model = self.cfg, backend.model
        super().initialize(backend)
        offsets, directions = cfg.pattern.generate_rays(model)
        self._offsets, self._directions = (
            backend.xp.asarray(offsets),
            backend.xp.asarray(directions),
        )
        groups = np.ones(mujoco.mjNGROUP, np.uint8)
        if cfg.include_geom_groups is not None:
            groups[:] = 0
            groups[list(cfg.include_geom_groups)] = 1
        excluded = [
            subtree(model, body) if body and cfg.exclude_parent_body else []
            for body in (ref.body(model) for ref in cfg.frames)
        ]
        self._rays = backend.ray_caster(
            excluded, groups, self.limits, one_origin=cfg.pattern.one_origin
        )

    def limits(self, model: mujoco.MjModel) -> tuple[float | np.ndarray, np.ndarray | None]:
        """Say how far rays hit, see `Limits`."""
        del model
        return self.cfg.max_distance, None

    def shown(self, world: int) -> Iterable[int]:
        """Return the numbers of the rays to draw in a world."""
        del world
        return range(self.num_rays)

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """The frames that the rays are attached to."""
        return self.cfg.frames

    @property
    def num_rays(self) -> int:
        """Number of rays of all frames, N."""
        return len(self.cfg.frames) * len(self._directions)

    @property
    def rays_per_frame(self) -> int:
        """Number of rays of a frame, R."""
        return len(self._directions)

    @property
    def directions(self) -> Array:
        """Unit vectors of the pattern in the axes of the frame, shape (R, 3)."""
        return self._directions

    def _sense(self) -> RayCastData:
        xp = self.backend.xp
        frames = [self.backend.frame(ref) for ref in self.cfg.frames]
        position = xp.stack([pos for pos, _ in frames], axis=1)
        attitude = xp.stack([axes for _, axes in frames], axis=1)
        turn = xp.swapaxes(self._aligned(attitude), -1, -2)  # for rows of vectors
        directions = self._directions @ turn
        origins = position[:, :, None]
        if not self.cfg.pattern.one_origin:
            origins = origins + self._offsets @ turn
        distances, normals = self._rays.cast(origins, directions)
        per_ray = (len(distances), -1, 3)
        return RayCastData(
            distances=distances.reshape(per_ray[:2]),
            normals_w=None if normals is None else normals.reshape(per_ray),
            pos_w=position[:, 0],
            frame_pos_w=position,
            frame_axes_w=attitude,
            origins_w=origins,
            directions_w=directions,
        )

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw spheres where rays hit, and, as configured, rays and normals."""
        if not self.cfg.debug_vis:
            return
        viz, size, data = self.cfg.viz, visualizer.meansize, self.data
        origins, directions = np.asarray(data.origins_w), np.asarray(data.directions_w)
        origins = np.broadcast_to(origins, directions.shape)
        origins, directions = (part.reshape(len(part), -1, 3) for part in (origins, directions))
        for world in visualizer.worlds:
            for ray in self.shown(world):
                hit, origin = np.asarray(data.hit_pos_w[world, ray]), origins[world, ray]
                missed = data.distances[world, ray] < 0.0
                if viz.show_rays:
                    shown = min(0.5, 0.05 * self.cfg.max_distance)
                    end = origin + shown * directions[world, ray] if missed else hit
                    color = viz.miss_color if missed else viz.hit_color
                    visualizer.add_arrow(origin, end, color, 0.1 * size)
                if missed:
                    continue
                visualizer.add_sphere(hit, viz.hit_sphere_radius * size, viz.hit_sphere_color)
                if viz.show_normals and data.normals_w is not None:
                    normal = np.asarray(data.normals_w[world, ray])
                    tip = hit + viz.normal_length * size * normal
                    visualizer.add_arrow(hit, tip, viz.normal_color, 0.1 * size)

    def _aligned(self, attitude: Array) -> Array:
        """Return the axes of the pattern (B, F, 3, 3), given those of the frames."""
        xp = self.backend.xp
        if self.cfg.ray_alignment == "base":
            return attitude
        if self.cfg.ray_alignment == "world":
            return xp.broadcast_to(xp.eye(3), attitude.shape)
        x, y = attitude[..., :2, 0], attitude[..., :2, 1]
        # If x points straight up or down, the heading is a right angle from y.
        steep = xp.linalg.norm(x, axis=-1, keepdims=True) < _LEVEL
        heading = xp.where(steep, xp.stack([y[..., 1], -y[..., 0]], axis=-1), x)
        heading = heading / xp.linalg.norm(heading, axis=-1, keepdims=True)
        cos, sin, zero = heading[..., 0], heading[..., 1], xp.zeros_like(heading[..., 0])
        rows = [cos, -sin, zero, sin, cos, zero, zero, zero, zero + 1.0]
        return xp.stack(rows, axis=-1).reshape(attitude.shape)

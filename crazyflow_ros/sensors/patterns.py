"""Patterns of rays: where they start and where they go, in the axes of a frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import mujoco
import numpy as np

from crazyflow_ros.drones.deck_optics import N_RAYS, cone
from crazyflow_ros.drones.instruments import VL53L1X_FIELD_OF_VIEW
from crazyflow_ros.scene.intrinsics import Intrinsics

Vector = tuple[float, float, float]

MOST_RAYS = 1_000_000
"""The most rays of a pattern, so that a typing error does not exhaust the memory."""


class Rays(NamedTuple):
    """Rays of one frame, in its axes."""

    offsets: np.ndarray
    """Origins [m], shape (R, 3)."""
    directions: np.ndarray
    """Unit vectors, shape (R, 3)."""


class PatternCfg(Protocol):
    """A pattern of rays."""

    one_origin: bool
    """Whether all rays start in the origin of the frame."""

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        """Return the rays of a frame of a compiled model."""


@dataclass(frozen=True)
class GridPatternCfg:
    """Grid pattern: parallel rays on a rectangle in the frame's xy plane, both edges included.

    They are ordered row by row: x fastest.
    """

    size: tuple[float, float] = (1.0, 1.0)
    """Length along x and width along y [m], centred."""
    resolution: float = 0.1
    """Spacing between rays [m]."""
    direction: Vector = (0.0, 0.0, -1.0)
    """Direction of all rays in the frame's axes."""
    one_origin = False

    def __post_init__(self) -> None:
        if not 0.0 < self.resolution < math.inf:
            raise ValueError(f"grid pattern: resolution must be positive, got {self.resolution}")
        if not 0.0 <= min(self.size) <= max(self.size) < math.inf:
            raise ValueError(f"grid pattern: size must not be negative, got {self.size}")
        _unit(self.direction)
        _check_number("grid", math.prod(self.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows along y, and rays in each along x."""
        along_x, along_y = (math.floor(self._steps(length)) + 1 for length in self.size)
        return along_y, along_x

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        """See `PatternCfg`."""
        del model
        row, column = np.indices(self.shape).reshape(2, -1)
        points = [-length / 2 + self.resolution * n for length, n in zip(self.size, (column, row))]
        return _parallel(np.column_stack(points), self.direction)

    def _steps(self, length: float) -> float:
        # Slightly more, to include the far edge although 1 / 0.1 is not quite ten.
        return length / self.resolution + 1e-9


@dataclass(frozen=True)
class RingPatternCfg:
    """Ring pattern: parallel rays on circles around the origin in the frame's xy plane.

    The centre comes first, then ring after ring, each counterclockwise from the x axis.
    """

    rings: Sequence[tuple[float, int]] = ((0.5, 8),)
    """Radius [m] and number of rays of each ring."""
    include_center: bool = True
    """Whether a ray starts in the origin."""
    direction: Vector = (0.0, 0.0, -1.0)
    """Direction of all rays in the frame's axes."""
    one_origin = False

    def __post_init__(self) -> None:
        for radius, count in self.rings:
            if not (0.0 < radius < math.inf and count > 0):
                got = f"got radius {radius:g} with {count} rays"
                raise ValueError(f"ring pattern: rings must have a radius and rays, {got}")
        if not self.rings and not self.include_center:
            raise ValueError("ring pattern: give rings, or include_center")
        _unit(self.direction)
        _check_number("ring", math.prod(self.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """One row of all rays."""
        return 1, int(self.include_center) + sum(count for _, count in self.rings)

    @classmethod
    def single_ring(
        cls,
        radius: float,
        num_samples: int,
        include_center: bool = True,
        direction: Vector = (0.0, 0.0, -1.0),
    ) -> RingPatternCfg:
        """Make a pattern of one ring."""
        rings = ((radius, num_samples),)
        return cls(rings=rings, include_center=include_center, direction=direction)

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        """See `PatternCfg`."""
        del model
        points = [np.zeros((1, 2))] if self.include_center else []
        for radius, count in self.rings:
            angle = np.arange(count) * (math.tau / count)
            points.append(radius * np.column_stack([np.cos(angle), np.sin(angle)]))
        return _parallel(np.concatenate(points), self.direction)


@dataclass(frozen=True)
class PinholeCameraPatternCfg:
    """Pinhole pattern: one ray through the centre of each pixel of a camera.

    The frame is that of a MuJoCo camera: it looks along -z, +y is up. Rays are in the order of an
    image, rows from the top. (In mjlab rays go through the outermost edges instead of the pixels'
    centres, rows count from the bottom, and intrinsics other than the vertical focal length are
    dropped.)
    """

    width: int = 16
    """Pixels in a row."""
    height: int = 12
    """Pixels in a column."""
    fovy: float = 45.0
    """Vertical field of view [degrees]."""
    camera_name: str | None = None
    """A camera of the model that gives resolution and intrinsics instead."""
    intrinsic_matrix: tuple[float, ...] | None = None
    """fx, 0, cx, 0, fy, cy, 0, 0, 1 [pixels], instead of `fovy`."""
    one_origin = True

    def __post_init__(self) -> None:
        _check_number("pinhole", math.prod(self.shape))
        if self.camera_name is None:
            self._intrinsics()

    @classmethod
    def from_mujoco_camera(cls, camera_name: str) -> PinholeCameraPatternCfg:
        """Take resolution and intrinsics from a camera of the model, once it is compiled."""
        return cls(camera_name=camera_name)

    @classmethod
    def from_intrinsic_matrix(
        cls, intrinsic_matrix: Sequence[float], width: int, height: int
    ) -> PinholeCameraPatternCfg:
        """Use the given intrinsics.

        Args:
            intrinsic_matrix: fx, 0, cx, 0, fy, cy, 0, 0, 1 [pixels]; the centre of the first pixel
                is at 0, 0, as in `sensor_msgs/CameraInfo`.
            width: Pixels in a row.
            height: Pixels in a column.
        """
        matrix = tuple(map(float, intrinsic_matrix))
        return cls(width=width, height=height, intrinsic_matrix=matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of pixels, unless `camera_name` gives them."""
        return self.height, self.width

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        """Return the rays.

        Raises:
            ValueError: The model has no camera of this name, or it is orthographic.
        """
        if self.camera_name is None:
            intrinsics = self._intrinsics()
        else:
            intrinsics = Intrinsics.of_camera(model, self.camera_name)
        directions = intrinsics.directions().reshape(-1, 3)
        return Rays(np.zeros_like(directions), directions)

    def _intrinsics(self) -> Intrinsics:
        if self.intrinsic_matrix is not None:
            return Intrinsics.from_matrix(self.intrinsic_matrix, self.width, self.height)
        return Intrinsics.from_fovy(self.fovy, self.width, self.height)


@dataclass(frozen=True)
class LidarPatternCfg:
    """Lidar pattern: rays from one point over azimuths and elevations (mjlab has none).

    Azimuth counts counterclockwise about the frame's z axis from its x axis, elevation upwards from
    the xy plane. Rays are ordered channel by channel: azimuth fastest, as in `sensor_msgs`'
    LaserScan and organised PointCloud2.
    """

    elevations: Sequence[float] = (0.0,)
    """Elevation of each channel [degrees]."""
    samples: int = 360
    """Rays of a channel."""
    azimuth_range: tuple[float, float] = (-180.0, 180.0)
    """First and last azimuth [degrees]; a full turn omits the last, which is the first."""
    one_origin = True

    def __post_init__(self) -> None:
        low, high = self.azimuth_range
        if self.samples < 1 or not len(self.elevations):
            got = f"got {self.samples} at elevations {self.elevations}"
            raise ValueError(f"lidar pattern: there must be samples and elevations, {got}")
        if not 0.0 <= high - low <= 360.0:
            rule = "rise by at most 360 degrees"
            raise ValueError(f"lidar pattern: azimuth_range must {rule}, got {self.azimuth_range}")
        if not np.all(np.abs(self.elevations) <= 90.0):
            rule = "from -90 to 90 degrees"
            raise ValueError(f"lidar pattern: elevations must be {rule}, got {self.elevations}")
        _check_number("lidar", math.prod(self.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Channels, and rays in each."""
        return len(self.elevations), self.samples

    @property
    def is_planar(self) -> bool:
        """Whether all rays are in the frame's xy plane."""
        return tuple(self.elevations) == (0.0,)

    def azimuths(self) -> np.ndarray:
        """Return the azimuth of each sample of a channel [rad], shape (samples,)."""
        low, high = np.radians(self.azimuth_range)
        full_turn = math.isclose(high - low, math.tau)
        return np.linspace(low, high, self.samples, endpoint=not full_turn)

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        """See `PatternCfg`."""
        del model
        elevation, azimuth = np.meshgrid(
            np.radians(self.elevations), self.azimuths(), indexing="ij"
        )
        directions = np.stack(
            [
                np.cos(elevation) * np.cos(azimuth),
                np.cos(elevation) * np.sin(azimuth),
                np.sin(elevation),
            ],
            axis=-1,
        ).reshape(-1, 3)
        return Rays(np.zeros_like(directions), directions)


@dataclass(frozen=True)
class ConePatternCfg:
    """Cone pattern: bundles of rays from one point, as time-of-flight sensors see.

    The rays of a bundle are those of `deck_optics.cone`, its axis first; bundle follows bundle.
    """

    directions: Sequence[Vector] = ((1.0, 0.0, 0.0),)
    """The axis of each bundle in the frame's axes, of any length."""
    field_of_view: float = VL53L1X_FIELD_OF_VIEW
    """Full angle of a cone at its tip [rad]; 0 for its axis alone."""
    one_origin = True

    def __post_init__(self) -> None:
        for direction in self.directions:
            _unit(direction)
        if not 0.0 <= self.field_of_view < math.pi:
            rule = f"from 0 to less than pi, got {self.field_of_view:g}"
            raise ValueError(f"cone pattern: field_of_view must be {rule}")

    @property
    def shape(self) -> tuple[int, int]:
        """Bundles, and rays in each."""
        return len(self.directions), N_RAYS if self.field_of_view else 1

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        """See `PatternCfg`."""
        del model
        bundles = [cone(direction, self.field_of_view) for direction in self.directions]
        directions = np.concatenate(bundles)
        return Rays(np.zeros_like(directions), directions)


Pattern: TypeAlias = GridPatternCfg | RingPatternCfg | PinholeCameraPatternCfg | LidarPatternCfg


def _check_number(pattern: str, n_rays: int) -> None:
    if n_rays > MOST_RAYS:
        raise ValueError(f"{pattern} pattern: at most {MOST_RAYS} rays are allowed, got {n_rays}")


def _parallel(points: np.ndarray, direction: Vector) -> Rays:
    offsets = np.column_stack([points, np.zeros(len(points))])
    return Rays(offsets, np.tile(_unit(direction), (len(points), 1)))


def _unit(direction: Vector) -> np.ndarray:
    vector = np.asarray(direction, float)
    length = np.linalg.norm(vector)
    if vector.shape != (3,) or not (np.isfinite(length) and length > 0.0):
        raise ValueError(f"direction must be three numbers, not all zero, got {direction}")
    return vector / length

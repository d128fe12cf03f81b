"""Pictures, depth images and segmentations."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol, get_args

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from crazyflow_ros.checks.entry_points import names
from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.scene.intrinsics import Intrinsics
from crazyflow_ros.scene.renderers import opengl_device
from crazyflow_ros.sensors.backend import Array, Backend
from crazyflow_ros.sensors.camera_model import Chip, Distortion, DistortionModel, Shutter
from crazyflow_ros.sensors.context import ContextSensor
from crazyflow_ros.sensors.objects import ObjRef
from crazyflow_ros.sensors.rendering import (
    RENDERERS,
    DataType,
    RendererChoice,
    Room,
    View,
    choose,
    draw,
)
from crazyflow_ros.sensors.sensor import SensorCfg, WorldIds
from crazyflow_ros.sensors.visualizer import Color, Visualizer

_EDGE_COLOR: Color = (1.0, 1.0, 1.0, 0.8)
_EDGE_LENGTH = 10.0  # in meansizes
_MOST_PIXELS = 8192  # per side, within the limits of any OpenGL
_INTRINSICS = (
    "sensor_size", "focal_length", "focal_pixel", "principal_length", "principal_pixel",
)  # fmt: skip


@dataclass
class CameraSensorCfg(SensorCfg):
    """A camera: one that the model has (`camera_name`), or a new one.

    Unlike in mjlab, the cameras of a scene may differ in textures, shadows and geom groups.

    Raises:
        ValueError: The data types, geom groups, size or field of view are invalid.
    """

    camera_name: str | None = None
    """A camera of the model. It keeps its place; `fovy` and `orthographic` change it, if given."""
    parent_body: str | None = None
    """Body of a new camera, by its name in the model; default: the world."""
    pos: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Position of a new camera in its body [m]."""
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Attitude of a new camera in its body, wxyz. It looks along its -z axis, +y is up."""
    fovy: float | None = None
    """Vertical field of view [degrees]; None for MuJoCo's 45, or that of the existing camera. If
    orthographic, the height of the picture [m]."""
    width: int = 160
    """Pixels in a row, whatever resolution an existing camera has."""
    height: int = 120
    """Pixels in a column."""
    data_types: tuple[DataType, ...] = ("rgb",)
    """Pictures to take: any of "rgb", "depth" and "segmentation"; with rays also "normals" and
    "flow"."""
    use_textures: bool = True
    """Whether surfaces have their textures."""
    use_shadows: bool = False
    """Whether lights cast shadows; with OpenGL and without a GPU these cost most of the time."""
    enabled_geom_groups: tuple[int, ...] = (0, 1, 2)
    """Geom groups (0-5) that are seen."""
    orthographic: bool = False
    """Orthographic instead of perspective projection."""
    clone_data: bool = False
    """Whether to copy the pictures at each access, so that they can be changed in place."""
    renderer: str = "opengl"
    """Renderer of the pictures: "opengl", world by world, or "rays", in all worlds at once and
    without OpenGL; see docs/guides/cameras.md. "auto" is OpenGL with a GPU, else rays if they can
    draw the scene, see `CameraSensor.choice`. OpenGL has none of the following."""
    distortion_model: DistortionModel = "plumb_bob"
    """Model of the lens, as in sensor_msgs/CameraInfo."""
    distortion: tuple[float, ...] = ()
    """Coefficients of this model in OpenCV's order, see `Distortion`; none by default. Focal
    lengths stay those of `fovy` or `intrinsic_matrix`. Where an "equidistant" fisheye sees more
    than 85 degrees from its axis, depth is the distance along the rays."""
    intrinsic_matrix: tuple[float, ...] | None = None
    """fx, 0, cx, 0, fy, cy, 0, 0, 1 [pixels] instead of `fovy`, as in sensor_msgs/CameraInfo; the
    centre of the first pixel is at 0, 0."""
    exposure: float = 0.0
    """Time for which each row of "rgb" is exposed [s]: moving objects blur. Other pictures show the
    middle of the exposure."""
    readout: float = 0.0
    """Time of a rolling shutter from the first row to the last [s]. The moment of the picture is
    that of its middle row."""
    instants: int = 8
    """Moments of exposure and readout at which the whole picture is computed."""
    gain: float = 1.0
    """Factor of the brightness of "rgb", noise included."""
    gamma: float = 1.0
    """After the gain, brightness is raised to the power 1 / gamma."""
    full_well: float = 0.0
    """Electrons of a pixel of brightness 1; shot noise is their square root. 0 means no noise."""
    read_noise: float = 0.0
    """Standard deviation of the noise of reading [electrons]."""
    seed: int = 0
    """Seed of the noise, together with the name of the sensor, the world, its resets, and the
    number of the picture."""

    def __post_init__(self) -> None:
        kinds, chosen = get_args(DataType), set(self.data_types)
        if not chosen or not chosen <= set(kinds) or len(chosen) < len(self.data_types):
            rule = f"different ones of {', '.join(kinds)}"
            raise ValueError(f"{self.name}: data_types must be {rule}, got {self.data_types}")
        own = ("opengl", "auto")
        if self.renderer not in own and self.renderer not in (others := names(RENDERERS)):
            known = "opengl", *others, "auto"
            raise ValueError(f"{self.name}: {unknown('renderer', self.renderer, known)}")
        if self.seed < 0:
            raise ValueError(f"{self.name}: seed must not be negative, got {self.seed}")
        for part in (self.lens, self.shutter, self.chip):
            try:
                part.check()
            except ValueError as error:
                raise ValueError(f"{self.name}: {error}") from None
        if self.renderer == "opengl" and (lack := self.lacking_in_opengl):
            raise ValueError(f"{self.name}: the renderer 'opengl' {lack}")
        if not (1 <= self.width <= _MOST_PIXELS and 1 <= self.height <= _MOST_PIXELS):
            size = f"{self.width} x {self.height}"
            rule = f"from 1 to {_MOST_PIXELS} pixels"
            raise ValueError(f"{self.name}: width and height must be {rule}, got {size}")
        if self.fovy is not None and not 0.0 < self.fovy < (math.inf if self.orthographic else 180):
            rule = "positive" if self.orthographic else "between 0 and 180 degrees"
            raise ValueError(f"{self.name}: fovy must be {rule}, got {self.fovy:g}")
        if self.intrinsic_matrix is not None:
            self._check_matrix()
        if not set(self.enabled_geom_groups) <= set(range(mujoco.mjNGROUP)):
            groups = self.enabled_geom_groups
            raise ValueError(f"{self.name}: enabled_geom_groups must be from 0 to 5, got {groups}")
        if self.camera_name is not None and self.parent_body is not None:
            raise ValueError(f"{self.name}: give camera_name, or parent_body for a new camera")

    @property
    def lacking_in_opengl(self) -> str:
        """The first thing in this configuration that OpenGL lacks; empty if it lacks nothing."""
        lacks = {
            "takes no normals": "normals" in self.data_types,
            "takes no flow": "flow" in self.data_types,
            "has no distortion": bool(self.distortion),
            "has no intrinsic_matrix": self.intrinsic_matrix is not None,
            "has no exposure and readout": not self.shutter.is_instant,
            "has no gain, gamma and noise": self.chip != Chip(),
        }
        return next((lack for lack, is_asked in lacks.items() if is_asked), "")

    def _check_matrix(self) -> None:
        if self.fovy is not None or self.orthographic:
            other = "orthographic" if self.fovy is None else "fovy"
            raise ValueError(f"{self.name}: give intrinsic_matrix or {other}, not both")
        try:
            self.own_intrinsics  # noqa: B018
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None

    @property
    def own_intrinsics(self) -> Intrinsics | None:
        """Intrinsics of `intrinsic_matrix`; None if no matrix is given."""
        if self.intrinsic_matrix is None:
            return None
        matrix = tuple(map(float, self.intrinsic_matrix))
        return Intrinsics.from_matrix(matrix, self.width, self.height)

    @property
    def lens(self) -> Distortion:
        """The distortion of the lens."""
        return Distortion(self.distortion_model, tuple(self.distortion))

    @property
    def shutter(self) -> Shutter:
        """When rows are exposed."""
        return Shutter(self.exposure, self.readout, self.instants)

    @property
    def chip(self) -> Chip:
        """Brightness and noise."""
        return Chip(self.gain, self.gamma, self.full_well, self.read_noise)

    def keys(self, worlds: Sequence[Sequence[int]]) -> jax.Array:
        """Return the random keys of pictures, (B,), from numbers of world and picture."""
        seeds = [(self.seed, self.name, *map(int, numbers)) for numbers in worlds]
        hashes = np.array([zlib.crc32(repr(seed).encode()) for seed in seeds], np.uint32)
        return jax.vmap(jax.random.key)(jnp.asarray(hashes))

    def build(self) -> CameraSensor:
        """Build the sensor."""
        return CameraSensor(self)


@dataclass(frozen=True)
class CameraSensorData:
    """Pictures of B worlds, rows from the top; pictures that were not requested are None."""

    rgb: Array | None = None
    """Shape (B, height, width, 3), uint8."""
    depth: Array | None = None
    """Distance along the optical axis [m], shape (B, height, width, 1), float32; infinite where
    nothing is seen (in mjlab zero, which reads as a very near object)."""
    segmentation: Array | None = None
    """Id and `mujoco.mjtObj` of the object seen, shape (B, height, width, 2), int32; -1 where there
    is none."""
    normals: Array | None = None
    """Unit normals of the surfaces seen, world axes, shape (B, height, width, 3), float32; zero
    where nothing is seen."""
    flow: Array | None = None
    """Velocity of the surfaces seen, to the right and downwards in the picture [pixels/s], shape
    (B, height, width, 2), float32; where nothing is seen, that of a point far away."""


jax.tree_util.register_dataclass(
    CameraSensorData, [field.name for field in fields(CameraSensorData)], []
)


class CameraSensor(ContextSensor[CameraSensorData]):
    """Draws whenever the sensor context senses, and keeps its data in between."""

    is_camera = True
    choice: RendererChoice | None = None
    """The renderer, and why it was chosen. With "auto" it is None before the first pictures; assign
    the choice of a similar sensor to skip the trial."""

    def __init__(self, cfg: CameraSensorCfg) -> None:
        super().__init__()
        self.cfg = cfg
        self._number: int | None = None
        if cfg.renderer != "auto":
            self.choice = RendererChoice(cfg.renderer, "it is configured")

    @property
    def camera_name(self) -> str:
        """Name of the camera in the model."""
        return self.cfg.name if self.cfg.camera_name is None else self.cfg.camera_name

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """The camera, in MuJoCo's axes: it looks along -z, +y is up."""
        return (ObjRef("camera", self.camera_name),)

    @property
    def camera_idx(self) -> int:
        """Id of the camera in the model."""
        return self._view.camera

    @property
    def intrinsics(self) -> Intrinsics:
        """Intrinsics of the pictures.

        Raises:
            ValueError: The camera is orthographic.
        """
        if self.cfg.own_intrinsics is not None:
            return self.cfg.own_intrinsics
        name, model = self.camera_name, self.backend.model
        return Intrinsics.of_camera(model, name, self.cfg.width, self.cfg.height)

    @property
    def data(self) -> CameraSensorData:
        """The pictures."""
        data = super().data
        if not self.cfg.clone_data:
            return data
        copied: CameraSensorData = jax.tree.map(lambda picture: picture.copy(), data)
        return copied

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add the camera, or change the existing one."""
        cfg = self.cfg
        camera = spec.camera(self.camera_name)
        if cfg.camera_name is None:
            if camera is not None:
                raise ValueError(f"the model already has a camera {cfg.name!r}")
            body = spec.worldbody if cfg.parent_body is None else spec.body(cfg.parent_body)
            if body is None:
                raise ValueError(f"{cfg.name}: the model has no body {cfg.parent_body!r}")
            resolution = [cfg.width, cfg.height]
            camera = body.add_camera(
                name=cfg.name, pos=cfg.pos, quat=cfg.quat, resolution=resolution
            )
        elif camera is None:
            raise ValueError(f"{cfg.name}: the model has no camera {cfg.camera_name!r}")
        if cfg.fovy is not None:
            camera.fovy = cfg.fovy
            for intrinsic in _INTRINSICS:  # which would come first
                setattr(camera, intrinsic, [0.0, 0.0])
        if cfg.orthographic:
            camera.proj = mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC

    def initialize(self, backend: Backend) -> None:
        """Find the camera."""
        cfg = self.cfg
        number = mujoco.mj_name2id(backend.model, mujoco.mjtObj.mjOBJ_CAMERA, self.camera_name)
        if number < 0:
            raise ValueError(f"{cfg.name}: the model has no camera {self.camera_name!r}")
        super().initialize(backend)
        self._taken = np.zeros((backend.n_worlds, 2), int)  # resets and pictures since
        self._view = View(
            number, cfg.width, cfg.height, cfg.enabled_geom_groups, cfg.use_textures,
            cfg.use_shadows,
        )  # fmt: skip

    def reset(self, ids: WorldIds = None) -> None:
        """Restart the noise of worlds."""
        super().reset(ids)
        self._taken[slice(None) if ids is None else ids] += [1, 0]
        self._taken[slice(None) if ids is None else ids, 1] = 0

    def number_pictures(self, number: int) -> None:
        """Set the number that decides the noise of the next pictures; by default it counts up."""
        self._number = number

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the edges of the view of a perspective camera."""
        if not self.cfg.debug_vis or self.cfg.orthographic:
            return
        size = visualizer.meansize
        corners = self.intrinsics.directions()[[0, 0, -1, -1], [0, -1, 0, -1]]
        position, axes = (np.asarray(part) for part in self.backend.frame(self.frames[0]))
        for world in visualizer.worlds:
            for edge in corners @ axes[world].T:
                end = position[world] + _EDGE_LENGTH * size * edge
                visualizer.add_arrow(position[world], end, _EDGE_COLOR, 0.1 * size)

    def next_keys(self) -> jax.Array:
        """Return the random keys of the next pictures, (B,), and count the pictures."""
        worlds = self.backend.keys or [(world,) for world in range(self.backend.n_worlds)]
        if self._number is not None:
            return self.cfg.keys([(*world, self._number) for world in worlds])
        keys = self.cfg.keys([(*world, *taken) for world, taken in zip(worlds, self._taken)])
        self._taken[:, 1] += 1
        return keys

    def _sense(self) -> CameraSensorData:
        if self.choice is None:
            self.choice = self._choose()
        renderer = self.choice.renderer
        return self._drawn() if renderer == "opengl" else self._taken_by(renderer)

    def _choose(self) -> RendererChoice:
        if lack := self.cfg.lacking_in_opengl:
            return RendererChoice("rays", f"OpenGL {lack}")
        return choose(opengl_device, lambda: self._taken_by("rays"))

    def _taken_by(self, name: str) -> CameraSensorData:
        renderer: CameraRenderer = self.context.renderer(name)
        data = CameraSensorData(**renderer.take(self))
        in_numpy: CameraSensorData = jax.tree.map(np.array, data)
        return in_numpy if self.backend.xp is np else data

    def _drawn(self) -> CameraSensorData:
        taken: dict[DataType, np.ndarray] = {}
        for kind in self.cfg.data_types:
            pictures = [
                draw(self.context.renderers, self.backend.poses(world), self._view, kind)
                for world in range(self.backend.n_worlds)
            ]
            taken[kind] = np.stack(pictures)
        if "depth" in taken:
            taken["depth"] = taken["depth"][..., None]
        return CameraSensorData(**taken)


class CameraRenderer(Protocol):
    """Takes the pictures of the cameras of a scene in all worlds at once.

    An entry point of `RENDERERS` names its class.

    Args:
        model: The scene.
        room: Sizes to compile for; by default those of this scene.
    """

    def __init__(self, model: mujoco.MjModel, room: Room | None) -> None: ...

    def take(self, sensor: CameraSensor) -> dict[DataType, Array]:
        """Return the pictures of a camera that its configuration asks for, see `CameraSensorData`.

        Raises:
            ValueError: The renderer cannot draw the scene.
        """

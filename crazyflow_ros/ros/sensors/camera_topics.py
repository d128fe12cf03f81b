"""Topics of cameras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import mujoco
import numpy as np
from rclpy.logging import get_logger
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2

from crazyflow_ros.extras import extra
from crazyflow_ros.ros.sensors import lidar_and_camera_messages
from crazyflow_ros.ros.sensors.device_topics import DeviceTopics, Scene, put_header
from crazyflow_ros.ros.sensors.devices import Device, Topic
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.sensors import CameraSensor, CameraSensorCfg
from crazyflow_ros.sensors.rendering import RendererChoice

_TOPICS = {
    "info": Topic(CameraInfo, "/camera_info"),
    "rgb": Topic(Image, "/image_raw", "Image"),
    "depth": Topic(Image, "/depth/image_raw"),
    "segmentation": Topic(Image, "/segmentation/image_raw"),
    "normals": Topic(Image, "/normals/image_raw"),
    "flow": Topic(Image, "/flow/image_raw"),
    "jpeg": Topic(CompressedImage, "/image_raw/compressed"),
    "points": Topic(PointCloud2, "/points", "PointCloud2"),
}
# Beside each picture, where image_transport and depth_image_proc look for it.
_INFOS = {kind: f"{kind} info" for kind in ("depth", "segmentation", "normals", "flow")}
_TOPICS |= {info: Topic(CameraInfo, f"/{kind}/camera_info") for kind, info in _INFOS.items()}
_OF_EACH_EYE = ("info", "rgb", "jpeg")
_BYTES = {"rgb": 3, "depth": 4, "segmentation": 4, "normals": 12, "flow": 8, "points": 32}
"""Of a pixel in each kind of message."""

_LONGEST_BASELINE = 100.0  # m


class _Output(NamedTuple):
    """What a topic shows."""

    eye: int
    """0 for the only or the left camera, 1 for the right one."""
    kind: str
    topic: Topic


@dataclass
class StereoCameraCfg(CameraSensorCfg):
    """A camera, or a pair.

    Raises:
        ValueError: The baseline is negative or too long, or a pair takes no rgb.
    """

    baseline: float = 0.0
    """Distance to a second camera on the right, for rgb only [m]; 0 if there is none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.baseline <= _LONGEST_BASELINE:
            rule = f"baseline must be from 0 to {_LONGEST_BASELINE:g} m"
            raise ValueError(f"{self.name}: {rule}, got {self.baseline:g}")
        if self.baseline and "rgb" not in self.data_types:
            raise ValueError(f"{self.name}: a baseline needs rgb, got {self.data_types}")


class CameraTopics(DeviceTopics):
    """<drone>/<name>/image_raw and the like, with camera_info, in the optical frame.

    Messages of a pair are both in the optical frame of the left camera, as image_geometry wants it.
    """

    in_drone_model, is_awaited = False, False
    _told: RendererChoice | None = None  # the renderer that the log has named

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """Return a topic for each type of picture, and camera_info."""
        return [output.topic for output in _outputs(device.cfg)]

    def _initialize(self, scene: Scene) -> None:
        self._choice: RendererChoice | None = None
        self._sensors: dict[tuple[str, int], CameraSensor] = {}
        cfg = self._device.cfg
        for drone in self._drones:
            camera = f"{cfg.camera_name}:{drone}"
            eyes = [replace(cfg, name=f"{cfg.name}:{drone}", camera_name=camera)]
            if cfg.baseline:
                eyes.append(replace(eyes[0], name=f"{cfg.name}/right:{drone}", data_types=("rgb",)))
            for eye, own in enumerate(eyes):
                sensor = own.build()
                sensor.initialize(scene.backend)
                sensor.set_context(scene.context)
                self._sensors[drone, eye] = sensor

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Render the pictures of the drones whose topics have subscribers."""
        (snapshot,), outputs = snapshots, _outputs(self._device.cfg)
        for (drone, eye), sensor in self._sensors.items():
            heard = [number for other, number in sorted(self.listeners) if other == drone]
            numbers = [number for number in heard if outputs[number].eye == eye]
            if not numbers:
                continue
            self._aim(sensor.camera_idx, eye * self._device.cfg.baseline, scene)
            sensor.number_pictures(snapshot.tick)
            self._sense(sensor)
            now = self._simulator.physics.snapshot
            if now.epoch != snapshot.epoch or now.time_ns < snapshot.time_ns:
                return  # time began anew while it drew: the picture is of a world before
            for number in numbers:
                message = self._message(sensor, *outputs[number][:2])
                put_header(message, snapshot.time_ns, self._device.frame(drone))
                self._publish(drone, number, message)

    def _sense(self, sensor: CameraSensor) -> None:
        """Take pictures with the renderer that the first drone has chosen."""
        if self._choice is not None:
            sensor.choice = self._choice
        sensor.sense()
        self._choice = choice = sensor.choice
        if choice and (self._told is None or choice.renderer != self._told.renderer):
            self._told = choice
            self._simulator.log.info(f"{self} draws with {choice.renderer}: {choice.reason}")

    def _aim(self, camera: int, to_right: float, scene: Scene) -> None:
        """Move the camera in a drone's nose, the only one in the model, to the sensor's place.

        Args:
            camera: Number of the camera.
            to_right: Distance from there along the camera's x axis [m].
            scene: The scene with the camera.
        """
        place, axes, model = self._device.place, self._device.axes, scene.backend.model
        nose = scene.mirrored
        model.cam_pos[camera] = nose.cam_pos[camera] if place is None else place.pos
        model.cam_quat[camera] = nose.cam_quat[camera] if axes is None else axes
        model.cam_fovy[camera] = self._device.cfg.fovy or nose.cam_fovy[camera]
        mujoco.mju_rotVecQuat(right := np.zeros(3), [to_right, 0.0, 0.0], model.cam_quat[camera])
        model.cam_pos[camera] += right
        data = scene.backend.data[0]
        mujoco.mj_camlight(model, data)
        mujoco.mj_comVel(model, data)

    def _message(
        self, sensor: CameraSensor, eye: int, kind: str
    ) -> CameraInfo | Image | CompressedImage | PointCloud2:
        if kind == "info" or kind in _INFOS.values():
            away = eye * self._device.cfg.baseline
            return lidar_and_camera_messages.camera_info(sensor.intrinsics, sensor.cfg.lens, away)
        if kind == "points":
            data = sensor.data
            assert data.depth is not None
            rgb = None if data.rgb is None else np.asarray(data.rgb[0])
            depth = np.asarray(data.depth[0, ..., 0])
            return lidar_and_camera_messages.depth_cloud(depth, rgb, sensor.intrinsics)
        pictures = getattr(sensor.data, "rgb" if kind == "jpeg" else kind)
        if kind == "jpeg":
            return lidar_and_camera_messages.compressed(pictures[0])
        return lidar_and_camera_messages.image(kind, pictures[0])


def _outputs(cfg: StereoCameraCfg) -> list[_Output]:
    kinds = ["info", *cfg.data_types, *(_INFOS[kind] for kind in cfg.data_types if kind in _INFOS)]
    if "rgb" in cfg.data_types and _has_jpeg():
        kinds.append("jpeg")
    if "depth" in cfg.data_types and not cfg.distortion:
        kinds.append("points")
    found, pixels = [], cfg.width * cfg.height
    for kind, topic in ((kind, _TOPICS[kind]) for kind in kinds):
        is_pair = cfg.baseline and kind in _OF_EACH_EYE
        for eye, side in enumerate(("/left", "/right") if is_pair else ("",)):
            own = topic._replace(suffix=f"{side}{topic.suffix}")
            size = _BYTES.get(kind, 1) * pixels
            found.append(_Output(eye, kind, own.of_size(size)))
    return found


@cache
def _has_jpeg() -> bool:
    """Return whether pictures can be compressed; a warning says what is missing."""
    try:
        with extra("images"):
            import PIL.Image  # noqa: F401
    except ModuleNotFoundError as error:
        get_logger("crazyflow").warning(f"there are no compressed pictures: {error}")
        return False
    return True

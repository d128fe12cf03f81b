"""Topics of cameras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import mujoco
from rclpy.logging import get_logger
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

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
}
# Beside each picture, where image_transport and depth_image_proc look for it.
_INFOS = {kind: f"{kind} info" for kind in ("depth", "segmentation", "normals", "flow")}
_TOPICS |= {info: Topic(CameraInfo, f"/{kind}/camera_info") for kind, info in _INFOS.items()}


class CameraTopics(DeviceTopics):
    """<drone>/<name>/image_raw and the like, with camera_info, in the optical frame."""

    in_drone_model, is_awaited = False, False
    _told: RendererChoice | None = None  # the renderer that the log has named

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """Return a topic for each type of picture, and camera_info."""
        return [_TOPICS[kind] for kind in _kinds(device.cfg)]

    def _initialize(self, scene: Scene) -> None:
        self._choice: RendererChoice | None = None
        self._sensors: dict[str, CameraSensor] = {}
        for drone in self._drones:
            name = f"{self._device.cfg.name}:{drone}"
            camera = f"{self._device.cfg.camera_name}:{drone}"
            sensor = replace(self._device.cfg, name=name, camera_name=camera).build()
            sensor.initialize(scene.backend)
            sensor.set_context(scene.context)
            self._sensors[drone] = sensor

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Render the pictures of the drones whose topics have subscribers."""
        (snapshot,), kinds = snapshots, _kinds(self._device.cfg)
        for drone in self._drones:
            numbers = [number for other, number in sorted(self.listeners) if other == drone]
            if not numbers:
                continue
            sensor = self._sensors[drone]
            self._aim(sensor.camera_idx, scene)
            sensor.number_pictures(snapshot.tick)
            self._sense(sensor)
            now = self._simulator.physics.snapshot
            if now.epoch != snapshot.epoch or now.time_ns < snapshot.time_ns:
                return  # time began anew while it drew: the picture is of a world before
            for number in numbers:
                message = self._message(sensor, kinds[number])
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

    def _aim(self, camera: int, scene: Scene) -> None:
        """Move the camera in a drone's nose, the only one in the model, to the sensor's place."""
        place, axes, model = self._device.place, self._device.axes, scene.backend.model
        nose = scene.mirrored
        model.cam_pos[camera] = nose.cam_pos[camera] if place is None else place.pos
        model.cam_quat[camera] = nose.cam_quat[camera] if axes is None else axes
        model.cam_fovy[camera] = self._device.cfg.fovy or nose.cam_fovy[camera]
        data = scene.backend.data[0]
        mujoco.mj_camlight(model, data)
        mujoco.mj_comVel(model, data)

    def _message(self, sensor: CameraSensor, kind: str) -> CameraInfo | Image | CompressedImage:
        if kind == "info" or kind in _INFOS.values():
            return lidar_and_camera_messages.camera_info(sensor.intrinsics, sensor.cfg.lens)
        pictures = getattr(sensor.data, "rgb" if kind == "jpeg" else kind)
        if kind == "jpeg":
            return lidar_and_camera_messages.compressed(pictures[0])
        return lidar_and_camera_messages.image(kind, pictures[0])


def _kinds(cfg: CameraSensorCfg) -> list[str]:
    is_compressed = "rgb" in cfg.data_types and _has_jpeg()
    infos = [_INFOS[kind] for kind in cfg.data_types if kind in _INFOS]
    return ["info", *cfg.data_types, *infos, *(["jpeg"] if is_compressed else [])]


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

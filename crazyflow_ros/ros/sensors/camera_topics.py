"""Topics of cameras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mujoco
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from crazyflow_ros.extras import extra
from crazyflow_ros.ros.sensors import lidar_and_camera_messages
from crazyflow_ros.ros.sensors.device_topics import SENSOR_QOS, DeviceTopics, Scene, put_header
from crazyflow_ros.ros.sensors.sensors_file import Device, SensorFile
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.sensors import CameraSensor, CameraSensorCfg, SensorContext

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

_PICTURES = {
    "info": (CameraInfo, "/camera_info"),
    "rgb": (Image, "/image_raw"),
    "depth": (Image, "/depth/image_raw"),
    "segmentation": (Image, "/segmentation/image_raw"),
    "jpeg": (CompressedImage, "/image_raw/compressed"),
}
"""What a camera publishes: type, and what follows its name."""


class CameraTopics(DeviceTopics):
    """<drone>/<name>/image_raw and the like, with camera_info, in the optical frame."""

    def __init__(self, simulator: SimulatorNode, file: SensorFile, device: Device) -> None:
        super().__init__(simulator, file, device)
        assert isinstance(device.cfg, CameraSensorCfg)
        self._cfg = device.cfg
        self._kinds = ["info", *device.cfg.data_types]
        if "rgb" in device.cfg.data_types and _has_jpeg(simulator):
            self._kinds.append("jpeg")
        self._context: SensorContext | None = None

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        return [(*_PICTURES[kind], SENSOR_QOS) for kind in self._kinds]

    def _initialize(self, scene: Scene) -> None:
        if self._context is not None:
            self._context.close()
        self._sensors: dict[str, CameraSensor] = {}
        for drone in self._drones:
            name = f"{self._cfg.name}:{drone}"
            camera = f"{self._cfg.camera_name}:{drone}"
            sensor = replace(self._cfg, name=name, camera_name=camera).build()
            sensor.initialize(scene.backend)
            self._sensors[drone] = sensor
        self._context = SensorContext(scene.backend, self._sensors.values())

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Draw for the drones that somebody listens to."""
        (snapshot,) = snapshots
        for drone in self._drones:
            numbers = [number for other, number in sorted(self.listeners) if other == drone]
            if not numbers:
                continue
            sensor = self._sensors[drone]
            self._aim(sensor.camera_idx, scene)
            sensor.sense()
            for number in numbers:
                message = self._message(sensor, self._kinds[number])
                put_header(message, snapshot.time_ns, self._device.frame(drone))
                self._publish(drone, number, message)

    def _aim(self, camera: int, scene: Scene) -> None:
        """Make the camera in a drone's nose this one: the model has no other for its sensors."""
        place, axes, model = self._device.place, self._device.axes, scene.backend.model
        nose = scene.mirrored
        model.cam_pos[camera] = nose.cam_pos[camera] if place is None else place.pos
        model.cam_quat[camera] = nose.cam_quat[camera] if axes is None else axes
        model.cam_fovy[camera] = self._cfg.fovy or nose.cam_fovy[camera]
        mujoco.mj_camlight(model, scene.backend.data[0])

    def _message(self, sensor: CameraSensor, kind: str) -> CameraInfo | Image | CompressedImage:
        if kind == "info":
            return lidar_and_camera_messages.camera_info(sensor.intrinsics)
        pictures = getattr(sensor.data, "rgb" if kind == "jpeg" else kind)
        if kind == "jpeg":
            return lidar_and_camera_messages.compressed(pictures[0])
        return lidar_and_camera_messages.image(kind, pictures[0])


def _has_jpeg(simulator: SimulatorNode) -> bool:
    """Whether pictures can be compressed; a warning says what is missing."""
    try:
        with extra("images"):
            import PIL.Image  # noqa: F401
    except ModuleNotFoundError as error:
        simulator.get_logger().warning(f"there are no compressed pictures: {error}", once=True)
        return False
    return True

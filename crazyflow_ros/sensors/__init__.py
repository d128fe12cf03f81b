"""Sensors of mjlab's kind, on plain MuJoCo: built-in sensors, contacts, rays, cameras.

Each sensor is a pair: a configuration, and the sensor it builds, see `Sensor` and `SensorSet`.
Sensors read from a back end, such as `MujocoBackend`. The other back ends, and everything that
needs `Sim`, are imported on first use, because importing MJX takes a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.lazy import lazy
from crazyflow_ros.scene.intrinsics import Intrinsics
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.barometer import BarometerData, BarometerSensor, BarometerSensorCfg
from crazyflow_ros.sensors.builtin import BuiltinSensor, BuiltinSensorCfg
from crazyflow_ros.sensors.camera import CameraSensor, CameraSensorCfg, CameraSensorData
from crazyflow_ros.sensors.contact import ContactData, ContactSensor, ContactSensorCfg
from crazyflow_ros.sensors.contact_match import ContactMatch
from crazyflow_ros.sensors.context import SensorContext
from crazyflow_ros.sensors.gnss import GnssData, GnssSensor, GnssSensorCfg
from crazyflow_ros.sensors.imu import ImuData, ImuSensor, ImuSensorCfg
from crazyflow_ros.sensors.magnetometer import (
    MagnetometerData,
    MagnetometerSensor,
    MagnetometerSensorCfg,
)
from crazyflow_ros.sensors.motion_capture import (
    MotionCaptureData,
    MotionCaptureSensor,
    MotionCaptureSensorCfg,
)
from crazyflow_ros.sensors.mujoco_backend import MirrorBackend, MujocoBackend
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.objects import Mount, ObjRef
from crazyflow_ros.sensors.optical_flow import (
    OpticalFlowData,
    OpticalFlowSensor,
    OpticalFlowSensorCfg,
)
from crazyflow_ros.sensors.patterns import (
    ConePatternCfg,
    GridPatternCfg,
    LidarPatternCfg,
    PinholeCameraPatternCfg,
    Rays,
    RingPatternCfg,
)
from crazyflow_ros.sensors.ranger import RangerData, RangerSensor, RangerSensorCfg
from crazyflow_ros.sensors.raycast import RayCastData, RayCastSensor, RayCastSensorCfg
from crazyflow_ros.sensors.sampled import FrameSensor, FrameSensorCfg
from crazyflow_ros.sensors.sensor import Sensor, SensorCfg
from crazyflow_ros.sensors.sensor_set import SensorSet
from crazyflow_ros.sensors.terrain_height import (
    TerrainHeightData,
    TerrainHeightSensor,
    TerrainHeightSensorCfg,
)
from crazyflow_ros.sensors.visualizer import (
    Arrow,
    SceneVisualizer,
    ShapeRecorder,
    Sphere,
    Visualizer,
)

if TYPE_CHECKING:
    from crazyflow_ros.sensors.battery import BatteryData, BatterySensor, BatterySensorCfg
    from crazyflow_ros.sensors.mjx_backend import MjxBackend
    from crazyflow_ros.sensors.sim_backend import SimBackend
    from crazyflow_ros.sensors.state_backend import StateBackend

__all__ = [
    "EXACT",
    "Arrow",
    "Backend",
    "BarometerData",
    "BarometerSensor",
    "BarometerSensorCfg",
    "BatteryData",
    "BatterySensor",
    "BatterySensorCfg",
    "BuiltinSensor",
    "BuiltinSensorCfg",
    "CameraSensor",
    "CameraSensorCfg",
    "CameraSensorData",
    "ConePatternCfg",
    "ContactData",
    "ContactMatch",
    "ContactSensor",
    "ContactSensorCfg",
    "FrameSensor",
    "FrameSensorCfg",
    "GnssData",
    "GnssSensor",
    "GnssSensorCfg",
    "GridPatternCfg",
    "ImuData",
    "ImuSensor",
    "ImuSensorCfg",
    "Intrinsics",
    "LidarPatternCfg",
    "MagnetometerData",
    "MagnetometerSensor",
    "MagnetometerSensorCfg",
    "MirrorBackend",
    "MjxBackend",
    "MotionCaptureData",
    "MotionCaptureSensor",
    "MotionCaptureSensorCfg",
    "Mount",
    "MujocoBackend",
    "NoiseCfg",
    "ObjRef",
    "OpticalFlowData",
    "OpticalFlowSensor",
    "OpticalFlowSensorCfg",
    "PinholeCameraPatternCfg",
    "RangerData",
    "RangerSensor",
    "RangerSensorCfg",
    "RayCastData",
    "RayCastSensor",
    "RayCastSensorCfg",
    "Rays",
    "RingPatternCfg",
    "SceneVisualizer",
    "Sensor",
    "SensorCfg",
    "SensorContext",
    "SensorSet",
    "ShapeRecorder",
    "SimBackend",
    "SimPictures",
    "Sphere",
    "StateBackend",
    "TerrainHeightData",
    "TerrainHeightSensor",
    "TerrainHeightSensorCfg",
    "Visualizer",
]

__getattr__ = lazy(
    __name__,
    {
        "BatteryData": "battery",
        "BatterySensor": "battery",
        "BatterySensorCfg": "battery",
        "MjxBackend": "mjx_backend",
        "SimBackend": "sim_backend",
        "SimPictures": "crazyflow_ros.raytracing.sim_pictures",
        "StateBackend": "state_backend",
    },
)

MODULES = (
    "backend",
    "barometer",
    "camera",
    "camera_model",
    "gnss",
    "noise",
    "rendering",
    "sampled",
    "state_backend",
)
"""Modules that extensions may import, with all their public names."""

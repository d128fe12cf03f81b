"""The types of sensors that the sensors file knows by name.

To add one, write the sensor and its configuration in `crazyflow_ros.sensors`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.sensors import sample_messages
from crazyflow_ros.ros.sensors.camera_topics import CameraTopics
from crazyflow_ros.ros.sensors.contact_topics import ContactTopics
from crazyflow_ros.ros.sensors.devices import DRONE, Kind
from crazyflow_ros.ros.sensors.ray_topics import HeightTopics, RayTopics
from crazyflow_ros.ros.sensors.sampled_topics import SampleTopics
from crazyflow_ros.sensors import (
    BarometerSensorCfg,
    CameraSensorCfg,
    ContactMatch,
    ContactSensorCfg,
    GnssSensorCfg,
    GridPatternCfg,
    ImuSensorCfg,
    LidarPatternCfg,
    MagnetometerSensorCfg,
    MotionCaptureSensorCfg,
    NoiseCfg,
    ObjRef,
    OpticalFlowSensorCfg,
    PinholeCameraPatternCfg,
    RangerSensorCfg,
    RingPatternCfg,
    TerrainHeightSensorCfg,
)
from crazyflow_ros.sensors.battery import BatterySensorCfg
from crazyflow_ros.sensors.drone_rays import COLLISIONS, DRAWN, Pattern, RaysCfg
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.ranger import MULTI_RANGER
from crazyflow_ros.sensors.rendering import DataType
from crazyflow_ros.sim.actuation import CRAZYFLIE_BATTERY


def _height(
    name: str,
    frame: ObjRef,
    pattern: Pattern,
    reduction: Literal["min", "max", "mean"] = "min",
    max_distance: float = 10.0,
    include_geom_groups: tuple[int, ...] | None = COLLISIONS,
) -> TerrainHeightSensorCfg:
    """Rays straight down, however the drone is inclined."""
    return TerrainHeightSensorCfg(
        name=name,
        frame=frame,
        pattern=pattern,
        ray_alignment="world",
        reduction=reduction,
        max_distance=max_distance,
        include_geom_groups=include_geom_groups,
        **DRAWN,
    )


def _contact(name: str, frame: ObjRef, secondary: ContactMatch | None = None) -> ContactSensorCfg:
    """Contacts with anything, or one thing; each drone has its own, see `ContactTopics`."""
    del frame
    return ContactSensorCfg(
        name=name,
        primary=ContactMatch("subtree", "drone", entity=DRONE),
        secondary=secondary,
        secondary_policy="error",
    )


def _battery(
    name: str,
    frame: ObjRef,
    seed: int = 0,
    delay: float = 0.0,
    voltage: NoiseCfg = EXACT,
    current: NoiseCfg = EXACT,
) -> BatterySensorCfg:
    """The battery that the physics has with the parameter `battery`."""
    del frame
    return BatterySensorCfg(
        name=name,
        seed=seed,
        delay=delay,
        battery=CRAZYFLIE_BATTERY,
        voltage=voltage,
        current=current,
    )


def _camera(
    name: str,
    frame: ObjRef,
    width: int = 320,
    height: int = 240,
    fovy: float | None = None,
    data_types: tuple[DataType, ...] = ("rgb",),
    use_textures: bool = True,
    use_shadows: bool = False,
    enabled_geom_groups: tuple[int, ...] = (0, 1, 2),
) -> CameraSensorCfg:
    """The camera in the drone's nose, or elsewhere; each drone has its own, see `CameraTopics`."""
    del frame
    return CameraSensorCfg(
        name=name,
        camera_name="fpv_cam",
        width=width,
        height=height,
        fovy=fovy,
        data_types=data_types,
        use_textures=use_textures,
        use_shadows=use_shadows,
        enabled_geom_groups=enabled_geom_groups,
    )


_BELOW: dict[str, Any] = {
    "frame": ObjRef("site", "range", DRONE),
    "link": frame_ids.range_link,
}
_IN_NOSE: dict[str, Any] = {
    "frame": ObjRef("camera", "fpv_cam", DRONE),
    "link": frame_ids.fpv_camera_optical_frame,
    "is_camera": True,
}

KINDS: Mapping[str, Kind] = {
    "imu": Kind(
        cfg=ImuSensorCfg,
        rate=100,
        topics=SampleTopics,
        messages=sample_messages.imu,
        frame=ObjRef("site", "imu", DRONE),
        link=frame_ids.imu_link,
        fixed={"pos": (0.0, 0.0, 0.0), "quat": (1.0, 0.0, 0.0, 0.0)},
    ),
    "magnetometer": Kind(
        cfg=MagnetometerSensorCfg,
        rate=50,
        topics=SampleTopics,
        messages=sample_messages.magnetometer,
    ),
    "barometer": Kind(
        cfg=BarometerSensorCfg, rate=50, topics=SampleTopics, messages=sample_messages.barometer
    ),
    "gnss": Kind(cfg=GnssSensorCfg, rate=10, topics=SampleTopics, messages=sample_messages.gnss),
    "range": Kind(
        cfg=RangerSensorCfg,
        rate=50,
        topics=SampleTopics,
        messages=sample_messages.ranger,
        fixed={"directions": ((1.0, 0.0, 0.0),), "debug_vis": True},
        **_BELOW,
    ),
    "multiranger": Kind(
        cfg=RangerSensorCfg,
        rate=20,
        topics=SampleTopics,
        messages=sample_messages.multiranger,
        fixed={"directions": MULTI_RANGER, "debug_vis": True},
        beams=dict(zip(("front", "back", "left", "right", "up"), MULTI_RANGER)),
    ),
    "optical_flow": Kind(
        cfg=OpticalFlowSensorCfg,
        rate=100,
        topics=SampleTopics,
        messages=sample_messages.optical_flow,
    ),
    "motion_capture": Kind(
        cfg=MotionCaptureSensorCfg,
        rate=100,
        topics=SampleTopics,
        messages=sample_messages.motion_capture,
    ),
    "lidar": Kind(
        cfg=RaysCfg,
        rate=10,
        topics=RayTopics,
        pattern=LidarPatternCfg,
        fixed={"ray_alignment": "base", **DRAWN},
    ),
    "grid": Kind(cfg=RaysCfg, rate=10, topics=RayTopics, pattern=GridPatternCfg, fixed=DRAWN),
    "ring": Kind(cfg=RaysCfg, rate=10, topics=RayTopics, pattern=RingPatternCfg, fixed=DRAWN),
    "pinhole": Kind(
        cfg=RaysCfg,
        rate=10,
        topics=RayTopics,
        pattern=PinholeCameraPatternCfg,
        fixed={"camera_name": None, "ray_alignment": "base", **DRAWN},
        **_IN_NOSE,
    ),
    "height": Kind(cfg=_height, rate=50, topics=HeightTopics, pattern=RingPatternCfg, **_BELOW),
    "battery": Kind(
        cfg=_battery,
        rate=1,
        topics=SampleTopics,
        messages=sample_messages.battery,
        movable=False,
        parameter="battery",
    ),
    "contact": Kind(cfg=_contact, rate=50, topics=ContactTopics, movable=False),
    "camera": Kind(cfg=_camera, rate=10, topics=CameraTopics, **_IN_NOSE),
}
"""By name."""

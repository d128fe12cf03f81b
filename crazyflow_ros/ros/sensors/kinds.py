"""The types of sensors that the sensors file knows by name.

To add one, add the sensor and its configuration to `crazyflow_ros.sensors`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from crazyflow_ros import sensors
from crazyflow_ros.drones.instruments import MULTI_RANGER, NoiseCfg
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.sensors import sample_messages as messages
from crazyflow_ros.ros.sensors import sensor_states as states
from crazyflow_ros.ros.sensors.camera_topics import CameraTopics, StereoCameraCfg
from crazyflow_ros.ros.sensors.contact_topics import ContactTopics
from crazyflow_ros.ros.sensors.devices import DRONE, Kind
from crazyflow_ros.ros.sensors.ray_topics import HeightTopics, RayTopics
from crazyflow_ros.ros.sensors.sampled_topics import SampleTopics
from crazyflow_ros.ros.sensors.scanner_topics import ScannerTopics
from crazyflow_ros.sensors.battery import BatterySensorCfg
from crazyflow_ros.sensors.patterns import Pattern
from crazyflow_ros.sensors.raycast import COLLISIONS, RaysCfg
from crazyflow_ros.sensors.scanners import Mid360PatternCfg, ScannerCfg, SpinningPatternCfg
from crazyflow_ros.sim.actuation import Battery

_DRAWN: dict[str, Any] = {"debug_vis": True, "viz": sensors.RayCastSensorCfg.VizCfg(show_rays=True)}


def _height(
    name: str,
    frame: sensors.ObjRef,
    pattern: Pattern,
    reduction: Literal["min", "max", "mean"] = "min",
    max_distance: float = 10.0,
    include_geom_groups: tuple[int, ...] | None = COLLISIONS,
) -> sensors.TerrainHeightSensorCfg:
    """Configure rays straight down, whatever the drone's attitude."""
    return sensors.TerrainHeightSensorCfg(
        name=name,
        frame=frame,
        pattern=pattern,
        ray_alignment="world",
        reduction=reduction,
        max_distance=max_distance,
        include_geom_groups=include_geom_groups,
        **_DRAWN,
    )


_BELOW: dict[str, Any] = {
    "frame": sensors.ObjRef("site", "range", DRONE),
    "link": frame_ids.range_link,
}
_IN_NOSE: dict[str, Any] = {
    "frame": sensors.ObjRef("camera", "fpv_cam", DRONE),
    "link": frame_ids.fpv_camera_optical_frame,
    "is_camera": True,
}

_sampled = partial(Kind, topics=SampleTopics)


def _scanner(driver: str, pattern: type[Any], **defaults: Any) -> Kind:
    """Return a lidar as its vendor describes it."""
    fixed = {"ray_alignment": "base", "driver": driver, "debug_vis": False}
    return Kind(
        cfg=ScannerCfg, rate=10, topics=ScannerTopics, pattern=pattern, fixed=fixed,
        defaults=defaults,
    )  # fmt: skip


def _between(first: float, last: float, n: int) -> tuple[float, ...]:
    return tuple(np.linspace(first, last, n).tolist())


KINDS: Mapping[str, Kind] = {
    "imu": _sampled(
        cfg=sensors.ImuSensorCfg,
        rate=100,
        messages=messages.imu,
        states=states.IMU,
        frame=sensors.ObjRef("site", "imu", DRONE),
        link=frame_ids.imu_link,
        fixed={"pos": (0.0, 0.0, 0.0), "quat": (1.0, 0.0, 0.0, 0.0)},
    ),
    "magnetometer": _sampled(
        cfg=sensors.MagnetometerSensorCfg,
        rate=50,
        messages=messages.magnetometer,
        states=states.MAGNETOMETER,
    ),
    "barometer": _sampled(
        cfg=sensors.BarometerSensorCfg,
        rate=50,
        messages=messages.barometer,
        states=states.BAROMETER,
    ),
    "gnss": _sampled(
        cfg=sensors.GnssSensorCfg, rate=10, messages=messages.gnss, states=states.GNSS
    ),
    "range": _sampled(
        cfg=sensors.RangerSensorCfg,
        rate=50,
        messages=messages.ranger,
        fixed={"directions": ((1.0, 0.0, 0.0),), "debug_vis": True},
        **_BELOW,
    ),
    "multiranger": _sampled(
        cfg=sensors.RangerSensorCfg,
        rate=20,
        messages=messages.multiranger,
        fixed={"directions": MULTI_RANGER, "debug_vis": True},
        beams=dict(zip(("front", "back", "left", "right", "up"), MULTI_RANGER)),
    ),
    "optical_flow": _sampled(
        cfg=sensors.OpticalFlowSensorCfg, rate=100, messages=messages.optical_flow
    ),
    "motion_capture": _sampled(
        cfg=sensors.MotionCaptureSensorCfg,
        rate=100,
        messages=messages.motion_capture,
        states=states.MOTION_CAPTURE,
    ),
    "lidar": Kind(
        cfg=RaysCfg,
        rate=10,
        topics=RayTopics,
        pattern=sensors.LidarPatternCfg,
        fixed={"ray_alignment": "base", **_DRAWN},
    ),
    # Data sheets: Velodyne 63-9229 and 97-0038, Ouster OS0 and OS1 rev 7, Livox Mid-360 1.0. Of a
    # range of errors, half is the standard deviation. Shortest ranges of Velodynes are those of
    # their driver.
    "vlp16": _scanner(
        "velodyne",
        SpinningPatternCfg,
        elevations=_between(-15.0, 15.0, 16),
        samples=1808,
        min_distance=0.9,
        max_distance=100.0,
        noise=NoiseCfg(std=0.015),
    ),
    "hdl32": _scanner(
        "velodyne",
        SpinningPatternCfg,
        elevations=_between(-30.67, 10.67, 32),
        samples=2170,
        min_distance=0.9,
        max_distance=100.0,
        noise=NoiseCfg(std=0.01),
    ),
    "os0": _scanner(
        "ouster",
        SpinningPatternCfg,
        elevations=_between(45.0, -45.0, 64),
        samples=1024,
        first_azimuth=180.0,
        min_distance=0.5,
        max_distance=75.0,
        noise=NoiseCfg(std=0.01),
    ),
    "os1": _scanner(
        "ouster",
        SpinningPatternCfg,
        elevations=_between(21.2, -21.2, 64),
        samples=1024,
        first_azimuth=180.0,
        min_distance=0.5,
        max_distance=170.0,
        noise=NoiseCfg(std=0.01),
    ),
    "mid360": _scanner(
        "livox",
        Mid360PatternCfg,
        min_distance=0.1,
        max_distance=70.0,
        noise=NoiseCfg(std=0.02),
    ),
    "grid": Kind(
        cfg=RaysCfg, rate=10, topics=RayTopics, pattern=sensors.GridPatternCfg, fixed=_DRAWN
    ),
    "ring": Kind(
        cfg=RaysCfg, rate=10, topics=RayTopics, pattern=sensors.RingPatternCfg, fixed=_DRAWN
    ),
    "pinhole": Kind(
        cfg=RaysCfg,
        rate=10,
        topics=RayTopics,
        pattern=sensors.PinholeCameraPatternCfg,
        fixed={"camera_name": None, "ray_alignment": "base", **_DRAWN},
        **_IN_NOSE,
    ),
    "height": Kind(
        cfg=_height, rate=50, topics=HeightTopics, pattern=sensors.RingPatternCfg, **_BELOW
    ),
    "battery": _sampled(
        cfg=BatterySensorCfg,
        rate=1,
        messages=messages.battery,
        states=states.BATTERY,
        fixed={"drone": 0},
        of_drone={"battery": Battery.of},
        movable=False,
        parameter="battery",
    ),
    "contact": Kind(
        cfg=sensors.ContactSensorCfg,
        rate=50,
        topics=ContactTopics,
        states=states.CONTACT,
        only=("secondary",),
        fixed={
            "primary": sensors.ContactMatch("subtree", "drone", entity=DRONE),
            "secondary_policy": "error",
        },
        movable=False,
    ),
    "camera": Kind(
        cfg=StereoCameraCfg,
        rate=10,
        topics=CameraTopics,
        only=(
            *("width", "height", "fovy", "data_types"),
            *("use_textures", "use_shadows", "enabled_geom_groups", "renderer"),
            *("intrinsic_matrix", "distortion_model", "distortion", "exposure", "readout"),
            *("instants", "gain", "gamma", "full_well", "read_noise", "seed", "baseline"),
        ),
        defaults={"width": 320, "height": 240, "renderer": "auto"},
        fixed={"camera_name": "fpv_cam"},
        **_IN_NOSE,
    ),
}
"""By name."""

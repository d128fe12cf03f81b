"""The types of the file of the parameter `sensors`: each is a configuration of the library."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_type_hints

from crazyflow_ros.plain_values import convert
from crazyflow_ros.ros.messages import frame_ids
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
    SensorCfg,
    TerrainHeightSensorCfg,
)
from crazyflow_ros.sensors.battery import BatterySensorCfg
from crazyflow_ros.sensors.drone_rays import COLLISIONS, DRAWN, Pattern, RaysCfg
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.ranger import MULTI_RANGER
from crazyflow_ros.sensors.rendering import DataType
from crazyflow_ros.sim.actuation import CRAZYFLIE_BATTERY

DRONE = "drone"
"""Name of the drone in the model that only carries sensors."""

_UNLIMITED = ("saturation", "max_distance", "max_range")  # fields that may be infinite

_CENTRE = ObjRef("site", "CoM", DRONE)
_DOWN = ObjRef("site", "range", DRONE)
_NOSE = ObjRef("camera", "fpv_cam", DRONE)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A type of sensor."""

    cfg: Callable[..., SensorCfg]
    """Makes its configuration; its arguments are the fields of an entry in the file."""
    rate: int
    """Hz, unless told otherwise."""
    frame: ObjRef = _CENTRE
    """What of the drone's drawing it is at, unless told otherwise."""
    link: Callable[[str], str] = frame_ids.base_link
    """The frame in ROS that this is."""
    is_camera: bool = False
    """Whether its readings are in an optical frame."""
    pattern: type[Pattern] | None = None
    """What its rays are, whose fields are fields of an entry, too."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that are no fields of an entry."""
    movable: bool = True
    """Whether it can be elsewhere on the drone."""

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Names of the fields of an entry, with their types."""
        hints = get_type_hints(self.cfg) | get_type_hints(self.pattern or object)
        no_fields = {"return", "name", "frame", "debug_vis", "pattern", *self.fixed}
        return {name: hint for name, hint in hints.items() if name not in no_fields}

    def configuration(self, name: str, site: str | None, values: Mapping[str, Any]) -> SensorCfg:
        """The configuration of an entry.

        Args:
            name: Of the sensor.
            site: That it is at, if it is not the one by default.
            values: Fields as YAML has them.

        Raises:
            TypeError: A value is of another type, or missing.
            ValueError: A value cannot be.
        """
        frame = self.frame if site is None else ObjRef("site", site)
        arguments = {
            key: convert(value, self.fields[key], key, _number) for key, value in values.items()
        }
        arguments |= self.fixed
        if self.pattern is not None:
            keys = get_type_hints(self.pattern).keys() & arguments.keys()
            arguments["pattern"] = self.pattern(**{key: arguments.pop(key) for key in keys})
        return self.cfg(name=name, frame=frame, **arguments)


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
    """Contacts with anything, or one thing; each drone has its own, see `contact_topics`."""
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
    """The camera in the drone's nose, or elsewhere; each drone has its own, see `camera_topics`."""
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


KINDS: dict[str, Kind] = {
    "imu": Kind(
        cfg=ImuSensorCfg,
        rate=100,
        frame=ObjRef("site", "imu", DRONE),
        link=frame_ids.imu_link,
        fixed={"pos": (0.0, 0.0, 0.0), "quat": (1.0, 0.0, 0.0, 0.0)},
    ),
    "magnetometer": Kind(cfg=MagnetometerSensorCfg, rate=50),
    "barometer": Kind(cfg=BarometerSensorCfg, rate=50),
    "gnss": Kind(cfg=GnssSensorCfg, rate=10),
    "range": Kind(
        cfg=RangerSensorCfg,
        rate=50,
        frame=_DOWN,
        link=frame_ids.range_link,
        fixed={"directions": ((1.0, 0.0, 0.0),), "debug_vis": True},
    ),
    "multiranger": Kind(
        cfg=RangerSensorCfg, rate=20, fixed={"directions": MULTI_RANGER, "debug_vis": True}
    ),
    "optical_flow": Kind(cfg=OpticalFlowSensorCfg, rate=100),
    "motion_capture": Kind(cfg=MotionCaptureSensorCfg, rate=100),
    "lidar": Kind(
        cfg=RaysCfg, pattern=LidarPatternCfg, rate=10, fixed={"ray_alignment": "base", **DRAWN}
    ),
    "grid": Kind(cfg=RaysCfg, pattern=GridPatternCfg, rate=10, fixed=DRAWN),
    "ring": Kind(cfg=RaysCfg, pattern=RingPatternCfg, rate=10, fixed=DRAWN),
    "pinhole": Kind(
        cfg=RaysCfg,
        pattern=PinholeCameraPatternCfg,
        rate=10,
        frame=_NOSE,
        link=frame_ids.fpv_camera_optical_frame,
        is_camera=True,
        fixed={"camera_name": None, "ray_alignment": "base", **DRAWN},
    ),
    "height": Kind(
        cfg=_height, pattern=RingPatternCfg, rate=50, frame=_DOWN, link=frame_ids.range_link
    ),
    "battery": Kind(cfg=_battery, rate=1, movable=False),
    "contact": Kind(cfg=_contact, rate=50, movable=False),
    "camera": Kind(cfg=_camera, rate=10, link=frame_ids.fpv_camera_optical_frame, is_camera=True),
}
"""By name."""


def _number(value: Any, name: str) -> float:
    """Convert a finite number, or a text such as 1e-6, which YAML does not take for a number."""
    try:
        number = float(value if type(value) in (int, float, str) else "")
    except (ValueError, OverflowError):
        raise TypeError(f"{name}: expected a number, got {value!r}") from None
    is_limit = name.rpartition(".")[2] in _UNLIMITED
    if not math.isfinite(number) and not (is_limit and number == math.inf):
        raise ValueError(f"{name}: expected a finite number, got {value!r}")
    return number

"""The file of the parameter `sensors`: which drone carries which lidars and cameras."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from crazyflow_ros.ros.declaration import ParameterError
from crazyflow_ros.sensors import (
    CameraSensorCfg,
    LidarPatternCfg,
    ObjRef,
    RayCastSensorCfg,
)
from crazyflow_ros.sensors.rendering import DataType

ALL = "all"
"""In place of a drone's name: every drone."""


@dataclass(frozen=True, kw_only=True)
class Lidar:
    """A lidar in the centre of a drone: a scan with one channel, a cloud with more."""

    rate: int = 10
    samples: int = 360
    elevations: Sequence[float] = (0.0,)
    azimuth_range: Sequence[float] = (-180.0, 180.0)
    max_distance: float = 10.0

    def pattern(self) -> LidarPatternCfg:
        """Its rays."""
        low, high = self.azimuth_range
        return LidarPatternCfg(
            samples=self.samples, elevations=tuple(self.elevations), azimuth_range=(low, high)
        )

    def configuration(self, drone: str, name: str) -> RayCastSensorCfg:
        """Its sensor; it sees other drones as what they collide as."""
        return RayCastSensorCfg(
            name=f"{drone}/{name}",
            frame=ObjRef("xbody", "drone", drone),
            pattern=self.pattern(),
            max_distance=self.max_distance,
            include_geom_groups=(0, 1, 3),
        )


@dataclass(frozen=True, kw_only=True)
class Camera:
    """The camera in a drone's nose."""

    rate: int = 10
    width: int = 320
    height: int = 240
    data_types: Sequence[DataType] = ("rgb",)

    def configuration(self, drone: str, name: str) -> CameraSensorCfg:
        """Its sensor."""
        return CameraSensorCfg(
            name=f"{drone}/{name}",
            camera_name=f"fpv_cam:{drone}",
            width=self.width,
            height=self.height,
            data_types=tuple(self.data_types),
        )


Device: TypeAlias = Lidar | Camera
_TYPES: dict[str, type[Device]] = {"lidar": Lidar, "camera": Camera}


def load(path: str, drones: Sequence[str]) -> dict[tuple[str, str], Device]:
    """Read the file.

    Args:
        path: Of the YAML file.
        drones: Names of the drones.

    Returns:
        What the drones carry, by drone and name.

    Raises:
        ParameterError: It cannot be read, or says what cannot be.
    """
    try:
        content = yaml.safe_load(Path(path).expanduser().read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ParameterError("sensors", f"a YAML file ({error})", path) from None
    devices: dict[tuple[str, str], Device] = {}
    for owner, name, values in _entries(content):
        if owner != ALL and owner not in drones:
            raise ParameterError("sensors", f"drones of {', '.join(drones)}, or {ALL}", owner)
        device = _device(f"{owner}/{name}", values)
        for drone in drones if owner == ALL else (owner,):
            devices[drone, name] = device
    return devices


def _entries(content: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if not isinstance(content, dict):
        raise ParameterError("sensors", "sensors by drone", content)
    for owner, sensors in content.items():
        if not isinstance(sensors, dict):
            raise ParameterError("sensors", f"sensors of {owner} by name", sensors)
        for name, values in sensors.items():
            if not str(name).isidentifier() or not isinstance(values, dict):
                raise ParameterError("sensors", f"names with values for {owner}", {name: values})
            yield str(owner), str(name), dict(values)


def _device(where: str, values: dict[str, Any]) -> Device:
    kind = values.pop("type", None)
    if kind not in _TYPES:
        raise ParameterError("sensors", f"{where} with a type of {', '.join(_TYPES)}", kind)
    cls = _TYPES[kind]
    known = {field.name for field in fields(cls)}
    if unknown := sorted(values.keys() - known):
        raise ParameterError("sensors", f"{where} with {', '.join(sorted(known))}", unknown)
    try:
        device = cls(**values)
        device.configuration("drone", "name")
    except (TypeError, ValueError) as error:
        raise ParameterError("sensors", f"what {where} can be ({error})", values) from None
    if type(device.rate) is not int or device.rate < 1:
        raise ParameterError("sensors", f"a rate of {where} in whole Hz", device.rate)
    return device

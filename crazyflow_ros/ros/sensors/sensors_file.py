"""The file of the parameter `sensors`: which drone carries what, and where."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np

from crazyflow_ros import limits
from crazyflow_ros.description import urdf
from crazyflow_ros.description.urdf import FixedFrame
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.parameters.declaration import ParameterError
from crazyflow_ros.ros.sensors.sensor_kinds import DRONE, KINDS, Kind
from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.frames import (
    OPTICAL_IN_LINK,
    mujoco_camera,
    quat_from_rpy,
    xyzw_to_wxyz,
)
from crazyflow_ros.sensors import SensorCfg
from crazyflow_ros.sensors.ranger import MULTI_RANGER
from crazyflow_ros.sensors.sampled import SampledSensorCfg
from crazyflow_ros.yaml_files import load_yaml

ALL = "all"
"""In place of a drone's name: every drone that has no sensor of this name of its own."""
MOST_SAMPLES = 10_000
"""That a delay may keep."""
_LARGEST_ANGLE = limits.Limit(3600.0, "degrees")
BEAMS = dict(zip(("front", "back", "left", "right", "up"), MULTI_RANGER))
"""Directions of the beams of a Multi-ranger deck by name."""


_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")  # as topics can have it


@dataclass(frozen=True)
class Device:
    """A sensor that a drone, or each drone, carries."""

    owner: str
    """A drone, or `ALL`."""
    name: str
    type: str
    """One of `KINDS`."""
    rate: int
    """Hz, of simulated time."""
    cfg: SensorCfg
    place: FixedFrame | None
    """In the drone called `DRONE`, if it is not where sensors of this type are by default."""

    @property
    def axes(self) -> np.ndarray | None:
        """Attitude wxyz in the drone of what senses, in MuJoCo's axes, if it has a place."""
        if self.place is None:
            return None
        quat = self.place.quat
        return xyzw_to_wxyz(mujoco_camera(quat) if self._kind.is_camera else quat)

    @property
    def _kind(self) -> Kind:
        return KINDS[self.type]

    def frame(self, drone: str) -> str:
        """The frame of its readings."""
        if self.place is None:
            return self._kind.link(drone)
        return f"{drone}/{self.name}" + ("/optical_frame" if self._kind.is_camera else "")

    def frames(self, drone: str) -> Iterator[FixedFrame]:
        """The frames that it adds to a drone."""
        if self.place is not None:
            parent, child = frame_ids.base_link(drone), f"{drone}/{self.name}"
            yield FixedFrame(parent, child, self.place.pos, self.place.quat)
            if self._kind.is_camera:
                yield FixedFrame(child, self.frame(drone), np.zeros(3), OPTICAL_IN_LINK)
        if self.type == "multiranger":
            for beam, direction in BEAMS.items():
                child = f"{drone}/{self.name}/{beam}"
                yield FixedFrame(self.frame(drone), child, np.zeros(3), _along(direction))


class SensorFile:
    """What the drones carry.

    Args:
        devices: In the order of the file.
        drone_model: Of the drones.
    """

    def __init__(self, devices: Iterable[Device], drone_model: str) -> None:
        self.devices, self._drone_model = tuple(devices), drone_model
        self._own = {(device.owner, device.name) for device in self.devices}

    def carries(self, drone: str, device: Device) -> bool:
        """Whether a drone carries it."""
        if device.owner == ALL:
            return (drone, device.name) not in self._own
        return device.owner == drone

    def frames(self, drone: str) -> list[FixedFrame]:
        """The frames that sensors add to a drone."""
        carried = [device for device in self.devices if self.carries(drone, device)]
        return [frame for device in carried for frame in device.frames(drone)]

    @cached_property
    def model(self) -> mujoco.MjModel:
        """A drone alone, called `DRONE`, with what its sensors add to it."""
        spec = build_spec(self._drone_model, [DRONE])
        for device in self.devices:
            if device.place is not None:
                spec.body(f"drone:{DRONE}").add_site(
                    name=device.cfg.name, pos=device.place.pos, quat=device.axes
                )
            if device.type not in ("camera", "contact"):
                device.cfg.build().edit_spec(spec)
        return spec.compile()


def load(path: str, drones: Sequence[str], drone_model: str) -> SensorFile:
    """Read the file.

    Args:
        path: Of the YAML file; nothing is carried if it is empty.
        drones: Names of the drones.
        drone_model: Of the drones.

    Raises:
        ParameterError: It cannot be read, or says what cannot be.
    """
    content: Any = {}
    if path:
        try:
            content = load_yaml(path)
        except ValueError as error:
            raise ParameterError("sensors", f"a YAML file ({error})", path) from None
    devices = []
    links = urdf.drone(drone_model, DRONE)
    taken = {link.get("name") for link in links} | {frame_ids.odom(DRONE)}
    for owner, name, values in _entries(content):
        if owner != ALL and owner not in drones:
            raise ParameterError("sensors", f"drones of {', '.join(drones)}, or {ALL}", owner)
        device = _device(owner, name, values)
        if taken & {frame.child for frame in device.frames(DRONE)}:
            raise ParameterError("sensors", "names that are not those of other frames", name)
        devices.append(device)
    return SensorFile(devices, drone_model)


def _entries(content: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if not isinstance(content, dict):
        raise ParameterError("sensors", "sensors by drone", content)
    for owner, sensors in content.items():
        if not isinstance(sensors, dict):
            raise ParameterError("sensors", f"sensors of {owner} by name", sensors)
        for name, values in sensors.items():
            if not _NAME.fullmatch(str(name)) or not isinstance(values, dict):
                raise ParameterError("sensors", f"names with values for {owner}", {name: values})
            yield str(owner), str(name), dict(values)


def _device(owner: str, name: str, values: dict[str, Any]) -> Device:
    where, kind = f"{owner}/{name}", values.pop("type", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ParameterError("sensors", f"{where} with a type of {', '.join(KINDS)}", kind)
    rate = values.pop("rate", KINDS[kind].rate)
    if type(rate) is not int or rate < 1:
        raise ParameterError("sensors", f"a rate of {where} in whole Hz", rate)
    place = _place(where, values) if KINDS[kind].movable else None
    known = KINDS[kind].fields
    if unknown := sorted(values.keys() - known.keys(), key=str):
        names = sorted({*known, "rate", *(("pos", "rpy") if KINDS[kind].movable else ())})
        raise ParameterError("sensors", f"{where} with {', '.join(names)}", unknown)
    site = None if place is None else where
    try:
        cfg = KINDS[kind].configuration(where, site, values)
        cfg.build()  # which looks at what its parts can be
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError("sensors", f"what {where} can be ({error})", values) from None
    if isinstance(cfg, SampledSensorCfg):
        _check_delay(where, cfg.delay, rate)
    return Device(owner, name, kind, rate, cfg, place)


def _check_delay(where: str, delay: float, rate: int) -> None:
    """Refuse a delay that would be none, as it is kept in whole samples, or that keeps too many."""
    if delay and not 0.5 < delay * rate <= MOST_SAMPLES:
        limits = f"0, or more than {0.5 / rate:g} s and at most {MOST_SAMPLES / rate:g} s"
        reason = f"{limits}, as a delay is kept in whole samples of {rate} Hz"
        raise ParameterError("sensors", f"a delay of {where} of {reason}", delay)


def _place(where: str, values: dict[str, Any]) -> FixedFrame | None:
    """Where a sensor is in the drone `DRONE`, if its entry says so."""
    if not {"pos", "rpy"} & values.keys():
        return None
    vectors = []
    for key, limit in (("pos", limits.POSITION), ("rpy", _LARGEST_ANGLE)):
        value = values.pop(key, [0.0, 0.0, 0.0])
        try:
            vectors.append(limits.vector(key, value, (3,), limit))
        except ValueError:
            expected = f"{key} of {where} as three numbers within {limit}"
            raise ParameterError("sensors", expected, value) from None
    pos, rpy = vectors
    quat = quat_from_rpy(np.radians(rpy))
    return FixedFrame(frame_ids.base_link(DRONE), f"{DRONE}/{where}", pos, quat)


def _along(direction: Sequence[float]) -> np.ndarray:
    """Attitude (xyzw) of a frame whose x axis is along a direction; level, unless that is up."""
    x, y, z = direction
    angles = [0.0, -math.atan2(z, math.hypot(x, y)), math.atan2(y, x)]
    return quat_from_rpy(np.array(angles))

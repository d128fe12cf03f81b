"""The file of the parameter `sensors`: the sensors of each drone, and their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.checks.yaml_files import load_yaml
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.description import urdf
from crazyflow_ros.description.urdf import FixedFrame
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.sensors.devices import ALL, DRONE, Device, Kind, SensorFile
from crazyflow_ros.ros.sensors.kinds import KINDS
from crazyflow_ros.scene.frames import quat_from_rpy
from crazyflow_ros.sensors.sampled import SampledSensorCfg

_SHOWN = 400  # characters of a reason
MOST_SAMPLES = 10_000
"""The most samples that a delay may keep."""
_LARGEST_ANGLE = limits.Limit(3600.0, "degrees")
_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")  # names that are valid in topics


def load(path: str, drones: Sequence[str], drone_model: str) -> SensorFile:
    """Read the file.

    Args:
        path: Path of the YAML file; if it is empty, there are no sensors.
        drones: Names of the drones.
        drone_model: Model of the drones.

    Raises:
        ParameterError: The file cannot be read, or a value is invalid.
    """
    content: Any = {}
    if path:
        try:
            content = load_yaml(path)
        except ValueError as error:
            raise ParameterError("sensors", str(error)) from None
    devices = []
    links = urdf.drone(drone_model, DRONE)
    taken = {link.get("name") for link in links} | {frame_ids.odom(DRONE)}
    for owner, name, values in _entries(content):
        if owner != ALL and owner not in drones:
            raise ParameterError("sensors", limits.unknown("drone", owner, (*drones, ALL)))
        device = _device(owner, name, values, drone_model)
        if taken & {frame.child for frame in device.frames(DRONE)}:
            raise ParameterError("sensors", f"the drone has a frame called {name!r} already")
        devices.append(device)
    return SensorFile(devices, drone_model)


def _entries(content: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if not isinstance(content, dict):
        raise ParameterError("sensors", f"the file has no drones, but {limits.shown(content)}")
    for owner, sensors in content.items():
        if not isinstance(sensors, dict):
            got = limits.shown(sensors)
            raise ParameterError("sensors", f"{owner} has no sensors by name, but {got}")
        for name, values in sensors.items():
            if not _NAME.fullmatch(str(name)):
                rule = "names are letters, digits and underscores, not a digit first"
                raise ParameterError("sensors", f"{owner} has a sensor {name!r}; {rule}")
            if not isinstance(values, dict):
                got = limits.shown(values)
                raise ParameterError("sensors", f"{owner}/{name} has no fields, but {got}")
            yield str(owner), str(name), dict(values)


def _device(owner: str, name: str, values: dict[str, Any], drone_model: str) -> Device[Any]:
    where = f"{owner}/{name}"
    kind = _kind(where, values.pop("type", None))
    rate = values.pop("rate", kind.rate)
    if type(rate) is not int or rate < 1:
        got = limits.shown(rate)
        raise ParameterError("sensors", f"{where}: rate must be in whole Hz, got {got}")
    place = _place(where, values) if kind.movable else None
    for name in sorted(values.keys() - kind.fields.keys(), key=str):
        known = sorted({*kind.fields, "rate", *(("pos", "rpy") if kind.movable else ())})
        raise ParameterError("sensors", f"{where}: {limits.unknown('field', name, known)}")
    site = None if place is None else where
    try:
        cfg = kind.configuration(where, site, values, drone_model)
        cfg.build()  # which checks its parts
    except (TypeError, ValueError, OverflowError) as error:
        reason = limits.shown(str(error).removeprefix(f"{where}: "), _SHOWN)
        raise ParameterError("sensors", f"{where}: {reason}") from None
    if isinstance(cfg, SampledSensorCfg):
        _check_delay(where, cfg.delay, rate)
    return Device(owner, name, kind, rate, cfg, place)


def _kind(where: str, name: Any) -> Kind:
    """Look up the type of a sensor: one of `KINDS`, or the `Kind` at an import path."""
    kind = KINDS.get(name) if isinstance(name, str) else None
    if isinstance(name, str) and _IMPORT_PATH.fullmatch(name):
        module, _, attribute = name.rpartition(".")
        try:
            kind = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            text = f"{where}: the type {name!r} cannot be imported: {error}"
            raise ParameterError("sensors", text) from None
    if not isinstance(kind, Kind):
        if name is None:
            raise ParameterError("sensors", f"{where} has no type; there are {', '.join(KINDS)}")
        raise ParameterError("sensors", f"{where}: {limits.unknown('type', name, KINDS)}")
    return kind


def _check_delay(where: str, delay: float, rate: int) -> None:
    """Refuse a delay that rounds to no sample, or that keeps too many samples."""
    if delay and not 0.5 < delay * rate <= MOST_SAMPLES:
        raise ParameterError(
            "sensors",
            f"{where}: delay must be 0, or more than {0.5 / rate:g} s and at most "
            f"{MOST_SAMPLES / rate:g} s, got {delay:g} s: it is kept in whole samples of {rate} Hz",
        )


def _place(where: str, values: dict[str, Any]) -> FixedFrame | None:
    """Read the place of a sensor on the drone `DRONE`, if its entry has one."""
    if not {"pos", "rpy"} & values.keys():
        return None
    vectors = []
    for key, limit in (("pos", limits.POSITION), ("rpy", _LARGEST_ANGLE)):
        value = values.pop(key, [0.0, 0.0, 0.0])
        try:
            vectors.append(limits.vector(key, value, (3,), limit))
        except ValueError:
            text = f"{where}: {key} must be three numbers within {limit}"
            raise ParameterError("sensors", f"{text}, got {limits.shown(value)}") from None
    pos, rpy = vectors
    quat = quat_from_rpy(np.radians(rpy))
    return FixedFrame(frame_ids.base_link(DRONE), f"{DRONE}/{where}", pos, quat)


def read(parameters: Parameters) -> SensorFile:
    """Read the file of the parameter `sensors`.

    Raises:
        ParameterError: The file cannot be read, or a value is invalid.
    """
    file = load(parameters.sensors, parameters.drones, parameters.drone_model)
    for device in file.devices:
        where = f"sensors: the rate of {device.owner}/{device.name}"
        ticks_per_period(parameters.freq, device.rate, where)
    return file

"""Types of sensors, and the sensors that drones carry.

A `Kind` is all that the node knows about a type of sensor. `kinds.KINDS` has those of the package;
the sensors file can name others by their import path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

import mujoco
import numpy as np
from rclpy.qos import QoSProfile

from crazyflow_ros.checks.plain_values import convert
from crazyflow_ros.description.urdf import FixedFrame
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.numeric_message import NumericMessage
from crazyflow_ros.ros.sensors.sensor_states import States
from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.frames import OPTICAL_IN_LINK, mujoco_camera, quat_from_rpy, xyzw_to_wxyz
from crazyflow_ros.sensors import ObjRef, SensorCfg

C = TypeVar("C", bound=SensorCfg)

ALL = "all"
"""Every drone that has no entry of its own for a sensor of this name."""
DRONE = "drone"
"""Name of the drone in `SensorFile.model`."""
SENSOR_QOS = QoSProfile(depth=5)
"""Reliable, which is compatible with every subscriber."""
_KEPT = 64 * 2**20  # bytes, at most, for readers that are behind
_CENTRE = ObjRef("site", "CoM", DRONE)

_UNLIMITED = ("saturation", "max_distance", "max_range")  # fields that may be infinite


class Topic(NamedTuple):
    """A topic of a sensor."""

    message_type: Any
    suffix: str = ""
    """Appended to the name of the sensor."""
    display: str = ""
    """Type of the display that shows it in RViz, none by default."""
    qos: QoSProfile = SENSOR_QOS

    def of_size(self, size: int) -> Topic:
        """Return the topic with a queue for messages of a size [bytes], from 5 to 100."""
        return self._replace(qos=QoSProfile(depth=min(100, max(SENSOR_QOS.depth, _KEPT // size))))


@dataclass(frozen=True)
class SampleMessage(NumericMessage[Any]):
    """A topic of a sampled sensor; its numbers are read from the sensor's data."""

    _: KW_ONLY
    suffix: str = ""
    """Appended to the name of the sensor."""
    display: str = ""
    """Type of the display that shows it in RViz, none by default."""
    valid: Callable[[Any], np.ndarray] | None = None
    """Takes the sensor's data; returns which drones have a message, (M,). By default all."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A type of sensor."""

    cfg: Callable[..., SensorCfg]
    """Makes its configuration; its arguments are the fields of an entry in the file."""
    rate: int
    """Default rate [Hz]."""
    topics: Any
    """The class that publishes its readings, a `DeviceTopics`; mostly `SampleTopics`."""
    messages: Callable[[Device[Any]], list[SampleMessage]] = lambda _: []
    """The messages of a sensor, for `SampleTopics`."""
    frame: ObjRef = _CENTRE
    """Where it is on the drone by default."""
    link: Callable[[str], str] = frame_ids.base_link
    """The name of this frame in ROS."""
    is_camera: bool = False
    """Whether its readings are in an optical frame."""
    pattern: type[Any] | None = None
    """Pattern of its rays, whose fields are also fields of an entry."""
    only: Sequence[str] | None = None
    """The fields of the configuration that an entry can have; by default all."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults that differ from those of the configuration."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that are not fields of an entry."""
    of_drone: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    """Arguments that depend on the model of the drone, each as a function of its name."""
    beams: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Directions of beams that have their own frames, by name."""
    movable: bool = True
    """Whether it can be placed elsewhere on the drone."""
    parameter: str = ""
    """Name of a parameter of the node that has to be true."""
    states: States = field(default_factory=dict)
    """What controllers of ros2_control read of it; by default nothing."""

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Names of the fields of an entry, with their types."""
        hints = get_type_hints(self.cfg) | get_type_hints(self.pattern or object)
        no_fields = {"return", "name", "frame", "debug_vis", "viz", "pattern"}
        no_fields |= {*self.fixed, *self.of_drone}
        names = hints.keys() - no_fields if self.only is None else self.only
        return {name: hints[name] for name in names}

    @cached_property
    def _required(self) -> list[str]:
        makers: list[Callable[..., Any]] = [self.cfg]
        if self.pattern is not None:
            makers.append(self.pattern)
        given = [one for maker in makers for one in signature(maker).parameters.values()]
        return sorted({one.name for one in given if one.default is one.empty} & self.fields.keys())

    def configuration(
        self, name: str, site: str | None, values: Mapping[str, Any], drone_model: str
    ) -> SensorCfg:
        """Make the configuration of an entry.

        Args:
            name: Name of the sensor.
            site: The site that it is at, or None for the default frame.
            values: Fields as read from YAML.
            drone_model: Model of the drones.

        Raises:
            TypeError: A value has the wrong type.
            ValueError: A value is out of range, or missing.
        """
        arguments = {**self.defaults, **self.fixed}
        arguments |= {key: figure(drone_model) for key, figure in self.of_drone.items()}
        for key, value in values.items():
            arguments[key] = convert(value, self.fields[key], key, _number)
        if missing := [key for key in self._required if key not in arguments]:
            raise ValueError(f"{' and '.join(missing)} missing")
        if "frame" in get_type_hints(self.cfg):
            arguments["frame"] = self.frame if site is None else ObjRef("site", site)
        if self.pattern is not None:
            keys = get_type_hints(self.pattern).keys() & arguments.keys()
            arguments["pattern"] = self.pattern(**{key: arguments.pop(key) for key in keys})
        return self.cfg(name=name, **arguments)


@dataclass(frozen=True)
class Device(Generic[C]):
    """A sensor that a drone, or each drone, carries."""

    owner: str
    """A drone, or `ALL`."""
    name: str
    kind: Kind
    rate: int
    """Hz, in simulation time."""
    cfg: C
    place: FixedFrame | None
    """Pose in the drone called `DRONE`, or None for the default frame of its kind."""

    @property
    def axes(self) -> np.ndarray | None:
        """Attitude wxyz of the sensor in the drone, in MuJoCo's axes; None without a place."""
        if self.place is None:
            return None
        quat = self.place.quat
        return xyzw_to_wxyz(mujoco_camera(quat) if self.kind.is_camera else quat)

    @property
    def topics(self) -> list[Topic]:
        """The topics of each drone that carries it."""
        topics: list[Topic] = self.kind.topics.topics(self)
        return topics

    def frame(self, drone: str) -> str:
        """The frame of its readings."""
        if self.place is None:
            return self.kind.link(drone)
        return f"{drone}/{self.name}" + ("/optical_frame" if self.kind.is_camera else "")

    def beam_frame(self, drone: str, beam: str) -> str:
        """The frame of one of the beams of its kind."""
        return f"{drone}/{self.name}/{beam}"

    def frames(self, drone: str) -> Iterator[FixedFrame]:
        """Yield the frames that the sensor adds to a drone."""
        if self.place is not None:
            parent, child = frame_ids.base_link(drone), f"{drone}/{self.name}"
            yield FixedFrame(parent, child, self.place.pos, self.place.quat)
            if self.kind.is_camera:
                yield FixedFrame(child, self.frame(drone), np.zeros(3), OPTICAL_IN_LINK)
        for beam, direction in self.kind.beams.items():
            child = self.beam_frame(drone, beam)
            yield FixedFrame(self.frame(drone), child, np.zeros(3), _along(direction))


class SensorFile:
    """The sensors of all drones.

    Args:
        devices: The sensors in the order of the file.
        drone_model: Model of the drones.
    """

    def __init__(self, devices: Iterable[Device[Any]], drone_model: str) -> None:
        self.devices, self._drone_model = tuple(devices), drone_model
        self._own = {(device.owner, device.name) for device in self.devices}

    def carries(self, drone: str, device: Device[Any]) -> bool:
        """Return whether a drone carries a sensor."""
        if device.owner == ALL:
            return (drone, device.name) not in self._own
        return device.owner == drone

    def frames(self, drone: str) -> list[FixedFrame]:
        """Return the frames that sensors add to a drone."""
        carried = [device for device in self.devices if self.carries(drone, device)]
        return [frame for device in carried for frame in device.frames(drone)]

    @cached_property
    def model(self) -> mujoco.MjModel:
        """Model of one drone, called `DRONE`, with the elements that sensors add to it."""
        spec = build_spec(self._drone_model, [DRONE])
        for device in self.devices:
            if device.place is not None:
                spec.body(f"drone:{DRONE}").add_site(
                    name=device.cfg.name, pos=device.place.pos, quat=device.axes
                )
            if device.kind.topics.in_drone_model:
                device.cfg.build().edit_spec(spec)
        return spec.compile()


def _along(direction: Sequence[float]) -> np.ndarray:
    """Return the attitude (xyzw) of a frame with x along a direction; level unless that is up."""
    x, y, z = direction
    angles = [0.0, -math.atan2(z, math.hypot(x, y)), math.atan2(y, x)]
    return quat_from_rpy(np.array(angles))


def _number(value: Any, name: str) -> float:
    """Convert a value from YAML to a number; YAML reads 1e-6, without a point, as text."""
    if type(value) not in (int, float, str):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise TypeError(f"{name}: expected a number, got {value!r}") from None
    is_limit = name.rpartition(".")[2] in _UNLIMITED
    if not math.isfinite(number) and not (is_limit and number == math.inf):
        raise ValueError(f"{name}: expected a finite number, got {value!r}")
    return number

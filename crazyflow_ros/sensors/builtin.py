"""MuJoCo's own sensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import mujoco

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.sensors.backend import Array, Backend
from crazyflow_ros.sensors.objects import MUJOCO_TYPES, ObjRef
from crazyflow_ros.sensors.sensor import Sensor, SensorCfg

SensorType = Literal[
    "accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer", "rangefinder",
    "jointpos", "jointvel", "jointlimitpos", "jointlimitvel", "jointlimitfrc", "jointactuatorfrc",
    "tendonpos", "tendonvel", "tendonactuatorfrc",
    "actuatorpos", "actuatorvel", "actuatorfrc",
    "framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis",
    "framelinvel", "frameangvel", "framelinacc", "frameangacc",
    "subtreecom", "subtreelinvel", "subtreeangmom",
    "e_potential", "e_kinetic", "clock",
]  # fmt: skip

_FRAME = ("body", "xbody", "geom", "site", "camera")
_OBJECTS: dict[str, tuple[str, ...]] = {
    sensor_type: allowed
    for sensor_types, allowed in (
        ("accelerometer velocimeter gyro force torque magnetometer rangefinder", ("site",)),
        ("jointpos jointvel jointlimitpos jointlimitvel jointlimitfrc", ("joint",)),
        ("jointactuatorfrc", ("joint",)),
        ("tendonpos tendonvel tendonactuatorfrc", ("tendon",)),
        ("actuatorpos actuatorvel actuatorfrc", ("actuator",)),
        ("framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel", _FRAME),
        ("framelinacc frameangacc", _FRAME),
        ("subtreecom subtreelinvel subtreeangmom", ("body",)),
        ("e_potential e_kinetic clock", ()),
    )
    for sensor_type in sensor_types.split()
}
"""Types of objects that the sensor types attach to."""

_MUJOCO_NAMES = {"jointactuatorfrc": "jointactfrc", "tendonactuatorfrc": "tendonactfrc"}


@dataclass
class BuiltinSensorCfg(SensorCfg):
    """A sensor that MuJoCo computes.

    Raises:
        ValueError: The sensor type is unknown, or does not fit `obj`, `ref` or `cutoff`.
    """

    sensor_type: SensorType
    """Type of the sensor."""
    obj: ObjRef | None = None
    """The object the sensor is attached to; none for "clock" and the energies."""
    ref: ObjRef | None = None
    """The object whose frame a "frame..." sensor measures in; default: the world."""
    cutoff: float = 0.0
    """If positive, a limit of the absolute values of the readings, in their unit."""

    def __post_init__(self) -> None:
        if self.sensor_type not in _OBJECTS:
            raise ValueError(f"{self.name}: {unknown('sensor_type', self.sensor_type, _OBJECTS)}")
        allowed = _OBJECTS[self.sensor_type]
        if (self.obj is None) != (not allowed):
            need = f"an obj of type {', '.join(allowed)}" if allowed else "no obj"
            raise ValueError(f"{self.name}: a sensor {self.sensor_type!r} needs {need}")
        if self.obj is not None:
            self.obj.check(f"{self.name}: obj of {self.sensor_type!r}", allowed)
        if self.ref is not None:
            if allowed != _FRAME or self.sensor_type in ("framelinacc", "frameangacc"):
                raise ValueError(f"{self.name}: a sensor {self.sensor_type!r} takes no ref")
            self.ref.check(f"{self.name}: ref", _FRAME)
        if not self.cutoff >= 0.0:
            raise ValueError(f"{self.name}: cutoff must not be negative, got {self.cutoff}")

    def build(self) -> BuiltinSensor:
        """Build the sensor."""
        return BuiltinSensor(self)


class BuiltinSensor(Sensor[Array]):
    """Readings of one of MuJoCo's sensors, from sensordata.

    `data` has shape (B, dim): 3 for vectors, 4 (wxyz) for "framequat", 1 for numbers. It is a copy
    (in mjlab a view, which changes under its reader).

    Args:
        cfg: Configuration of a sensor to add to the model.
        name: Without `cfg`: name of a sensor that the model already has.
    """

    def __init__(self, cfg: BuiltinSensorCfg | None = None, name: str | None = None) -> None:
        super().__init__()
        if (cfg is None) == (name is None):
            raise ValueError("give either a configuration or the name of a sensor")
        self.cfg = cfg
        self.name = cfg.name if cfg is not None else str(name)

    @classmethod
    def from_existing(cls, name: str) -> BuiltinSensor:
        """Wrap a sensor that the model already has."""
        return cls(name=name)

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add the sensor, unless it wraps one."""
        if self.cfg is None:
            return
        cfg = self.cfg
        kind = _MUJOCO_NAMES.get(cfg.sensor_type, cfg.sensor_type).upper()
        sensor_type = getattr(mujoco.mjtSensor, f"mjSENS_{kind}")
        sensor = add_sensor(spec, cfg.name, sensor_type, cfg.obj, cfg.ref)
        sensor.cutoff = cfg.cutoff
        if cfg.sensor_type == "rangefinder":
            sensor.intprm[0] = 1 << int(mujoco.mjtRayDataField.mjRAYDATA_DIST)

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """The body, geom, site or camera that it is attached to, if it has been added."""
        obj = None if self.cfg is None else self.cfg.obj
        return (obj,) if obj is not None and obj.type in _FRAME else ()

    def initialize(self, backend: Backend) -> None:
        """Find the sensor in sensordata."""
        self._columns = columns_of(backend, self.name)
        super().initialize(backend)

    def _compute_data(self) -> Array:
        return self.backend.sensordata()[:, self._columns]


def columns_of(backend: Backend, name: str) -> slice:
    """Return the columns of a sensor of the model in `Backend.sensordata`.

    Raises:
        ValueError: The model has no such sensor, or the back end cannot read it.
    """
    model = backend.model
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SENSOR, name)
    if number < 0:
        raise ValueError(f"the model has no sensor {name!r}")
    backend.check_sensor(number)
    start = model.sensor_adr[number]
    return slice(start, start + model.sensor_dim[number])


def add_sensor(
    spec: mujoco.MjSpec,
    name: str,
    sensor_type: mujoco.mjtSensor,
    obj: ObjRef | None,
    ref: ObjRef | None = None,
) -> mujoco.MjsSensor:
    """Add a sensor to a specification.

    Raises:
        ValueError: The name is taken.
    """
    if any(sensor.name == name for sensor in spec.sensors):
        raise ValueError(f"the model already has a sensor {name!r}")
    sensor = spec.add_sensor(name=name, type=sensor_type)
    if obj is not None:
        sensor.objtype, sensor.objname = MUJOCO_TYPES[obj.type], obj.prefixed_name()
    if ref is not None:
        sensor.reftype, sensor.refname = MUJOCO_TYPES[ref.type], ref.prefixed_name()
    return sensor

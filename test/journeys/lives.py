"""Lives of simulators: with which parameters, worlds and sensors each of them starts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from sensor_msgs.msg import (
    FluidPressure,
    Image,
    Imu,
    LaserScan,
    MagneticField,
    NavSatFix,
    PointCloud2,
    Range,
)

from journeys.model import LANES, Drone

MOST_DRONES = 4
"""For which the physics is compiled."""
_WORLD = """
<mujoco model="{name}">
  <visual><rgba haze="{haze} {haze} .5 1"/></visual>
  <worldbody>
    <light pos="0 0 4"/>
    <geom name="floor" type="plane" size="0 0 1" rgba="{haze} .4 .3 1"/>
    {bodies}
  </worldbody>
</mujoco>
"""
_HUT = '<body name="{}" pos="{} {} .5"><geom type="{}" size="{}" rgba=".{} .3 .6 1"/></body>'


def _body(name: str, x: float, y: float, kind: str = "box", size: str = ".5 .5 .5") -> str:
    return _HUT.format(name, x, y, kind, size, len(name))


OWN_WORLDS = {
    "lawn": _WORLD.format(name="lawn", haze=0.9, bodies=""),
    "yard": _WORLD.format(
        name="yard", haze=0.2, bodies=_body("hut", 5, 0) + _body("well", -5, 1, "cylinder", ".4 .5")
    ),
    "wood": _WORLD.format(
        name="wood",
        haze=0.6,
        bodies="".join(
            _body(f"tree{i}", 4 + i % 4, 2 * (i // 4) - 3, "capsule", ".1 .4") for i in range(14)
        ),
    ),
}
OWN_OBJECTS = {
    "ball": '<mujoco model="ball"><worldbody><geom size="0.25"/></worldbody></mujoco>',
    "table": '<robot name="table"><link name="top"><visual><geometry><box size="1 1 .1"/>'
    "</geometry></visual></link></robot>",
    "crate": '<robot name="crate"><link name="side"><inertial><mass value="0.05"/>'
    '<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>'
    "<collision><geometry>"
    '<box size=".3 .3 .3"/></geometry></collision></link></robot>',
    "pole": '<mujoco model="pole"><worldbody><geom type="cylinder" size=".1 .8"/></worldbody>'
    "</mujoco>",
}


@dataclass(frozen=True)
class Sensor:
    """An entry of a sensors file, and what it publishes."""

    entry: str
    topics: tuple[tuple[str, Any], ...]
    """Names below the sensor's, and types, whose messages begin with a header."""


_SMALL = "width: 64, height: 48"


def _camera(kinds: str, *topics: str, more: str = "renderer: rays") -> Sensor:
    entry = f"{{type: camera, rate: 10, {_SMALL}, data_types: [{kinds}], {more}}}"
    return Sensor(entry, tuple((f"/{topic}image_raw", Image) for topic in topics))


_LENS = "renderer: rays, distortion_model: equidistant, distortion: [0.06, -0.02, 0.004, -5e-4]"
SENSORS = {
    "eye": _camera("rgb", ""),
    "depth": _camera("depth", "depth/"),
    "labels": _camera("segmentation", "segmentation/"),
    "normals": _camera("normals", "normals/"),
    "motion": _camera("flow", "flow/"),
    "both": _camera("rgb, depth", "", "depth/"),
    "fisheye": _camera("rgb", "", more=_LENS + ", readout: 0.03, exposure: 0.01, instants: 2"),
    "open": _camera("rgb, depth", "", "depth/", more="renderer: opengl"),
    "any": _camera("rgb", "", more="renderer: auto"),
    "imu": Sensor("{type: imu, rate: 50}", (("/data_raw", Imu),)),
    "magnet": Sensor("{type: magnetometer, rate: 10}", (("", MagneticField),)),
    "air": Sensor("{type: barometer, rate: 10, noise: {std: 2.5}}", (("", FluidPressure),)),
    "gps": Sensor("{type: gnss, rate: 10, latitude: 48.1, longitude: 11.6}", (("", NavSatFix),)),
    "down": Sensor("{type: range, rate: 10}", (("", Range),)),
    "around": Sensor("{type: multiranger, rate: 10}", (("/front", Range), ("/scan", LaserScan))),
    "ground": Sensor("{type: optical_flow, rate: 10}", (("", TwistStamped),)),
    "mocap": Sensor("{type: motion_capture, rate: 10}", (("", PoseStamped),)),
    "touch": Sensor("{type: contact, rate: 10}", (("", WrenchStamped),)),
    "scan": Sensor("{type: lidar, rate: 10, samples: 60}", (("", LaserScan),)),
    "cloud": Sensor(
        "{type: lidar, rate: 5, samples: 30, elevations: [-20, 0, 20]}", (("", PointCloud2),)
    ),
    "grid": Sensor("{type: grid, rate: 10, size: [1, 1], resolution: 0.5}", (("", PointCloud2),)),
    "deep": Sensor("{type: pinhole, rate: 10, width: 8, height: 6}", (("", PointCloud2),)),
    "height": Sensor("{type: height, rate: 10}", (("", Range),)),
}
"""Sensors of every kind, and cameras with every renderer."""

_PACKAGE = find_spec("foundation_policy")
_POLICY = _PACKAGE and Path(str(_PACKAGE.origin)).parent / "blob" / "checkpoint.h5"
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pid": {"controller": "pid"},
    "kalman": {"estimator": "kalman", "mocap": True},
    "battery": {"battery": True},
    "gusts": {"gust_intensity": 0.1},
    "collisions": {"drone_collisions": True},
    "crazyflie": {},
    "manager": {"ros2_control.mode": "lock_step", "ros2_control.timeout": 60.0},
    "swarm": {"interfaces": "swarm"},
    **({"policy": {"policy": _POLICY}} if _POLICY else {}),
}
"""What a simulator has beside topics and services, by name; some parameters are set later."""
SHARES = {"plain": 6, "crazyflie": 2, "manager": 2, "swarm": 2}
"""How often they are drawn, if not once."""


@dataclass(frozen=True)
class Life:
    """How a simulator starts."""

    variant: str = "plain"
    n_drones: int = 2
    world: str = "floor"
    factor: float = 5.0
    sensors: tuple[str, ...] = ()
    records: bool = False

    @classmethod
    def draw(cls, rng: random.Random) -> Life:
        """A random life."""
        (variant,) = rng.choices(list(VARIANTS), [SHARES.get(name, 1) for name in VARIANTS])
        return cls(
            variant,
            n_drones=2 if variant == "manager" else rng.randint(1, 3),
            world=rng.choice(("floor", "floor", "room", *OWN_WORLDS)),
            factor=rng.choice((0.0, 1.0, 5.0, 20.0)),
            sensors=tuple(sorted(rng.sample(sorted(SENSORS), rng.randint(1, 4)))),
            records=rng.random() < 0.6,
        )

    def plainer(self) -> Iterator[Life]:
        """Lives with less."""
        if self.records:
            yield replace(self, records=False)
        for sensor in self.sensors:
            yield replace(self, sensors=tuple(name for name in self.sensors if name != sensor))
        if self.variant != "plain":
            yield replace(self, variant="plain")
        if self.world != "floor":
            yield replace(self, world="floor")
        if self.n_drones > 1:
            yield replace(self, n_drones=self.n_drones - 1)

    @property
    def by_door(self) -> list[str]:
        """Drones that a controller manager flies."""
        return ["cf1"] if self.variant == "manager" else []

    def shared_memory(self, folder: Path) -> str:
        """Name by which the manager finds the simulator."""
        return f"journeys.{folder.name}"

    def drones(self) -> dict[str, Drone]:
        """Its drones at the start."""
        names = [f"cf{i}" for i in range(self.n_drones)]
        return {name: Drone(i, by_door=name in self.by_door) for i, name in enumerate(names)}

    def parameters(self, folder: Path, name: str, port: int) -> list[str]:
        """Arguments of the simulator.

        Args:
            folder: For its files.
            name: Of this life, for the names of files.
            port: First free port.
        """
        poses = [number for x, y in LANES[: self.n_drones] for number in (x, y, 0.0)]
        given: dict[str, Any] = {
            "drones": f"[{','.join(self.drones())}]",
            "max_drones": MOST_DRONES,
            "initial_poses": f"[{','.join(map(str, poses))}]",
            "scene": world_uri(self.world, folder),
            "real_time_factor": self.factor,
            "checkpoint": f"{name}.npz",
            "checkpoint_folder": folder,
            "world_folders": f"[{folder}]",
        }
        if self.sensors:
            path = folder / f"{name}.yaml"
            entries = {sensor: yaml.safe_load(SENSORS[sensor].entry) for sensor in self.sensors}
            path.write_text(yaml.safe_dump({"all": entries}))
            given["sensors"] = path
        if self.records:
            given["record"] = folder / f"{name}.mcap"
        if self.variant == "crazyflie":
            given["crazyflie.port"] = port
        if self.by_door:
            given["door_drones"] = f"[{','.join(self.by_door)}]"
            given["ros2_control.shared_memory"] = self.shared_memory(folder)
        given |= VARIANTS[self.variant]
        return [word for key, value in given.items() for word in ("-p", f"{key}:={_word(value)}")]


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def world_uri(name: str, folder: Path) -> str:
    """Name or path by which the simulator finds a world."""
    return str(folder / f"{name}.xml") if name in OWN_WORLDS else name


def write_worlds(folder: Path) -> None:
    """Write the worlds and objects that are not part of the package."""
    for name, text in OWN_WORLDS.items():
        (folder / f"{name}.xml").write_text(text)
    for name, text in OWN_OBJECTS.items():
        (folder / f"{name}.{'urdf' if '<robot' in text else 'xml'}").write_text(text)

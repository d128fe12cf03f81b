"""Sensors of the Crazyflie and its decks, ready-made.

Each is at the centre of mass of a drone of this package, and aligned with its axes.
"""

from __future__ import annotations

from crazyflow_ros.drones.instruments import PMW3901, PMW3901_MIN_RANGE
from crazyflow_ros.sensors.barometer import BMP388, BarometerSensorCfg
from crazyflow_ros.sensors.imu import ImuSensorCfg
from crazyflow_ros.sensors.objects import ObjRef
from crazyflow_ros.sensors.optical_flow import OpticalFlowSensorCfg
from crazyflow_ros.sensors.ranger import DOWN, RangerSensorCfg

__all__ = [
    "barometer",
    "flow_deck",
    "imu",
    "multi_ranger",
    "z_ranger",
]


def imu(drone: str, seed: int = 0) -> ImuSensorCfg:
    """Configure the BMI088 of a Crazyflie 2.1."""
    return ImuSensorCfg(name=f"{drone}/imu", frame=_site(drone), seed=seed)


def barometer(drone: str, seed: int = 0) -> BarometerSensorCfg:
    """Configure the BMP388 of a Crazyflie 2.1."""
    return BarometerSensorCfg(
        name=f"{drone}/barometer", frame=_site(drone), noise=BMP388, seed=seed
    )


def z_ranger(drone: str, seed: int = 0) -> RangerSensorCfg:
    """Configure the VL53L1X of the Z-ranger and Flow decks, which looks down."""
    return RangerSensorCfg(name=f"{drone}/z_ranger", frame=_site(drone), directions=DOWN, seed=seed)


def multi_ranger(drone: str, seed: int = 0) -> RangerSensorCfg:
    """Configure the five VL53L1X of the Multi-ranger deck: front, back, left, right, up."""
    return RangerSensorCfg(name=f"{drone}/multi_ranger", frame=_site(drone), seed=seed)


def flow_deck(drone: str, seed: int = 0) -> tuple[OpticalFlowSensorCfg, RangerSensorCfg]:
    """Configure the PMW3901 and the VL53L1X of the Flow deck."""
    flow = OpticalFlowSensorCfg(
        name=f"{drone}/flow",
        frame=_site(drone),
        noise=PMW3901,
        min_range=PMW3901_MIN_RANGE,
        seed=seed,
    )
    return flow, z_ranger(drone, seed)


def _site(drone: str) -> ObjRef:
    return ObjRef("site", "imu", drone)

"""Readings of sensors as messages of a fixed size, whose numbers are all that changes.

Each function tells for a type of sensor which messages a drone's sensor gives; `MESSAGES` has them
by type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from sensor_msgs.msg import (
    BatteryState,
    FluidPressure,
    Imu,
    LaserScan,
    MagneticField,
    NavSatFix,
    Range,
)

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below
from crazyflow_ros.ros.sensors.sensors_file import BEAMS, Device
from crazyflow_ros.scene.rangefinder import FIELD_OF_VIEW
from crazyflow_ros.sensors import (
    BarometerSensorCfg,
    GnssSensorCfg,
    ImuSensorCfg,
    MagnetometerSensorCfg,
    RangerSensorCfg,
)
from crazyflow_ros.sensors.battery import BatterySensorCfg

Blocks = Sequence[np.ndarray]


class SampleMessage(NamedTuple):
    """A topic of a sensor, of M drones at once."""

    suffix: str
    """Of the topic, behind the name of the sensor."""
    prototype: Callable[[str], Any]
    """The message of a drone with everything that does not change."""
    values: Callable[[Any], Blocks]
    """The sensor's data as a float64 array (M, paths) for each block of paths."""
    numbers: Sequence[Sequence[str]] = ()
    """Blocks of paths of numbers, as in `layout`."""
    floats: Sequence[Sequence[str]] = ()
    """Blocks of paths of numbers of type float32."""
    valid: Callable[[Any], np.ndarray] | None = None
    """Whether each drone has a message, shape (M,); None: always."""


def imu(device: Device) -> list[SampleMessage]:
    """`data_raw` as in REP 145: no orientation; +g upwards at rest."""
    cfg = device.cfg
    assert isinstance(cfg, ImuSensorCfg)
    gyro, accelerometer = (n.variance(1 / device.rate, 3) for n in (cfg.gyro, cfg.accelerometer))

    def prototype(drone: str) -> Imu:
        message = Imu(
            angular_velocity_covariance=_diagonal(gyro),
            linear_acceleration_covariance=_diagonal(accelerometer),
        )
        message.orientation_covariance[0] = -1.0
        return _framed(message, device.frame(drone))

    paths = [below("angular_velocity", XYZ), below("linear_acceleration", XYZ)]
    return [
        SampleMessage(
            "/data_raw", prototype, lambda d: (d.angular_velocity, d.linear_acceleration), paths
        )
    ]


def magnetometer(device: Device) -> list[SampleMessage]:
    """The magnetic field [T]."""
    cfg = device.cfg
    assert isinstance(cfg, MagnetometerSensorCfg)
    covariance = _diagonal(cfg.noise.variance(1 / device.rate, 3))

    def prototype(drone: str) -> MagneticField:
        message = MagneticField(magnetic_field_covariance=covariance)
        return _framed(message, device.frame(drone))

    paths = [below("magnetic_field", XYZ)]
    return [SampleMessage("", prototype, lambda d: (d.magnetic_field,), paths)]


def barometer(device: Device) -> list[SampleMessage]:
    """The air pressure [Pa]."""
    cfg = device.cfg
    assert isinstance(cfg, BarometerSensorCfg)
    variance = float(cfg.noise.variance(1 / device.rate, 1)[0])

    def prototype(drone: str) -> FluidPressure:
        return _framed(FluidPressure(variance=variance), device.frame(drone))

    return [SampleMessage("", prototype, lambda d: (d.pressure,), [["fluid_pressure"]])]


def gnss(device: Device) -> list[SampleMessage]:
    """Latitude, longitude [degrees] and altitude above the ellipsoid [m], covariance in ENU."""
    cfg = device.cfg
    assert isinstance(cfg, GnssSensorCfg)
    covariance = _diagonal(cfg.noise.variance(1 / device.rate, 3))

    def prototype(drone: str) -> NavSatFix:
        message = NavSatFix(
            position_covariance=covariance,
            position_covariance_type=NavSatFix.COVARIANCE_TYPE_DIAGONAL_KNOWN,
        )
        message.status.service = message.status.SERVICE_GPS
        message.status.status = message.status.STATUS_FIX
        return _framed(message, device.frame(drone))

    def values(data: Any) -> Blocks:
        return (np.stack([data.latitude, data.longitude, data.altitude], axis=-1),)

    return [SampleMessage("", prototype, values, [["latitude", "longitude", "altitude"]])]


def ranger(device: Device) -> list[SampleMessage]:
    """The distance along the x axis of the frame [m], infinite out of reach as in REP 117."""
    prototype = _range_prototype(device, device.frame)
    return [SampleMessage("", prototype, lambda d: (d.ranges,), floats=[["range"]])]


def multiranger(device: Device) -> list[SampleMessage]:
    """A `Range` for each beam, in a frame of its own, and the level ones together as a scan."""
    cfg = device.cfg
    assert isinstance(cfg, RangerSensorCfg)
    messages = []
    for i, beam in enumerate(BEAMS):

        def frame(drone: str, beam: str = beam) -> str:
            return f"{drone}/{device.name}/{beam}"

        def values(data: Any, i: int = i) -> Blocks:
            return (data.ranges[:, i],)

        prototype = _range_prototype(device, frame)
        messages.append(SampleMessage(f"/{beam}", prototype, values, floats=[["range"]]))

    around = [list(BEAMS).index(beam) for beam in ("back", "right", "front", "left")]

    def scan(drone: str) -> LaserScan:
        message = LaserScan(
            angle_min=-math.pi,
            angle_max=math.pi / 2,
            angle_increment=math.pi / 2,
            scan_time=1 / device.rate,
            range_min=cfg.min_range,
            range_max=cfg.max_range,
            ranges=[0.0] * len(around),
        )
        return _framed(message, device.frame(drone))

    paths = [[f"ranges.{i}" for i in range(len(around))]]
    messages.append(SampleMessage("/scan", scan, lambda d: (d.ranges[:, around],), floats=paths))
    return messages


def optical_flow(device: Device) -> list[SampleMessage]:
    """The turn about x and y [rad/s] that would look the same; NaN without ground."""

    def prototype(drone: str) -> TwistStamped:
        return _framed(TwistStamped(), device.frame(drone))

    def values(data: Any) -> Blocks:
        # A turn about x moves the view along y, one about y against x.
        return (data.flow[:, ::-1] * [1.0, -1.0],)

    return [SampleMessage("", prototype, values, [["twist.angular.x", "twist.angular.y"]])]


def motion_capture(device: Device) -> list[SampleMessage]:
    """The pose in the map frame; nothing where the sample is missing."""
    del device

    def prototype(drone: str) -> PoseStamped:
        del drone
        return _framed(PoseStamped(), frame_ids.MAP)

    paths = [below("pose.position", XYZ), below("pose.orientation", XYZW)]
    return [
        SampleMessage(
            "", prototype, lambda d: (d.pos, d.quat), paths, valid=lambda d: np.asarray(d.valid)
        )
    ]


def battery(device: Device) -> list[SampleMessage]:
    """Voltage [V], current [A], which is negative as it is drawn, and charge left [A h]."""
    cfg = device.cfg
    assert isinstance(cfg, BatterySensorCfg)

    def prototype(drone: str) -> BatteryState:
        message = BatteryState(
            temperature=math.nan,
            capacity=cfg.battery.capacity,
            design_capacity=cfg.battery.capacity,
            power_supply_status=BatteryState.POWER_SUPPLY_STATUS_DISCHARGING,
            power_supply_health=BatteryState.POWER_SUPPLY_HEALTH_GOOD,
            power_supply_technology=BatteryState.POWER_SUPPLY_TECHNOLOGY_LIPO,
            present=True,
            cell_voltage=[0.0],
        )
        return _framed(message, device.frame(drone))

    def values(data: Any) -> Blocks:
        columns = (data.voltage, data.voltage, -data.current, data.charge, data.percentage)
        return (np.stack(columns, axis=-1),)

    paths = [["voltage", "cell_voltage.0", "current", "charge", "percentage"]]
    return [SampleMessage("", prototype, values, floats=paths)]


MESSAGES: dict[str, Callable[[Device], list[SampleMessage]]] = {
    "imu": imu,
    "magnetometer": magnetometer,
    "barometer": barometer,
    "gnss": gnss,
    "range": ranger,
    "multiranger": multiranger,
    "optical_flow": optical_flow,
    "motion_capture": motion_capture,
    "battery": battery,
}
"""The messages of a sensor, by its type."""


def _range_prototype(device: Device, frame: Callable[[str], str]) -> Callable[[str], Range]:
    cfg = device.cfg
    assert isinstance(cfg, RangerSensorCfg)

    def prototype(drone: str) -> Range:
        message = Range(
            radiation_type=Range.INFRARED,
            field_of_view=FIELD_OF_VIEW,
            min_range=cfg.min_range,
            max_range=cfg.max_range,
            variance=float(cfg.noise.variance(1 / device.rate, 1)[0]),
        )
        return _framed(message, frame(drone))

    return prototype


def _framed(message: Any, frame: str) -> Any:
    message.header.frame_id = frame
    return message


def _diagonal(variances: np.ndarray) -> list[float]:
    return np.diag(variances).ravel().tolist()

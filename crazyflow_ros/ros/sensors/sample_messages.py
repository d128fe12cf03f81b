"""Messages of sampled sensors, in which only numbers change: one function for each type.

Each function returns the messages of a sensor on a drone, see `Kind.messages`.
"""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped, TwistStamped
from sensor_msgs.msg import (
    BatteryState,
    FluidPressure,
    Imu,
    MagneticField,
    NavSatFix,
    NavSatStatus,
    Range,
)

from crazyflow_ros import sensors
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below
from crazyflow_ros.ros.messages.numeric_message import (
    EXACT,
    POSE,
    READINGS,
    diagonal,
    elements,
    stamped,
)
from crazyflow_ros.ros.sensors.devices import Device, SampleMessage
from crazyflow_ros.ros.sensors.lidar_and_camera_messages import laser_scan
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.sensors.battery import BatterySensorCfg

_READ = ("angular_velocity", "linear_acceleration")


def imu(device: Device[sensors.ImuSensorCfg]) -> list[SampleMessage]:
    """`data_raw` as in REP 145, +g upwards at rest; with an attitude also `data`."""
    raw = Imu(
        orientation_covariance=[-1.0] + 8 * [0.0],
        angular_velocity_covariance=_covariance(device, device.cfg.gyro),
        linear_acceleration_covariance=_covariance(device, device.cfg.accelerometer),
    )
    frame = device.frame
    told = SampleMessage(stamped(raw, frame), READINGS, attrgetter(*_READ), suffix="/data_raw")
    if device.cfg.attitude is None:
        return [told]
    whole = deepcopy(raw)
    whole.orientation_covariance = _covariance(device, device.cfg.attitude)
    paths, values = [below("orientation", XYZW), *READINGS], attrgetter("quat", *_READ)
    return [told, SampleMessage(stamped(whole, frame), paths, values, suffix="/data")]


def magnetometer(device: Device[sensors.MagnetometerSensorCfg]) -> list[SampleMessage]:
    """The magnetic field [T]."""
    covariance = _covariance(device, device.cfg.noise, EXACT**2)  # in T², which are large
    message = MagneticField(magnetic_field_covariance=covariance)
    paths = [below("magnetic_field", XYZ)]
    return [SampleMessage(stamped(message, device.frame), paths, lambda d: (d.magnetic_field,))]


def barometer(device: Device[sensors.BarometerSensorCfg]) -> list[SampleMessage]:
    """The air pressure [Pa]."""
    message = FluidPressure(variance=_variance(device, device.cfg.noise))
    paths = [["fluid_pressure"]]
    return [SampleMessage(stamped(message, device.frame), paths, lambda d: (d.pressure,))]


def gnss(device: Device[sensors.GnssSensorCfg]) -> list[SampleMessage]:
    """Latitude, longitude [degrees] and altitude above the ellipsoid [m], covariance in ENU."""
    message = NavSatFix(
        status=NavSatStatus(status=NavSatStatus.STATUS_FIX, service=NavSatStatus.SERVICE_GPS),
        position_covariance=_covariance(device, device.cfg.noise),
        position_covariance_type=NavSatFix.COVARIANCE_TYPE_DIAGONAL_KNOWN,
    )

    def values(data: Any) -> tuple[np.ndarray, ...]:
        return (np.stack([data.latitude, data.longitude, data.altitude], axis=-1),)

    paths = [["latitude", "longitude", "altitude"]]
    return [SampleMessage(stamped(message, device.frame), paths, values)]


def ranger(device: Device[sensors.RangerSensorCfg]) -> list[SampleMessage]:
    """The distance along the x axis of the frame [m], infinite if nothing is in range (REP 117)."""
    return [
        SampleMessage(
            stamped(_range(device), device.frame),
            [["range"], ["variance"]],
            lambda d: (d.ranges, d.variance),
            display="Range",
        )
    ]


def multiranger(device: Device[sensors.RangerSensorCfg]) -> list[SampleMessage]:
    """A `Range` for each beam, in its own frame, and a scan of the level beams."""
    beams = list(device.kind.beams)

    def distances(data: Any, beams: list[int]) -> tuple[np.ndarray, ...]:
        return (data.ranges[:, beams],)

    def reading(data: Any, beam: int) -> tuple[np.ndarray, ...]:
        return data.ranges[:, beam], data.variance[:, beam]

    messages = [
        SampleMessage(
            stamped(_range(device), partial(device.beam_frame, beam=beam)),
            [["range"], ["variance"]],
            partial(reading, beam=i),
            suffix=f"/{beam}",
            display="Range",
        )
        for i, beam in enumerate(beams)
    ]
    around = [beams.index(beam) for beam in ("back", "right", "front", "left")]
    angles, limits = np.arange(-2, 2) * (math.pi / 2), (device.cfg.min_range, device.cfg.max_range)
    scan = laser_scan(angles, np.zeros(len(around)), limits, device.rate)
    template, paths = stamped(scan, device.frame), [elements("ranges", len(around))]
    values = partial(distances, beams=around)
    return [*messages, SampleMessage(template, paths, values, suffix="/scan")]


def optical_flow(device: Device[sensors.OpticalFlowSensorCfg]) -> list[SampleMessage]:
    """The rotation about x and y [rad/s] that gives the same flow; NaN without ground."""

    def values(data: Any) -> tuple[np.ndarray, ...]:
        # A rotation about x moves the view along y, one about y against x.
        return (data.flow[:, ::-1] * [1.0, -1.0],)

    paths = [["twist.angular.x", "twist.angular.y"]]
    return [SampleMessage(stamped(TwistStamped(), device.frame), paths, values)]


def motion_capture(device: Device[sensors.MotionCaptureSensorCfg]) -> list[SampleMessage]:
    """The pose in the map frame, also with covariance; no message where the sample is missing."""
    cfg, frame = device.cfg, lambda _: frame_ids.MAP
    known = PoseWithCovarianceStamped()
    place = cfg.position.variance(1 / device.rate, 3).clip(min=EXACT)
    known.pose.covariance = diagonal([*place, 0.0, 0.0, 0.0])
    turn = cfg.attitude.variance(1 / device.rate, 3).clip(min=EXACT)
    rows = [f"pose.covariance.{6 * i + j}" for i in (3, 4, 5) for j in (3, 4, 5)]

    def values(data: Any) -> tuple[np.ndarray, ...]:
        axes = rotation_matrix(data.quat)  # of the errors; covariances are about those of the map
        return data.pos, data.quat, (axes * turn @ axes.mT).reshape(-1, 9)

    def valid(data: Any) -> np.ndarray:
        return np.asarray(data.valid)

    paths = [*([f"pose.{path}" for path in block] for block in POSE), rows]
    return [
        SampleMessage(
            stamped(PoseStamped(), frame), POSE, lambda d: (d.pos, d.quat), display="Pose",
            valid=valid,
        ),
        SampleMessage(stamped(known, frame), paths, values, suffix="/with_covariance", valid=valid),
    ]  # fmt: skip


def battery(device: Device[BatterySensorCfg]) -> list[SampleMessage]:
    """Voltage [V], current [A], negative while discharging, and remaining charge [A h]."""
    capacity = device.cfg.battery.capacity
    message = BatteryState(
        temperature=math.nan,
        capacity=capacity,
        design_capacity=capacity,
        power_supply_status=BatteryState.POWER_SUPPLY_STATUS_DISCHARGING,
        power_supply_health=BatteryState.POWER_SUPPLY_HEALTH_GOOD,
        power_supply_technology=BatteryState.POWER_SUPPLY_TECHNOLOGY_LIPO,
        present=True,
        cell_voltage=[0.0],
    )

    def values(data: Any) -> tuple[np.ndarray, ...]:
        columns = (data.voltage, data.voltage, -data.current, data.charge, data.percentage)
        return (np.stack(columns, axis=-1),)

    paths = [["voltage", "cell_voltage.0", "current", "charge", "percentage"]]
    return [SampleMessage(stamped(message, device.frame), paths, values)]


def _range(device: Device[sensors.RangerSensorCfg]) -> Range:
    return Range(
        radiation_type=Range.INFRARED,
        field_of_view=device.cfg.field_of_view,
        min_range=device.cfg.min_range,
        max_range=device.cfg.max_range,
    )


def _variance(device: Device[Any], noise: sensors.NoiseCfg) -> float:
    return max(EXACT, float(noise.variance(1 / device.rate, 1)[0]))


def _covariance(device: Device[Any], noise: sensors.NoiseCfg, least: float = EXACT) -> list[float]:
    return diagonal(noise.variance(1 / device.rate, 3).clip(min=least))

"""Readings of PX4's sensors as messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.doors.px4.mavlink import (
    DistanceSensor,
    HilGps,
    HilSensor,
    HilStateQuaternion,
    Message,
)
from crazyflow_ros.doors.px4.vision import Vision
from crazyflow_ros.doors.samples import DRONE, Samples
from crazyflow_ros.doors.vehicles import LockStepSettings
from crazyflow_ros.drones.instruments import (
    BMI088_ACCELEROMETER,
    BMI088_GYRO,
    VL53L1X,
    VL53L1X_FIELD_OF_VIEW,
    VL53L1X_MAX_RANGE,
    VL53L1X_MIN_RANGE,
    NoiseCfg,
)
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.runtime.door_settings import DoorContext
from crazyflow_ros.scene import Mirror
from crazyflow_ros.scene.frames import enu_to_ned, flu_to_frd, frd_in_ned, xyzw_to_wxyz
from crazyflow_ros.sensors import (
    BarometerSensorCfg,
    GnssData,
    GnssSensorCfg,
    ImuSensorCfg,
    MagnetometerSensorCfg,
    ObjRef,
)
from crazyflow_ros.sensors.barometer import (
    BMP388,
    LAPSE_RATE,
    SEA_LEVEL_TEMPERATURE,
    standard_altitude,
)
from crazyflow_ros.sensors.gnss import enu_to_geodetic
from crazyflow_ros.sensors.noise import Noise

SLOW_RATE, GNSS_RATE = 50, 10
"""Rates [Hz] of magnetometer, barometer, range finder, cameras and true state; of the receiver."""

_G = 9.80665  # m/s^2
# A calibrated IMU: what remains of the offsets is assumed. PX4 stores 16 bits, which 16 g and
# 2000 degrees a second nearly fill, so that anything beyond would change its sign.
_GYRO = replace(BMI088_GYRO, bias=1e-3, scale=0.0, saturation=math.radians(2000) * (1 - 2**-14))
_ACCELEROMETER = replace(BMI088_ACCELEROMETER, bias=0.02, saturation=16 * _G)
_MAGNETOMETER = NoiseCfg(std=0.2e-6)  # T; assumed, as are those of the receiver
_GNSS = NoiseCfg(std=(0.05, 0.05, 0.1))  # m
_GNSS_VELOCITY = NoiseCfg(std=0.05)  # m/s
_EPH, _EPV = 30, 40  # cm, what a receiver says with a good view of the sky
_SATELLITES = 14

_IMU_FIELDS, _MAG_FIELDS, _BARO_FIELDS = 0x03F, 0x1C0, 0x1A00
_GAUSS, _HPA = 1e4, 1e-2  # of a tesla, of a pascal
_INT16, _UINT16 = 32767, 65535
_DOWN, _LASER, _UNKNOWN = 25, 0, 255
_FREEZING = 273.15  # K


_Air: TypeAlias = tuple[float, float, float, float]
"""The four fields of HIL_SENSOR about the air, from `abs_pressure` on."""


@dataclass(frozen=True, kw_only=True)
class Px4Sensors(LockStepSettings):
    """Settings of the door that say what the sensors measure."""

    declination: Annotated[
        float, Spec("Declination of the magnetic field there [degrees]", -180, 180)
    ] = 3.5
    inclination: Annotated[
        float, Spec("Inclination of the magnetic field there [degrees], positive down", -90, 90)
    ] = 63.4
    magnetic_field: Annotated[
        float, Spec("Strength of the magnetic field there [microtesla]", 1, 100)
    ] = 48.4
    optical_flow: Annotated[
        bool, Spec("The drones have flow sensors that look down, for floors up to 4 m away")
    ] = False
    odometry: Annotated[bool, Spec("The drones have visual odometry")] = False

    @property
    def field(self) -> tuple[float, float, float]:
        """Magnetic field in axes east, north, up [T]."""
        declination, inclination = math.radians(self.declination), math.radians(self.inclination)
        strength = 1e-6 * self.magnetic_field
        level = strength * math.cos(inclination)
        return (
            level * math.sin(declination),
            level * math.cos(declination),
            -strength * math.sin(inclination),
        )


class Px4Readings:
    """The sensors of all drones.

    Args:
        settings: Say where the world is on earth, and which sensors there are.
        context: The simulation.

    Raises:
        ValueError: The rate of a sensor does not divide that of the door; the message names both.
    """

    def __init__(self, settings: Px4Sensors, context: DoorContext) -> None:
        self._settings, rate, height = settings, settings.rate, settings.altitude
        self._slow_period = context.freq // SLOW_RATE
        n, seed = len(context.drones), context.seed
        common: dict[str, Any] = {"frame": ObjRef("site", "imu", DRONE), "seed": seed}
        imu = ImuSensorCfg(name="imu", gyro=_GYRO, accelerometer=_ACCELEROMETER, **common)
        mag = MagnetometerSensorCfg(
            name="magnetometer", field=settings.field, noise=_MAGNETOMETER, **common
        )
        baro = BarometerSensorCfg(name="barometer", altitude=height, noise=BMP388, **common)
        gnss = GnssSensorCfg(
            name="gnss",
            latitude=settings.latitude,
            longitude=settings.longitude,
            altitude=height,
            noise=_GNSS,
            **common,
        )
        sensors = ((imu, rate), (mag, SLOW_RATE), (baro, SLOW_RATE), (gnss, GNSS_RATE))
        self._samples = Samples(
            context.drone_model, context.drones, sensors, context.freq, context.freq // rate
        )
        keys = [tuple(drone.encode()) for drone in context.drones]
        self._velocity = Noise(_GNSS_VELOCITY, n, 3, (seed, *b"gnss velocity"), keys)
        self._range = Noise(VL53L1X, n, 1, (seed, *b"range finder"), keys)
        self._vision = Vision(
            SLOW_RATE, flow=settings.optical_flow, odometry=settings.odometry, context=context
        )
        self._field: np.ndarray = np.zeros((n, 3))
        self._air: list[_Air] = [(0.0, 0.0, 0.0, 0.0)] * n

    def take(self, snapshot: Snapshot, mirror: Mirror, time_usec: int) -> list[list[Message]]:
        """Return the messages for each drone's PX4 at a control tick; HIL_SENSOR is last.

        Args:
            snapshot: The state at a control tick that was not taken before.
            mirror: The MuJoCo side, in the same state.
            time_usec: PX4's time.
        """
        due = self._samples.take(snapshot)
        messages: list[list[Message]] = [[] for _ in snapshot.names]

        def add(row_by_row: Sequence[Message]) -> None:
            for own, message in zip(messages, row_by_row):
                own.append(message)

        if "gnss" in due:
            add(self._fixes(due["gnss"], snapshot, time_usec))
        fields = _IMU_FIELDS
        if "magnetometer" in due:
            fields |= _MAG_FIELDS
            self._field = flu_to_frd(due["magnetometer"].magnetic_field) * _GAUSS
        if "barometer" in due:
            fields |= _BARO_FIELDS
            self._air = self._air_of(due["barometer"].pressure, snapshot)
            if self._settings.range_finder:
                add(self._distances(snapshot, mirror, time_usec))
            rates = due["imu"].angular_velocity
            for kind in self._vision.take(snapshot, mirror, rates, time_usec):
                add(kind)
        imu = due["imu"]
        force = flu_to_frd(imu.linear_acceleration).tolist()
        rates, mag = flu_to_frd(imu.angular_velocity).tolist(), self._field.tolist()
        add(
            [
                HilSensor(time_usec, (*acc,), (*gyro,), (*field,), *air, fields, 0)
                for acc, gyro, field, air in zip(force, rates, mag, self._air)
            ]
        )
        return messages

    def forget(self, drones: np.ndarray) -> None:
        """Give drones that were reset, by index, sensors with other errors."""
        self._samples.forget(drones)
        self._velocity.reset(drones)
        self._range.reset(drones)
        self._vision.forget(drones)

    def _air_of(self, pressure: np.ndarray, snapshot: Snapshot) -> list[_Air]:
        altitude = self._settings.altitude + snapshot.pos[:, 2]
        warmth = (SEA_LEVEL_TEMPERATURE - _FREEZING - LAPSE_RATE * altitude).tolist()
        columns = (pressure * _HPA).tolist(), standard_altitude(pressure).tolist(), warmth
        return [(absolute, 0.0, height, degrees) for absolute, height, degrees in zip(*columns)]

    def _fixes(self, gnss: GnssData, snapshot: Snapshot, time_usec: int) -> list[HilGps]:
        velocities = 100 * enu_to_ned(self._velocity.apply(snapshot.vel, 1 / GNSS_RATE))
        return [
            HilGps(
                time_usec,
                *_geodetic(latitude, longitude, altitude),
                _EPH,
                _EPV,
                min(round(math.hypot(*velocity[:2])), _UINT16),
                three,
                round(100 * math.degrees(math.atan2(velocity[1], velocity[0]))) % 36_000,
                3,
                _SATELLITES,
                0,
                0,
            )
            for latitude, longitude, altitude, velocity, three in zip(
                gnss.latitude.tolist(),
                gnss.longitude.tolist(),
                gnss.altitude.tolist(),
                velocities.tolist(),
                _threes(velocities),
            )
        ]

    def truth(self, snapshot: Snapshot, time_usec: int) -> list[HilStateQuaternion]:
        """Return the true state for each drone's PX4, which only logs it; empty if not due."""
        if snapshot.tick % self._slow_period:
            return []
        at = self._settings
        fixes = enu_to_geodetic(snapshot.pos, at.latitude, at.longitude, at.altitude)
        attitudes = xyzw_to_wxyz(frd_in_ned(snapshot.quat)).tolist()
        rates, velocities = flu_to_frd(snapshot.ang_vel), 100 * enu_to_ned(snapshot.vel)
        forces = flu_to_frd(snapshot.specific_force) * (1000 / _G)
        columns = attitudes, rates.tolist(), _threes(velocities), _threes(forces)
        return [
            HilStateQuaternion(
                time_usec,
                tuple(attitude),
                tuple(rate),
                *_geodetic(*fix),
                velocity,
                0,  # no airspeed: the drones have no such sensor
                0,
                force,
            )
            for fix, attitude, rate, velocity, force in zip(np.array(fixes).T.tolist(), *columns)
        ]

    def _distances(
        self, snapshot: Snapshot, mirror: Mirror, time_usec: int
    ) -> list[DistanceSensor]:
        below = mirror.range(snapshot.names)
        nearest, farthest = round(100 * VL53L1X_MIN_RANGE), round(100 * VL53L1X_MAX_RANGE)
        seen = np.isfinite(below)
        read = self._range.apply(np.where(seen, below, 0.0)[:, None], 1 / SLOW_RATE)[:, 0]
        return [
            DistanceSensor(
                time_usec // 1000,
                nearest,
                farthest,
                round(100 * max(distance, 0.0)) if hits else farthest + 1,
                _LASER,
                0,
                _DOWN,
                _UNKNOWN,
                VL53L1X_FIELD_OF_VIEW,
                VL53L1X_FIELD_OF_VIEW,
                (0.0, 0.0, 0.0, 0.0),
                100 if hits else 1,
            )
            for distance, hits in zip(read.tolist(), seen.tolist())
        ]


def _geodetic(latitude: float, longitude: float, altitude: float) -> tuple[int, int, int]:
    """Convert degrees and metres to MAVLink's units."""
    return round(1e7 * latitude), round(1e7 * longitude), round(1e3 * altitude)


def _threes(vectors: np.ndarray) -> list[tuple[int, int, int]]:
    """Round (M, 3) vectors to 16 bits."""
    rounded = np.rint(vectors.clip(-_INT16, _INT16)).astype(int).tolist()
    return [(x, y, z) for x, y, z in rounded]

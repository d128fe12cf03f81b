"""Readings of the Crazyflies' sensors as packets."""

from __future__ import annotations

from typing import Any

import numpy as np

from crazyflow_ros.control import ticks_per_period
from crazyflow_ros.doors.crazyflie_firmware import sensor_packets
from crazyflow_ros.doors.samples import DRONE, Samples
from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.runtime.door_settings import DoorContext
from crazyflow_ros.scene.frames import multiply, quat_from_rpy
from crazyflow_ros.sensors import (
    BarometerSensorCfg,
    ImuSensorCfg,
    MagnetometerSensorCfg,
    ObjRef,
)
from crazyflow_ros.sensors.barometer import BMP388, standard_altitude
from crazyflow_ros.sensors.noise import Noise

SLOW_RATE = 10
"""Rate of magnetometer and barometer [Hz]. Each of their packets costs a pass of the firmware's
loop, and its estimator uses neither."""

_TEMPERATURE = 25.0  # degrees Celsius
_MAGNETOMETER = NoiseCfg(std=0.2e-6)  # T; assumed, as are those of motion capture
_POSITION, _ATTITUDE = NoiseCfg(std=0.001), NoiseCfg(std=0.002)  # m, rad


class CrazyflieReadings:
    """The sensors of all drones, and a motion capture system.

    Args:
        rate: Rate of the IMU [Hz].
        pose_rate: Rate of the motion capture system [Hz]; 0: there is none.
        context: The simulation.

    Raises:
        ValueError: A rate does not divide the one above it; the message names both.
    """

    def __init__(self, rate: int, pose_rate: int, context: DoorContext) -> None:
        n, seed = len(context.drones), context.seed
        common: dict[str, Any] = {"frame": ObjRef("site", "imu", DRONE), "seed": seed}
        imu = ImuSensorCfg(name="imu", **common)
        mag = MagnetometerSensorCfg(name="magnetometer", noise=_MAGNETOMETER, **common)
        baro = BarometerSensorCfg(name="barometer", noise=BMP388, **common)
        self._samples = Samples(
            context.drone_model,
            context.drones,
            ((imu, rate), (mag, SLOW_RATE), (baro, SLOW_RATE)),
            context.freq,
            context.freq // rate,
        )
        self._pose_dt = 1 / pose_rate if pose_rate else 0.0
        self._pose_period = (
            ticks_per_period(context.freq, pose_rate, "pose_rate") if pose_rate else 0
        )
        if self._pose_period % (context.freq // rate):
            raise ValueError(
                f"pose_rate must divide the rate of the IMU, {rate} Hz, got {pose_rate}"
            )
        keys = [tuple(drone.encode()) for drone in context.drones]
        self._position = Noise(_POSITION, n, 3, (seed, *b"captured position"), keys)
        self._attitude = Noise(_ATTITUDE, n, 3, (seed, *b"captured attitude"), keys)

    def take(self, snapshot: Snapshot) -> list[list[bytes]]:
        """Return the packets for each drone's firmware at a control tick; the IMU's is last.

        Args:
            snapshot: The state at a control tick that was not taken before.
        """
        due, kinds = self._samples.take(snapshot), list[list[bytes]]()
        if self._pose_period and snapshot.tick % self._pose_period == 0:
            kinds.append(self._poses(snapshot))
        if "magnetometer" in due:
            kinds.append(sensor_packets.magnetometer(due["magnetometer"].magnetic_field))
        if "barometer" in due:
            pressure = due["barometer"].pressure
            kinds.append(
                sensor_packets.barometer(pressure, standard_altitude(pressure), _TEMPERATURE)
            )
        imu = due["imu"]
        kinds.append(sensor_packets.imu(imu.linear_acceleration, imu.angular_velocity))
        return [list(own) for own in zip(*kinds)]

    def _poses(self, snapshot: Snapshot) -> list[bytes]:
        position = self._position.apply(snapshot.pos, self._pose_dt)
        error = self._attitude.apply(np.zeros_like(snapshot.pos), self._pose_dt)
        return sensor_packets.pose(position, multiply(snapshot.quat, quat_from_rpy(error)))

    def forget(self, drones: np.ndarray) -> None:
        """Give drones that were reset, by index, sensors with other errors."""
        self._samples.forget(drones)
        self._position.reset(drones)
        self._attitude.reset(drones)

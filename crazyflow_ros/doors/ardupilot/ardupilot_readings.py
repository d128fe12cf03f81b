"""The true state of a drone as text, from which ArduPilot simulates its sensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.doors.ardupilot.json_packets import numbers
from crazyflow_ros.drones.instruments import VL53L1X_MAX_RANGE
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene import Mirror
from crazyflow_ros.scene.frames import enu_to_ned, flu_to_frd, frd_in_ned, rpy, xyzw_to_wxyz

RANGE_RATE = 50
"""Readings of the range finder a second."""
_CHANNELS = 12  # that ArduPilot reads
_FARTHEST = VL53L1X_MAX_RANGE
_NOTHING = 2 * _FARTHEST  # m, of a range finder that sees nothing within its reach


class ArduPilotReadings:
    """Produces the entries of answers in the order in which ArduPilot searches for them.

    Args:
        n: Number of drones.
        every: Frames from one reading of the range finders to the next; 0 without range finders.
    """

    def __init__(self, n: int, every: int) -> None:
        self._every, self._ranges = every, [""] * n

    def take(self, snapshot: Snapshot, mirror: Mirror, frame: int) -> list[str]:
        """Return the entries of a frame for each drone's ArduPilot."""
        if self._every and (frame % self._every == 0 or not self._ranges[0]):
            below = np.nan_to_num(mirror.range(snapshot.names), posinf=_NOTHING)
            self._ranges = [
                f',"rng_1":{distance if distance <= _FARTHEST else _NOTHING:.9g}'
                for distance in below.tolist()
            ]
        quat = frd_in_ned(snapshot.quat)
        columns = (
            flu_to_frd(snapshot.ang_vel),
            flu_to_frd(snapshot.specific_force),
            enu_to_ned(snapshot.pos),
            rpy(quat),  # some versions take a range only with it: ArduPilot's issue 33341
            xyzw_to_wxyz(quat),
            enu_to_ned(snapshot.vel),
        )
        rows = zip(*(column.tolist() for column in columns), self._ranges, _batteries(snapshot))
        return [
            f'"imu":{{"gyro":{numbers(gyro)},"accel_body":{numbers(force)}}},'
            f'"position":{numbers(position)},"attitude":{numbers(attitude)},'
            f'"quaternion":{numbers(quaternion)},"velocity":{numbers(velocity)}{distance}{battery}'
            for gyro, force, position, attitude, quaternion, velocity, distance, battery in rows
        ]


def radio(channels: Sequence[int]) -> str:
    """Return the entry of a radio receiver, from the pulse lengths of its channels [µs]."""
    pulses = ",".join(f'"rc_{i}":{pulse}' for i, pulse in enumerate(channels[:_CHANNELS], 1))
    return f',"rc":{{{pulses}}}'


def _batteries(snapshot: Snapshot) -> list[str]:
    if snapshot.battery is None:
        return [""] * len(snapshot.names)
    return [
        f',"battery":{{"voltage":{voltage:.9g},"current":{current:.9g}}}'
        for voltage, current, _ in snapshot.battery.tolist()
    ]

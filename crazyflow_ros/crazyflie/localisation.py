"""Where a Crazyflie is told to be: external poses, and other packets to its localisation."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.compressed_quaternions import decompressed
from crazyflow_ros.crazyflie.beacon_memory import LighthouseMemory
from crazyflow_ros.crazyflie.crtp import Packet
from crazyflow_ros.crazyflie.parameters import Number
from crazyflow_ros.crazyflie.pilot import Pilot
from crazyflow_ros.crazyflie.supervision import Supervision
from crazyflow_ros.crazyflie.telemetry import External


class Localisation:
    """Takes external poses of one Crazyflie, and stops it by the packets of the same port.

    Args:
        number: Last byte of its radio address.
        pilot: Tells the poses to its estimator.
        parameter: Returns a parameter by name.
        supervision: Its supervisor.
        lighthouse: Its memory of base stations.

    Attributes:
        pose: The latest external pose.
    """

    def __init__(
        self,
        number: int,
        pilot: Pilot,
        parameter: Callable[[str], Number],
        supervision: Supervision,
        lighthouse: LighthouseMemory,
    ) -> None:
        self._number, self._pilot, self._parameter = number, pilot, parameter
        self._supervision, self._lighthouse = supervision, lighthouse
        self.pose = External()

    def restart(self) -> None:
        """Forget the latest pose."""
        self.pose = External()

    def answer(self, packet: Packet, time_ms: int) -> Packet | None:
        """Carry out a packet to the localisation, and return the answer to it, if there is one.

        Raises:
            ValueError: The packet is malformed, or the pose in it is impossible.
        """
        data, kind = packet.data, packet.data[:1]
        if packet.channel == 0:
            self.tell_pose(np.frombuffer(_exactly(data, 12), "<f4"), None, time_ms)
        elif packet.channel == 1 and kind == b"\x08":
            numbers = np.frombuffer(_exactly(data[1:], 28), "<f4")
            self.tell_pose(numbers[:3], numbers[3:], time_ms)
        elif packet.channel == 1 and kind == b"\x09":
            self._packed(data[1:], 11, time_ms)
        elif packet.channel == 2:
            self._packed(data, 7, time_ms)
        elif packet.channel == 1 and kind == b"\x03":
            self._supervision.stop()
        elif packet.channel == 1 and kind == b"\x04":
            self._supervision.set_watchdog(time_ms)
        elif packet.channel == 1 and kind == b"\x02" and len(data) > 1:  # to anchors of the deck
            return packet._replace(data=data[:2] + b"\0")
        elif packet.channel == 1 and kind == b"\x0b" and len(data) >= 5:
            self._lighthouse.store(*struct.unpack("<HH", data[1:5]))
            return packet._replace(data=kind + b"\1")
        else:
            raise ValueError(f"unknown packet to the localisation, {data.hex() or 'empty'}")
        return None

    def _packed(self, data: bytes, size: int, time_ms: int) -> None:
        """Extract this drone's external position or pose from a packet for several Crazyflies."""
        for start in range(0, len(data) - size + 1, size):
            if data[start] != self._number:
                continue
            pos = np.frombuffer(data[start + 1 : start + 7], "<i2") / 1e3
            quat = data[start + 7 : start + size]
            rotation = decompressed(int.from_bytes(quat, "little")) if quat else None
            self.tell_pose(pos, rotation, time_ms)

    def tell_pose(self, pos: ArrayLike, quat: ArrayLike | None, time_ms: int) -> None:
        """Set the latest external pose, from any thread.

        Args:
            pos: (3,) m, world frame.
            quat: (4,) attitude xyzw; None if it is unknown.
            time_ms: Simulated time.

        Raises:
            ValueError: The pose is impossible.
        """
        checked = limits.vector("external position", pos, (3,), limits.POSITION)
        rotation = self.pose.quat
        if quat is not None:
            rotation = limits.unit_quaternion("external attitude", quat)
        self.pose = External(checked, rotation, time_ms)
        if self._pilot.estimates:
            stds = [float(self._parameter(f"locSrv.ext{of}StdDev")) for of in ("Pos", "Quat")]
            known = None if quat is None else rotation
            self._pilot.physics.firmware.tell_pose(
                self._pilot.name, checked, known, (stds[0], stds[1])
            )


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError(f"expected {size} bytes of data, got {len(data)}")
    return data

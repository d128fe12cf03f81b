"""The real PX4, and a ground station that talks to it with pymavlink."""

from __future__ import annotations

import math
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import fake_px4

from crazyflow_ros.doors.px4.px4_build import FIRST_PORT

VARIABLE = "CRAZYFLOW_ROS_PX4"
MISSING = (
    f"there is no PX4: {VARIABLE} names no build, such as PX4-Autopilot/build/px4_sitl_default"
)
T = 600.0  # s, no wait is longer
_FIRST_REMOTE, _INSTANCES = 14540, 10  # MAVSDK's port of instance 0; so many have their own
_METRES = 111_195.0  # of a degree, on PX4's sphere of 6371 km
_AUTO, _MISSION = 4, 4  # PX4's main and sub mode
_RELATIVE = 6  # MAV_FRAME_GLOBAL_RELATIVE_ALT_INT


def build() -> Path | None:
    """Return the build that the variable names."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and (Path(named) / "bin" / "px4").is_file() else None


def free_instance() -> int:
    """Return a number for PX4 whose ports are free."""
    for instance in range(_INSTANCES):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", FIRST_PORT + instance))
                udp.bind(("127.0.0.1", _FIRST_REMOTE + instance))
            except OSError:
                continue
            return instance
    raise AssertionError("all ports of PX4 are taken")


class Waypoint(NamedTuple):
    """A place of a mission: metres east, north and above home, and how long to stay [s]."""

    east: float
    north: float
    up: float
    stay: float = 1.0


class GroundStation:
    """Commands a PX4.

    Args:
        instance: Its number.
        alive: Whether it makes sense to go on waiting.

    Attributes:
        texts: What PX4 has said.
        ratios: Of ESTIMATOR_STATUS: innovations of velocity, horizontal and vertical position and
            of the magnetic field, as shares of their gates.
    """

    def __init__(self, instance: int, alive: Callable[[], bool] = lambda: True) -> None:
        self._mavlink, self._alive = fake_px4.dialect(), alive
        from pymavlink import mavutil

        where = f"udpin:127.0.0.1:{_FIRST_REMOTE + instance}"
        self._link = mavutil.mavlink_connection(where, source_system=255)
        self._system = instance + 1
        self.texts: list[str] = []
        self.ratios: list[tuple[float, ...]] = []

    def wait(self, kind: str, is_it: Callable[[Any], bool] = lambda _: True) -> Any:
        """Return the next message of a kind that fulfils a condition."""
        until = time.monotonic() + T
        while time.monotonic() < until and self._alive():
            if (found := self.read(1.0)) is not None and found.get_type() == kind and is_it(found):
                return found
        raise AssertionError(f"PX4 sends no such {kind}; it said {self.texts}")

    def read(self, timeout: float) -> Any:
        """Return the next message, or None."""
        message = self._link.recv_match(blocking=True, timeout=timeout)
        if message is None:
            return None
        if message.get_type() == "STATUSTEXT":
            self.texts.append(message.text)
        elif message.get_type() == "ESTIMATOR_STATUS":
            m = message
            self.ratios.append((m.vel_ratio, m.pos_horiz_ratio, m.pos_vert_ratio, m.mag_ratio))
        return message

    def command(self, number: int, *params: float) -> int:
        """Return the result of a command, 0 if it was accepted."""
        padded = (*params, *(0.0,) * (7 - len(params)))
        self._link.mav.command_long_send(self._system, 1, number, 0, *padded)
        return int(self.wait("COMMAND_ACK", lambda ack: ack.command == number).result)

    def set(self, name: str, value: int) -> None:
        """Set a parameter that is a whole number, as MAVLink sends it: as the bits of a float."""
        (bits,) = struct.unpack("<f", struct.pack("<i", value))
        kind = 6  # MAV_PARAM_TYPE_INT32
        self._link.mav.param_set_send(self._system, 1, name.encode(), bits, kind)
        answer = self.wait("PARAM_VALUE", lambda answer: answer.param_id == name)
        assert struct.pack("<f", answer.param_value) == struct.pack("<i", value)

    def mode(self, sub_mode: int) -> None:
        """Set a mode of PX4's automatic flight, 2 to take off, 6 to land."""
        assert self.command(176, 1.0, _AUTO, sub_mode) == 0  # MAV_CMD_DO_SET_MODE

    def arm(self) -> None:
        """Arm as soon as PX4 lets it."""
        self.wait("HEARTBEAT", lambda beat: beat.autopilot == 12)
        while self.command(400, 1.0):  # MAV_CMD_COMPONENT_ARM_DISARM
            self.wait("HEARTBEAT", lambda beat: beat.autopilot == 12)

    def fly(self) -> None:
        """Begin the mission."""
        self.mode(_MISSION)

    def upload(self, waypoints: Sequence[Waypoint]) -> None:
        """Upload a mission: take off, fly to the waypoints, return and land."""
        home = self.wait("HOME_POSITION")
        north, east = home.latitude * 1e-7, home.longitude * 1e-7
        per_degree = _METRES * math.cos(math.radians(north))
        items = [(22, 0.0, 0.0, math.nan, north, east, waypoints[0].up)]  # MAV_CMD_NAV_TAKEOFF
        for point in waypoints:
            place = (north + point.north / _METRES, east + point.east / per_degree, point.up)
            items.append((16, point.stay, 0.3, math.nan, *place))  # MAV_CMD_NAV_WAYPOINT
        items.append((20, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))  # MAV_CMD_NAV_RETURN_TO_LAUNCH
        self._link.mav.mission_count_send(self._system, 1, len(items), 0)
        sent = 0
        while True:
            message = self.read(1.0)
            assert self._alive()
            kind = "" if message is None else message.get_type()
            if kind in ("MISSION_REQUEST", "MISSION_REQUEST_INT"):
                number, stay, radius, yaw, latitude, longitude, height = items[message.seq]
                self._link.mav.mission_item_int_send(
                    self._system,
                    1,
                    message.seq,
                    2 if number == 20 else _RELATIVE,  # MAV_FRAME_MISSION
                    number,
                    int(message.seq == 0),
                    1,
                    stay,
                    radius,
                    0.0,
                    yaw,
                    round(latitude * 1e7),
                    round(longitude * 1e7),
                    height,
                    0,
                )
                sent = max(sent, message.seq + 1)
            elif kind == "MISSION_ACK":
                assert (message.type, sent) == (0, len(items))
                return

    def close(self) -> None:
        """Close the port."""
        self._link.close()

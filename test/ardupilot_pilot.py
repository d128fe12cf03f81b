"""Who flies an ArduPilot in tests: a ground station on its TCP port, with pymavlink."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

VARIABLE = "CRAZYFLOW_ROS_ARDUPILOT"
MISSING = f"{VARIABLE} does not name a build/sitl of ArduPilot: no registry has one"
BUILD = Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None
GUIDED, AUTO, RTL, LAND = 4, 3, 6, 9
HOME = 47.397742, 8.545594  # of the settings
METRES = 111_318.845  # of a degree, ArduPilot's
_AGAIN = 1.0  # s of wall time after which a command is sent again
_SET_MODE, _ARM, _TAKE_OFF, _WAYPOINT, _RTL = 176, 400, 22, 16, 20
_PLACE = 16  # flag of the filter
_RELATIVE = 6  # frame, altitude above home


class Pilot:
    """A ground station of one vehicle.

    Args:
        port: TCP port.
        timeout: No wait is longer [s of wall time].

    Attributes:
        said: Texts that ArduPilot has sent.
        reached: Numbers of mission items that it has reached.
        armed: Whether it is armed.
        knows_its_place: Whether its filter has a place on earth.
        height: Above its home [m].
        speed: m/s.
    """

    def __init__(self, port: int, timeout: float = 600.0) -> None:
        os.environ["MAVLINK20"] = "1"
        from pymavlink import mavutil

        self._timeout = timeout
        self.said: list[str] = []
        self.reached: list[int] = []
        self.armed = self.knows_its_place = False
        self.height = self.speed = math.nan
        self._link = mavutil.mavlink_connection(
            f"tcp:127.0.0.1:{port}", source_system=255, retries=600, dialect="ardupilotmega"
        )
        self._link.wait_heartbeat(timeout=timeout)
        self._link.mav.request_data_stream_send(self._link.target_system, 1, 0, 10, 1)

    def receive(self, *kinds: str) -> Any:
        """Return the next message of some kinds, or None if none comes soon."""
        message = self._link.recv_match(blocking=True, timeout=0.05)
        if message is None:
            return None
        kind = message.get_type()
        if kind == "STATUSTEXT":
            self.said.append(message.text)
        elif kind == "HEARTBEAT" and message.autopilot == 3:
            self.armed = bool(message.base_mode & 128)
        elif kind == "MISSION_ITEM_REACHED":
            self.reached.append(message.seq)
        elif kind == "EKF_STATUS_REPORT":
            self.knows_its_place = bool(message.flags & _PLACE)
        elif kind == "GLOBAL_POSITION_INT":
            self.height = message.relative_alt / 1000
            self.speed = math.hypot(message.vx, message.vy, message.vz) / 100
        return message if kind in kinds else None

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Receive until a condition holds."""
        ends = time.monotonic() + self._timeout
        while not condition():
            self.receive()
            assert time.monotonic() < ends, f"{what}: not within {self._timeout} s; {self.said}"

    def command(self, number: int, *parameters: float) -> None:
        """Send a command until it is accepted."""
        ends, sent = time.monotonic() + self._timeout, -math.inf
        values = [*parameters, *[0.0] * (7 - len(parameters))]
        while time.monotonic() < ends:
            if time.monotonic() - sent > _AGAIN:
                self._link.mav.command_long_send(self._link.target_system, 1, number, 0, *values)
                sent = time.monotonic()
            answer = self.receive("COMMAND_ACK")
            if answer is not None and answer.command == number and answer.result == 0:
                return
        raise AssertionError(f"command {number} is not accepted; {self.said}")

    def mode(self, number: int) -> None:
        """Set a flight mode."""
        self.command(_SET_MODE, 1, number)

    def take_off(self, height: float) -> None:
        """Arm in GUIDED as soon as ArduPilot is ready, and take off."""
        self.until(lambda: self.knows_its_place, "its place")
        self.mode(GUIDED)
        self.command(_ARM, 1)
        self.command(_TAKE_OFF, 0, 0, 0, 0, 0, 0, height)
        self.until(lambda: abs(self.height - height) < 0.2 and self.speed < 0.1, "its height")

    def load(self, waypoints: Sequence[Sequence[float]]) -> None:
        """Load a mission of waypoints east, north, up [m], at which it stays a second; then RTL."""
        items = [(_WAYPOINT, 0.0, 0.0, 0.0, 0.0)]  # home, which it replaces
        items += [(_WAYPOINT, 1.0, *map(float, place)) for place in waypoints]
        items += [(_RTL, 0.0, 0.0, 0.0, 0.0)]
        mav, target = self._link.mav, self._link.target_system
        mav.mission_count_send(target, 1, len(items), 0)
        ends = time.monotonic() + self._timeout
        while time.monotonic() < ends:
            asked = self.receive("MISSION_REQUEST", "MISSION_REQUEST_INT", "MISSION_ACK")
            if asked is None:
                continue
            if asked.get_type() == "MISSION_ACK":
                assert asked.type == 0, asked
                return
            command, stay, east, north, up = items[asked.seq]
            latitude, longitude = geodetic(east, north)
            place = round(1e7 * latitude), round(1e7 * longitude), up
            mav.mission_item_int_send(
                *(target, 1, asked.seq, _RELATIVE, command, 0, 1, stay, 0, 0, 0), *place, 0
            )
        raise AssertionError("the mission is not loaded")

    def close(self) -> None:
        """Close the connection."""
        self._link.close()


def geodetic(east: float, north: float) -> tuple[float, float]:
    """Return latitude and longitude of a place in the world."""
    latitude, longitude = HOME
    return (
        latitude + north / METRES,
        longitude + east / METRES / math.cos(math.radians(latitude)),
    )


def nearest(path: Sequence[np.ndarray], places: Sequence[Sequence[float]]) -> np.ndarray:
    """Return the least distance [m] of a path to each of some places."""
    difference = np.array(path)[:, None] - np.array(places, float)[None]
    return np.asarray(np.linalg.norm(difference, axis=-1).min(axis=0))

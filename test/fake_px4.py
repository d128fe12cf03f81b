"""A PX4 that is none: the other end of its simulator interface, with pymavlink as its codec.

python test/fake_px4.py PORT [SECONDS] lets one hover a Holybro X500, and says how long that took.
"""

from __future__ import annotations

import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from ports import free_ports

RATE = 250  # Hz
ARMED, LOCK_STEP = 129, 1  # mode, flag
Pilot = Callable[
    [Any, Any], Sequence[float] | None
]  # HIL_SENSOR, HIL_STATE_QUATERNION; None disarms


def dialect() -> ModuleType:
    """Return pymavlink's messages in version 2, or skip the tests."""
    import pytest

    os.environ["MAVLINK20"] = "1"
    reason = "pymavlink is not installed: it belongs to the extra dev"
    return pytest.importorskip("pymavlink.dialects.v20.common", reason=reason)


FIRST_PORT = 4560  # of PX4's instance 0
_PROGRAM = f"""#!{sys.executable}
import os, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from fake_px4 import main
instance, etc = int(sys.argv[sys.argv.index("-i") + 1]), Path(sys.argv[-1])
airframes = etc / "init.d-posix" / "airframes"
(own,) = airframes.glob(os.environ["PX4_SYS_AUTOSTART"] + "_" + os.environ["PX4_SIM_MODEL"])
print("airframes", sorted(path.name for path in airframes.iterdir()), own.stat().st_size > 100)
print("scripts", (etc / "init.d-posix" / "rcS").read_text(), (etc / "extras.txt").read_text())
main({FIRST_PORT} + instance, float(os.environ.get("FAKE_PX4_SECONDS", "2")))
sys.exit(7)
"""


def build(folder: Path) -> Path:
    """Write a build of PX4 whose program is a fake that hovers for 2 s, and then ends."""
    dialect()
    airframes = folder / "etc" / "init.d-posix" / "airframes"
    airframes.mkdir(parents=True)
    (airframes / "10016_none_iris").write_text("an iris")
    (airframes.parent / "rcS").write_text("rcS")
    (folder / "etc" / "extras.txt").write_text("extras")
    program = folder / "bin" / "px4"
    program.parent.mkdir()
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    return folder


def free_instance() -> int:
    """Return an instance of PX4 whose port is free, as is the next one."""
    return free_ports(2, kind=socket.SOCK_STREAM, least=FIRST_PORT) - FIRST_PORT


class Hover:
    """Arms a Holybro X500, and holds it above where it was: PX4's frames, the drone's figures."""

    MASS, G, ARM, DRAG_ARM, THRUST = 2.28, 9.81, 0.17678, 0.016, 12.13
    INERTIA = np.array([0.024, 0.024, 0.044])
    SPEED, DAMPING = np.array([8.0, 8.0, 3.0]), 0.8  # of the attitude
    SIDES = np.array([(-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, -1)])  # FR, RL, FL, RR
    METRES = np.array([1.11319e-2, 1.11319e-2, -1e-3])  # of 1e-7 degrees at the equator, of 1 mm

    def __init__(self, height: float, begin: int = RATE) -> None:
        self._height, self._begin, self._frames = height, begin, 0
        self._start: np.ndarray | None = None

    def __call__(self, sensor: Any, truth: Any) -> Sequence[float] | None:
        """Return the outputs."""
        self._frames += 1
        if self._frames < self._begin or truth is None:
            return None
        place = np.array((truth.lat, truth.lon, truth.alt)) * self.METRES
        place[1] *= math.cos(math.radians(truth.lat * 1e-7))
        velocity = np.array((truth.vx, truth.vy, truth.vz)) / 100
        rates = np.array((sensor.xgyro, sensor.ygyro, sensor.zgyro))
        return self.hold(place, velocity, truth.attitude_quaternion, rates)

    def hold(
        self, place: np.ndarray, velocity: np.ndarray, quat: Sequence[float], rates: np.ndarray
    ) -> list[float]:
        """Return the outputs for a state, in NED and FRD, the quaternion wxyz."""
        if self._start is None:
            self._start = place - (0, 0, self._height)
        w, x, y, z = quat
        roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
        pitch = math.asin(max(-1.0, min(1.0, 2 * (w * y - z * x))))
        yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        north, east, down = (3 * (self._start - place) - 3 * velocity).clip(-3, 3)
        forward = north * math.cos(yaw) + east * math.sin(yaw)
        right = east * math.cos(yaw) - north * math.sin(yaw)
        wanted = np.array((right / self.G, -forward / self.G, math.pi / 2))
        error = wanted - (roll, pitch, yaw)
        error[2] = (error[2] + math.pi) % (2 * math.pi) - math.pi
        torque = self.INERTIA * self.SPEED * (self.SPEED * error - 2 * self.DAMPING * rates)
        lift = self.MASS * (self.G - down)
        return np.sqrt((self.thrusts(lift, torque) / self.THRUST).clip(0, 1)).tolist()

    def thrusts(self, lift: float, torque: np.ndarray) -> np.ndarray:
        """Return the thrust of each rotor [N] for a lift [N] and a torque [N m]."""
        arms = np.array((self.ARM, self.ARM, self.DRAG_ARM))
        result: np.ndarray = lift / 4 + self.SIDES @ (torque / arms) / 4
        return result


class FakePx4(threading.Thread):
    """Connects, and answers frames.

    Args:
        port: TCP port of the simulator.
        pilot: What the outputs are, in answer to a frame.
        boots: Frames at the beginning that it does not answer.
        silent: See below.
        delay: Frames by which its answers are late.
        every: It answers each frame, or each second, and so on.

    Attributes:
        silent: Whether it does not answer, although it reads.
        sensors: HIL_SENSOR of all frames.
        fixes: All of HIL_GPS.
        truths: All of HIL_STATE_QUATERNION.
        ranges: All of DISTANCE_SENSOR.
        flows: All of HIL_OPTICAL_FLOW.
        odometries: All of ODOMETRY.
        answers: Number of its answers.
    """

    def __init__(
        self,
        port: int,
        pilot: Pilot = lambda *_: None,
        *,
        boots: int = 0,
        silent: bool = False,
        delay: int = 0,
        every: int = 1,
    ) -> None:
        super().__init__(daemon=True)
        self._pilot, self._boots, self._delay, self._every = pilot, boots, delay, every
        self._mavlink = dialect()
        self.silent, self.answers = silent, 0
        self.sensors: list[Any] = []
        self.fixes: list[Any] = []
        self.truths: list[Any] = []
        self.ranges: list[Any] = []
        self.flows: list[Any] = []
        self.odometries: list[Any] = []
        self._codec = self._mavlink.MAVLink(None, srcSystem=1, srcComponent=1)
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._send(self._mavlink.MAVLink_heartbeat_message(2, 12, 0, 0, 3, 3))
        command = (1, 1, 511, 0, 115.0, 5000.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self._send(self._mavlink.MAVLink_command_long_message(*command))

    def send(self, data: bytes) -> None:
        """Send any bytes."""
        self._socket.sendall(data)

    def _send(self, message: Any) -> None:
        self.send(bytes(message.pack(self._codec)))
        self._codec.seq = (self._codec.seq + 1) % 256

    def run(self) -> None:
        """Answer until the connection ends."""
        try:
            while data := self._socket.recv(4096):
                for message in self._codec.parse_buffer(data) or ():
                    self._take(message)
        except OSError:  # the simulator has ended, or `end` was called
            pass

    def _take(self, message: Any) -> None:
        if message.get_type() == "HIL_SENSOR":
            self.sensors.append(message)
            n = len(self.sensors)
            if not self.silent and n > self._boots + self._delay and n % self._every == 0:
                self._answer(self.sensors[-1 - self._delay])
            return
        kinds = {
            "HIL_GPS": self.fixes,
            "HIL_STATE_QUATERNION": self.truths,
            "DISTANCE_SENSOR": self.ranges,
            "HIL_OPTICAL_FLOW": self.flows,
            "ODOMETRY": self.odometries,
        }
        kinds[message.get_type()].append(message)

    def _answer(self, sensor: Any) -> None:
        outputs = self._pilot(sensor, self.truths[-1] if self.truths else None)
        controls, mode = (outputs or [0.0] * 4) + [0.0] * 12, 1 if outputs is None else ARMED
        answer = self._mavlink.MAVLink_hil_actuator_controls_message
        self.answers += 1
        self._send(answer(sensor.time_usec, controls, mode, LOCK_STEP))

    def end(self) -> None:
        """Close the connection."""
        with suppress(OSError):  # the simulator was faster
            self._socket.shutdown(socket.SHUT_RDWR)
        if self.ident is not None:
            self.join()
        self._socket.close()


def main(port: int, seconds: float = 60.0) -> None:
    """Hover for some simulated time, and print the real-time factor."""
    fake, wanted = FakePx4(port, Hover(1.0)), int(seconds * RATE)
    fake.start()
    began = time.monotonic()
    while len(fake.sensors) < wanted and fake.is_alive():
        time.sleep(0.01)
    took = time.monotonic() - began
    print(f"{len(fake.sensors) / RATE / took:.2f} times real time, {fake.answers} answers")
    fake.end()


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:])))

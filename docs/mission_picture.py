"""Draws mission.svg: the path that MAVProxy is told, over the true one.

python -m docs.mission_picture BUILD [FILE] lets ArduPilot, of a build/sitl, fly the mission of
autopilots.md. MAVProxy is its ground station: its program `mavproxy.py` has to be in PATH.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pymavlink import mavutil

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.ardupilot import ArduPilot
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.runtime.door_settings import AutopilotStart
from crazyflow_ros.sensors.gnss import enu_to_geodetic
from docs.figures import STYLE

WAYPOINTS = np.array([(8, 0, 3), (8, 8, 4), (0, 8, 5), (-8, 4, 4), (-4, -4, 3)])  # m, ENU
RATE, T = 20, 600.0  # Hz of the true path; s of wall time, no wait is longer
LOG = "mav.tlog"
SETTINGS = ArduPilot()
_METRES = 111_318.845  # of a degree, ArduPilot's
_WAYPOINT, _RTL, _RELATIVE = 16, 20, 3


def mission() -> str:
    """Return the mission as a file of waypoints: home, the waypoints, and the way back."""
    places = enu_to_geodetic(WAYPOINTS, SETTINGS.latitude, SETTINGS.longitude, SETTINGS.altitude)
    latitudes, longitudes, _ = (values.tolist() for values in places)
    items = [(0, _WAYPOINT, 0, SETTINGS.latitude, SETTINGS.longitude, SETTINGS.altitude)]
    for latitude, longitude, height in zip(latitudes, longitudes, WAYPOINTS[:, 2].tolist()):
        items.append((_RELATIVE, _WAYPOINT, 1, latitude, longitude, height))
    items.append((_RELATIVE, _RTL, 0, 0.0, 0.0, 0.0))
    lines = ["QGC WPL 110"]
    for number, (frame, command, stay, *place) in enumerate(items):
        numbers = (number, int(number == 0), frame, command, stay, 0, 0, 0, *place, 1)
        lines.append("\t".join(map(str, numbers)))
    return "\n".join((*lines, ""))


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + T
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {T:g} s for {what}")
        time.sleep(0.1)


def fly(build: Path, folder: Path) -> np.ndarray:
    """Fly the mission; return the true path [m], (N, 3). The folder gets MAVProxy's log."""
    config = SimulationConfig.of(RealisticOptions(drone_model="hb_x500", real_time_factor=0.0))
    logger = logging.getLogger("ardupilot")
    door = SETTINGS.open(DoorContext.of(config, ["cf0"], logger))
    physics = PhysicsThread(config, ["cf0"], door)
    path: list[np.ndarray] = []
    physics.every(RATE, lambda snapshot: path.append(snapshot.pos[0].copy()), "picture")
    autopilots = SETTINGS.autopilots(AutopilotStart(build, folder, config, ("cf0",), logger))
    (folder / "mission.txt").write_text(mission())
    console = folder / "mavproxy.log"
    try:
        physics.start()
        list(autopilots.start())
        with console.open("wb") as output, mavproxy(folder, output.fileno()) as station:
            assert station.stdin is not None

            def order(line: str, done: Callable[[], object]) -> None:
                station.stdin.write(f"{line}\n")
                station.stdin.flush()
                until(done, line)

            def said(text: str) -> Callable[[], bool]:
                return lambda: text in console.read_text(errors="replace")

            until(said("is using GPS"), "ArduPilot's place")
            order("mode guided", said("GUIDED>"))
            order("arm throttle", lambda: physics.snapshot.rotor_vel.min() > 10.0)
            order("takeoff 3", lambda: physics.snapshot.pos[0, 2] > 2.9)
            order("wp load mission.txt", said("Loaded 7 waypoints"))
            until(said("Sent all 7"), "the mission")
            order("mode auto", lambda: physics.snapshot.rotor_vel.max() < 1.0)
            station.kill()  # its end asks, and waits for an answer
    finally:
        physics.stop()
        autopilots.close()
    return np.array(path)


def mavproxy(folder: Path, output: int) -> subprocess.Popen[str]:
    """Start MAVProxy in a folder."""
    program = shutil.which("mavproxy.py")
    if program is None:
        raise FileNotFoundError("there is no mavproxy.py in PATH: pip install MAVProxy")
    words = [program, "--master", "tcp:127.0.0.1:5760", "--logfile", LOG]
    return subprocess.Popen(
        words, cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True
    )


def told(log: Path) -> np.ndarray:
    """Return the places in MAVProxy's log [m], (N, 3): east, north, and up from home."""
    link, places = mavutil.mavlink_connection(str(log)), []
    while (message := link.recv_match(type="GLOBAL_POSITION_INT")) is not None:
        north = (message.lat * 1e-7 - SETTINGS.latitude) * _METRES
        east = (message.lon * 1e-7 - SETTINGS.longitude) * _METRES
        east *= np.cos(np.radians(SETTINGS.latitude))
        places.append((east, north, message.relative_alt * 1e-3))
    return np.array([place for place in places if np.linalg.norm(place) < 100.0])


def draw(truth: np.ndarray, shown: np.ndarray, file: Path) -> None:
    """Draw both paths, from above and from the south."""
    plt.rcParams.update(STYLE)
    heights = np.ptp(truth[:, 1:], axis=0)
    figure, views = plt.subplots(2, sharex=True, figsize=(4.5, 8.0), height_ratios=heights)
    for axes, name, up in ((views[0], "north [m]", 1), (views[1], "up [m]", 2)):
        axes.plot(truth[:, 0], truth[:, up], color="0.75", lw=5, label="true path")
        axes.plot(shown[:, 0], shown[:, up], color="tab:red", lw=1, label="MAVProxy's log")
        axes.plot(WAYPOINTS[:, 0], WAYPOINTS[:, up], "k+", ms=9, label="waypoints")
        axes.set(ylabel=name, xticks=range(-8, 9, 4))
        axes.set_aspect("equal", adjustable="datalim")  # both as wide as each other
    views[1].legend(loc="upper right")
    views[1].set_xlabel("east [m]")
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Fly and draw."""
    logging.basicConfig(level=logging.INFO)
    build, *file = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        truth = fly(build, Path(name))
        draw(truth, told(Path(name, LOG)), *file or [Path(__file__).parent / "mission.svg"])


if __name__ == "__main__":
    main()

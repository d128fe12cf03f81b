"""Takes the pictures of flights in the room: python -m docs.page_pictures [FOLDER].

page.jpg is the page of visualise.md. figure_eights.webp is the moving picture of the README, a film
of a recording by `view --video`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import tau
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from crazyflie_interfaces.srv import GoTo
from geometry_msgs.msg import Point
from playwright.sync_api import Browser, Page
from trajectory_msgs.msg import MultiDOFJointTrajectory

from benchmark.chromium import open_chromium
from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.client.figure_eight.flight_path import FlightPath, PathMotion
from crazyflow_ros.client.figure_eight.trajectory_messages import trajectory_message
from crazyflow_ros.ros.messages.times import duration_of

DRONES = ("cf0", "cf1", "cf2", "cf3")
PORT = 8197
DRAWING = 15.0  # s that a software renderer needs for the first picture

STILL_SIZE = (1280, 720)
GOAL, GOAL_DURATION = Point(x=1.1, y=-1.0, z=1.0), 40.0  # m, s: it is under way in the picture

PERIOD = 6.0  # s of simulated time, of one round
FILM = ("--size", "480x270", "--fps", "8")
CENTRE, AXIS = np.array([-0.15, -0.025]), np.array([0.936, 0.351])  # between the room's pillars
HALF_LENGTH, HALF_WIDTH = 1.2, 0.6  # m
GAP = 0.12  # of a round, between two drones
BEGIN = 3.0  # s until a drone has its speed


def place(time: float | np.ndarray, drone: int) -> np.ndarray:
    """Return where a drone is on its eight around the pillars, (..., 3) [m]."""
    time = np.asarray(time, float)
    flown = np.where(time < BEGIN, time**2 / (2 * BEGIN), time - BEGIN / 2)
    phase = tau * (flown / PERIOD - GAP * drone)
    along, across = HALF_LENGTH * np.sin(phase), HALF_WIDTH * np.sin(2 * phase)
    flat = CENTRE + along[..., None] * AXIS + across[..., None] * np.array([-AXIS[1], AXIS[0]])
    return np.concatenate([flat, (0.8 + 0.25 * np.sin(phase + 0.5))[..., None]], axis=-1)


class Eight(NamedTuple):
    """The flight of a drone: rounds after it has its speed. A segment of a `FlightPath`."""

    drone: int

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return BEGIN + 2.5 * PERIOD

    def __call__(self, times: np.ndarray) -> PathMotion:
        """Return the motion at times (K,) [s]; it begins at rest."""
        dt = 1e-3  # s
        before, now, after = (place(times + step, self.drone) for step in (-dt, 0.0, dt))
        moves = (times > 0)[:, None]
        velocity, acceleration = (after - before) / (2 * dt), (after - 2 * now + before) / dt**2
        return PathMotion(now, moves * velocity, moves * acceleration)


def open_page(simulation: SimulatorClient, browser: Browser, size: tuple[int, int]) -> Page:
    """Open the page, and wait until it is drawn."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.set_default_timeout(120_000)
    page.goto(f"http://127.0.0.1:{PORT}/")
    page.get_by_role("tab", name="Fly").wait_for()
    simulation.sleep(DRAWING)
    return page


def take_still(simulation: SimulatorClient, browser: Browser, file: Path) -> None:
    """Take the picture of the page while a drone flies to a goal."""
    page = open_page(simulation, browser, STILL_SIZE)
    goal = {"goal": GOAL, "duration": duration_of(GOAL_DURATION)}
    simulation.call(GoTo, "cf0/go_to", **goal)
    simulation.sleep(DRAWING)
    page.screenshot(path=file, quality=80)
    page.close()


def start_poses() -> str:
    """Return the parameter `initial_poses`: each drone below the begin of its eight."""
    poses = [(*place(0.0, number)[:2].tolist(), 0.02, 0.0) for number in range(len(DRONES))]
    return f"initial_poses:={[number for pose in poses for number in pose]}"


def take_off(simulation: SimulatorClient) -> None:
    """Put all drones to their starts, and take off from there."""
    simulation.reset()
    for number, name in enumerate(DRONES):
        simulation.drone(name).takeoff(float(place(0.0, number)[2]))


def fly_eights(simulation: SimulatorClient) -> int:
    """Let all drones begin their rounds where they are, and return when [ns of simulated time]."""
    publishers = [
        simulation.node.create_publisher(MultiDOFJointTrajectory, f"{name}/cmd_trajectory", 1)
        for name in DRONES
    ]
    simulation.wait(
        lambda: all(publisher.get_subscription_count() for publisher in publishers),
        "no drone takes trajectories",
    )
    simulation.look_at_time()  # it has gone on while the page was opened
    start_ns = simulation.time_ns + 1_000_000_000
    for number, publisher in enumerate(publishers):
        eight = Eight(number)
        path = FlightPath((eight,), airborne=(0.0, eight.duration))
        publisher.publish(trajectory_message(DRONES[number], path, start_ns))
    return start_ns


def film(recording: Path, begin: float, file: Path) -> None:
    """Film one round of all drones, from a time [s] on."""
    span = ("--begin", f"{begin:g}", "--end", f"{begin + PERIOD:g}")
    command = [sys.executable, "-m", "crazyflow_ros", "view", str(recording), "--video", str(file)]
    subprocess.run([*command, *span, *FILM, "--overwrite"], check=True)


def room() -> list[str]:
    """Return the parameters of a simulator with the drones below their eights in the room."""
    drones = f"drones:=[{','.join(DRONES)}]"
    return ["-p", "scene:=room", "-p", drones, "-p", start_poses()]


@contextmanager
def simulator(*arguments: str) -> Iterator[SimulatorClient]:
    """Run a simulator."""
    command = [sys.executable, "-m", "crazyflow_ros", "--ros-args", *arguments]
    with subprocess.Popen(command) as process:
        try:
            with SimulatorClient() as simulation:
                yield simulation
        finally:
            process.terminate()


@contextmanager
def view(*arguments: str) -> Iterator[None]:
    """Serve a page."""
    command = [sys.executable, "-m", "crazyflow_ros.view", "--port", str(PORT), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            print(process.stdout.readline(), end="")  # its address, once it answers
            yield
        finally:
            process.terminate()


def main() -> None:
    """Start a simulator and its page, and take the pictures."""
    os.environ.setdefault("ROS_DOMAIN_ID", "98")  # without the simulators of others
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with TemporaryDirectory() as temporary:
        recording = Path(temporary) / "eights.mcap"
        with simulator(*room(), "-p", f"record:={recording}") as simulation:
            take_off(simulation)
            begin = fly_eights(simulation) * 1e-9 + BEGIN
            simulation.sleep(begin + PERIOD + 1.0 - simulation.time)
        film(recording, begin, folder / "figure_eights.webp")
    with simulator(*room()) as simulation, view(), open_chromium() as browser:
        take_off(simulation)
        take_still(simulation, browser, folder / "page.jpg")


if __name__ == "__main__":
    main()

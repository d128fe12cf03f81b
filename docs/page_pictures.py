"""Takes the pictures of the page: python docs/page_pictures.py [FOLDER].

page.png is the page of visualise.md, room.webp the moving picture of the README. A browser that
draws without a graphics card needs more than a second for a picture, so the moving one is taken in
slow motion.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from io import BytesIO
from math import tau
from pathlib import Path
from typing import NamedTuple

import numpy as np
from crazyflie_interfaces.srv import GoTo
from geometry_msgs.msg import Point
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from trajectory_msgs.msg import MultiDOFJointTrajectory

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.demo.messages import trajectory_message
from crazyflow_ros.demo.trajectory import FlightPath, Motion
from crazyflow_ros.ros.messages.times import duration_of

DRONES = ("cf0", "cf1", "cf2", "cf3")
PORT = 8197
ARGUMENTS = (
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
DRAWING = 15.0  # s that a software renderer needs for the first picture

STILL_SIZE = (1280, 720)
STILL_CAMERA = ((-0.9, -1.5, 1.15), (0.25, -0.35, 0.65))  # m, where it is and where it looks
GOAL, GOAL_DURATION = Point(x=1.1, y=-1.0, z=1.0), 40.0  # m, s: it is under way in the picture

MOVING_SIZE, SHOWN_SIZE = (1040, 585), (832, 468)
MOVING_CAMERA = ((0.35, -2.35, 1.75), (0.25, -0.1, 0.75))
PERIOD, STEP = 8.0, 0.08  # s of simulated time, of one round and between two pictures
SLOW_MOTION = 0.03  # real-time factor
QUALITY = 60
CENTRE, AXIS = np.array([-0.15, -0.025]), np.array([0.936, 0.351])  # between the room's pillars
HALF_LENGTH, HALF_WIDTH = 1.3, 0.6  # m
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
    """The flight of a drone: two rounds after it has its speed. A segment of a `FlightPath`."""

    drone: int

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return BEGIN + 2 * PERIOD

    def __call__(self, times: np.ndarray) -> Motion:
        """Return the motion at times (K,) [s]; it begins at rest."""
        dt = 1e-3  # s
        before, now, after = (place(times + step, self.drone) for step in (-dt, 0.0, dt))
        moves = (times > 0)[:, None]
        velocity, acceleration = (after - before) / (2 * dt), (after - 2 * now + before) / dt**2
        return Motion(now, moves * velocity, moves * acceleration)


def open_page(
    simulation: SimulatorClient,
    browser: Browser,
    size: tuple[int, int],
    camera: tuple[object, object],
) -> Page:
    """Open the page, and wait until it is drawn."""
    place, look_at = (re.sub(r"[() ]", "", str(numbers)) for numbers in camera)
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.set_default_timeout(120_000)
    query = f"?initialCameraPosition={place}&initialCameraLookAt={look_at}"
    page.goto(f"http://127.0.0.1:{PORT}/{query}")
    page.get_by_role("tab", name="Fly").wait_for()
    page.locator("button.mantine-CloseButton-root").first.click()  # viser's word on the GPU
    simulation.sleep(DRAWING)
    return page


def take_still(simulation: SimulatorClient, browser: Browser, file: Path) -> None:
    """Take the picture of the page while a drone flies to a goal."""
    goal = {"goal": GOAL, "duration": duration_of(GOAL_DURATION)}
    simulation.call(GoTo, "cf0/go_to", **goal)
    page = open_page(simulation, browser, STILL_SIZE, STILL_CAMERA)
    page.screenshot(path=file)
    page.close()


def take_moving(simulation: SimulatorClient, browser: Browser, file: Path) -> None:
    """Take a picture of each `STEP` of one round of all drones."""
    for number, name in enumerate(DRONES):
        simulation.drone(name).go_to(*place(0.0, number).tolist())
    page = open_page(simulation, browser, MOVING_SIZE, MOVING_CAMERA)
    page.get_by_role("tab", name="Plots").click()
    publishers = [
        simulation.node.create_publisher(MultiDOFJointTrajectory, f"{name}/cmd_trajectory", 1)
        for name in DRONES
    ]
    simulation.wait(
        lambda: all(publisher.get_subscription_count() for publisher in publishers),
        "no drone takes trajectories",
    )
    start_ns = simulation.time_ns + 1_000_000_000
    for number, publisher in enumerate(publishers):
        eight = Eight(number)
        path = FlightPath((eight,), airborne=(0.0, eight.duration))
        publisher.publish(trajectory_message(DRONES[number], path, start_ns))
    begin = start_ns * 1e-9 + BEGIN + GAP * PERIOD
    simulation.sleep(begin - 1.0 - simulation.time)
    slow = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=SLOW_MOTION)
    parameters = [Parameter(name="real_time_factor", value=slow)]
    simulation.call(SetParameters, f"{simulation.name}/set_parameters", parameters=parameters)
    pictures: list[Image.Image] = []
    while len(pictures) < round(PERIOD / STEP):
        simulation.sleep(begin + STEP * len(pictures) - simulation.time)
        picture = Image.open(BytesIO(page.screenshot()))
        late = simulation.time - begin - STEP * len(pictures)
        if late > STEP:
            raise RuntimeError(f"a picture is {late:.3f} s late: choose a lower SLOW_MOTION")
        pictures.append(picture.convert("RGB").resize(SHOWN_SIZE, Image.Resampling.LANCZOS))
    first, *rest = pictures
    options = {"loop": 0, "quality": QUALITY, "method": 6}
    first.save(file, save_all=True, append_images=rest, duration=round(1000 * STEP), **options)
    page.close()


def main() -> None:
    """Start a simulator and its page, and take the pictures."""
    os.environ.setdefault("ROS_DOMAIN_ID", "98")  # without the simulators of others
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    found = shutil.which("chromium") or shutil.which("google-chrome")
    simulator = [sys.executable, "-m", "crazyflow_ros", "--ros-args", "-p", "scene:=room"]
    simulator += ["-p", f"drones:=[{','.join(DRONES)}]"]
    view = [sys.executable, "-m", "crazyflow_ros.view", "--port", str(PORT)]
    with subprocess.Popen(simulator) as first, subprocess.Popen(view) as second:
        try:
            with SimulatorClient() as simulation, sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
                for name in DRONES:
                    simulation.drone(name).takeoff(0.7)
                take_still(simulation, browser, folder / "page.png")
                take_moving(simulation, browser, folder / "room.webp")
                browser.close()
        finally:
            first.terminate()
            second.terminate()


if __name__ == "__main__":
    main()

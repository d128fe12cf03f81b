"""Takes the pictures of gallery.md: python -m docs.gallery_pictures [NAME]..., by default all.

Each is a page of `crazyflow_ros view` in a browser, as somebody sees it who opens it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from math import hypot, sin
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from crazyflie_interfaces.srv import GoTo, Takeoff
from crazyflow_ros_interfaces.srv import SetMotorEfficiency
from geometry_msgs.msg import Point
from PIL import Image
from playwright.sync_api import Browser, Page

from benchmark.chromium import open_chromium
from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.messages.times import duration_of
from docs.page_pictures import PORT, fly_eights, room, simulator, take_off, view

FOLDER = Path(__file__).with_name("gallery")
WIDE, PHONE = (1280, 720), (390, 844)
SLOW = (
    0.1  # simulated over wall time: a renderer without a graphics card needs seconds for a picture
)
LEAD = 7.0  # s of flight before the picture
DRAWING = 15_000  # ms, in which a renderer without a graphics card draws a page that has changed
PATIENCE = 60_000  # ms
QUALITY = 88
SWARM = 100


class Studio(NamedTuple):
    """What a picture is taken with."""

    simulation: SimulatorClient
    browser: Browser

    def open(self, size: tuple[int, int] = WIDE, *, dark: bool = False) -> Page:
        """Open the page."""
        return open_page(self.browser, size, dark=dark)

    def fly(self) -> None:
        """Let the four drones fly eights around the pillars, from where they start."""
        factor = self.simulation.parameters
        factor.set({"real_time_factor": 1.0})
        take_off(self.simulation)
        fly_eights(self.simulation)
        self.simulation.sleep(LEAD)
        factor.set({"real_time_factor": SLOW})


def open_page(browser: Browser, size: tuple[int, int] = WIDE, *, dark: bool = False) -> Page:
    """Open the page, and wait until it is drawn."""
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        has_touch=size == PHONE,
        is_mobile=size == PHONE,
    )
    page.set_default_timeout(PATIENCE)
    page.goto(f"http://127.0.0.1:{PORT}/?fixedDpr=1")
    page.locator("canvas[data-engine]").wait_for()
    page.wait_for_timeout(2 * DRAWING)
    return page


def choose(page: Page, label: str, option: str) -> None:
    """Choose an option of the panel by its label."""
    page.get_by_label(label, exact=True).select_option(option)


# Of four drones in the room.


def opens(studio: Studio) -> Page:
    """Show the page as it opens during a flight."""
    studio.fly()
    return studio.open()


def dark(studio: Studio) -> Page:
    """Show the same in a browser that is dark."""
    studio.fly()
    return studio.open(dark=True)


def phone(studio: Studio) -> Page:
    """Show the page on a phone, with its sticks."""
    studio.fly()
    return studio.open(PHONE)


def behind(studio: Studio) -> Page:
    """Follow a drone from behind."""
    studio.fly()
    page = studio.open()
    choose(page, "Camera", "behind the drone")
    page.get_by_role("button", name="Pause").scroll_into_view_if_needed()
    return page


def sensors(studio: Studio) -> Page:
    """Draw what a lidar measures."""
    studio.fly()
    page = studio.open()
    page.get_by_role("tab", name="Sensors").click()
    for name in ("scan", "cloud"):
        row = page.locator(".readings > div").filter(has=page.get_by_text(name, exact=True))
        row.get_by_role("button", name="Draw").click()
    return page


def camera(studio: Studio) -> Page:
    """Show the picture of the drone's camera in the picture."""
    studio.fly()
    page = studio.open(dark=True)
    page.get_by_role("button", name="Onboard camera").click()
    page.locator("img[src^=blob]").wait_for()
    return page


def plots(studio: Studio) -> Page:
    """Show a large plot of setpoint and state."""
    studio.fly()
    page = studio.open()
    page.get_by_role("tab", name="Plots").click()
    page.wait_for_timeout(DRAWING)
    page.get_by_role("button", name="Large").first.click()
    return page


# Of a hundred drones on a plane.


def swarm(studio: Studio) -> Page:
    """Show a hundred drones as a wave."""
    simulation = studio.simulation
    simulation.call(Takeoff, "all/takeoff", height=1.0, duration=duration_of(2.0))
    simulation.sleep(3.0)
    for number in range(SWARM):
        name = f"cf{number}"
        x, y, _ = simulation.drone(name).position
        goal = Point(x=float(x), y=float(y), z=1.0 + 0.5 * sin(1.5 * hypot(x, y)))
        simulation.call(GoTo, f"{name}/go_to", goal=goal, duration=duration_of(3.0))
    simulation.sleep(6.0)
    return studio.open()


# Of recordings.


def why(browser: Browser) -> Page:
    """Ask why a drone has crashed."""
    page = open_page(browser)
    page.locator(".mark[data-group=crash]").last.click(force=True)
    return page


def compare(browser: Browser) -> Page:
    """Compare two runs."""
    page = open_page(browser, dark=True)
    page.keyboard.press("g")
    return page


def record(file: Path, efficiency: float) -> None:
    """Record a flight of two drones in the room, of which one loses thrust of a motor."""
    arguments = ["-p", f"record:={file}", "-p", "scene:=room", "-p", "drones:=[cf0,cf1]"]
    with simulator(*arguments) as simulation:
        drones = [simulation.drone(name) for name in ("cf0", "cf1")]
        for drone in drones:
            drone.takeoff(0.6)
        for drone in drones:
            x, y, _ = drone.position
            drone.go_to(float(x), float(y), 1.2)
        if efficiency < 1:
            failure = {"motor": 1, "efficiency": efficiency}
            simulation.call(SetMotorEfficiency, "cf1/set_motor_efficiency", **failure)
        simulation.sleep(4.0)


def take(page: Page, name: str) -> None:
    """Write the picture of a page, once it is drawn."""
    page.wait_for_timeout(DRAWING)
    with Image.open(BytesIO(page.screenshot(timeout=PATIENCE))) as picture:
        picture.convert("RGB").save(FOLDER / f"{name}.jpg", quality=QUALITY)
    page.close()
    print(name, flush=True)


IN_THE_ROOM = (opens, dark, phone, behind, sensors, camera, plots)
OF_RECORDINGS = (why, compare)


def take_live(shots: Sequence[Callable[[Studio], Page]], *arguments: str) -> None:
    """Take pictures of a running simulator."""
    if not shots:
        return
    with simulator(*arguments) as simulation, view(), open_chromium() as browser:
        for shot in shots:
            take(shot(Studio(simulation, browser)), shot.__name__)


def main() -> None:
    """Take the pictures that are named."""
    os.environ.setdefault("ROS_DOMAIN_ID", "98")  # without the simulators of others
    known = [shot.__name__ for shot in (*IN_THE_ROOM, swarm, *OF_RECORDINGS)]
    wanted = sys.argv[1:] or known
    if unknown := set(wanted) - set(known):
        sys.exit(f"unknown pictures {', '.join(sorted(unknown))}; have {', '.join(known)}")
    FOLDER.mkdir(exist_ok=True)
    sensors_file = resource("config", "sensors.yaml")
    shots = [shot for shot in IN_THE_ROOM if shot.__name__ in wanted]
    take_live(shots, *room(), "-p", f"sensors:={sensors_file}")
    names = ",".join(f"cf{number}" for number in range(SWARM))
    take_live([swarm] if swarm.__name__ in wanted else [], "-p", f"drones:=[{names}]")
    recordings = [shot for shot in OF_RECORDINGS if shot.__name__ in wanted]
    if not recordings:
        return
    with TemporaryDirectory() as folder, open_chromium() as browser:
        files = [Path(folder, name) for name in ("intact.mcap", "failure.mcap")]
        for file, efficiency in zip(files, (1.0, 0.3)):
            record(file, efficiency)
        for shot in recordings:
            shown = files[1:] if shot is why else files
            with view(*map(str, shown)):
                take(shot(browser), shot.__name__)


if __name__ == "__main__":
    main()

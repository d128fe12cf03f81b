"""Takes the picture of the page in visualise.md: python docs/page_picture.py [FILE]."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

os.environ.setdefault("ROS_DOMAIN_ID", "98")  # without the simulators of others

from crazyflie_interfaces.srv import GoTo
from geometry_msgs.msg import Point

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.ros.messages.times import duration_of

PORT = 8197
SIZE = {"width": 1280, "height": 720}
CAMERA = "?initialCameraPosition=-0.9,-1.5,1.15&initialCameraLookAt=0.25,-0.35,0.65"
ARGUMENTS = (
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
GOAL, DURATION = Point(x=1.1, y=-1.0, z=1.0), 40.0  # m, s: it is under way in the picture
DRAWING = 15.0  # s of wall time that a software renderer needs


def take(path: str) -> None:
    """Fly in the room, and take the picture on the way."""
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with SimulatorClient() as simulation, sync_playwright() as playwright:
        for name in simulation.drones:
            simulation.drone(name).start_takeoff(0.7)
        simulation.sleep(4.0)
        browser = playwright.chromium.launch(executable_path=browser_path, args=ARGUMENTS)
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(120_000)
        page.goto(f"http://127.0.0.1:{PORT}/{CAMERA}")
        page.get_by_role("tab", name="Fly").wait_for()
        page.locator("button.mantine-CloseButton-root").first.click()  # viser's word on the GPU
        simulation.call(GoTo, "cf0/go_to", goal=GOAL, duration=duration_of(DURATION))
        time.sleep(DRAWING)
        page.screenshot(path=path)
        browser.close()


def main() -> None:
    """Start a simulator and its page, and take the picture."""
    path = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("page.png"))
    simulator = [sys.executable, "-m", "crazyflow_ros", "--ros-args", "-p", "scene:=room"]
    simulator += ["-p", "drones:=[cf0,cf1,cf2]"]
    view = [sys.executable, "-m", "crazyflow_ros.view", "--port", str(PORT)]
    with subprocess.Popen(simulator) as first, subprocess.Popen(view) as second:
        try:
            take(path)
        finally:
            first.terminate()
            second.terminate()


if __name__ == "__main__":
    main()

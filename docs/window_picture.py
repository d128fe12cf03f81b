"""Takes the picture of MuJoCo's viewer, window.jpg: python -m docs.window_picture [FOLDER].

Without a display, write xvfb-run -a -s "-screen 0 1280x800x24" before the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from PIL import ImageChops, ImageGrab

from crazyflow_ros.client import SimulatorClient

DRONES = ("cf0", "cf1", "cf2", "cf3")
QUALITY = 80


def main() -> None:
    """Start a simulator with its viewer, let the drones take off, and take the picture."""
    os.environ.setdefault("ROS_DOMAIN_ID", "98")  # without the simulators of others
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    simulator = [sys.executable, "-m", "crazyflow_ros", "--ros-args", "-p", "scene:=room"]
    simulator += ["-p", "headless:=false", "-p", f"drones:=[{','.join(DRONES)}]"]
    with subprocess.Popen(simulator) as process:
        try:
            with SimulatorClient() as simulation:
                for name in DRONES:
                    simulation.drone(name).takeoff(1.0)
                screen = ImageGrab.grab(xdisplay=os.environ["DISPLAY"])
        finally:
            process.terminate()
    black = screen.point(lambda _: 0)
    screen.crop(ImageChops.difference(screen, black).getbbox()).save(
        folder / "window.jpg", quality=QUALITY
    )


if __name__ == "__main__":
    main()

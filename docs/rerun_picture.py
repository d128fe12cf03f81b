"""Takes the picture of a recording in Rerun, rerun.jpg: python -m docs.rerun_picture [FOLDER].

It needs rerun-sdk 0.41 (python -m pip install "rerun-sdk==0.41.*") and a Vulkan driver, but no
graphics card and no display: Mesa's lavapipe is enough, and so is the SwiftShader of Chromium.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from crazyflie_interfaces.srv import GoTo
from geometry_msgs.msg import Point
from PIL import Image
from rerun.experimental import ViewerClient
from trajectory_msgs.msg import MultiDOFJointTrajectory

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.client.figure_eight import FlightPath
from crazyflow_ros.client.figure_eight.trajectory_messages import trajectory_message
from crazyflow_ros.ros.messages.times import duration_of
from docs.page_pictures import DRONES, Eight

LAYOUT = Path(__file__).parents[1] / "examples" / "08_rerun_layout.py"
LOWEST, ABOVE = -0.3, 0.2  # m, height of the first path, and of each above the one below
TAKEOFF, GO_TO, EIGHT = 2.5, 3.0, 12.0  # s
SHOWN = 7.7  # s after the beginning of the eights
SIZE, TOP_BAR, QUALITY = (1200, 660), 37, 85
PORT, PATIENCE, DRAWING = 9895, 60.0, 5.0  # s, s


def record(file: Path) -> float:
    """Record four drones on eights, one above the other, and return when they begin [s]."""
    simulator = [sys.executable, "-m", "crazyflow_ros", "--ros-args", "-p", "scene:=room"]
    simulator += ["-p", f"drones:=[{','.join(DRONES)}]", "-p", f"record:={file}"]
    with subprocess.Popen(simulator) as process:
        try:
            with SimulatorClient() as simulation:
                return fly(simulation)
        finally:
            process.terminate()


def fly(simulation: SimulatorClient) -> float:
    """Fly the eights, and return when they begin [s]."""
    publishers = [
        simulation.node.create_publisher(MultiDOFJointTrajectory, f"{name}/cmd_trajectory", 1)
        for name in DRONES
    ]
    for name in DRONES:
        simulation.drone(name).start_takeoff()
    simulation.sleep(TAKEOFF)
    for number, name in enumerate(DRONES):
        x, y, z = Eight(number)(np.zeros(1)).pos[0].tolist()
        goal = Point(x=x, y=y, z=z + LOWEST + ABOVE * number)
        simulation.call(GoTo, f"{name}/go_to", goal=goal, duration=duration_of(GO_TO))
    simulation.sleep(GO_TO)
    simulation.wait(
        lambda: all(publisher.get_subscription_count() for publisher in publishers),
        "no drone takes trajectories",
    )
    start_ns = simulation.time_ns + 500_000_000
    for number, (name, publisher) in enumerate(zip(DRONES, publishers)):
        eight = Eight(number)
        path = FlightPath((eight,), airborne=(0.0, eight.duration))
        message = trajectory_message(name, path, start_ns)
        for point in message.points:
            point.transforms[0].translation.z += LOWEST + ABOVE * number
        publisher.publish(message)
    simulation.sleep(EIGHT)
    return start_ns * 1e-9


def take_picture(file: Path, shown: float) -> Image.Image:
    """Return the picture of Rerun's viewer at a simulated time [s]."""
    viewer = [sys.executable, "-m", "rerun", str(file), "--headless", "--bind", "127.0.0.1"]
    viewer += ["--port", str(PORT), "--window-size", "{}x{}".format(*SIZE)]
    with subprocess.Popen(viewer, start_new_session=True) as process:
        try:
            client = connect()
            client.set_time("message_log_time", duration=shown, play_state="paused")
            time.sleep(DRAWING)
            return Image.open(BytesIO(client.take_screenshot())).convert("RGB")
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # the program that python -m rerun starts, too


def connect() -> ViewerClient:
    """Return a connection to the viewer after it has loaded the recording."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        time.sleep(0.5)
        try:
            client = ViewerClient.connect(f"rerun+http://127.0.0.1:{PORT}/proxy")
            state = client.get_state()
        except ConnectionError:
            continue
        if state.recordings and not state.loading:
            return client
    raise TimeoutError(f"Rerun shows no recording after {PATIENCE:g} s")


def main() -> None:
    """Record a flight and take the picture."""
    os.environ.setdefault("ROS_DOMAIN_ID", "98")  # without the simulators of others
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with TemporaryDirectory() as temporary:
        flight, arranged = (Path(temporary) / f"flight.{kind}" for kind in ("mcap", "rrd"))
        start = record(flight)
        subprocess.run([sys.executable, LAYOUT, flight, "--save", arranged], check=True)
        picture = take_picture(arranged, start + SHOWN)
    picture.crop((0, TOP_BAR, *picture.size)).save(folder / "rerun.jpg", quality=QUALITY)


if __name__ == "__main__":
    main()

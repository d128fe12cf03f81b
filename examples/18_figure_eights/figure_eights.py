"""Drones fly figure-eights together, over ROS topics and services: `make sim`.

    .venv/bin/python examples/18_figure_eights/figure_eights.py n_drones:=2 real_time_factor:=0

It starts the simulator, flies all drones with a client in another process, and draws the flight.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crazyflow_ros.client import SimulatorError, SimulatorProcess, choose_domain, interruptible
from crazyflow_ros.client.figure_eight import SHORTEST
from crazyflow_ros.drones import DEFAULT_DRONE, Drone, load_drone

ROOM_PADS = ((1.6, 0.9), (-1.9, 0.7), (1.35, -0.75), (-0.3, -1.3))
"""Places in the scene `room` above which there is space for a figure-eight [m], one a drone."""
CHECK = 0.5  # s between two checks of the processes
GRACE = 5.0  # s for the page to end


def main(words: Sequence[str]) -> int:
    """Fly once.

    Returns:
        Exit code: 0 if all drones took off, tracked their figure-eights and landed, and the
        simulator had nothing to warn of.
    """
    given = arguments(words)
    choose_domain()
    from crazyflow_ros.client import SimulationError  # after the domain is chosen

    with interruptible():
        try:
            return demonstrate(given)
        except (SimulatorError, SimulationError, ImportError, OSError) as error:
            print(f"\nFAILED: {error}", file=sys.stderr)
            return 1


def demonstrate(given: argparse.Namespace) -> int:
    from flight_plot import save_plot  # before the flight, to detect a missing Matplotlib early

    from crazyflow_ros.client import SimulatorClient
    from crazyflow_ros.client.figure_eight import fly

    log = given.plot.with_name("simulator.log")
    print(
        f"starting the simulator with {given.n_drones} {given.drone_model} in ROS domain "
        f"{os.environ['ROS_DOMAIN_ID']}, which takes up to a minute the first time (log: {log})",
        flush=True,
    )
    with SimulatorProcess(parameters(given), log) as simulator:
        with (
            page(open_it=given.view == "true") as shown,
            SimulatorClient(check=simulator.check) as simulation,
        ):
            record = fly(simulation, given.duration)
            print(f"\n{record.summary()}")
            save_plot(record, given.plot)
            print(f"picture: {given.plot}")
            problems = record.problems()
            for problem in problems:
                print(f"FAILED: {problem}", file=sys.stderr)
            good = not problems and not simulator.has_complained()
            if shown is not None:
                print("the simulation goes on; Ctrl-C ends it", flush=True)
                while shown.poll() is None:
                    simulator.check()
                    simulator.wait(CHECK)
        if not simulator.stop():
            print("FAILED: the simulator had to be killed", file=sys.stderr)
            good = False
    return 0 if good else 1


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Read `name:=value`, as with ros2 launch; exit with 2 if a word is wrong."""
    parser = argparse.ArgumentParser(
        prog="make sim", usage="figure_eights.py [name:=value ...]", allow_abbrev=False,
        description="Fly figure-eights in ROS 2. Write the options below as name:=value.",
    )  # fmt: skip
    add = parser.add_argument
    add("--n_drones", type=number(int, 1, 1000), default=4, help="they are cf0, cf1 and so on")
    factor = "simulated time over wall time; 0 is as fast as possible"
    add("--real_time_factor", type=number(float, 0), default=1.0, help=factor)
    add("--duration", type=number(float, SHORTEST), default=30.0, help="simulated seconds")
    model = f"one of {', '.join(Drone)}, or the path of a drone's folder"
    add("--drone_model", type=drone, default=DEFAULT_DRONE, help=model)
    add("--sensors", default="", help="YAML file with sensors of the drones; default: none")
    view = "show the flight on a page in a browser, which stays open until Ctrl-C"
    add("--view", choices=("false", "true"), default="false", help=view)
    scene = "such as room; default: the room with view:=true and up to four drones, else a floor"
    add("--scene", default="", help=scene)
    plot = "picture; the simulator's log is saved beside it"
    add("--plot", type=picture, default=Path("out/flight.png"), help=plot)
    for word in words:
        if ":=" not in word and word not in ("-h", "--help"):
            parser.error(f"expected name:=value, got {word!r}")
    return parser.parse_args(
        ["--{}={}".format(*word.split(":=", 1)) if ":=" in word else word for word in words]
    )


def number(
    kind: type[int] | type[float], least: float, most: float = math.inf
) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not least <= (value := kind(text)) <= most or math.isinf(value):
            limits = f"at least {least:g}" if math.isinf(most) else f"from {least:g} to {most:g}"
            raise argparse.ArgumentTypeError(f"expected a number {limits}, got {text!r}")
        return value

    read.__name__ = kind.__name__  # in argparse's messages
    return read


def drone(text: str) -> str:
    try:
        load_drone(text)
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def picture(text: str) -> Path:
    if Path(text).suffix not in (".png", ".pdf", ".svg"):
        raise argparse.ArgumentTypeError(f"a path ends in .png, .pdf or .svg, got {text!r}")
    return Path(text).expanduser()


def parameters(given: argparse.Namespace) -> dict[str, str]:
    """Return the parameters of the node: also in which scene the drones stand, and where."""
    values = {
        "drones": f"[{','.join(f'cf{i}' for i in range(given.n_drones))}]",
        "drone_model": given.drone_model,
        "real_time_factor": str(given.real_time_factor),
    }
    if given.sensors:
        values["sensors"] = given.sensors
    fits = given.n_drones <= len(ROOM_PADS)
    if scene := given.scene or ("room" if given.view == "true" and fits else ""):
        values["scene"] = scene
    if scene == "room" and fits:
        height = -float(load_drone(given.drone_model)["geometry"]["foot_z"])
        pads = ROOM_PADS[: given.n_drones]
        numbers = [f"{number:.4f}" for x, y in pads for number in (x, y, height)]
        values["initial_poses"] = f"[{', '.join(numbers)}]"
    return values


@contextmanager
def page(*, open_it: bool) -> Iterator[subprocess.Popen[bytes] | None]:
    """Start the page, which prints its address, and yield its process; None without a page."""
    if not open_it:
        yield None
        return
    command = [sys.executable, "-m", "crazyflow_ros.view"]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

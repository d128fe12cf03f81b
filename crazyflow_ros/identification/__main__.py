"""The program `identify`: fits a drone's models to recorded flights, and writes its folder.

python -m crazyflow_ros.identification flight.mcap --drone cf2x_L250 --output my_drone
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

from crazyflow_ros.identification.drone_folder import write_drone
from crazyflow_ros.identification.fit import identify, rms_of
from crazyflow_ros.identification.flight import read_flight
from crazyflow_ros.output import quiet_if_unread


def main(arguments: Sequence[str] | None = None) -> None:
    """Identify the models; exit with 1 if the files or flights are unsuitable."""
    parser = argparse.ArgumentParser(
        prog="identify", description="Fit the so_rpy models of a drone to recorded flights."
    )
    parser.add_argument("flights", nargs="+", help=".mcap, .csv or .npz")
    parser.add_argument("--drone", required=True, help="known drone with the same mass and rotors")
    parser.add_argument("--output", required=True, help="folder to write, which must not exist")
    parser.add_argument("--name", default="cf0", help="name of the drone in MCAP files")
    parser.add_argument("--start", type=float, default=0.0, help="start of the part to use [s]")
    parser.add_argument("--end", type=float, default=math.inf, help="end of that part [s]")
    parser.add_argument("--validation", help="another flight, on which to check the fits")
    given = parser.parse_args(arguments)
    try:
        flights = [
            read_flight(path, given.name).between(given.start, given.end) for path in given.flights
        ]
        fits = identify(flights, given.drone)
        rest = {}
        if given.validation:
            rest = rms_of(fits, [read_flight(given.validation, given.name)], given.drone)
        folder = write_drone(given.output, given.drone, fits)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        sys.exit(f"identify: {error}")
    for name, fit in fits.items():
        factor, unit = (1e3, "mrad") if name == "rotation" else (1e3, "mm")
        other = f", on the other flight {factor * rest[name]:.3g} {unit}" if rest else ""
        print(f"{name}: residuals {factor * fit.rms:.3g} {unit}{other}\n{fit}")
    print(f"written: {folder}")


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))

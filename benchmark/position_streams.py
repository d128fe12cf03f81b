"""How positions are flown that a script of cflib streams, beside the same points as full states.

    python -m benchmark.position_streams

Prints a Markdown table. Scripts of unmodified cflib fly in simulated time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SHAPES = ("circle", "line", "square", "eight")
SPEEDS = (0.3, 0.7, 1.2)
"""m/s."""
CONTROLLERS = {1: "PID", 2: "Mellinger", 3: "INDI", 4: "Brescianini"}
HEAD = (
    "| controller | speed, m/s | circle, cm | line, cm | square, cm | eight, cm | most, from full "
    "states |\n|---|---:|---:|---:|---:|---:|---:|"
)
_SCRIPT = """
import json, math, sys, time
import cflib.crtp
import numpy as np
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.utils import uri_helper

controller, shape, speed = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])

def place(time):
    way = speed * max(time, 0.0)
    if shape == "circle":
        return 0.75 * (math.cos(way / 0.75) - 1), 0.75 * math.sin(way / 0.75), 1.0
    if shape == "eight":
        return 0.75 * math.sin(way / 0.75), 0.375 * math.sin(2 * way / 0.75), 1.0
    if shape == "line":
        return 2 - abs(way % 4 - 2), 0.0, 1.0
    side, rest = int(way % 4), way % 1
    corners = (0, 0), (1, 0), (1, 1), (0, 1), (0, 0)
    (x, y), (u, v) = corners[side], corners[side + 1]
    return x + rest * (u - x), y + rest * (v - y), 1.0

def flown(cf, send):
    cf.high_level_commander.go_to(*place(0), 0, 3.0)
    time.sleep(5.0)
    rows, block = [], LogConfig("place", 10)
    for name in "xyz":
        block.add_variable(f"stateEstimate.{name}", "float")
    cf.log.add_config(block)
    begin, keep = time.time(), lambda _, data, __: rows.append((time.time(), *data.values()))
    block.data_received_cb.add_callback(keep)
    block.start()
    while time.time() < begin + 20:
        send(place(time.time() - begin))
        time.sleep(0.02)
    block.stop()
    cf.commander.send_notify_setpoint_stop()
    found = np.array(rows)
    found[:, 0] -= begin
    found = found[(found[:, 0] > 5) & (found[:, 0] < 19.5)]
    away = found[:, 1:] - [place(at) for at in found[:, 0]]
    return float(np.sqrt((away**2).sum(axis=1).mean()))

cflib.crtp.init_drivers()
with SyncCrazyflie(uri_helper.uri_from_env(), cf=Crazyflie(rw_cache="cache")) as scf:
    cf = scf.cf
    cf.param.set_value("stabilizer.controller", str(controller))
    time.sleep(1.0)
    cf.high_level_commander.takeoff(1.0, 2.0)
    time.sleep(3.0)
    still, level = (0, 0, 0), (0, 0, 0, 1)
    as_places = flown(cf, lambda at: cf.commander.send_position_setpoint(*at, 0.0))
    as_states = flown(
        cf, lambda at: cf.commander.send_full_state_setpoint(at, still, still, level, 0, 0, 0)
    )
    cf.high_level_commander.land(0.0, 2.0)
    time.sleep(2.5)
print(json.dumps((as_places, as_states)))
"""


def measured(controller: int, shape: str, speed: float) -> tuple[float, float]:
    """Return how far a drone was from its setpoints, as positions and as full states [m, RMS]."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(_SCRIPT)
        command = [sys.executable, "-m", "crazyflow_ros.crazyflie", "--lock-step", "--"]
        command += [sys.executable, str(script), str(controller), shape, str(speed)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    places, states = json.loads(done.stdout.splitlines()[-1])
    return places, states


def main() -> None:
    """Measure all, and print a row for each controller and speed."""
    print(HEAD, flush=True)
    for number, name in CONTROLLERS.items():
        for speed in SPEEDS:
            found = [measured(number, shape, speed) for shape in SHAPES]
            cells = " | ".join(f"{100 * places:.1f}" for places, _ in found)
            most = max(abs(places / states - 1) for places, states in found)
            print(f"| {name} | {speed:g} | {cells} | {100 * most:.1f} % |", flush=True)


if __name__ == "__main__":
    main()

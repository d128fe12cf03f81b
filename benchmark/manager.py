"""A stock controller manager in lock-step with the simulator, as fast as both can.

    python -m benchmark.manager [DRONES RATE [CONTROLLER]]

Prints a Markdown table: `ros2_control_node` with the controllers that the launch file starts, for
1 and 10 drones at 500 and 100 Hz. Nobody else listens. It needs ros2_control and this package,
built and sourced.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.processes import running, states_of
from crazyflow_ros.client.simulator_process import SimulatorProcess, choose_domain
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_support import READY

FREQ = 500  # Hz
CASES = ((1, 500), (1, 100), (10, 500), (10, 100))  # drones, control periods per second
SECONDS, WARM_UP, TIMEOUT = 10.0, 2.0, 240.0
HEAD = (
    "| drones | control rate | real-time factor | periods/s | us a period "
    "| us of the simulator | us of the manager | others' share of all cores |\n"
    "|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def _program(name: str) -> str:
    """Path of a program of the package controller_manager, or an empty string."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    paths = [Path(prefix, "lib", "controller_manager", name) for prefix in prefixes]
    return next((str(path) for path in paths if path.exists()), "")


def _processor_time(*pids: int | str) -> np.ndarray:
    """Processor time of processes so far [s], and of the whole machine."""
    hz, times = os.sysconf("SC_CLK_TCK"), []
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        times.append(int(fields[11]) + int(fields[12]))
    whole = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    return np.array([*times, sum(whole) - whole[3] - whole[4]]) / hz  # without idle and waiting


def _controllers(launch: dict[str, Any], drones: Sequence[str], rate: int, controller: str) -> Any:
    """Parameters of the manager as YAML, and the names of the controllers to start."""
    entries = launch["_read_controllers"](str(resource("config", "controllers.yaml")))
    wanted = [f"cf0_{name}" for name in launch["BROADCASTERS"]]
    wanted += launch["_chain"](f"cf0_{controller}", entries)
    names = [launch["_name"](name, drone, False) for drone in drones for name in wanted]
    return launch["_for_drones"](entries, drones, rate, False), ["joint_state_broadcaster", *names]


def measure(n_drones: int, rate: int, controller: str, folder: Path) -> str:
    """Return the row of one case."""
    launch = runpy.run_path(str(resource("launch", "ros2_control.launch.py")))
    drones, memory = [f"cf{i}" for i in range(n_drones)], f"benchmark.{os.getpid()}"
    text, names = _controllers(launch, drones, rate, controller)
    file, log = folder / "controllers.yaml", folder / "simulator.log"
    file.write_text(text)
    given = {
        "drones": f"[{','.join(drones)}]",
        "freq": str(FREQ),
        "real_time_factor": "0.0",
        "ros2_control.mode": "lock_step",
        "ros2_control.shared_memory": memory,
        "ros2_control.rate": str(rate),
        "publish_rates.clock": str(rate),
    }
    arguments = ["--ros-args", "--params-file", str(file), "-p", "use_sim_time:=true"]
    arguments += ["-r", "robot_description:=/crazyflow/robot_description", "--log-level", "error"]
    with SimulatorProcess(given, log) as simulator:
        while READY not in log.read_text(errors="replace"):
            simulator.check()
            time.sleep(0.1)
        with running(_program("ros2_control_node"), *arguments) as manager:
            spawner = [_program("spawner"), *names]
            subprocess.run(spawner, check=True, timeout=TIMEOUT, capture_output=True)
            ticks = states_of(memory, n_drones)["stamp"]["tick"]
            time.sleep(WARM_UP)
            began, tick = time.monotonic(), ticks.max()
            used = _processor_time(simulator.pid, manager.pid)
            time.sleep(SECONDS)
            wall, n_ticks = time.monotonic() - began, int(ticks.max() - tick)
            used = _processor_time(simulator.pid, manager.pid) - used
    periods = n_ticks * rate / FREQ
    others = max(0.0, used[2] - used[0] - used[1]) / wall / (os.cpu_count() or 1)
    figures = (wall, used[0], used[1])
    times = " | ".join(f"{seconds / periods * 1e6:.0f}" for seconds in figures)
    factor = n_ticks / FREQ / wall
    return f"| {n_drones} | {rate} | {factor:.2f} | {periods / wall:.0f} | {times} | {others:.0%} |"


def main(arguments: Sequence[str] = ()) -> None:
    """Measure all cases, or the one in the arguments."""
    if not _program("ros2_control_node"):
        print("needs ros2_control, built and sourced")
        return
    choose_domain()
    n_drones, rate, controller = [*arguments, *("", "", "position")[len(arguments) :]]
    print(HEAD)
    for case in [(int(n_drones), int(rate))] if n_drones else CASES:
        with tempfile.TemporaryDirectory() as folder:
            print(measure(*case, controller, Path(folder)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

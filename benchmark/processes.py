"""What benchmarks run beside the simulator: programs in C++, and ROS in a domain of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import rclpy
from rclpy.signals import SignalHandlerOptions

from crazyflow_ros.client.simulator_process import end
from crazyflow_ros.lockstep.layout import segment

ROOT = Path(__file__).parents[1]
_GRACE = 5.0  # s for a program to end


@contextmanager
def ros() -> Iterator[None]:
    """Use rclpy in a domain of this process and its children."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield
    finally:
        rclpy.shutdown()


def compiled(source: str, folder: Path, *options: str) -> str:
    """Compile a program in C++, given relative to the repository, and return its path."""
    program = str(folder / Path(source).stem)
    include = f"-I{ROOT / 'hardware' / 'include'}"
    command = ["g++", "-std=c++17", "-O2", include, str(ROOT / source), "-o", program]
    subprocess.run([*command, *options], check=True)
    return program


def with_rcl() -> list[str]:
    """Return a compiler's options for programs that use the client library below rclpy."""
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    options = ["-Wl,--no-as-needed"]
    for prefix in (Path(x) for x in prefixes if Path(x, "include", "rcl").is_dir()):
        options += [f"-I{folder}" for folder in (prefix / "include").iterdir()]
        options.append(f"-L{prefix / 'lib'}")
    options += ["-lrcl", "-lrcutils"]
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):  # librcl of the wheels needs it
        path, version = map(sysconfig.get_config_var, ("LIBDIR", "LDVERSION"))
        options += [f"-L{path}", f"-Wl,-rpath,{path}", f"-lpython{version}"]
    return options


@contextmanager
def running(
    *command: str, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program with additional environment variables, and end it, if need be by killing it.

    Publishers go on sending to a subscriber that was killed until its lease ends, and meanwhile
    are slow.
    """
    env = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            end(process, _GRACE)


def states_of(name: str, n_drones: int) -> np.ndarray:
    """Return a view of the states in the shared memory of a simulator for controllers."""
    memory = np.memmap(f"/dev/shm/crazyflow_ros.{name}", segment(n_drones), "r")
    states: np.ndarray = memory["states"]
    return states

"""Starts and ends a recording of all topics, by a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from std_srvs.srv import Trigger

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.client.connection import Connection, checked
from crazyflow_ros.client.errors import SimulationError

RECORDS = "records into"
"""Start of the line that the process prints once it records."""
_DISCOVERY = 3.0  # s of wall time after which a service counts as missing
_GLANCE = 1.0  # s of wall time to find one that is usually missing
_END = 5.0  # s of wall time for the process to end


def stop_service(simulator: str) -> str:
    """Return the name of the service that ends the recording of a simulator."""
    return f"{simulator}_recorder/stop"


def start_recording(simulation: Connection, path: Path) -> Path:
    """Start a process that records all topics, and return when it records.

    Args:
        simulation: The connection to the simulator.
        path: The file, which must be empty or not exist.

    Returns:
        The path of the file from the root.

    Raises:
        SimulationError: It cannot be started, or a recording is under way.
    """
    path = path.expanduser().absolute()
    if _is_under_way(simulation, _GLANCE):
        raise SimulationError("a recording is under way: record stop ends it")
    if path.is_file() and path.stat().st_size:
        raise SimulationError(f"the file {shown_path(path)} exists already")
    command = [sys.executable, "-m", "crazyflow_ros.client.recorder", str(path)]
    command += ["--node", simulation.name, "--namespace", simulation.node.get_namespace()]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # it survives this process, and its Ctrl-C
    )
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        try:
            line = process.stdout.readline()
        except BaseException:  # as by Ctrl-C
            process.terminate()
            raise
        if not line.startswith(RECORDS):
            problem = process.stderr.read().strip() or "it ended"
            raise SimulationError(f"nothing is recorded: {problem.splitlines()[-1]}")
    return path


def stop_recording(simulation: Connection) -> str:
    """End the recording; return a summary of the file once another recording can start.

    Raises:
        SimulationError: Nothing is being recorded, or writing failed.
    """
    if not _is_under_way(simulation, _DISCOVERY):
        raise SimulationError("nothing is being recorded: record start FILE begins")
    answer = checked(simulation.call(Trigger, stop_service(simulation.name)))
    with suppress(SimulationError):
        simulation.wait(lambda: not _is_there(simulation), "the recorder has not ended", _END)
    return str(answer.message)


def _is_under_way(simulation: Connection, timeout: float) -> bool:
    try:
        simulation.wait(lambda: _is_there(simulation), "nothing is being recorded", timeout)
    except SimulationError:
        return False
    return True


def _is_there(simulation: Connection) -> bool:
    name = simulation.node.resolve_service_name(stop_service(simulation.name))
    return simulation.node.count_services(name) > 0

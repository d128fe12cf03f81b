"""`python -m crazyflow_ros` runs `simulator` or, with a command, the command line."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from crazyflow_ros.checks.program_end import on_end
from crazyflow_ros.xla.flags import silence_alarms

_OF_ROS = (
    *("--lock-step", "--ros-args", "-p", "--param", "-r", "--remap"),
    *("--params-file", "--log-level"),
)
"""Beginnings of command lines that are not commands; those without `--ros-args` are refused."""


def main(args: list[str] | None = None) -> NoReturn:
    """Run the simulator, see `ros.process`, or carry out a command, see `client.command_line`.

    Args:
        args: Command line, by default that of the process.
    """
    given = sys.argv[1:] if args is None else args
    own = given[: given.index("--")] if "--" in given else given  # without a script in lock-step
    asks_for_help = bool({"-h", "--help"} & set(own))
    if given[:1] == ["crazyflie-server"] and not asks_for_help:
        crazyflie_server(given[1:])
    if given and given[0] not in _OF_ROS:
        if given[0] != "run" or asks_for_help:
            sys.exit(_command(given))
        args = given[1:]
    _run(args)


def _command(words: list[str]) -> int:
    """Carry out a command; Ctrl-C also ends it quietly during its imports."""
    silence_alarms()
    try:
        from crazyflow_ros.client import command_line

        return command_line.main(words)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def program() -> NoReturn:
    """Run as `main` does, found on this machine only: the program that ROS does not start."""
    from crazyflow_ros.ros.middleware import stay_on_this_machine

    stay_on_this_machine()
    main()


def crazyflie_server(args: list[str] | None = None) -> NoReturn:
    """Run the simulator with the interface of crazyswarm2's server, see `crazyswarm`."""
    _run(args, "crazyflow_ros.crazyswarm.crazyflie_server", "crazyflie_server")


def _run(
    args: list[str] | None, node: str = "crazyflow_ros.ros.node", name: str = "crazyflow"
) -> NoReturn:
    """Run a node; a signal also ends it quietly during the import of ROS, which takes a second."""
    on_end(lambda: os._exit(0))
    silence_alarms()
    _open_closed_streams()
    from crazyflow_ros.ros.middleware import check_shared_memory

    check_shared_memory()
    from crazyflow_ros.ros import process

    process.main(args, node, name)


def _open_closed_streams() -> None:
    """Open the standard streams that were closed when the process started, as by `2>&-`.

    Otherwise a file that is opened later would receive the log, and ROS ends the process.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w"))


if __name__ == "__main__":
    program()

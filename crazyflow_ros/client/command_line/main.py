"""Runs the command that the arguments name, and prints its result."""

from __future__ import annotations

import math
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, NoReturn

from crazyflow_ros.checks.program_end import quiet_if_unread
from crazyflow_ros.client.command_line.command import (
    OK,
    REFUSED,
    WRONG_USAGE,
    CommandParser,
    ProgramCommand,
    SimulatorCommand,
    UsageError,
    program_name,
)
from crazyflow_ros.client.command_line.command_list import (
    UnknownCommand,
    find,
    group_help,
    overview,
)
from crazyflow_ros.resources import package_version

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient

_EVERY = 100  # messages of the log in a queue from which none may be lost
_ABOUT = "A ROS 2 simulator of quadrotors, and commands for a running one."
_MORE = """
Without a command, or with --ros-args alone, it starts the simulator:
  {0} --ros-args -p drones:=[cf0,cf1] -p real_time_factor:=2.0

{0} COMMAND --help has the arguments of a command, and examples. Numbers are in m, rad and s.
Exit codes: 0 done, 1 refused by the simulator, 2 wrong usage.
"""
_START = """
Start a simulator, and wait until it says 'ready':
  {0} --ros-args -p drones:=[cf0]
If one runs under another name or in a namespace, name it with --node and --namespace. If it runs in
another ROS domain, set ROS_DOMAIN_ID as there. If it runs on another machine, set
ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET on both.
"""


def main(arguments: Sequence[str]) -> int:
    """Carry out a command, and return the exit code."""
    return quiet_if_unread(lambda: _main(list(arguments)))


def _main(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "--version"):
        _top_parser().parse_args(words)
    if len(words) > 1 and words[1] in ("-h", "--help") and (text := group_help(words[0])):
        print(text)
        return OK
    try:
        command, rest = find(words)
    except UnknownCommand as error:
        parser = _top_parser()
        parser.error(str(error))
    if isinstance(command, ProgramCommand):
        return command.run(rest)
    parser = command.parser()
    options = parser.parse_intermixed_args(rest)  # options may stand before the last words
    if not options.wait >= 0 or math.isinf(options.wait):
        parser.error(f"--wait is a number of seconds, not {options.wait:g}")
    try:
        return _carry_out(command, options)
    except UsageError as error:
        parser.error(str(error))


def _carry_out(command: SimulatorCommand, options: Namespace) -> int:
    from crazyflow_ros.ros.middleware import check_shared_memory, configure_middleware

    check_shared_memory()
    configure_middleware()
    from crazyflow_ros.client import NoSimulator, SimulationError, SimulatorClient

    try:
        with ExitStack() as stack:
            if options.quiet:
                stack.enter_context(redirect_stdout(stack.enter_context(open(os.devnull, "w"))))
            client = SimulatorClient(options.node, options.namespace, options.wait)
            simulation = stack.enter_context(client)
            if options.verbose:
                _tell_log(simulation)
            done = command.run(simulation, options)
            if done:
                print(done)
            sys.stdout.flush()
    except SimulationError as error:
        print(f"{command.name}: {error}", file=sys.stderr)
        if isinstance(error, NoSimulator):
            print(_START.format(program_name()).strip(), file=sys.stderr)
        return REFUSED
    return OK


def _tell_log(simulation: SimulatorClient) -> None:
    """Print what the simulator logs, while the client waits for something."""
    from rcl_interfaces.msg import Log

    from crazyflow_ros.client.session import one_line

    def tell(message: Log) -> None:
        print(f"{message.name}: {one_line(message.msg)}", file=sys.stderr)

    simulation.node.create_subscription(Log, "/rosout", tell, _EVERY)


class _TopParser(CommandParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong, without the list of all commands."""
        self.exit(WRONG_USAGE, f"usage: {self.prog} COMMAND ...\n{self.prog}: {message}\n")


def _top_parser() -> CommandParser:
    name = program_name()
    parser = _TopParser(
        "",
        "",
        more=f"{_ABOUT}\n\n{overview()}\n{_MORE.format(name)}",
        usage=f"{name} COMMAND ... | [run] --ros-args ...",
    )
    parser.add_argument("--version", action="version", version=package_version())
    return parser

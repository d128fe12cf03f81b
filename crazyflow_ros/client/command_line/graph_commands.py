"""Commands for topics and services of any type."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from math import isnan
from typing import TYPE_CHECKING, Any

from crazyflow_ros.client.command_line.command import SimulatorCommand, UsageError, argument
from crazyflow_ros.client.command_line.text import matching, table

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient

_PATTERN = argument("pattern", nargs="?", help="text that a line contains, * is any text")
_ALL = argument("--all", action="store_true", help="also those that every node has")
_TOPIC = argument("topic", help="name of a topic, for example /cf0/odom")
_ONCE = argument("--once", action="store_true", help="stop after the first one")
_OF_EVERY_NODE = ("rcl_interfaces/srv/", "type_description_interfaces/srv/")
_MOST_RATE = 1e6
_PATIENCE = 3.0  # s of wall time without a message, after which the log says so


def _listed(what: str, found: dict[str, str], options: Namespace) -> str:
    if not options.all:
        found = {
            name: kind
            for name, kind in found.items()
            if not kind.startswith(_OF_EVERY_NODE) and "/_action/" not in name
        }
    chosen = matching(found, options.pattern)
    return table([*chosen.items()]) if chosen else f"no {what} contains {options.pattern}"


def _transform(simulation: SimulatorClient, options: Namespace) -> str:
    import numpy as np

    found = simulation.transforms.lookup(options.target, options.source, options.time)
    from crazyflow_ros.scene.frames import rpy

    pos, quat, angles = (
        ", ".join(f"{x:z.4f}" for x in values) for values in (*found[1:], rpy(found.quat))
    )
    degrees = ", ".join(f"{x:z.1f}" for x in np.rad2deg(rpy(found.quat)))
    rows = [
        (f"{options.source} in {options.target}", ""),
        ("time", f"{found.time_ns * 1e-9:.3f} s" if found.time_ns else "all"),
        ("position", f"({pos}) m"),
        ("quaternion xyzw", f"({quat})"),
        ("roll, pitch, yaw", f"({angles}) rad, ({degrees}) degrees"),
    ]
    return table(rows)


def _echo(simulation: SimulatorClient, options: Namespace) -> None:
    from crazyflow_ros.client.values import text_of_message

    begin: float | None = time.monotonic()
    for message in simulation.graph.messages(options.topic):
        if message is None:
            if not options.quiet and begin is not None and time.monotonic() > begin + _PATIENCE:
                print(f"no message on {options.topic} yet", file=sys.stderr)
                begin = None
        else:
            begin = None
            print(text_of_message(message), end="---\n", flush=True)
            if options.once:
                return


def _hz(simulation: SimulatorClient, options: Namespace) -> None:
    for rate, simulated in simulation.graph.rate(options.topic):
        also = "time stands still" if isnan(simulated) else f"{simulated:.1f} a simulated second"
        print(f"{rate:.1f} messages a second, {also}", flush=True)
        if options.once:
            return


def _pub(simulation: SimulatorClient, options: Namespace) -> str:
    times = 1 if options.once else options.times
    if times is not None and times < 1:
        raise UsageError(f"--times is a number from 1 on, not {times}")
    if not 0 < options.rate <= _MOST_RATE:
        raise UsageError(f"--rate is a number above 0, not {options.rate:g}")
    values = _values(options.message)
    try:
        found = simulation.graph.publish(
            options.topic, values, kind=options.type, times=times, rate=options.rate
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    sent = "1 message" if times == 1 else f"{times} messages"
    return f"{sent} sent to {options.topic}, which has {_count(found, 'subscriber')}"


def _call(simulation: SimulatorClient, options: Namespace) -> str:
    from crazyflow_ros.client.values import text_of_message

    values = _values(options.request)
    try:
        answer = simulation.graph.call(options.service, values, options.timeout)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return text_of_message(answer).strip() or f"{options.service} is done"


def _values(text: str | None) -> Any:
    from crazyflow_ros.client.values import parsed

    try:
        return None if text is None else parsed(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


COMMANDS = (
    SimulatorCommand(
        "topics",
        "list topics with their types",
        lambda simulation, options: _listed("topic", simulation.graph.topics(), options),
        (_PATTERN, _ALL),
        ("topics", "topics cf0", "topics nav_msgs"),
    ),
    SimulatorCommand(
        "services",
        "list services with their types",
        lambda simulation, options: _listed("service", simulation.graph.services(), options),
        (_PATTERN, _ALL),
        ("services", "services takeoff", "services 'cf0*std_srvs'"),
    ),
    SimulatorCommand(
        "echo",
        "print the messages of a topic, until Ctrl-C",
        _echo,
        (_TOPIC, _ONCE),
        ("echo /cf0/pose --once", "echo /crazyflow/flight_events"),
    ),
    SimulatorCommand(
        "hz",
        "print the rate of a topic's messages once a second, until Ctrl-C",
        _hz,
        (_TOPIC, _ONCE),
        ("hz /cf0/odom", "hz /clock --once"),
    ),
    SimulatorCommand(
        "transform",
        "print the pose of one frame in another",
        _transform,
        (
            argument("target", help="name of a frame, for example map"),
            argument("source", help="the frame whose pose is wanted"),
            argument(
                "--time", type=float, metavar="SECONDS", help="simulated time, default: the latest"
            ),
        ),
        ("transform map cf0/base_link", "transform cf0/base_link cf1/base_link"),
    ),
    SimulatorCommand(
        "pub",
        "publish a message again and again, until Ctrl-C",
        _pub,
        (
            _TOPIC,
            argument("message", nargs="?", help="fields in YAML, default: none"),
            argument("--type", default="", help="type of the message, default: that of the topic"),
            argument(
                "--rate",
                type=float,
                default=10.0,
                metavar="HZ",
                help="messages per simulated second, default 10",
            ),
            argument("--times", type=int, metavar="N", help="stop after this number"),
            argument("--once", action="store_true", help="stop after the first one"),
        ),
        (
            "pub /cf0/cmd_pose --once "
            "'{pose: {position: {x: 1.0, z: 1.0}, orientation: {w: 1.0}}}'",
            "pub /cf0/cmd_vel '{twist: {linear: {x: 0.3}}}' --rate 20 --times 40",
        ),
    ),
    SimulatorCommand(
        "call",
        "call a service, and print its answer",
        _call,
        (
            argument("service", help="name of a service, for example /cf0/takeoff"),
            argument("request", nargs="?", help="fields in YAML, default: none"),
            argument(
                "--timeout",
                type=float,
                default=30.0,
                metavar="SECONDS",
                help="how long to wait for the answer, default 30",
            ),
        ),
        (
            "call /crazyflow/step",
            "call /cf0/takeoff '{height: 1.0, duration: {sec: 3}}'",
            "call /cf0/set_motor_efficiency '{motor: 2, efficiency: 0.5}'",
        ),
    ),
)

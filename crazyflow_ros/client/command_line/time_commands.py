"""Commands for the time of the simulation, and its status."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from crazyflow_ros.client.command_line.command import SimulatorCommand, UsageError, argument
from crazyflow_ros.client.command_line.text import table

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient

_MOST_TICKS = (1 << 63) - 1


def _pause(simulation: SimulatorClient, _: Namespace) -> str:
    simulation.pause()
    simulation.look_at_time()
    return f"time stands still at {simulation.time_ns * 1e-9:.3f} s"


def _resume(simulation: SimulatorClient, _: Namespace) -> str:
    simulation.resume()
    return "time goes on"


def _step(simulation: SimulatorClient, options: Namespace) -> str:
    if not 0 < options.ticks <= _MOST_TICKS:
        raise UsageError(f"ticks is a number from 1 on, not {options.ticks}")
    simulation.step(options.ticks)
    ticks = "1 tick" if options.ticks == 1 else f"{options.ticks} ticks"
    return f"{ticks} later, time stands still at {simulation.time_ns * 1e-9:.3f} s"


def _status(simulation: SimulatorClient, _: Namespace) -> str:
    status = simulation.status()
    values = {key: value for key, value in status.values.items() if " of " not in key}
    seconds = int(values["tick"]) / simulation.freq
    rows = [
        ("simulation", status.text),
        ("time", f"{seconds:.3f} s, tick {values.pop('tick')}"),
        ("requested real-time factor", _factor(values.pop("requested_factor"))),
        ("drones", values.pop("flight_states")),
        *((key.replace("_", " "), value) for key, value in values.items()),
    ]
    text = table(rows)
    if status.troubles:
        text += "\n\n" + "\n".join(f"{name}: {why}" for name, why in status.troubles.items())
    return text


def _factor(text: str) -> str:
    return "as fast as possible" if float(text) == 0 else text


COMMANDS = (
    SimulatorCommand("status", "print the state of the simulation", _status, examples=("status",)),
    SimulatorCommand("pause", "pause the simulation", _pause, examples=("pause",)),
    SimulatorCommand("resume", "resume the simulation", _resume, examples=("resume",)),
    SimulatorCommand(
        "step",
        "advance a paused simulation by ticks",
        _step,
        (argument("ticks", type=int, nargs="?", default=1, help="number of ticks, default 1"),),
        ("step", "step 500"),
    ),
)

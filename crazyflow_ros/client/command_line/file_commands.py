"""Commands for the files of a simulation: checkpoints and recordings."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.client.command_line.command import SimulatorCommand, argument

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient

_CHECKPOINT = argument("file", help="its name in the simulator's checkpoint_folder")


def _start(simulation: SimulatorClient, options: Namespace) -> str:
    from crazyflow_ros.client.recording import start_recording

    path = start_recording(simulation, options.file)
    return f"all topics are recorded into {path}, until record stop"


def _stop(simulation: SimulatorClient, _: Namespace) -> str:
    from crazyflow_ros.client.recording import stop_recording

    return stop_recording(simulation)


COMMANDS = (
    SimulatorCommand(
        "checkpoint save",
        "write the state of the simulation to a file",
        lambda simulation, options: simulation.save_checkpoint(options.file),
        (_CHECKPOINT,),
        ("checkpoint save hover.npz",),
    ),
    SimulatorCommand(
        "checkpoint restore",
        "go on from the state in a file",
        lambda simulation, options: simulation.restore_checkpoint(options.file),
        (_CHECKPOINT,),
        ("checkpoint restore hover.npz",),
    ),
    SimulatorCommand(
        "record start",
        "record all topics to an MCAP file, in the background",
        _start,
        (argument("file", type=Path, help="MCAP file to create"),),
        ("record start flight.mcap",),
        "Such a file cannot be replayed, for it lacks what happened before: start the simulator\n"
        "with the parameter record:=FILE for that.",
    ),
    SimulatorCommand("record stop", "end the recording", _stop, examples=("record stop",)),
)

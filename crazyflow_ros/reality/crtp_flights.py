"""Recorded flights flown again through the Crazyflie's own protocol, one packet after another.

The simulated drone begins on the floor where the real one stood; where a log begins in the air, it
takes off from the floor below, and hovers at the first pose for a while. It receives nothing but
the setpoints of position, in packets as cflib sends them: decoder, commander, supervisor and
controllers are those with which scripts fly. Nothing else of the flight is known to it: neither the
voltage nor the errors of the estimate.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.log_blocks import LogBlocks
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.reality.closed_loop import FREQ, Flown, KnownState, Replay
from crazyflow_ros.reality.recorded import RATE, Recorded
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig, Snapshot
from crazyflow_ros.scene.frames import quat_from_rpy, yaw

_NAME, _NUMBER = "cf0", 0xE7
_POSITION = 7  # type of setpoint
_TIMEOUT = 60.0  # s for a step
_HOVERING = 15.0  # s before a flight that begins in the air


def fly_by_packets(
    flights: Sequence[Recorded],
    replay: Replay,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Flown]:
    """Fly recorded flights again, one after the other.

    Args:
        flights: See `recorded`.
        replay: How; of `known`, the recorded error of the estimate is not possible.
        progress: Called with a line of text.

    Raises:
        ValueError: A log does not name its controller, or the replay asks for what was recorded.
    """
    if replay.known is KnownState.recorded:
        raise ValueError("a flight by packets knows nothing of the recorded errors")
    found = []
    for number, flight in enumerate(flights, 1):
        progress(f"{number} of {len(flights)} by packets: {flight.log.name}")
        found.append(_fly(flight, replay, replay.controller_of(flight.log)))
    return found


def without_voltage(flight: Recorded) -> Recorded:
    """Return a flight without the recorded voltage: its drone has a full battery."""
    return flight._replace(voltage=np.full_like(flight.voltage, np.inf))


def _fly(real: Recorded, replay: Replay, controller: Controller) -> Flown:
    below = real.floor - rest_height(str(replay.drone))  # of heights in the log
    physics = PhysicsThread(_config(real, replay, controller, below), [_NAME])
    rows = []
    with closing(_Packets(physics, replay)) as packets:
        physics.start()
        x, y, z = real.pos[0].tolist()
        for _ in range(0 if real.stands else round(_HOVERING * RATE)):
            packets.send_position(x, y, z - below, float(np.degrees(yaw(real.quat[0]))))
            packets.step(FREQ // RATE)
        for setpoint in real.setpoint:
            x, y, z = setpoint[:3].tolist()
            packets.send_position(x, y, z - below, float(np.degrees(yaw(setpoint[9:13]))))
            rows.append(packets.step(FREQ // RATE))
    pos, quat, command, speeds = (np.array(column) for column in zip(*rows))
    most = speeds.max() or 1.0
    pos[:, 2] += below
    return Flown(real, controller, pos, quat, command, speeds / most)


def _config(
    real: Recorded, replay: Replay, controller: Controller, below: float
) -> SimulationConfig:
    """Return the simulation of `python -m crazyflow_ros.crazyflie`, with the drone of the log."""
    x, y, z = real.pos[0].tolist()
    rest = rest_height(str(replay.drone))
    level = quat_from_rpy(np.array([0.0, 0.0, yaw(real.quat[0])]))
    pose = np.array([x, y, max(z - below, rest) if real.stands else rest, *level])
    estimates = replay.known is KnownState.kalman
    options = RealisticOptions(
        drone_model=str(replay.drone),
        dynamics=str(replay.dynamics),
        controller=str(controller),
        true_mass=False,
        estimator=str(Estimator.kalman if estimates else Estimator.none),
        start_paused=True,
        flight=FlightConfig(exact_durations=True),
    )
    return SimulationConfig.of(
        options,
        initial_poses=pose[None],
        positioning=Positioning(flow=False, range=False, motion_capture=True),
        setpoint_modes=True,
    )


class _Packets:
    """Sends packets to the drone, and lets time run in between."""

    def __init__(self, physics: PhysicsThread, replay: Replay) -> None:
        self._physics, self._blocks = physics, LogBlocks()
        fleet = Fleet(physics, str(replay.drone), (), _Silent(), Storage(""))
        self._firmware = fleet.get(_NAME, _NUMBER)

    def close(self) -> None:
        """End the simulation."""
        self._physics.stop()

    def send_position(self, x: float, y: float, z: float, heading: float) -> None:
        """Send a setpoint of position [m] and heading [degrees]."""
        data = struct.pack("<Bffff", _POSITION, x, y, z, heading)
        time_ms = self._physics.snapshot.time_ns // 1_000_000
        packet = Packet(Port.setpoint, 0, data)
        self._firmware.receive(packet, self._blocks, lambda: 0, time_ms, lambda _: None)

    def step(self, ticks: int) -> tuple[np.ndarray, ...]:
        """Advance, and return position, attitude, attitude command and rotor speeds."""
        now: Snapshot = self._physics.step(ticks).result(_TIMEOUT)
        assert now.desired is not None
        return now.pos[0], now.quat[0], now.desired[0, :4], now.rotor_vel[0]


class _Silent:
    """Logs nothing: the drone reports falls, which the table shows."""

    def info(self, message: str) -> None:
        """Ignore a message."""

    warning = error = info

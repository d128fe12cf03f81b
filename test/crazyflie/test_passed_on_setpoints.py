"""Setpoints of position in packets reach the controllers unchanged: lag and all."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np
import pytest

from crazyflow_ros.control import Controller
from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.crazyflie.fleet import Fleet
from crazyflow_ros.crazyflie.log_blocks import LogBlocks
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.dynamics import floor_contact
from crazyflow_ros.engine.initial_poses import poses_of
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.sim import Sim

DRONE, FREQ, RATE = "cf2x_L250", 500, 50
SETTLING, SECONDS, SPEED = 4.0, 12.0, 0.7  # s, s, m/s
Path = Callable[[float], tuple[float, float, float]]


def eight(time: float) -> tuple[float, float, float]:
    angle = SPEED * time / 0.75
    return 0.75 * math.sin(angle), 0.375 * math.sin(2 * angle), 1.0


def square(time: float) -> tuple[float, float, float]:
    side, way = divmod(SPEED * time, 1.0)
    corners = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]
    (x, y), (u, v) = corners[int(side) % 4], corners[int(side) % 4 + 1]
    return x + way * (u - x), y + way * (v - y), 1.0


def position(place: tuple[float, float, float]) -> bytes:
    return struct.pack("<Bffff", 7, *place, 0.0)


def full_state(place: tuple[float, float, float]) -> bytes:
    millimetres = [round(1e3 * x) for x in place]
    return struct.pack("<BhhhhhhhhhIhhh", 6, *millimetres, *[0] * 6, 3 << 30, *[0] * 3)


def by_packets(controller: Controller, path: Path, packed: Callable[..., bytes]) -> np.ndarray:
    """Where a drone was, (n, 3), that hovers above the path's start before."""
    config = SimulationConfig(
        drone_model=DRONE,
        controller=str(controller),
        freq=FREQ,
        initial_poses=poses_of("a start", [0, 0, 1.0], 1),
        start_paused=True,
        setpoint_modes=True,
    )
    physics = PhysicsThread(config, ["cf0"])
    fleet = Fleet(physics, DRONE, (), _SILENT, Storage(""))
    firmware, rows = fleet.get("cf0", 0xE7), []
    physics.start()
    for k in range(round((SETTLING + SECONDS) * RATE)):
        place = path(max(k / RATE - SETTLING, 0.0))
        packet = Packet(Port.setpoint, 0, packed(place))
        time_ms = physics.snapshot.time_ns // 1_000_000
        firmware.receive(packet, LogBlocks(), lambda: 0, time_ms, lambda _: None)
        rows.append(physics.step(FREQ // RATE).result(60).pos[0].copy())
    physics.stop()
    assert physics.failed is None, physics.failed
    return np.array(rows)[round(SETTLING * RATE) :]


def directly(controller: Controller, path: Path) -> np.ndarray:
    """The same by the controller of `Sim`, to which nothing stands in between."""
    sim = Sim(
        1, 1, DRONE, control="state", controller=controller, power_distribution="capped",
        freq=FREQ, forces=(floor_contact(DRONE, FREQ),),
    )  # fmt: skip
    states = sim.data.states
    sim.data = sim.data.replace(states=states.replace(pos=states.pos.at[..., 2].set(1.0)))
    rows = []
    for k in range(round((SETTLING + SECONDS) * RATE)):
        command = np.zeros((1, 1, 13))
        command[..., :3] = path(max(k / RATE - SETTLING, 0.0))
        sim.state_control(command)
        sim.step(FREQ // RATE)
        rows.append(np.asarray(sim.data.states.pos[0, 0]))
    return np.array(rows)[round(SETTLING * RATE) :]


class _Silent:
    def info(self, message: str) -> None:
        pass

    warning = error = info


_SILENT = _Silent()


def distance(flown: np.ndarray, path: Path) -> float:
    wanted = np.array([path(k / RATE) for k in range(len(flown))])
    return float(np.sqrt(((flown - wanted)[2 * RATE :] ** 2).sum(axis=1).mean()))


@pytest.mark.parametrize("path", [eight, square])
@pytest.mark.parametrize("controller", list(Controller))
def test_positions_are_flown_as_the_same_full_states(controller: Controller, path: Path) -> None:
    places = by_packets(controller, path, position)
    states = by_packets(controller, path, full_state)
    assert distance(places, path) == pytest.approx(distance(states, path), rel=0.02)
    assert distance(places, path) > 0.2  # the firmware's controllers lag behind moving places


@pytest.mark.parametrize("controller", [Controller.pid, Controller.mellinger])
def test_positions_are_flown_as_by_the_controller_alone(controller: Controller) -> None:
    places = by_packets(controller, eight, position)
    np.testing.assert_allclose(places, directly(controller, eight), atol=0.01)

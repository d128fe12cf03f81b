"""Typical commands of scripts, on the estimate of the Kalman filter: nobody is lost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.flight import (
    FlightConfig,
    FlightState,
    GoTo,
    Hover,
    Land,
    NotifySetpointsStop,
    Setpoint,
    Takeoff,
    VelocityWorld,
)
from crazyflow_ros.runtime import DroneState, PhysicsThread, SimulationConfig
from crazyflow_ros.scene.frames import yaw

T = 300.0  # s
DRONE, FREQ, STREAM = "cf2x_L250", 500, 10  # Hz
N, LIVES = 9, 3  # drones, and times that they start, each time all with other errors
ANCHORS = tuple((x, y, z) for x, y in ((-6, -6), (6, -6), (6, 6), (-6, 6)) for z in (0.2, 3))
FAST = 2.0  # m/s
SQUARE = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)]
KINDS = {
    "flow": Positioning(),
    "motion capture": Positioning(flow=False, range=False, motion_capture=True),
    "both": Positioning(motion_capture=True),
    "height": Positioning(flow=False),
    "anchors": Positioning(flow=False, range=False, anchors=ANCHORS),
}


class Flight:
    """Drones that all do the same, in steps."""

    def __init__(self, physics: PhysicsThread) -> None:
        self.physics, self.most_tilted = physics, 0.0

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds * 25)):
            now = self.physics.step(FREQ // 25).result(T)
            upright = float(1 - 2 * np.square(now.quat[:, :2]).sum(axis=1).max())
            self.most_tilted = max(self.most_tilted, np.degrees(np.arccos(max(upright, -1.0))))

    def fly(self, setpoint: Setpoint, seconds: float) -> None:
        answer = self.physics.fly(dict.fromkeys(self.physics.snapshot.names, setpoint)).result(T)
        assert not answer.refused
        self.wait(seconds)

    def stream(self, setpoint: Setpoint, seconds: float) -> None:
        for _ in range(round(seconds * STREAM)):
            for name in self.physics.snapshot.names:
                self.physics.command(name, setpoint)
            self.wait(1 / STREAM)


def flown(physics: PhysicsThread) -> Flight:
    physics.state.reset().result(T)
    flight = Flight(physics)
    flight.wait(1)
    flight.fly(Takeoff(0.5, 1.0), 2)
    flight.fly(GoTo((0.5, -0.4, 0.3), 0.5, 2.0, relative=True), 3)
    for speed in (0.4, 1.0, FAST):
        flight.stream(Hover((speed, 0.0), 0.0, 0.8), 1.5)
        flight.stream(Hover((-speed, 0.3), 0.5, 0.8), 1.5)
        flight.stream(Hover((0.0, 0.0), 0.0, 0.8), 1)
    for x, y, z in SQUARE:
        flight.stream(VelocityWorld((FAST * x, FAST * y, z), 0.0), 1)
    for name in physics.snapshot.names:
        physics.command(name, NotifySetpointsStop())
    flight.wait(1)
    flight.fly(Land(0.0, 2.0), 4)
    return flight


def simulated(kind: str, controller: str, drone: str = DRONE) -> PhysicsThread:
    poses = np.zeros((N, 7))
    poses[:, :2] = [(2.0 * (i % 3) - 2, 2.0 * (i // 3) - 2) for i in range(N)]
    poses[:, 2], poses[:, 6] = rest_height(drone), 1
    config = SimulationConfig(
        drone_model=drone, freq=FREQ, true_mass=True, start_paused=True, controller=controller,
        estimator="kalman", positioning=KINDS[kind], initial_poses=poses,
        flight=FlightConfig(exact_durations=True),
    )  # fmt: skip
    return PhysicsThread(config, [f"cf{i}" for i in range(N)])


@pytest.fixture(scope="module")
def over_a_flow_deck() -> Iterator[PhysicsThread]:
    physics = simulated("flow", "mellinger")
    physics.start()
    yield physics
    physics.stop()


def all_land(physics: PhysicsThread) -> None:
    flight = flown(physics)
    assert flight.most_tilted < 70  # with anchors alone, whose estimate is rough
    assert dict(physics.commands.states) == dict.fromkeys(
        physics.snapshot.names, FlightState.landed
    )
    known = physics.snapshot.believed
    assert known is not None
    assert np.abs(known.pos - physics.snapshot.pos).max() < 1.5


@pytest.mark.parametrize("_life", [1, 2])
def test_commands_of_scripts_are_flown_on_the_estimate(
    over_a_flow_deck: PhysicsThread, _life: int
) -> None:
    all_land(over_a_flow_deck)  # each life has other errors


@pytest.mark.parametrize(("height", "duration"), [(0.4, 0.9), (0.5, 0.8), (0.8, 1.3), (1.2, 1.8)])
def test_a_brisk_takeoff_tilts_little(
    over_a_flow_deck: PhysicsThread, height: float, duration: float
) -> None:
    rises(over_a_flow_deck, height, duration)


def rises(
    physics: PhysicsThread, height: float, duration: float, most_tilted: float = 20.0
) -> None:
    for _ in range(LIVES):
        physics.state.reset().result(T)
        flight = Flight(physics)
        flight.wait(1)
        flight.fly(Takeoff(height, duration), duration + 2)
        assert flight.most_tilted < most_tilted
        known = physics.snapshot.believed
        assert known is not None
        np.testing.assert_allclose(known.pos[:, 2], height, atol=0.05)
        flight.fly(Land(0.0, 2.0), 4)
        assert dict(physics.commands.states) == dict.fromkeys(
            physics.snapshot.names, FlightState.landed
        )


def test_a_drone_that_is_put_elsewhere_knows_it(over_a_flow_deck: PhysicsThread) -> None:
    """No sensor of a Flow deck could tell: it flies back, upright, and the others stay."""
    physics = over_a_flow_deck
    physics.state.reset().result(T)
    flight = Flight(physics)
    flight.wait(1)
    flight.fly(Takeoff(0.7, 1.5), 3)
    before, turned = physics.snapshot, np.array([0.0, 0.0, np.sin(0.6), np.cos(0.6)])
    there = DroneState(pos=np.array([3.0, -2.0, 1.6]), quat=turned)
    physics.state.set_drone_states({"cf4": there}).result(T)
    flight.most_tilted = 0.0
    flight.wait(0.2)
    known, now = physics.snapshot.believed, physics.snapshot
    assert known is not None
    np.testing.assert_allclose(known.pos[4], (3.0, -2.0, 1.6), atol=0.1)
    np.testing.assert_allclose(known.pos[4], now.pos[4], atol=0.03)
    assert yaw(known.quat[4]) == pytest.approx(yaw(now.quat[4]), abs=0.05)
    flight.wait(6)
    assert flight.most_tilted < 30
    np.testing.assert_allclose(physics.snapshot.pos, before.pos, atol=0.5)  # it drifts


@pytest.mark.soak
@pytest.mark.parametrize("drone", ["cf2x_P250", "cf2x_T350", "cf21B_500", "hb_x500"])
@pytest.mark.parametrize("kind", KINDS)
def test_brisk_takeoffs_of_other_drones(kind: str, drone: str) -> None:
    physics = simulated(kind, "mellinger", drone)
    physics.start()
    try:
        rises(physics, 0.6, 0.9)
    finally:
        physics.stop()


@pytest.mark.soak
@pytest.mark.parametrize("controller", ["mellinger", "pid"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "height"])
def test_commands_are_flown_with_any_positioning(kind: str, controller: str) -> None:
    physics = simulated(kind, controller)
    physics.start()
    try:
        for _ in range(3):
            all_land(physics)
    finally:
        physics.stop()

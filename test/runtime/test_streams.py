"""Poses streamed at exact ticks to drones with batteries, and drones that are put elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.flight import (
    FlightEvent,
    FlyTrajectory,
    PolynomialTrajectory,
    Pose,
    Position,
    Setpoint,
    Takeoff,
    Trajectory,
    Velocity,
)
from crazyflow_ros.runtime import (
    Checkpoint,
    DroneState,
    PhysicsThread,
    ResetScope,
    SimulationConfig,
)

T = 120.0  # s, no wait of a test is longer
FREQ = 500
NAMES = ("regular", "late")
RADIUS = 0.7
SPEEDS = {"regular": 0.45, "late": 0.85}  # m/s
Physics = tuple[PhysicsThread, list[FlightEvent]]


@pytest.fixture(scope="module", params=["cf2x_L250", "cf21B_500"])
def simulation(request: pytest.FixtureRequest) -> Iterator[tuple[Physics, Checkpoint]]:
    """Two drones that hover above their places, a Crazyflie with slow rotors and a fast one."""
    poses = np.array([[0, 0, 0.02, 0, 0, 0, 1], [5, 0, 0.02, 0, 0, 0, 1]], float)
    config = SimulationConfig(
        drone_model=request.param,
        battery=True,
        true_mass=True,
        ground_effect=True,
        real_time_factor=0.0,
        start_paused=True,
        initial_poses=poses,
    )
    physics, events = PhysicsThread(config, NAMES), list[FlightEvent]()
    physics.news.on_flight_event(events.append)
    physics.start()
    physics.fly(dict.fromkeys(NAMES, Takeoff(1.0, 2.0))).result(T)
    physics.step(3 * FREQ).result(T)
    hovering = physics.state.checkpoint().result(T)
    yield (physics, events), hovering
    physics.stop()
    assert physics.failed is None and not physics.statistics().failures


@pytest.fixture
def flying(simulation: tuple[Physics, Checkpoint]) -> Physics:
    (physics, events), hovering = simulation
    physics.state.restore(hovering).result(T)
    events.clear()
    return physics, events


def test_a_drone_that_was_to_turn_while_it_stood_flies_off(flying: Physics) -> None:
    """Its legs hold it, so that its rotors would only turn against the floor."""
    physics, events = flying
    physics.state.reset(ResetScope.all).result(T)
    along_the_floor = np.zeros((1, 4, 8))
    along_the_floor[0, 0, :5] = [0, 0, 0.8, -0.8, 0.2]  # m, there and back again in 2 s
    polynomial = FlyTrajectory(PolynomialTrajectory([2.0], along_the_floor))
    physics.fly({"regular": Takeoff(0.8)}).result(T)
    physics.fly({"regular": polynomial}).result(T)
    physics.step(2).result(T)
    physics.command("regular", Velocity((0, 0, 0), 1.0))
    physics.step(FREQ // 5).result(T)
    x, y = physics.snapshot.pos[0, :2]
    up = Trajectory([2 * 10**9], [(x + 0.2, y, 1.0)], [0.0], np.zeros((1, 3)), np.zeros((1, 3)))
    physics.command("regular", up)
    physics.step(3 * FREQ).result(T)
    assert not events
    np.testing.assert_allclose(physics.snapshot.pos[0], (x + 0.2, y, 1.0), atol=0.1)


def on_circle(name: str, time: float, kind: Callable[..., Setpoint] = Pose) -> Setpoint:
    angle = SPEEDS[name] / RADIUS * time
    x, y = RADIUS * np.sin(angle), RADIUS * (1 - np.cos(angle))
    return kind(np.array([x + 5 * NAMES.index(name), y, 1.0]), 0.0)


class Program:
    """A program that streams a circle at 20 Hz, to one drone late by up to 150 ms each time."""

    def __init__(self, physics: PhysicsThread, kind: Callable[..., Setpoint] = Pose) -> None:
        self._physics, self._kind = physics, kind
        self._rng = np.random.default_rng(3)
        self._due = dict.fromkeys(NAMES, 0.0)
        self._tick = 0

    def run(self, seconds: float) -> dict[str, np.ndarray]:
        """Fly for some time, and return the positions (n, 3) 50 times a second by name."""
        seen: dict[str, list[np.ndarray]] = {name: [] for name in NAMES}
        for _ in range(round(seconds * 50)):
            time = self._tick / FREQ
            for name in NAMES:
                if time >= self._due[name] - 1e-9:
                    self._physics.command(name, on_circle(name, time, self._kind))
                    late = 0.15 * self._rng.random() if name == "late" else 0.0
                    self._due[name] = time + 0.05 + late
            now = self._physics.step(FREQ // 50).result(T)
            self._tick += FREQ // 50
            for name, pos in zip(NAMES, now.pos):
                seen[name].append(pos.copy())
        return {name: np.array(values) for name, values in seen.items()}


@pytest.mark.parametrize("kind", [Pose, pytest.param(Position, marks=pytest.mark.soak)])
def test_streamed_circles_are_flown_at_their_speed(
    flying: Physics, kind: Callable[..., Setpoint]
) -> None:
    physics, events = flying
    flown = Program(physics, kind).run(16.0)
    for name, most in (("regular", 0.03), ("late", 0.1)):
        pos = flown[name][200:]
        speed = np.linalg.norm(np.diff(pos, axis=0), axis=1) * 50
        assert np.abs(speed / SPEEDS[name] - 1).max() < most, name
        centre = np.array([5 * NAMES.index(name), RADIUS])
        away = np.linalg.norm(pos[:, :2] - centre, axis=1) - RADIUS
        assert np.abs(away).max() < 0.1
        np.testing.assert_allclose(pos[:, 2], 1.0, atol=0.03)
    assert not events


def test_a_delayed_stream_with_losses_is_followed_in_wind(flying: Physics) -> None:
    """Every fourth pose is lost, and the others come 0.12 s late, in 2 m/s of wind."""
    physics, events = flying
    physics.world.disturb(Wind((-1.2, 1.6, 0.0))).result(T)
    seen = []
    for k in range(900):
        if k % 4 == 0 and k % 16:
            for name in NAMES:
                physics.command(name, on_circle(name, 0.02 * k - 0.12))
        now = physics.step(FREQ // 50).result(T)
        seen.append(now.pos.copy())
        assert 1 - 2 * np.square(now.quat[:, :2]).sum(axis=1).max() > np.cos(np.radians(35))
    physics.world.disturb(Wind()).result(T)
    pos = np.array(seen)[300:]
    for i, name in enumerate(NAMES):
        speed = np.linalg.norm(pos[10:, i] - pos[:-10, i], axis=1) * 5
        assert np.abs(speed / SPEEDS[name] - 1).max() < 0.1, name
        away = np.linalg.norm(pos[:, i, :2] - [5 * i, RADIUS], axis=1) - RADIUS
        assert np.abs(away).max() < 0.2
        assert np.abs(pos[:, i, 2] - 1.0).max() < 0.1
    assert not events


def test_a_stream_goes_on_from_a_file_bit_for_bit(flying: Physics, tmp_path: Path) -> None:
    physics, _ = flying
    program = Program(physics)
    program.run(2.5)
    physics.state.checkpoint().result(T).save(tmp_path / "flight")
    ends = []
    for again in range(2):
        if again:
            physics.state.restore(Checkpoint.load(tmp_path / "flight")).result(T)
        for k in range(8):
            for name in NAMES:
                physics.command(name, on_circle(name, 2.5 + 0.06 * k))
            now = physics.step(30).result(T)
        ends.append(np.hstack((now.pos, now.quat, now.vel, now.rotor_vel, now.desired)))
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("place", [(0.0, 6.0, 1.0), (-3.0, -3.0, 2.5), (0.0, 0.5, 0.3)])
@pytest.mark.parametrize("moving", [False, True])
def test_a_drone_that_is_put_elsewhere_flies_on_from_there(
    flying: Physics, place: tuple[float, float, float], moving: bool
) -> None:
    """As by `set_entity_state`: to the place that it was told, while it hovers or on the way."""
    physics, events = flying
    if moving:
        physics.command("regular", Pose((0.0, -4.0, 1.5), 1.0))
        physics.step(FREQ).result(T)
    physics.state.set_drone_states({"regular": DroneState(pos=place)}).result(T)
    tilts, lowest = [], place[2]
    for _ in range(70):
        now = physics.step(FREQ // 10).result(T)
        x, y, _, _ = now.quat[0]
        tilts.append(np.degrees(np.arccos(1 - 2 * (x * x + y * y))))
        lowest = min(lowest, float(now.pos[0, 2]))
    goal = (0.0, -4.0, 1.5) if moving else (0.0, 0.0, 1.0)
    np.testing.assert_allclose(now.pos[0], goal, atol=0.05)
    assert max(tilts) < 45 and lowest > 0.15
    assert [event.kind for event in events] in ([], ["off course"])
    assert physics.commands.states["regular"] == "flying"

"""Controllers of a running simulation: each flies with the commander, and they change in flight."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from physics_helpers import until

from crazyflow_ros.control import Controller
from crazyflow_ros.flight import Land, Pose, Trajectory
from crazyflow_ros.runtime import Checkpoint, PhysicsThread, SimulationConfig

T = 300.0  # s, no wait of a test is longer; compiling is among them
PERIOD, FREQ = 8.0, 500

# Mean distance from a figure eight of 2 m x 1 m in 8 s, and the greatest, m. PID and INDI ignore
# the velocity of a setpoint, so they are late by 0.5 and 1 s.
OFF = {
    Controller.mellinger: (0.02, 0.1),
    Controller.brescianini: (0.08, 0.4),
    Controller.pid: (0.5, 0.7),
    Controller.indi: (0.7, 1.0),
}


def eight(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration around (1, 0, 1)."""
    rate, zero = 2 * np.pi / PERIOD, 0 * times
    a = rate * times
    pos = np.stack([1 + np.sin(a), np.sin(2 * a) / 2, 1 + zero], -1)
    vel = np.stack([rate * np.cos(a), rate * np.cos(2 * a), zero], -1)
    return pos, vel, np.stack([-(rate**2) * np.sin(a), -2 * rate**2 * np.sin(2 * a), zero], -1)


@pytest.fixture(scope="module")
def physics() -> Iterator[PhysicsThread]:
    config = SimulationConfig(true_mass=True, real_time_factor=1.0, start_paused=True)
    made = PhysicsThread(config, ("cf0", "cf1"))
    made.every(100, lambda snapshot: None, "event")
    made.start()
    yield made
    made.stop()
    assert made.failed is None, made.failed


def flown(physics: PhysicsThread, seconds: float, every: float = 0.1) -> np.ndarray:
    """Positions of the drones, (n, 2, 3)."""
    ticks = round(every * FREQ)
    return np.array([physics.step(ticks).result(T).pos for _ in range(round(seconds / every))])


def both(physics: PhysicsThread, x: float, yaw: float = 0.0) -> np.ndarray:
    """Send the drones to a point, 2 m apart."""
    goals = np.array([[x, 0.0, 1.0], [x, 2.0, 1.0]])
    for name, goal in zip(physics.snapshot.names, goals):
        physics.command(name, Pose(goal, yaw))
    return goals


@pytest.mark.parametrize("controller", Controller)
def test_drones_that_hover_take_another_controller_and_fly_with_it(
    physics: PhysicsThread, controller: Controller
) -> None:
    goals = both(physics, 0.0)
    flown(physics, 12.0)
    physics.world.set_controller(controller).result(T)
    assert physics.world.controller is controller
    hovering = flown(physics, 2.0)
    np.testing.assert_allclose(hovering, np.tile(goals, (20, 1, 1)), atol=0.1)

    goals = both(physics, 1.0, yaw=1.0)
    path = flown(physics, 12.0)
    assert path[:, :, 0].max() < 1.3 and np.abs(path[:, :, 2] - 1).max() < 0.15
    np.testing.assert_allclose(path[-1], goals, atol=0.02)

    times = np.linspace(0, 2 * PERIOD, 161)
    pos, vel, acc = eight(times)
    along = (np.round(times * 1e9) + 1e9).astype(np.int64)
    physics.command("cf0", Trajectory(along, pos, np.ones(161), vel, acc))
    start = physics.snapshot.time_ns + 1_000_000_000
    flown(physics, 1.0)
    path = flown(physics, 2 * PERIOD)[:, 0]
    now = (physics.snapshot.time_ns - start) * 1e-9
    wanted = eight(now - 0.1 * np.arange(len(path))[::-1])[0]
    off = np.linalg.norm(path - wanted, axis=-1)
    mean, most = OFF[controller]
    assert off.mean() < mean and off.max() < most

    for name in physics.snapshot.names:
        physics.command(name, Land(0.0, 2.0))
    assert flown(physics, 6.0)[-1, :, 2].max() < 0.03
    assert not physics.statistics().faults
    assert all(state.stands for state in physics.commands.states.values())


def test_time_goes_on_while_a_controller_is_prepared(physics: PhysicsThread) -> None:
    other = Controller.pid if physics.world.controller is not Controller.pid else Controller.indi
    physics.resume().result(T)
    start = physics.snapshot.tick
    change = physics.world.set_controller(other)
    until(lambda: physics.snapshot.tick > start, "ticks, before or after the change", T)
    change.result(T)
    physics.pause().result(T)
    assert physics.world.controller is other


def test_a_checkpoint_is_of_its_controller(physics: PhysicsThread) -> None:
    physics.world.set_controller("indi").result(T)
    both(physics, 0.5)
    flown(physics, 2.0)
    kept = Checkpoint(*map(dict, vars(physics.state.checkpoint().result(T)).values()))
    expected = flown(physics, 1.0)
    physics.state.restore(kept).result(T)
    np.testing.assert_array_equal(flown(physics, 1.0), expected)
    physics.world.set_controller("mellinger").result(T)
    message = r"the checkpoint has controller=indi, .* mellinger"
    with pytest.raises(ValueError, match=message):
        physics.state.restore(kept).result(T)


def test_a_simulation_starts_with_its_controller_and_refuses_others() -> None:
    config = SimulationConfig(controller="brescianini", true_mass=True, start_paused=True)
    physics = PhysicsThread(config, ("cf0", "cf1"))  # compiled above
    assert physics.world.controller is Controller.brescianini
    with pytest.raises(ValueError, match="there is no controller 'lee', only pid, mellinger, indi"):
        physics.world.set_controller("lee")
    with pytest.raises(ValueError, match="controller=pid needs control=state or attitude"):
        PhysicsThread(SimulationConfig(control="rotor_vel", controller="pid"), ("cf0",))

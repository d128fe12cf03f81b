"""Drones with six and eight rotors in the node's physics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest
from multirotors import HEXA, OCTO

from crazyflow_ros.drones import check_quadrotor, load_drone, rotors_of
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.flight import GoTo, Raw, Takeoff
from crazyflow_ros.runtime import (
    Checkpoint,
    DroneState,
    MotorEfficiency,
    PhysicsThread,
    SimulationConfig,
)

T = 300.0  # s, no wait is longer
NAMES = ("cf0", "cf1")


def started(drone: str, **changes) -> PhysicsThread:
    options = {"real_time_factor": 0.0, "start_paused": True, "battery": True} | changes
    config = SimulationConfig.of(RealisticOptions(drone_model=drone, **options))
    physics = PhysicsThread(config, NAMES)
    physics.start()
    return physics


@pytest.fixture(scope="module", params=[HEXA, OCTO])
def flying(request: pytest.FixtureRequest) -> Iterator[PhysicsThread]:
    """Both drones hover at a height of 1 m, which large rotors feel as near the ground."""
    physics = started(request.param, ground_effect=False)
    physics.command_all({name: Takeoff(1.0) for name in NAMES})
    physics.step(2500).result(T)
    yield physics
    physics.stop()
    assert physics.failed is None


def test_they_fly_a_square(flying: PhysicsThread) -> None:
    start = flying.snapshot.pos
    for x, y in ((0.5, 0), (0.5, 0.5), (0, 0.5), (0, 0)):
        place = (start[0, 0] + x, start[0, 1] + y, 1.0)
        flying.command("cf0", GoTo(place, 0.0))
        flying.step(2000).result(T)
        np.testing.assert_allclose(flying.snapshot.pos[0], place, atol=0.03)
    np.testing.assert_allclose(flying.snapshot.pos[1], start[1], atol=0.02)


def test_rotors_turn_as_hover_by_hand_wants(flying: PhysicsThread) -> None:
    drone = flying.config.drone_model
    hover = rotors_of(drone).hover_speeds(load_drone(drone)["mass"] * 9.81) * RPM
    for row in flying.snapshot.rotor_vel:
        np.testing.assert_allclose(row, hover, rtol=5e-3)
    model = flying.mirror.model
    data = mujoco.MjData(model)
    flying.mirror.copy_physics_data(data)
    shown = [[data.joint(f"rotor{i}:{name}").qvel[0] for i in range(len(hover))] for name in NAMES]
    np.testing.assert_allclose(shown, flying.snapshot.rotor_vel)
    assert model.nu == 2 * len(hover)


def test_they_fly_on_with_weak_motors(flying: PhysicsThread) -> None:
    n = len(rotors_of(flying.config.drone_model))
    with pytest.raises(ValueError, match=f"motor must be one of 0 to {n - 1}, got {n}"):
        flying.world.disturb(MotorEfficiency("cf0", n, 0.5)).result(T)
    flying.world.disturb(MotorEfficiency("cf0", n - 1, 0.6)).result(T)
    flying.step(2000).result(T)
    assert flying.snapshot.pos[0, 2] == pytest.approx(1, abs=0.3)
    flying.world.disturb(MotorEfficiency("cf0", n - 1, 1.0)).result(T)
    flying.step(2000).result(T)


def test_a_flight_continues_from_a_checkpoint_to_the_bit(
    flying: PhysicsThread, tmp_path: Path
) -> None:
    flying.command("cf1", GoTo((0.3, -0.4, 1.2), 0.3))
    flying.step(100).result(T)
    path = tmp_path / "flight"
    flying.state.checkpoint().result(T).save(path)
    ends = []
    for _ in range(2):
        flying.state.restore(Checkpoint.load(path)).result(T)
        flying.step(500).result(T)
        now = flying.snapshot
        ends.append([now.pos, now.quat, now.rotor_vel, now.rotor_angle])
    for one, other in zip(*ends):
        np.testing.assert_array_equal(one, other)


def test_states_have_as_many_rotors(flying: PhysicsThread) -> None:
    n = len(rotors_of(flying.config.drone_model))
    with pytest.raises(ValueError, match=f"rotor_vel of cf1 must be {n} finite numbers"):
        flying.state.set_drone_states({"cf1": DroneState(rotor_vel=np.zeros(4))}).result(T)
    flying.state.set_drone_states({"cf1": DroneState(rotor_vel=np.arange(n) + 500.0)}).result(T)
    np.testing.assert_allclose(flying.snapshot.rotor_vel[1], np.arange(n) + 500.0, rtol=1e-6)


def test_rotor_speeds_are_commanded_one_by_one() -> None:
    physics, speeds = started(HEXA, control="rotor_vel"), np.linspace(4000, 5000, 6)
    try:
        with pytest.raises(ValueError, match="rotor_vel command must have 6 numbers, got 4"):
            physics.command("cf0", Raw(speeds[:4]))
        physics.command("cf0", Raw(speeds))
        physics.step(300).result(T)
        np.testing.assert_allclose(physics.snapshot.rotor_vel[0], speeds * RPM, rtol=1e-3)
        assert not physics.snapshot.rotor_vel[1].any()
    finally:
        physics.stop()


def test_crtp_refuses_them() -> None:
    with pytest.raises(
        ValueError, match="CRTP is for quadrotors, but hexa_x680 has tables of its 6"
    ):
        check_quadrotor(HEXA, "CRTP")

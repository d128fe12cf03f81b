"""Drones that stand for real ones: others feel them, and they obey nobody."""

from __future__ import annotations

import numpy as np
import pytest
from physics_helpers import started

from crazyflow_ros.engine.snapshot import DroneState
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig

NAMES = ("cf0", "cf1")
T = 120.0  # s
CONFIG = SimulationConfig(real_time_factor=0.0, start_paused=True, downwash=True)
LOW, HIGH = (0.0, 0.0, 0.8), (0.0, 0.0, 1.4)
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


def nobody(_: PhysicsThread) -> None:
    pass


def simulated(physics: PhysicsThread) -> None:
    physics.state.set_drone_states({"cf1": DroneState(pos=HIGH)}).result(T)
    physics.command("cf1", Pose(HIGH, 0.0))


def led(physics: PhysicsThread) -> None:
    physics.firmware.lead("cf1", HIGH, UPRIGHT).result(T)


def test_a_led_drone_pushes_air_down_as_a_simulated_one_does() -> None:
    speeds = {}
    for above in (nobody, simulated, led):
        with started(CONFIG, NAMES) as physics:
            above(physics)
            physics.command("cf0", Pose(LOW, 0.0))
            physics.step(4 * physics.freq).result(T)
            speeds[above] = physics.snapshot.rotor_vel[0].mean()
    assert speeds[simulated] > 1.05 * speeds[nobody]  # the rotors below turn faster
    assert speeds[led] == pytest.approx(speeds[simulated], rel=0.01)


def test_a_led_drone_is_where_and_as_fast_as_is_said() -> None:
    turned, vel, spin = np.array([0.0, 0.0, 0.6, 0.8]), [0.5, 0.0, 0.1], [0.0, 0.2, 1.0]
    with started(CONFIG, NAMES) as physics:
        hovering = physics.snapshot.rotor_vel[1].copy()
        physics.firmware.lead("cf1", HIGH, turned, vel, spin).result(T)
        for _ in range(2):  # also after time has passed
            physics.step(500).result(T)
            now = physics.snapshot
            np.testing.assert_allclose(now.pos[1], HIGH, atol=1e-6)
            np.testing.assert_allclose(now.quat[1], turned, atol=1e-6)
            np.testing.assert_allclose(now.vel[1], vel, atol=1e-6)
            np.testing.assert_allclose(now.ang_vel[1], spin, atol=1e-6)
            # The heading is 2 atan(0.6 / 0.8), so x of the world is cos, -sin of it in the body.
            cos, sin = 0.28, 0.96
            np.testing.assert_allclose(now.body_vel[1], [0.5 * cos, -0.5 * sin, 0.1], atol=1e-6)
            assert (now.rotor_vel[1] > 1000).all() and (hovering == 0).all()
        physics.firmware.lead("cf1", (0.0, 1.0, 0.02), UPRIGHT).result(T)
        physics.step(1).result(T)
        assert (physics.snapshot.rotor_vel[1] == 0).all()  # it stands on the floor
        physics.world.despawn("cf1").result(T)
        physics.world.spawn("cf1", [0.0, 1.0, 0.5, *UPRIGHT]).result(T)
        physics.step(200).result(T)
        assert physics.snapshot.pos[1, 2] < 0.4  # the next one of this name falls

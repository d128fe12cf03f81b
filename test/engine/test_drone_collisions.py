"""Drones of a running simulation collide with one another, if they shall."""

from __future__ import annotations

import mujoco
import numpy as np

from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig

T = 120.0  # s
NAMES = ("below", "above")
# m, at 2 m/s and at rest, where it slides off the other; through each other they reach -26e-3
DEEPEST, RESTING = -13e-3, -6e-3


def distance(physics: PhysicsThread) -> float:
    """Between the collision boxes of two drones [m], by MuJoCo; negative where they overlap."""
    model, data = physics.mirror.model, physics.mirror.copy_physics_data()
    boxes = [
        next(
            g for g in range(model.ngeom) if model.geom_bodyid[g] == body and model.geom_contype[g]
        )
        for body in (model.body(f"drone:{name}").id for name in NAMES)
    ]
    return mujoco.mj_geomDistance(model, data, *boxes, 1.0, np.zeros(6))


def test_a_drone_that_falls_onto_another_does_not_pass_through_it() -> None:
    height = rest_height("cf2x_L250")
    poses = np.array([[0.0, 0.0, height, 0, 0, 0, 1], [0.01, 0.0, 0.3, 0, 0, 0, 1]])
    config = SimulationConfig(drone_collisions=True, initial_poses=poses, start_paused=True)
    physics = PhysicsThread(config, NAMES)
    physics.start()
    try:
        before, distances = distance(physics), []
        for _ in range(100):
            after = physics.step(5).result(T)
            distances.append(distance(physics))
    finally:
        physics.stop()
    assert before > 0.2
    assert DEEPEST < min(distances) < 0  # they have met
    assert distances[-1] > RESTING
    assert np.abs(after.vel).max() < 2e-2  # it slides off slowly: neither drone stands still

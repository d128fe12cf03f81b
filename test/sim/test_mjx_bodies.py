"""Bodies that move in batches: against `Sim` alone, closed forms, momentum and MuJoCo itself."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.scene import Conditions
from crazyflow_ros.sim import Sim, move_bodies

DRONE, FREQ, G = "cf2x_L250", 500, 9.81
WORLD = """
<mujoco>
  <option gravity="0 0 {gravity}" iterations="{iterations}" ls_iterations="20"/>
  <worldbody>
    {floor}
    <body name="box" pos="{box}"><freejoint/><geom type="box" size=".2 .2 .05" mass=".2"/></body>
    <body name="ball" pos="{ball}"><freejoint/><geom size=".05" mass=".01"/></body>
  </worldbody>
</mujoco>"""


def world(folder: Path, box: str, ball: str, *, gravity: float = -G, floor: bool = True) -> str:
    plane = '<geom name="floor" type="plane" size="0 0 1"/>' if floor else ""
    places = {"box": box, "ball": ball, "floor": plane, "gravity": gravity, "iterations": 20}
    (path := folder / "world.xml").write_text(WORLD.format(**places))
    return str(path)


def flying(n_worlds: int, pos: np.ndarray, vel: np.ndarray | None = None, **options: object) -> Sim:
    sim = Sim(n_worlds, 1, drone=DRONE, control="rotor_vel", freq=FREQ, **options)  # type: ignore[arg-type]
    states = sim.data.states.replace(pos=jnp.asarray(pos, jnp.float32)[:, None])
    if vel is not None:
        states = states.replace(vel=jnp.asarray(vel, jnp.float32)[:, None])
    sim.data = sim.data.replace(states=states)
    return sim


def qpos(sim: Sim) -> np.ndarray:
    """(N, 14) of box and ball."""
    return np.asarray(sim.data.plugins["mjx_qpos"][:, 0, :14])


def test_what_touches_nothing_moves_as_alone(tmp_path: Path) -> None:
    pos = np.array([[0, 0, 2.0], [0.3, 0, 2.5]])
    command = np.array([[[17e3, 18e3, 17.5e3, 18e3]], [[18e3, 17e3, 18e3, 17e3]]])
    found = []
    for has_bodies in (False, True):
        sim = flying(2, pos, np.array([[0.5, 0, 0], [0, -0.5, 0.2]]), integrator="symplectic_euler")
        if has_bodies:
            move_bodies(sim, world(tmp_path, "5 0 .05", "5 2 3"))
        sim.rotor_vel_control(command)
        sim.step(100)
        found.append(sim.data.states)
    for name in ("pos", "quat", "vel", "ang_vel", "rotor_vel"):
        alone, among = (np.asarray(getattr(states, name)) for states in found)
        np.testing.assert_allclose(among, alone, rtol=2e-4, atol=2e-4, err_msg=name)
    t = 100 / FREQ
    fallen = 3 - G * (t * t + t / FREQ) / 2  # of semi-implicit Euler
    np.testing.assert_allclose(qpos(sim)[:, 9], fallen, atol=1e-4)


def test_a_drone_rests_on_a_box_as_in_mujoco(tmp_path: Path) -> None:
    scene = world(tmp_path, "0 0 .05", "2 0 .05")
    sim = flying(2, np.array([[0, 0, 0.1 + rest_height(DRONE)], [0.1, 0.05, 0.15]]))
    bodies = move_bodies(sim, scene)
    sim.step(FREQ)
    np.testing.assert_allclose(sim.data.states.pos[:, 0, 2], 0.1 + rest_height(DRONE), atol=1e-3)
    np.testing.assert_allclose(sim.data.states.vel, 0, atol=1e-2)
    model, data = bodies.model, mujoco.MjData(bodies.model)
    model.body_gravcomp[:] = 0
    data.qpos[bodies.model.joint("free:0").qposadr[0] + 2] = 0.1 + rest_height(DRONE)
    mujoco.mj_step(model, data, FREQ)
    np.testing.assert_allclose(qpos(sim)[0, :3], data.qpos[:3], atol=1e-4)
    sim.reset()
    np.testing.assert_allclose(qpos(sim)[:, :3], [[0, 0, 0.05]] * 2, atol=1e-6)


def test_a_push_keeps_the_momentum_of_drone_and_ball(tmp_path: Path) -> None:
    options = {"conditions": Conditions(gravity=(0.0, 0.0, 0.0), density=0.005, floor=None)}
    vel = np.array([[0.5, 0, 0], [1.0, 0, 0]])
    sim = flying(2, np.array([[0, 0, 1.0], [0, 0.02, 1.0]]), vel, **options)
    bodies = move_bodies(sim, world(tmp_path, "9 0 1", ".15 0 1", gravity=0.0, floor=False))
    mass = bodies.model.body("drone:0").mass[0]
    sim.step(200)
    ball = np.asarray(sim.data.plugins["mjx_qvel"][:, 0, 6:9])
    total = mass * np.asarray(sim.data.states.vel[:, 0]) + 0.01 * ball
    assert (ball[:, 0] > 0.2).all()
    np.testing.assert_allclose(total, mass * vel, atol=2e-3 * mass)


def test_a_scene_that_mjx_cannot_compute_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "hard.xml").write_text(
        '<mujoco><option solver="PGS"/><worldbody><body><freejoint/><geom size=".1"/></body>'
        "</worldbody></mujoco>"
    )
    with pytest.raises(ValueError, match="MJX cannot compute this scene"):
        move_bodies(Sim(drone=DRONE), str(path))

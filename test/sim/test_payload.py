"""Slung loads against pendulums, SciPy, MuJoCo, conservation laws and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from scipy.special import ellipk

from crazyflow_ros.dynamics import SlungLoad
from crazyflow_ros.sim import Sim, SimData, hang_payload, randomize_payload

pytestmark = pytest.mark.usefixtures("compiled_quickly")

G, DRONE = 9.81, "cf2x_L250"
STIFF = SlungLoad(mass=0.005, length=0.5, stiffness=2000.0, damping=0.02)
SOFT = SlungLoad(0.01, 0.3, 20.0, 0.0, ((0.03, 0.02, -0.01), (-0.02, 0.0, 0.01)))


def bare(sim: Sim, **params: Any) -> SimData:
    """Data of rigid bodies: without rotors' thrust, drag and, unless it is given, gravity."""
    old = sim.data.params
    zeros = {k: jnp.zeros_like(getattr(old, k)) for k in ("rpm2thrust", "rpm2torque")}
    still = {"drag_matrix": jnp.zeros((3, 3)), "gravity_vec": jnp.zeros(3)}
    return sim.data.replace(params=old.replace(**zeros | still | params))


def changed(data: SimData, load: dict[str, Any] | None = None, **states: Any) -> SimData:
    states = {k: jnp.broadcast_to(v, getattr(data.states, k).shape) for k, v in states.items()}
    loads = {k: jnp.broadcast_to(v, getattr(data.payload, k).shape) for k, v in (load or {}).items()}
    return data.replace(
        states=data.states.replace(**states), payload=data.payload.replace(**loads)
    )


def recorded(sim: Sim, data: SimData, ticks: int, of: Callable[[SimData], Any]) -> np.ndarray:
    """What a function returns after each tick."""
    sim.data = data
    rows = []
    for _ in range(ticks):
        sim.step()
        rows.append(of(sim.data))
    return np.array(rows)


def periods(angle: np.ndarray, freq: int) -> np.ndarray:
    """Mean period of swings (T, N), between upward crossings of zero."""
    found = []
    for column in angle.T:
        up = np.nonzero((column[:-1] < 0) & (column[1:] >= 0))[0]
        at = up - column[up] / (column[up + 1] - column[up])
        found.append((at[-1] - at[0]) / (len(at) - 1) / freq)
    return np.array(found)


@pytest.mark.usefixtures("double_precision")
def test_loads_swing_with_the_period_of_a_pendulum() -> None:
    """Under a heavy drone at small and large angles, and under one that swings against it."""
    sim = Sim(3, drone=DRONE, control="rotor_vel", forces=(), payload=STIFF)
    own = float(sim.data.params.mass[0])
    masses, angles = np.array([1e5, 1e5, own]), np.array([0.05, 1.5, 0.05])
    data = bare(sim, mass=jnp.asarray(masses)[:, None, None], gravity_vec=jnp.array([0, 0, -G]))
    # The weight of the drone is held, for the light one also that of the load.
    lift = masses * G + np.where(masses == own, STIFF.mass * G, 0)
    force = np.zeros((3, 1, 3))
    force[:, 0, 2] = lift
    pos = STIFF.length * np.stack([np.sin(angles), 0 * angles, -np.cos(angles)], axis=-1)
    data = changed(data, {"pos": pos[:, None], "vel": 0.0}, force=force)
    away = recorded(sim, data, 5000, lambda d: np.array(d.payload.pos - d.states.pos)[:, 0])
    found = periods(away[..., 0], sim.freq)
    small = 2 * np.pi * np.sqrt(STIFF.length / G)
    large = small * ellipk(np.sin(angles[1] / 2) ** 2) * 2 / np.pi
    light = small / np.sqrt(1 + STIFF.mass / own)
    np.testing.assert_allclose(found, [small, large, light], rtol=2e-3)
    # Ten seconds do not damp the swing.
    swing = np.abs(np.arctan2(away[..., 0], -away[..., 2]))
    np.testing.assert_allclose(swing[-1000:].max(axis=0)[:2], angles[:2], rtol=0.01)


def test_a_flying_drone_swings_its_load_with_that_period() -> None:
    """The acceptance of the issue: 5 g below a cf2x_L250 that its controller keeps level."""
    sim = Sim(drone=DRONE, control="attitude", forces=(), payload=STIFF)
    own = float(sim.data.params.mass[0])
    thrust = (own + STIFF.mass) * G
    settled = sim.data.params.settled_rotors(sim.data.controls.rotor_vel)
    del settled
    p = np.asarray(sim.data.params.rpm2thrust[0], float)
    rpm = (-p[1] + np.sqrt(p[1] ** 2 - 4 * p[2] * (p[0] - thrust / 4))) / (2 * p[2])
    pos = STIFF.length * np.array([np.sin(0.1), 0, -np.cos(0.1)])
    sim.data = changed(sim.data, {"pos": pos}, rotor_vel=rpm)
    sim.attitude_control(np.array([[[0, 0, 0, thrust]]], np.float32))
    away = recorded(sim, sim.data, 3000, lambda d: np.array(d.payload.pos - d.states.pos)[:, 0, 0])
    expected = 2 * np.pi * np.sqrt(STIFF.length / G / (1 + STIFF.mass / own))
    np.testing.assert_allclose(periods(away, sim.freq), expected, rtol=0.01)

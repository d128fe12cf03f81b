"""Slung loads against pendulums, SciPy, MuJoCo, conservation laws and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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

G, DRONE = 9.81, "cf2x_L250"
STIFF = SlungLoad(mass=0.005, length=0.5, stiffness=2000.0, damping=0.02)
SOFT = SlungLoad(0.01, 0.3, 20.0, 0.0, ((0.03, 0.02, -0.01), (-0.02, 0.0, 0.01)))


def bare(sim: Sim, **params: Any) -> SimData:
    """Data of rigid bodies: without rotors' thrust, drag and, unless it is given, gravity."""
    old = sim.default_data.params
    zeros = {k: jnp.zeros_like(getattr(old, k)) for k in ("rpm2thrust", "rpm2torque")}
    still = {"drag_matrix": jnp.zeros((3, 3)), "gravity_vec": jnp.zeros(3)}
    return sim.default_data.replace(params=old.replace(**zeros | still | params))


def changed(data: SimData, load: dict[str, Any] | None = None, **states: Any) -> SimData:
    """Data with other states, and other numbers of the load."""

    def filled(tree: Any, values: dict[str, Any]) -> Any:
        shapes = {k: getattr(tree, k).shape for k in values}
        return tree.replace(
            **{k: jnp.broadcast_to(jnp.asarray(v), shapes[k]) for k, v in values.items()}
        )

    states, payload = filled(data.states, states), filled(data.payload, load or {})
    return data.replace(states=states, payload=payload)


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
    p = np.asarray(sim.data.params.rpm2thrust[0], float)
    rpm = (-p[1] + np.sqrt(p[1] ** 2 - 4 * p[2] * (p[0] - thrust / 4))) / (2 * p[2])
    pos = STIFF.length * np.array([np.sin(0.1), 0, -np.cos(0.1)])
    sim.data = changed(sim.data, {"pos": pos}, rotor_vel=rpm)
    sim.attitude_control(np.array([[[0, 0, 0, thrust]]], np.float32))
    away = recorded(sim, sim.data, 3000, lambda d: np.array(d.payload.pos - d.states.pos)[:, 0, 0])
    expected = 2 * np.pi * np.sqrt(STIFF.length / G / (1 + STIFF.mass / own))
    np.testing.assert_allclose(periods(away, sim.freq), expected, rtol=0.01)


PAIR = SlungLoad(mass=0.01, length=0.3, stiffness=20.0, damping=0.0)
"""On soft cables, which stretch visibly."""
AROUND = ((0.03, 0.02, -0.01), (-0.02, 0.0, 0.01))
"""Points beside the centres of mass."""


@cache
def pair(freq: int = 500, **changes: Any) -> Sim:
    load = replace(PAIR, **changes)
    return Sim(1, 2, drone=DRONE, control="rotor_vel", forces=(), payload=load, freq=freq)


def adrift(sim: Sim, **params: Any) -> SimData:
    """Two drones that drift beside their load; both cables slacken and become taut."""
    data = bare(sim, **params)
    pos, vel = [[0.2, 0.05, 1.0], [-0.25, 0.0, 1.1]], [[0.1, 0.2, -0.1], [-0.3, 0.1, 0.2]]
    return changed(data, {"pos": [0.0, 0.1, 0.85], "vel": [0.2, -0.3, 0.0]}, pos=pos, vel=vel)


def momenta(data: SimData) -> tuple[np.ndarray, np.ndarray, float]:
    """Momentum and angular momentum about the origin of a world, and its energy."""
    parts = data.states, data.payload, data.params
    states, load, params = (jax.tree.map(np.array, x) for x in parts)
    m, (pos, vel) = params.mass[..., 0], (states.pos[0], states.vel[0])
    turn, point = Rotation.from_quat(states.quat[0]), load.attachment
    spin, rates, p = states.ang_vel[0] @ params.J, states.ang_vel[0], load.mass[0] * load.vel[0]
    momentum = m * vel.sum(axis=0) + p[0]
    angular = (np.cross(pos, m * vel) + turn.apply(spin)).sum(axis=0)
    angular += np.cross(load.pos[0], p)[0]
    anchor = pos if point is None else pos + turn.apply(point[0])
    stretch = np.maximum(np.linalg.norm(anchor - load.pos[0], axis=-1) - load.length[0, :, 0], 0)
    twice = (m * vel * vel).sum() + (spin * rates).sum() + (p * load.vel[0]).sum()
    return momentum, angular, (twice + (load.stiffness[0, :, 0] * stretch**2).sum()) / 2


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("attachment", [(0.0, 0.0, 0.0), AROUND], ids=["middle", "beside"])
def test_momentum_is_kept_without_gravity_and_air(attachment: Any) -> None:
    """With inertias for which Euler's method keeps the angular momentum of a free drone, too."""
    sim = pair(attachment=attachment)
    data = adrift(sim, J=1e-4 * jnp.eye(3))
    before, turning, energy = momenta(data)

    def of(data: SimData) -> np.ndarray:
        return np.hstack([*momenta(data), np.ravel(data.payload.tension)])

    rows = recorded(sim, data, 2000, of)
    taut = rows[:, 7:] > 0
    assert (taut.any(axis=0) & ~taut.all(axis=0)).all()  # both slack and taut
    assert abs(rows[:, :3] - before).max() < 1e-13
    assert abs(rows[:, 3:6] - turning).max() < 1e-12
    assert abs(rows[:, 6] / energy - 1).max() < 0.1  # without a trend
    assert abs(rows[-500:, 6].mean() / rows[:500, 6].mean() - 1) < 0.02


def positions(sim: Sim) -> np.ndarray:
    """Of the drones, then of the load, (M + 1, 3)."""
    return np.concatenate([np.array(sim.data.states.pos)[0], np.array(sim.data.payload.pos)[0]])


def expect_convergence(ends: list[np.ndarray], expected: np.ndarray) -> None:
    """Positions with a step and with half of it."""
    coarse, fine = (abs(end - expected).max() for end in ends)
    assert fine < 1e-3 and fine < 0.7 * coarse


@pytest.mark.usefixtures("double_precision")
def test_flights_converge_to_those_of_scipy() -> None:
    """A drone that is pushed and turned, and a load in wind on a damped cable beside its centre."""
    load = SlungLoad(0.01, 0.4, 30.0, 0.05, (0.01, -0.02, -0.03), 1e-3)
    wind, push = np.array([1.0, -2.0, 0.5]), np.array([0.02, 0.01, 0.4])
    twist = 1e-6 * np.array([2, 1, -1])
    start = {"vel": [0.3, 0.0, 0.1], "ang_vel": [0.2, -0.4, 0.3]}
    apart = {"pos": [0.3, 0.1, -0.35], "vel": [0.0, 0.5, 0.0]}
    ends = []
    for freq in (1000, 2000):
        sim = Sim(drone=DRONE, control="rotor_vel", forces=(), payload=load, freq=freq)
        J = jnp.diag(jnp.array([1e-4, 2e-4, 3e-4]))
        data = bare(sim, gravity_vec=jnp.array([0, 0, -G]), wind=jnp.asarray(wind), J=J)
        sim.data = changed(data, apart, **start, force=push, torque=twist)
        params = jax.tree.map(np.array, sim.data.params)
        sim.step(freq)
        ends.append(positions(sim))
    m = params.mass[0]

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        pos, quat, vel, rates, at, moves = np.split(y, [3, 7, 10, 13, 16])
        turn = Rotation.from_quat(quat)
        arm = turn.apply(load.attachment)
        away = at - pos - arm
        unit = away / (far := np.linalg.norm(away))
        elastic = load.stiffness * max(far - load.length, 0)
        lengthens = unit @ (moves - vel - turn.apply(np.cross(rates, load.attachment)))
        pull = (elastic + np.clip(load.damping * lengthens, -elastic, elastic)) * unit
        torque = turn.inv().apply(twist + np.cross(arm, pull)) - np.cross(rates, J @ rates)
        through = wind - moves
        drag = 0.6 * load.drag_area * np.linalg.norm(through) * through
        x, y_, z, w = quat
        spin = Rotation.from_quat(quat).as_matrix() @ rates  # world
        q = 0.5 * np.array(
            [
                w * spin[0] + spin[1] * z - spin[2] * y_,
                w * spin[1] + spin[2] * x - spin[0] * z,
                w * spin[2] + spin[0] * y_ - spin[1] * x,
                -spin @ quat[:3],
            ]
        )
        gravity = np.array([0, 0, -G])
        acc = gravity + (push + pull) / m
        fall = gravity + (drag - pull) / load.mass
        return np.hstack([vel, q, acc, np.linalg.solve(J, torque), moves, fall])

    y = np.hstack([np.zeros(6), 1, *start.values(), *apart.values()])
    end = solve_ivp(rate, (0, 1), y, rtol=1e-9, atol=1e-11).y[:, -1]
    expected = np.hstack([end[:3], end[13:16]])
    expect_convergence(ends, expected.reshape(2, 3))


@pytest.mark.usefixtures("double_precision")
def test_two_drones_carry_a_load_as_in_mujoco() -> None:
    """Cables of MuJoCo are tendons with a spring beyond a length."""
    inertia, ends = jnp.diag(jnp.full(3, 1e-4)), []
    for freq in (1000, 2000):
        sim = pair(freq, attachment=AROUND)
        data = adrift(sim, gravity_vec=jnp.array([0, 0, -G]), J=inertia)
        m = float(data.params.mass[0])
        lift = np.array([[0.01, 0.0, (m + 0.005) * G], [0.0, -0.01, (m + 0.005) * G]])
        tension = recorded(sim, changed(data, force=lift), freq // 2, lambda d: d.payload.tension)
        assert (tension == 0).any(axis=0).all() and (tension > 0.1).any(axis=0).all()
        ends.append(positions(sim))
    bodies = [("0.2 0.05 1", m), ("-0.25 0 1.1", m), ("0 0.1 0.85", PAIR.mass)]
    xml = "".join(
        f"<body pos='{pos}'><freejoint/><inertial pos='0 0 0' mass='{mass}'"
        f" diaginertia='1e-4 1e-4 1e-4'/><site name='s{i}' pos='"
        f"{' '.join(map(str, AROUND[i])) if i < 2 else '0 0 0'}'/></body>"
        for i, (pos, mass) in enumerate(bodies)
    )
    tendons = "".join(
        f"<spatial springlength='0 {PAIR.length}' stiffness='{PAIR.stiffness}'>"
        f"<site site='s{i}'/><site site='s2'/></spatial>"
        for i in range(2)
    )
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><option timestep='2e-4' integrator='RK4' gravity='0 0 -{G}'/>"
        f"<worldbody>{xml}</worldbody><tendon>{tendons}</tendon></mujoco>"
    )
    reference = mujoco.MjData(model)
    reference.qvel[:] = 0
    for i, vel in enumerate([[0.1, 0.2, -0.1], [-0.3, 0.1, 0.2], [0.2, -0.3, 0.0]]):
        reference.qvel[6 * i : 6 * i + 3] = vel
    reference.xfrc_applied[1:3, :3] = lift
    mujoco.mj_step(model, reference, 2500)
    expect_convergence(ends, reference.qpos.reshape(3, 7)[:, :3])


@pytest.mark.usefixtures("double_precision")
def test_gradients_through_the_tension_are_those_of_finite_differences() -> None:
    """With cables that are taut, and with others that become taut in the meantime."""
    sim = pair(attachment=AROUND)
    slack = adrift(sim, gravity_vec=jnp.array([0, 0, -G]), J=1e-4 * jnp.eye(3))
    step = sim.build_step_fn()
    names = ("mass", "length", "stiffness", "damping", "vel")

    def moved(x: jax.Array, data: SimData) -> jax.Array:
        load = {name: getattr(data.payload, name) * x[i] for i, name in enumerate(names)}
        load["damping"] += 0.01 * x[3]  # it is zero
        vel, own = data.states.vel * x[5], data.params.mass * x[6]
        flown = changed(data, load, vel=vel).replace(params=data.params.replace(mass=own))
        end = step(flown, 60)
        weights = jnp.arange(1, 4) / 3
        return (end.payload.pos * weights).sum() + (end.states.pos * weights).sum() ** 2

    def compiled(fn: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        return jax.jit(fn).lower(jnp.ones(7), slack).compile()

    value, gradient = compiled(moved), compiled(jax.grad(moved))
    x, eps = jnp.ones(7), 1e-6
    for data in (slack, changed(slack, {"pos": [0.0, 0.1, 0.7]})):
        pairs = ((value(x + eps * e, data), value(x - eps * e, data)) for e in jnp.eye(7))
        expected = [(high - low) / (2 * eps) for high, low in pairs]
        found = gradient(x, data)
        assert (abs(found) > 1e-6).all()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_gradients_are_finite_where_everything_is_zero() -> None:
    """A load that lies on the floor, in the centre of its drone, in still air."""
    sim = Sim(drone=DRONE, control="rotor_vel", payload=replace(STIFF, drag_area=1e-3))
    step = sim.build_step_fn()

    def moved(scale: jax.Array) -> jax.Array:
        load = {k: getattr(sim.data.payload, k) * scale for k in ("mass", "length", "pos", "vel")}
        end = step(changed(sim.data, load, vel=sim.data.states.vel * scale), 5)
        return end.payload.pos.sum() + end.states.pos.sum()

    derivative = jax.jit(jax.grad(moved)).lower(1.0).compile()(1.0)
    assert np.isfinite(derivative)


def test_stiff_cables_hold_their_length() -> None:
    """In float32 and at 500 Hz, steel: at 10 m from the origin, positions are rounded to 1 um."""
    load = SlungLoad(mass=0.005, length=0.5, stiffness=1e6, damping=1.0)
    sim = Sim(drone=DRONE, control="rotor_vel", forces=(), payload=load)
    data = bare(sim, gravity_vec=jnp.array([0, 0, -G]), mass=jnp.full(1, 1e3))
    force, pos = [0.0, 0.0, 1e3 * G], [10.0, 10.0, 10.0]
    data = changed(data, {"pos": [10.3, 10.0, 9.6]}, pos=pos, force=force)
    away = recorded(sim, data, 2500, lambda d: np.array(d.payload.pos - d.states.pos)[0, 0])
    far = np.linalg.norm(away, axis=-1)
    assert abs(far - 0.5).max() < 2e-4
    height = away[:, 2] - away[:, 2].min()
    assert height[-600:].max() == pytest.approx(height[:600].max(), rel=0.02)  # still swings


def test_a_drone_lifts_a_load_from_the_floor_and_puts_it_down() -> None:
    sim = Sim(2, drone=DRONE, control="state", payload=STIFF)
    assert not np.array(sim.data.payload.pos).any()  # on the floor
    command = np.zeros((2, 1, 16), np.float32)
    command[..., 12] = 1
    command[:, 0, 2] = [1.2, 0.3]
    sim.state_control(command)
    sim.step(2000)
    height = np.array(sim.data.payload.pos)[:, 0, 2]
    assert height[0] == pytest.approx(float(sim.data.states.pos[0, 0, 2]) - 0.5, abs=2e-3)
    assert height[1] == 0 and sim.data.payload.tension[1, 0, 0] == 0
    tension = float(sim.data.payload.tension[0, 0, 0])
    assert tension == pytest.approx(STIFF.mass * G, rel=0.05)
    np.testing.assert_allclose(sim.data.states_deriv.acc[0, 0], 0, atol=0.1)  # with the cable
    command[:, 0, 2] = 0.3
    sim.state_control(command)
    sim.step(2000)
    assert (np.array(sim.data.payload.pos)[:, 0, 2] == 0).all()
    # What slides on the floor stops by friction, after v^2 / (2 mu g).
    sim.data = changed(sim.data, {"vel": [0.5, 0.0, 0.0], "pos": 0.0})
    sim.step(200)
    np.testing.assert_allclose(sim.data.payload.pos[:, 0, 0], 0.25 / (2 * 0.5 * G), atol=2e-3)
    sim.reset(np.array([True, False]))
    moved = np.array(sim.data.payload.pos)
    assert (moved[0] == 0).all() and (moved[1] != 0).any()


def test_figures_are_random_in_each_world() -> None:
    sim = Sim(100, drone=DRONE, control="rotor_vel", forces=(), payload=STIFF)
    spreads = {"mass": 0.5, "length": 0.2}
    sim.reset_pipeline = (*(randomize_payload(*x) for x in spreads.items()), hang_payload)
    mask = np.arange(100) < 50
    sim.reset(mask)
    payload = sim.data.payload
    mass, length = (np.array(getattr(payload, name))[:, 0, 0] for name in ("mass", "length"))
    assert (mass[50:] == mass[50]).all() and np.ptp(mass[:50]) > 0.8 * STIFF.mass
    assert abs(mass / STIFF.mass - 1).max() <= 0.5 and np.ptp(length[:50]) > 0.15
    np.testing.assert_allclose(payload.pos[:, 0, 2], -length, rtol=1e-6)
    sim.step(2)
    assert np.isfinite(np.array(sim.data.payload.pos)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"payload": 0.1}, r"payload must be a SlungLoad, got 0\.1"),
        ({"dynamics": "so_rpy"}, "payload needs dynamics=first_principles, got dynamics=so_rpy"),
        ({"integrator": "rk4"}, "payload needs integrator=euler or .*, got integrator=rk4"),
        ({"payload": SlungLoad(length=(1.0, 2.0))}, "length is that of 2 drones, there are 1"),
    ],
)
def test_what_cannot_be_carried_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sim(**{"drone": DRONE, "control": "attitude", "payload": STIFF} | given)


@pytest.mark.parametrize(
    ("field", "value"),
    [("mass", 0.0), ("length", -1.0), ("stiffness", np.nan), ("damping", (-1.0,)), ("mass", [1.0])],
)
def test_impossible_loads_are_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"SlungLoad: {field} must be finite and"):
        SlungLoad(**{field: value})
    with pytest.raises(ValueError, match="attachment must be points of 3"):
        SlungLoad(attachment=(0.0, 0.0))
    with pytest.raises(ValueError, match="figure of the payload"):
        randomize_payload("color", 0.1)
    with pytest.raises(ValueError, match="no payload"):
        hang_payload(Sim(drone=DRONE).data)

"""Resets that start each world another way, parameters of each drone, swarms of several models."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.randomize import (
    randomize_ang_vel,
    randomize_attitude,
    randomize_inertia,
    randomize_mass,
    randomize_param,
    randomize_pos,
    randomize_vel,
)
from crazyflow_ros.sim.shapes import OF_ROTORS

N, M = 200, 2


def test_randomizers_stay_within_their_spread_and_their_worlds() -> None:
    sim = Sim(N, M, control="rotor_vel")
    sim.reset_pipeline = (
        randomize_pos([0.5, 1.0, 0.0]),
        randomize_vel(0.3),
        randomize_ang_vel(2.0),
        randomize_attitude(0.1),
        randomize_mass(0.2),
        randomize_inertia(0.3),
        randomize_param("rpm2thrust", 0.1),
    )
    default = sim.default_data
    sim.reset()
    first = sim.data
    states, params = first.states, first.params
    assert first.states.pos.shape == (N, M, 3) and params.mass.shape == (N, M, 1)
    shift = np.abs(np.asarray(states.pos - default.states.pos))
    np.testing.assert_allclose(shift.max((0, 1)), [0.5, 1, 0], rtol=0.03)
    np.testing.assert_allclose(np.abs(states.vel).max((0, 1)), 0.3, rtol=0.03)
    np.testing.assert_allclose(np.abs(states.ang_vel).max((0, 1)), 2.0, rtol=0.03)
    turned = Rotation.from_quat(np.asarray(states.quat).reshape(-1, 4)).as_rotvec()
    np.testing.assert_allclose(np.abs(turned).max(0), 0.1, rtol=0.03)
    ratio = np.asarray(params.mass) / load_drone("cf21B_500")["mass"]
    np.testing.assert_allclose([ratio.min(), ratio.max()], [0.8, 1.2], rtol=0.02)
    product = np.asarray(params.J) @ np.asarray(params.J_inv)
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), (N, M, 3, 3)), atol=1e-5)
    curves = np.asarray(params.rpm2thrust)
    assert curves.shape == (N, M, 1, 3) and len(np.unique(curves[..., 2])) > N

    mask = np.arange(N) % 2 == 0
    sim.step(3)
    before = sim.data
    sim.reset(mask)
    after = sim.data
    for old, new in (
        (before.states.pos, after.states.pos),
        (before.params.mass, after.params.mass),
        (before.params.J_inv, after.params.J_inv),
    ):
        np.testing.assert_array_equal(new[~mask], old[~mask])
        assert (np.asarray(new[mask] != old[mask]).any(axis=-1)).any()
    assert (after.params.mass[mask] != before.params.mass[mask]).all()
    with pytest.raises(ValueError, match="the spread of mass is from 0 to less than 1"):
        randomize_mass(1.5)


def test_rotors_of_equal_curves_of_their_own_fly_as_with_one() -> None:
    ends = []
    for own in (False, True):
        sim = Sim(3, control="rotor_vel")
        params = sim.data.params
        if own:
            curves = {name: getattr(params, name) for name in OF_ROTORS}
            each = {name: np.repeat(x, 4, axis=0) for name, x in curves.items()}
            sim.data = sim.data.replace(params=params.replace(**each))
        sim.rotor_vel_control(np.full((3, 1, 4), [14000.0, 15000.0, 14500.0, 15500.0]))
        sim.step(100)
        ends.append(sim.data.states)
    for one, other in zip(*map(jax.tree.leaves, ends)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_swarm_of_two_models_flies_like_each_alone() -> None:
    models = ["cf2x_L250", "cf21B_500"]
    mixed = Sim(2, drone=models, control="state")
    assert mixed.n_drones == 2 and mixed.data.params.mass.shape == (2, 1)
    command = np.zeros((2, 2, 13))
    command[..., :3] = np.asarray(mixed.data.states.pos) + np.array([0.3, 0.1, 0.5])
    mixed.state_control(command)
    mixed.step(300)
    for i, model in enumerate(models):
        alone = Sim(2, 2, drone=model, control="state")
        alone.state_control(command)
        alone.step(300)
        for name in ("pos", "quat", "vel"):
            ours, expected = (getattr(s.data.states, name)[:, i] for s in (mixed, alone))
            np.testing.assert_allclose(ours, expected, atol=2e-5)
    radii = [mixed.mj_model.geom(f"disc0:{i}").size[0] for i in range(2)]
    np.testing.assert_allclose(radii, [load_drone(m)["geometry"]["rotor_radius"] for m in models])


def test_drones_of_several_models_keep_their_order_in_the_scene() -> None:
    models = ["hb_x500", "cf2x_L250", "cf2x_L250", "hb_x500"]
    sim = Sim(drone=models)
    ids = [sim.mj_model.body(f"drone:{i}").mocapid.item() for i in range(4)]
    assert ids == sim.data.core.drone_mocap_ids.tolist() == [0, 1, 2, 3]


def test_spreads_and_names_are_checked() -> None:
    for spread in (np.nan, [1.0, 2.0], [0, 0, np.inf]):
        for kind in (randomize_pos, randomize_attitude):
            with pytest.raises(ValueError, match="is one or three finite numbers, got"):
                kind(spread)
    for part in (np.nan, 1, -0.1, "much", None):
        with pytest.raises(ValueError, match="the spread of mass is from 0 to less than 1, got"):
            randomize_mass(part)
    for name in ("foo", "J_inv", "obstacles"):
        with pytest.raises(
            ValueError, match=f"there is no parameter to randomise '{name}', only J, "
        ):
            randomize_param(name, 0.1)
    sim = Sim(control="rotor_vel")
    for refused, why in (
        (randomize_param("acc_coef", 0.1), "the dynamics have no acc_coef to randomise, only J, "),
        (randomize_param("thrust_offset", 0.1), "have no thrust_offset to randomise, only J, "),
        (randomize_param("wind", 0.1), "wind is 0, which a factor does not change"),
        (randomize_param("J", (0.0, 1e-6), operation="add"), "J can only be scaled"),
        (randomize_param("mass", 0.1, per="rotor"), "per='rotor' is for prop_inertia, "),
        (randomize_param("mass", (0.0, 1.0)), "mass has to stay above 0, got .*: down to 0"),
        (randomize_param("mass", (-0.1, 0.1), operation="add"), "mass has to .*: down to -0.0566"),
        (randomize_param("J", (1.0, 0.2), distribution="gaussian"), "J has to .*: down to -0.1"),
    ):
        with pytest.raises(ValueError, match=why):
            sim.reset_pipeline = (refused,)
    for given, why in (
        ({"spread": ("a", 1.0)}, "one number or two, finite"),
        ({"spread": (0.1, np.inf)}, "one number or two, finite"),
        ({"spread": (0.2, 0.1)}, "the first number is at most the second"),
        ({"spread": (0.0, 0.1), "distribution": "log_uniform"}, "two numbers above 0, in order"),
        ({"spread": (1.0, -0.1), "distribution": "gaussian"}, "at least 0, got -0.1"),
        ({"spread": 0.1, "operation": "add"}, "add and uniform need two numbers"),
        ({"spread": 0.1, "per": "axis"}, "there is no per 'axis', only world, drone, rotor, "),
    ):
        with pytest.raises(ValueError, match=why):
            randomize_param("mass", **given)


def test_numbers_have_their_distribution_and_owners() -> None:
    """Moments of the distributions, and how many numbers of a parameter differ."""
    sim = Sim(2000, 2, control="rotor_vel")
    nominal = sim.default_data.params
    sim.reset_pipeline = (
        randomize_param("mass", (0.5, 2.0), distribution="log_uniform", per="world"),
        randomize_param(
            "wind", (1.0, 0.5), operation="add", distribution="gaussian", per="element"
        ),
        randomize_param("rpm2thrust", (0.9, 1.2), per="rotor"),
        randomize_param("J", (0.5, 1.5), per="element"),
        randomize_param("rotor_vel_limits", (1e4, 2e4), operation="set"),
    )
    sim.reset()
    params = sim.data.params
    mass = np.log(np.asarray(params.mass / nominal.mass))
    assert mass.shape == (2000, 1, 1)  # drones of a world share it
    assert np.ptp(mass) == pytest.approx(2 * np.log(2), rel=0.01)
    assert mass.mean() == pytest.approx(0, abs=0.03)
    wind = np.asarray(params.wind)
    assert wind.shape == (2000, 2, 3)
    np.testing.assert_allclose(wind.mean((0, 1)), 1.0, atol=0.03)
    np.testing.assert_allclose(wind.std((0, 1)), 0.5, rtol=0.05)
    assert np.abs(np.corrcoef(wind.reshape(-1, 3).T) - np.eye(3)).max() < 0.06
    curves = np.asarray(params.rpm2thrust / nominal.rpm2thrust)[..., 2]
    assert curves.shape == (2000, 2, 4) and curves.min() > 0.9 and curves.max() < 1.2
    assert len(np.unique(curves)) > 0.99 * curves.size
    inertia, inverse = np.asarray(params.J, float), np.asarray(params.J_inv, float)
    np.testing.assert_allclose(inertia @ inverse, np.eye(3) + 0 * inertia, atol=1e-5)
    np.testing.assert_array_equal(inertia, np.swapaxes(inertia, -1, -2))
    assert np.linalg.eigvalsh(inertia).min() > 0
    limits = np.asarray(params.rotor_vel_limits)
    assert limits.shape == (2000, 2, 2) and (limits[..., 0] == limits[..., 1]).all()
    sim.step(5)  # and it flies
    assert np.isfinite(sim.data.states.pos).all()


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match="drone names 2 drones, but n_drones is 3"):
        Sim(n_drones=3, drone=["cf2x_L250", "cf21B_500"])
    with pytest.raises(ValueError, match="there is no drone 'x', only cf2x_L250"):
        Sim(drone=["cf2x_L250", "x"])
    sim = Sim(3, 2, control="rotor_vel")
    mass = np.ones((4, 1), np.float32)
    with pytest.raises(ValueError, match=r"params.mass has the leading axes \(4,\), expected"):
        sim.data = sim.data.replace(params=sim.data.params.replace(mass=mass))

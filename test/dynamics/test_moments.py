"""Torques by the air and by thrust beside the centre of mass, against forces with levers."""

from __future__ import annotations

import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quadrotor_reference import CORNERS, Quadrotor, State, tumbling

from crazyflow_ros.drones import load_drone
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.dynamics import first_principles
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, Wrench, split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.rigid_body import of_each

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE = "cf2x_L250"
ZERO = np.zeros(3)


def rate(
    state: State, command: np.ndarray, params: Params, torque: np.ndarray = ZERO
) -> BodyDerivative:
    """With an external torque [N m, world frame]."""
    body = BodyState(*(split(jnp.asarray(x)) for x in vars(state).values()))
    wrench = Wrench(split(jnp.zeros(3)), split(jnp.asarray(torque)))
    return first_principles.derivative(body, split(jnp.asarray(command)), wrench, params)


def test_a_centre_of_mass_beside_that_of_the_rotors() -> None:
    quadrotor, place = Quadrotor(DRONE), np.array([1.5e-3, -0.7e-3, 0])
    state, command = tumbling(quadrotor), np.full(4, quadrotor.hover_speed())
    quadrotor.rotors = CORNERS * load_drone(DRONE)["L"] - place
    expected = quadrotor.derivative(state, command, ZERO, ZERO)
    params = Params.create(DRONE).replace(thrust_offset=jnp.array([-place[1], place[0], 0]))
    ours = rate(state, command, params)
    np.testing.assert_allclose(stack(ours.ang_acc), expected.ang_vel, rtol=1e-10)
    np.testing.assert_allclose(stack(ours.acc), expected.vel, rtol=1e-10)


@pytest.mark.parametrize("wind", [ZERO, np.array([2.0, -1, 0.5])])
def test_the_air_turns_as_a_force_above_the_centre_of_mass(wind: np.ndarray) -> None:
    """Against the motion through the air, in the plane of the rotors."""
    quadrotor, slope, height = Quadrotor(DRONE), 0.02, 0.04  # N/(m/s), m
    state, command = tumbling(quadrotor), np.full(4, quadrotor.hover_speed())
    airspeed = state.attitude.inv().apply(state.vel - wind)
    force = -slope * airspeed * (1, 1, 0)
    torque = state.attitude.apply(np.cross([0, 0, height], force))
    params = Params.create(DRONE).replace(wind=jnp.asarray(wind))
    moment = jnp.full(2, slope * height)
    ours = rate(state, command, params.replace(rotor_moment=moment))
    expected = rate(state, command, params, torque)
    np.testing.assert_allclose(stack(ours.ang_acc), stack(expected.ang_acc), rtol=1e-10)
    np.testing.assert_array_equal(stack(ours.acc), stack(expected.acc))


def test_moments_of_zero_change_no_bit() -> None:
    quadrotor, params = Quadrotor(DRONE), Params.create(DRONE)
    state, command = tumbling(quadrotor), np.full(4, quadrotor.hover_speed())
    none = params.replace(rotor_moment=jnp.zeros(2), thrust_offset=jnp.zeros(3))
    for ours, theirs in zip(rate(state, command, none), rate(state, command, params)):
        np.testing.assert_array_equal(stack(ours), stack(theirs))


def test_gradients_are_those_of_the_equations() -> None:
    quadrotor, params = Quadrotor(DRONE), Params.create(DRONE)
    state, command = tumbling(quadrotor), np.full(4, quadrotor.hover_speed())

    def turn(moment: jax.Array, offset: jax.Array) -> jax.Array:
        changed = params.replace(rotor_moment=moment, thrust_offset=offset)
        return stack(rate(state, command, changed).ang_acc)

    of_moment, of_offset = jax.jacfwd(turn, (0, 1))(jnp.zeros(2), jnp.zeros(3))
    inverse = np.linalg.inv(quadrotor.J)
    x, y, _ = state.attitude.inv().apply(state.vel)
    np.testing.assert_allclose(of_moment, inverse[:, :2] * (y, -x), rtol=1e-10)
    thrust = np.polynomial.polynomial.polyval(state.rotor_vel, quadrotor.thrust_curve).sum()
    np.testing.assert_allclose(of_offset, inverse * thrust, rtol=1e-10, atol=1e-12)


def test_some_of_several_drones_have_moments(tmp_path: Path) -> None:
    source = folder_of(DRONE)
    folder = shutil.copytree(source, tmp_path / "with_moments")
    text = "rotor_moment = [4e-4, 5e-4]\nthrust_offset = [1e-3, -1e-3, 1e-5]\n"
    (folder / FIGURES).write_text(text + (source / FIGURES).read_text())
    one = Params.create(str(folder))
    assert one.rotor_moment is not None and Params.create(DRONE).rotor_moment is None
    both = of_each(Params.create, [DRONE, str(folder)])
    assert both.rotor_moment is not None and both.thrust_offset is not None
    np.testing.assert_allclose(both.rotor_moment, [[0, 0], [4e-4, 5e-4]])
    np.testing.assert_allclose(both.thrust_offset[1], [1e-3, -1e-3, 1e-5])
    quadrotor = Quadrotor(DRONE)
    state, command = tumbling(quadrotor), np.full(4, quadrotor.hover_speed())
    two = State(*(np.stack([x, x]) for x in vars(state).values()))
    body = BodyState(*(split(jnp.asarray(x)) for x in vars(two).values()))
    still = Wrench(*(split(jnp.zeros((2, 3))),) * 2)
    turn = first_principles.derivative(body, split(jnp.tile(command, (2, 1))), still, both)
    for ours, params in zip(stack(turn.ang_acc), (Params.create(DRONE), one)):
        np.testing.assert_allclose(ours, stack(rate(state, command, params).ang_acc), rtol=1e-12)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rotor_moment = [-1e-4, 1e-4]", "rotor_moment must be 0 or more"),
        ("rotor_moment = 1e-4", "rotor_moment must be 2 numbers"),
        ("thrust_offset = [1e-3, 0.0]", "thrust_offset must be"),
        ("voltage2thrust = [1.0]", "voltage2thrust must be"),
    ],
)
def test_impossible_figures_are_refused(line: str, message: str, tmp_path: Path) -> None:
    source = folder_of("hb_x500")
    folder = shutil.copytree(source, tmp_path / "drone")
    (folder / FIGURES).write_text(f"{line}\n" + (source / FIGURES).read_text())
    with pytest.raises(ValueError, match=message):
        load_drone(folder)

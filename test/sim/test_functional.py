"""Setters from data to data: what they accept, what they refuse, what they do when traced."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.control import Control
from crazyflow_ros.control.commands import check_command
from crazyflow_ros.sim import Sim, SimData, functional

N, M = 2, 3
SETTERS = {
    "state": functional.state_control,
    "attitude": functional.attitude_control,
    "body_rate": functional.body_rate_control,
    "force_torque": functional.force_torque_control,
    "rotor_vel": functional.rotor_vel_control,
}


@cache
def data_of(control: str) -> SimData:
    return Sim(N, M, control=control).data


def command_of(control: str, size: int | None = None) -> np.ndarray:
    size = size or Control(control).sizes[0]
    return np.random.default_rng(0).uniform(1, 2, (N, M, size)).astype(np.float32)


def stored(data: SimData) -> np.ndarray:
    """The command in data."""
    mode = data.controls.mode
    if mode is Control.rotor_vel:
        return np.asarray(data.controls.rotor_vel)
    return np.asarray(getattr(data.controls, mode).cmd)


@pytest.mark.parametrize("control", list(SETTERS))
def test_a_command_is_stored_and_nothing_else_changes(control: str) -> None:
    data, command = data_of(control), command_of(control)
    new = SETTERS[control](data, command)
    np.testing.assert_array_equal(stored(new), command)
    assert not np.array_equal(stored(data), command)
    old_leaves, new_leaves = jax.tree.leaves(data), jax.tree.leaves(new)
    assert sum(a is not b for a, b in zip(old_leaves, new_leaves)) == 1
    assert jax.tree.structure(data) == jax.tree.structure(new)


def test_numbers_beyond_what_can_be_worked_with_are_refused() -> None:
    command = command_of("attitude")
    command[1, 0, 2] = 2e9
    with pytest.raises(ValueError, match=r"holds 2000000000.0 at index \(1, 0, 2\), beyond 1e\+09"):
        SETTERS["attitude"](data_of("attitude"), command)


def test_thirteen_numbers_give_yaw_instead_of_a_quaternion() -> None:
    command = command_of("state", 13)
    full = stored(functional.state_control(data_of("state"), command))
    np.testing.assert_array_equal(full[..., :9], command[..., :9])
    np.testing.assert_array_equal(full[..., 13:], command[..., 10:])
    half = command[..., 9] / 2
    expected = np.stack([0 * half, 0 * half, np.sin(half), np.cos(half)], -1)
    np.testing.assert_allclose(full[..., 9:13], expected, rtol=1e-6)


@pytest.mark.parametrize("control", list(SETTERS))
@pytest.mark.parametrize("kind", ["float64", "int", "list", "jax"])
def test_any_array_will_do_and_becomes_the_dtype_of_the_data(control: str, kind: str) -> None:
    numbers = np.round(command_of(control) * 10)
    convert = {
        "float64": lambda c: c.astype(np.float64),
        "int": lambda c: c.astype(int),
        "list": lambda c: c.tolist(),
        "jax": jnp.asarray,
    }[kind]
    new = SETTERS[control](data_of(control), convert(numbers))
    np.testing.assert_array_equal(stored(new), numbers)
    assert stored(new).dtype == np.float32


@pytest.mark.parametrize("control", list(SETTERS))
def test_a_command_for_another_mode_is_refused(control: str) -> None:
    other = "rotor_vel" if control != "rotor_vel" else "state"
    article = "an" if control == "attitude" else "a"
    message = f"^{article} {control} command needs control={control}, this one has {other}"
    with pytest.raises(ValueError, match=message):
        SETTERS[control](data_of(other), command_of(control))


@pytest.mark.parametrize("control", list(SETTERS))
def test_a_wrong_shape_is_refused_and_the_right_one_named(control: str) -> None:
    data, good = data_of(control), command_of(control)
    size = good.shape[-1]
    for bad in (good[0], good[:, :1], good[:1], good[..., :-1], good[..., :0], good[..., 0]):
        with pytest.raises(ValueError, match=rf"must have shape \(2, 3, {size}\).*, got \("):
            SETTERS[control](data, bad)
    if control == "state":
        with pytest.raises(ValueError, match=r"\(2, 3, 16\) or \(2, 3, 13\), got \(2, 3, 14\)"):
            functional.state_control(data, np.ones((N, M, 14)))


@pytest.mark.parametrize("control", list(SETTERS))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused(control: str, value: float) -> None:
    command = command_of(control)
    command[1, 2, 3] = value
    with pytest.raises(ValueError, match=rf"{control} command .* {value} at index \(1, 2, 3\)"):
        SETTERS[control](data_of(control), command)


def test_a_zero_quaternion_is_refused() -> None:
    command = command_of("state")
    command[1, 0, 9:13] = 0
    with pytest.raises(ValueError, match=r"zero quaternion at index \(1, 0\)"):
        functional.state_control(data_of("state"), command)
    with pytest.raises(ValueError, match="zero quaternion"):
        functional.state_control(data_of("state"), np.zeros((N, M, 16)))
    functional.state_control(data_of("state"), np.zeros((N, M, 13)))  # yaw 0 is an attitude


@pytest.mark.parametrize("control", list(SETTERS))
def test_a_traced_bad_command_leaves_that_drone_its_previous_one(control: str) -> None:
    setter, first, second = SETTERS[control], command_of(control), command_of(control) + 1
    data = setter(data_of(control), first)
    second[0, 1, 0], second[1, 2, 3] = np.nan, np.inf
    expected = second.copy()
    expected[0, 1], expected[1, 2] = first[0, 1], first[1, 2]
    if control == "state":
        second[1, 0, 9:13] = 0
        expected[1, 0] = first[1, 0]
    np.testing.assert_array_equal(stored(jax.jit(setter)(data, second)), expected)
    with pytest.raises(ValueError, match="shape"):  # shapes are known when tracing
        jax.jit(setter)(data, second[..., :-1])


def test_check_command_takes_one_drone_or_many() -> None:
    check_command(Control.attitude, np.zeros(4))
    check_command(Control.state, np.zeros((5, 13)))
    for bad, message in [
        (np.zeros(16), "zero quaternion"),
        (np.full(13, np.nan), r"nan at index \(0,\)"),
        (np.zeros(4), "a state command must have 13 or 16 numbers, got 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_command(Control.state, bad)


def test_setters_work_inside_transformations() -> None:
    sim = Sim(N, M, control="attitude", dynamics="so_rpy")
    step = sim.build_step_fn()

    def height(thrust: jax.Array) -> jax.Array:
        command = jnp.zeros((N, M, 4)).at[..., 3].set(thrust)
        data = functional.attitude_control(sim.data, command)
        states = data.states.replace(pos=data.states.pos + jnp.array([0, 0, 1.0]))
        return step(data.replace(states=states), 10).states.vel[..., 2].sum()

    both = jax.jit(jax.vmap(jax.value_and_grad(height)))
    heights, slopes = both(jnp.array([0.25, 0.35, 0.45]))
    assert (jnp.diff(heights) > 0).all() and (slopes > 0).all()

"""Dynamics as functions of arrays: the same in NumPy, torch and JAX, and refusals."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from multirotors import QUADROTORS
from scipy.spatial.transform import Rotation

from crazyflow_ros.compat import dynamics as functions
from crazyflow_ros.compat.dynamics import parametrize
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.components import BodyState, Wrench, split, stack

SHAPE = (4, 25)


def random_inputs(kind: Dynamics, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    scale = 20_000 if kind.has_rotors else 0.4
    sizes = {"pos": 3, "vel": 3, "ang_vel": 3, "dist_f": 3, "dist_t": 3}
    inputs = {name: rng.normal(size=(*shape, n)) for name, n in sizes.items()}
    for name in ("cmd", "rotor_vel"):
        inputs[name] = rng.uniform(0, scale, (*shape, 4))
    inputs["dist_t"] *= 1e-4
    quat = Rotation.random(int(np.prod(shape)), rng=rng).as_quat()
    return inputs | {"quat": quat.reshape(*shape, 4)}


def same(ours: Any, wanted: Any, rtol: float) -> None:
    assert [x is None for x in ours] == [x is None for x in wanted]
    for x, y in zip(ours, wanted):
        if y is not None:
            scale = np.abs(np.asarray(y)).max()
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=rtol * scale)


@pytest.mark.parametrize("kind", Dynamics)
def test_numpy_and_jax_round_alike(kind: Dynamics) -> None:
    function = getattr(functions, kind)
    with jax.enable_x64(True):
        compiled = jax.jit(function)
        for seed, drone in enumerate(QUADROTORS):
            inputs = random_inputs(kind, seed=seed)
            ours = parametrize(function, drone)(**inputs)
            assert all(type(x) is np.ndarray for x in ours if x is not None)
            figures = parametrize(function, drone, jnp).keywords
            wanted = compiled(**{k: jnp.array(v) for k, v in inputs.items()}, **figures)
            same(ours, wanted, 1e-13)


@pytest.mark.parametrize("kind", Dynamics)
def test_they_are_the_equations_of_the_simulation(kind: Dynamics) -> None:
    inputs = random_inputs(kind)
    with jax.enable_x64(True):
        params = kind.params.create("cf21B_500")
        parts = {name: split(jnp.array(value)) for name, value in inputs.items()}
        names = ("pos", "quat", "vel", "ang_vel", "rotor_vel")
        state = BodyState(**{name: parts[name] for name in names})
        rate = params.derivative(state, parts["cmd"], Wrench(parts["dist_f"], parts["dist_t"]))
        _, _, acc, ang_acc, rotor_acc = parametrize(getattr(functions, kind), "cf21B_500")(**inputs)
        same((acc, ang_acc), (stack(rate.acc), stack(rate.ang_acc)), 1e-13)
        if rotor_acc is not None:
            same((rotor_acc,), (stack(rate.rotor_acc),), 1e-13)
        assert (rotor_acc is None) == (params.ROTOR_STATES == 0)


def test_the_quaternion_turns_with_the_body_rates() -> None:
    inputs, step = random_inputs(Dynamics.so_rpy, (7,)), 1e-6
    _, quat_dot, *_ = parametrize(functions.so_rpy, "cf2x_L250")(**inputs)
    turned = Rotation.from_quat(inputs["quat"]) * Rotation.from_rotvec(step * inputs["ang_vel"])
    after = turned.as_quat()
    after *= np.sign(np.sum(after * inputs["quat"], axis=-1, keepdims=True))
    np.testing.assert_allclose(quat_dot, (after - inputs["quat"]) / step, atol=1e-5)


@pytest.mark.parametrize("kind", Dynamics)
def test_rotors_without_a_state_turn_as_commanded(kind: Dynamics) -> None:
    function, inputs = parametrize(getattr(functions, kind), "cf2x_L250"), random_inputs(kind)
    settled = inputs["cmd"] if kind.has_rotors else np.repeat(inputs["cmd"][..., 3:], 4, axis=-1)
    *wanted, _ = function(**inputs | {"rotor_vel": settled})
    del inputs["rotor_vel"]
    *ours, rate = function(**inputs)
    same(ours, wanted, 0)
    assert rate is None


def test_parameters_of_each_drone_and_as_numbers() -> None:
    function, inputs = parametrize(functions.so_rpy, "cf2x_L250"), random_inputs(Dynamics.so_rpy)
    masses = np.linspace(0.02, 0.05, 100).reshape(*SHAPE, 1)
    _, _, acc, *_ = function(**inputs, mass=masses)
    _, _, light, *_ = function(**inputs, mass=0.02)
    np.testing.assert_array_equal(acc[0, 0], light[0, 0])
    gravity = [0, 0, 9.81]
    np.testing.assert_allclose((acc + gravity) * masses, (light + gravity) * 0.02, atol=1e-12)


def test_inputs_of_another_shape_are_refused() -> None:
    function, inputs = parametrize(functions.so_rpy, "cf2x_L250"), random_inputs(Dynamics.so_rpy)
    with pytest.raises(ValueError, match=r"quat .*4\), got .*\(4, 25, 3\)"):
        function(**inputs | {"quat": inputs["pos"]})
    with pytest.raises(ValueError, match=r"vel .*3\), got 2"):
        function(**inputs | {"vel": 2})
    with pytest.raises(ValueError, match="'cf3'"):
        parametrize(functions.so_rpy, "cf3")
    with pytest.raises(TypeError, match="mass"):
        functions.so_rpy(**inputs)


@pytest.mark.parametrize("kind", Dynamics)
def test_torch_computes_the_same_with_gradients(kind: Dynamics) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    function, inputs = getattr(functions, kind), random_inputs(kind)
    tensors = {k: torch.tensor(v, requires_grad=True) for k, v in inputs.items()}
    ours = parametrize(function, "cf2x_L250")(**tensors)
    wanted = parametrize(function, "cf2x_L250")(**inputs)
    assert all(isinstance(x, torch.Tensor) for x in ours if x is not None)
    same([None if x is None else x.detach() for x in ours], wanted, 1e-13)
    ours[3].sum().backward()
    with jax.enable_x64(True):
        figures = parametrize(function, "cf2x_L250", jnp).keywords
        arrays = {k: jnp.array(v) for k, v in inputs.items()}
        gradient = jax.grad(lambda quat: function(**arrays | {"quat": quat}, **figures)[3].sum())
        same([tensors["quat"].grad], [gradient(arrays["quat"])], 1e-10)
    single = {k: v.detach().float() for k, v in tensors.items()}
    assert parametrize(function, "cf2x_L250", torch)(**single)[2].dtype == torch.float32

"""Controllers as functions of arrays: the same in NumPy, torch, JAX and `Sim`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.compat import control as functions
from crazyflow_ros.compat.dynamics import parametrize
from crazyflow_ros.control import Controller
from crazyflow_ros.drones import Drone
from crazyflow_ros.dynamics.components import BodyState, split
from crazyflow_ros.sim import Sim

N = 100
NAMES = functions.__all__


def random_inputs(name: str, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    quat = Rotation.random(N, rng=rng).as_quat()
    thrust = rng.uniform(0.1, 0.5, (N, 1))
    thrust[:3] = 0
    turn = {"quat": quat, "ang_vel": rng.normal(size=(N, 3))}
    memory = {"prev_ang_vel": rng.normal(size=(N, 3)), "r_int_error": rng.normal(size=(N, 3))}
    command = np.hstack([rng.normal(size=(N, 3)), thrust])
    if name == "state2attitude":
        pos, vel, error = rng.normal(size=(3, N, 3))
        command = np.hstack([rng.normal(size=(N, 9)), quat[::-1], rng.normal(size=(N, 3))])
        return {"pos": pos, "quat": quat, "vel": vel, "cmd": command, "pos_err_i": error}
    if name == "attitude2force_torque":
        return turn | memory | {"cmd": command}
    if name == "body_rate2force_torque":
        return turn | memory | {"cmd": command, "prev_cmd": command[::-1]}
    return {"force": thrust, "torque": rng.normal(size=(N, 3)) * 1e-3}


def results(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def same(ours: Any, wanted: Any, rtol: float = 1e-12) -> None:
    for x, y in zip(results(ours), results(wanted), strict=True):
        y = np.asarray(y)
        np.testing.assert_allclose(np.asarray(x), y, rtol=rtol, atol=rtol * np.abs(y).max())


@pytest.mark.parametrize("name", NAMES)
def test_numpy_and_jax_round_alike(name: str) -> None:
    function = getattr(functions, name)
    with jax.enable_x64(True):
        compiled = jax.jit(lambda inputs, figures: function(**inputs, **figures))
        for seed, drone in enumerate(Drone):
            inputs = random_inputs(name, seed)
            ours = parametrize(function, drone)(**inputs)
            assert all(type(x) is np.ndarray for x in results(ours))
            same(ours, compiled(inputs, parametrize(function, drone, jnp).keywords))


@pytest.mark.parametrize("name", NAMES)
def test_torch_computes_the_same(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    function = parametrize(getattr(functions, name), "cf2x_L250")
    inputs = random_inputs(name)
    ours = function(**{k: torch.tensor(v.copy()) for k, v in inputs.items()})
    assert all(isinstance(x, torch.Tensor) for x in results(ours))
    same(ours, function(**inputs))


def test_a_cascade_in_numpy_flies_like_the_simulation() -> None:
    """One tick after the other, each with all four functions and the state of `Sim`."""
    state, attitude, mixer = (
        parametrize(getattr(functions, name), "cf2x_L250")
        for name in ("state2attitude", "attitude2force_torque", "force_torque2rotor_vel")
    )
    with jax.enable_x64(True):
        rates = {"state_freq": 500, "attitude_freq": 500, "force_torque_freq": 500}
        sim = Sim(drone="cf2x_L250", control="state", **rates)
        command = np.array([0.3, -0.2, 1.0, 0.1, 0, 0, 0, 0, 0, 0.4, 0, 0, 0])
        sim.state_control(command[None, None])
        memory: dict[str, Any] = {"pos_err_i": None, "prev": np.zeros(3), "r_int_error": None}
        for _ in range(20):
            names = ("pos", "quat", "vel", "ang_vel")
            now = {name: np.asarray(getattr(sim.data.states, name)[0, 0]) for name in names}
            turn = now["quat"], now["ang_vel"]
            cmd, memory["pos_err_i"] = state(
                now["pos"], now["quat"], now["vel"], command, memory["pos_err_i"], 500
            )
            force, torque, memory["r_int_error"] = attitude(
                *turn, cmd, memory["prev"], memory["r_int_error"], 500
            )
            memory["prev"] = now["ang_vel"]
            sim.step()
            wanted = sim.data.controls.rotor_vel[0, 0]
            np.testing.assert_allclose(mixer(force, torque), wanted, rtol=1e-9)


def test_a_yaw_is_as_good_as_its_quaternion() -> None:
    function, inputs = (
        parametrize(functions.state2attitude, "cf2x_L250"),
        random_inputs("state2attitude"),
    )
    yaw = np.linspace(-3, 3, N)[:, None]
    before, after = inputs["cmd"][:, :9], inputs["cmd"][:, 13:]
    quat = Rotation.from_euler("z", yaw).as_quat()
    short, long = np.hstack([before, yaw, after]), np.hstack([before, quat, after])
    same(function(**inputs | {"cmd": short}), function(**inputs | {"cmd": long}))


def test_inputs_of_another_shape_are_refused() -> None:
    position = parametrize(functions.state2attitude, "cf2x_L250")
    with pytest.raises(ValueError, match=r"state .*13 or 16 .*4"):
        position(**random_inputs("state2attitude") | {"cmd": np.zeros(4)})
    rates = parametrize(functions.body_rate2force_torque, "cf2x_L250")
    with pytest.raises(ValueError, match=r"ang_vel .*\(4,\)"):
        rates(np.array([0, 0, 0, 1.0]), np.zeros(4), np.zeros(4))


@pytest.mark.parametrize("controller", Controller)
def test_the_controllers_take_numpy_as_well(controller: Controller) -> None:
    """Their functions of components, twice in a row."""
    module, rng = controller.cascade, np.random.default_rng(0)
    setpoint = [rng.normal(size=(N, n)) for n in (3, 3, 3, 4)]
    body = [rng.normal(size=(N, n)) for n in (3, 4, 3, 3, 4)]
    body[1] /= np.linalg.norm(body[1], axis=-1, keepdims=True)

    def fly(convert: Callable[[Any], Any]) -> list[Any]:
        found, memories = [], [module.POSITION_MEMORY, module.ATTITUDE_MEMORY]
        params = (module.load_params(stage, "cf2x_L250", 500) for stage in ("state", "attitude"))
        of_state, of_attitude = jax.tree.map(lambda x: convert(np.asarray(x)), list(params))
        zeros = convert(np.zeros(N))
        kept = [{name: (zeros,) * n for name, n in memory.items()} for memory in memories]
        parts = BodyState(*(split(convert(field)) for field in body))
        goal = tuple(split(convert(field)) for field in setpoint)
        for _ in range(2):
            rpy, thrust, kept[0] = module.state2attitude(parts, goal, kept[0], 0.002, of_state)
            rates = split(convert(setpoint[0]))
            force, torque, kept[1] = module.attitude2force_torque(
                parts, (rpy, rates, thrust), kept[1], 0.002, of_attitude
            )
            found += [*rpy, thrust, force, *torque]
        return found

    with jax.enable_x64(True):
        same(tuple(fly(np.asarray)), tuple(fly(jnp.asarray)), 1e-10)
    assert all(isinstance(x, np.ndarray) for x in fly(np.asarray))

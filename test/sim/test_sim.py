"""`Sim`: pipelines, resets, parameters by world, compilation, stopping rotors, bad commands."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.dynamics.components import BodyState, Wrench
from crazyflow_ros.dynamics.forces.aerodynamics import ground_effect
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.sim import Composed, Sim, SimData, functional, pipeline
from crazyflow_ros.sim.actuation import ActionDelay
from crazyflow_ros.sim.leaves import changed_leaves, traced

N, M = 3, 2


@pytest.fixture(scope="module")
def compiled() -> Sim:
    sim = Sim(N, M, control="rotor_vel")
    states = sim.data.states
    sim.data = sim.data.replace(states=states.replace(pos=states.pos + jnp.array([0, 0, 2.0])))
    sim.build_default_data()
    return sim


@pytest.fixture
def sim(compiled: Sim) -> Sim:
    """Drones at 2 m, rotors stopped, rotor speed control; the pipelines are not to be changed."""
    compiled.reset()
    return compiled


def commands(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(14_000, 18_000, (N, M, 4))


def assert_equal(a: Any, b: Any) -> None:
    """The same bits, dtypes included."""
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(x, y)


def add_to_steps(number: int) -> Callable[[SimData], SimData]:
    return lambda data: data.replace(core=data.core.replace(steps=data.core.steps + number))


def compilations(caplog: pytest.LogCaptureFixture, act: Callable[[], None]) -> int:
    """How many functions JAX compiles meanwhile."""
    caplog.clear()
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        act()
    return sum(r.getMessage().startswith("Compiling ") for r in caplog.records)


def test_a_simulation_is_built_without_compiling(caplog: pytest.LogCaptureFixture) -> None:
    # In these shapes, which no other test has: JAX compiles for each shape only once.
    assert compilations(caplog, lambda: Sim(n_worlds=7, n_drones=5, rng_key=123)) == 0


def test_a_new_number_of_steps_compiles_nothing(sim: Sim, caplog: pytest.LogCaptureFixture) -> None:
    def fly(count: int) -> None:
        sim.rotor_vel_control(commands())
        sim.step(count)
        jax.block_until_ready(sim.data)

    fly(1)
    assert compilations(caplog, lambda: jax.jit(lambda x: x + 1)(jnp.ones(3))) > 0  # it does count
    for count in (2, 7, 50, 999):
        assert compilations(caplog, lambda n=count: fly(n)) == 0


def test_after_a_seed_nothing_is_compiled_again(sim: Sim, caplog: pytest.LogCaptureFixture) -> None:
    def fly() -> None:
        sim.reset()
        sim.rotor_vel_control(commands())
        sim.step(2)
        jax.block_until_ready(sim.data)

    fly()
    sim.seed(3)
    sim.step(2)
    assert compilations(caplog, fly) == 0


@pytest.mark.parametrize("has_forces", [False, True])
def test_simulations_of_one_kind_are_compiled_once_and_fly_by_themselves(
    has_forces: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def made(drone: str) -> Sim:
        forces = (ground_effect(drone),) if has_forces else None
        return Sim(N, M, control="rotor_vel", drone=drone, forces=forces)

    def step(sim: Sim, speed: float) -> None:
        sim.rotor_vel_control(np.full((N, M, 4), speed))
        sim.step(20)

    def flown(sim: Sim) -> Any:
        step(sim, 16_000.0)
        step(sim, 16_000.0)
        data, end = sim.data, sim.build_step_fn()(sim.data, 3)
        found = data.states, data.states_deriv, end.states
        sim.reset(np.array([True, False, True]))
        return jax.block_until_ready((found, sim.data.states))

    alone = flown(made("cf2x_L250"))
    # Figures of a drone are data; those in a force are constants in its code.
    another = made("cf2x_L250" if has_forces else "hb_x500")
    assert compilations(caplog, lambda: flown(another)) == 0
    one, other = (made("cf2x_L250") for _ in range(2))
    for _ in range(2):
        step(one, 16_000.0)
        step(other, 17_000.0)
    assert_equal(one.data.states, alone[0][0])
    assert (other.data.states.rotor_vel > one.data.states.rotor_vel).all()


def test_forces_of_other_drones_or_frequencies_and_those_of_users_are_not_mistaken() -> None:
    again = floor_contact("cf2x_L250", 500)
    assert again is floor_contact(drone="cf2x_L250", freq=500)
    others = [("cf21B_500", 500), ("cf2x_L250", 250), (["cf2x_L250", "cf21B_500"], 500)]
    assert all(floor_contact(*given) is not again for given in others)

    lift = [0.0]

    def lifting(state: BodyState, params: RigidBody) -> Wrench:
        zero = jnp.zeros_like(state.pos[0])
        return Wrench((zero, zero, zero + lift[0]), (zero, zero, zero))

    falls = []
    for lift[0] in (0.0, 1.0):  # newtons, of which a drone weighs a third
        sim = Sim(control="rotor_vel", forces=(lifting,))
        sim.step(50)
        falls.append(float(sim.data.states.vel[0, 0, 2]))
    assert falls[0] < 0 < falls[1]


@pytest.mark.parametrize("mask", [None, np.array([True, False, True])])
def test_the_derivative_after_a_reset_is_that_of_the_data_then(
    sim: Sim, mask: np.ndarray | None
) -> None:
    """It is evaluated when it is read, which may be later."""
    sim.rotor_vel_control(commands())
    sim.step(20)
    sim.reset(mask)
    data, read_at_once = sim.data, jax.tree.map(np.array, sim.data.states_deriv)
    sim.reset(mask)
    later = sim.data
    expected = sim.derivative(data)
    sim.step(20)
    for rate in (read_at_once, later.states_deriv):
        for a, b in zip(jax.tree.leaves(rate), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * np.abs(b).max() + 1e-6)
    assert np.abs(expected.acc).max() > 1  # they fall


def test_steps_in_one_call_or_many_give_the_same_bits(sim: Sim) -> None:
    ends = []
    for counts in ((60,), (1,) * 60, (13, 47)):
        sim.reset()
        sim.rotor_vel_control(commands())
        for count in counts:
            sim.step(count)
        ends.append(sim.data)
    assert_equal(ends[0], ends[1])
    assert_equal(ends[0], ends[2])


def test_a_step_is_done_when_the_call_returns() -> None:
    """With few worlds, waiting for another thread would take longer than the step."""
    code = """if True:
        from crazyflow_ros.sim import Sim
        sim = Sim(n_worlds=100, control="attitude")
        sim.step(1)
        sim.step(10_000)
        print(sim.data.states.pos.is_ready())
    """
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "True\n", ran.stderr


def test_a_step_count_has_to_be_positive(sim: Sim) -> None:
    before = sim.data
    for count in (0, -1):
        with pytest.raises(ValueError, match=f"n_steps must be at least 1, got {count}"):
            sim.step(count)
    for part in (2.5, np.nan, "3", None, [1], 1j):
        with pytest.raises(ValueError, match="n_steps must be an integer, got "):
            sim.step(part)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_steps must be at most 2147483647, got 2147483648"):
        sim.step(2**31)
    with pytest.raises(ValueError, match="n_steps must be an integer, got '3'"):
        sim.build_step_fn()(sim.data, "3")  # type: ignore[arg-type]
    assert_equal(sim.data, before)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"n_worlds": 0}, "n_worlds must be at least 1, got 0"),
        ({"n_drones": 0}, "n_drones must be at least 1, got 0"),
        ({"drone": []}, "n_drones must be at least 1, got 0"),
        ({"freq": 0}, "freq must be at least 1, got 0"),
        ({"n_worlds": 2.5}, "n_worlds must be an integer, got 2.5"),
        ({"n_drones": "3"}, "n_drones must be an integer, got '3'"),
        ({"freq": np.nan}, "freq must be an integer, got nan"),
        ({"state_freq": -5}, "state_freq must be at least 1, got -5"),  # though nobody asks for it
        ({"drone": None}, "drone must be a name, or one for each drone, got None"),
        ({"forces": print}, "forces must be a tuple of functions or names, got <built-in"),
        ({"forces": (1,)}, "forces must be a tuple of functions or names, got"),
        ({"obstacles": 3}, "obstacles must be Obstacles, got 3"),
        ({"mesh": 3}, "mesh must be a jax.sharding.Mesh, got 3"),
        ({"rng_key": "a"}, "rng_key must be an integer, got 'a'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(argument: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sim(control="rotor_vel", **argument)


def test_worlds_and_drones_do_not_disturb_each_other(sim: Sim) -> None:
    command = commands()
    sim.rotor_vel_control(command)
    sim.step(100)
    undisturbed = sim.data.states
    sim.reset()
    command[1, 0] = 0
    sim.rotor_vel_control(command)
    sim.step(100)
    changed = np.any(np.asarray(sim.data.states.vel != undisturbed.vel), axis=-1)
    np.testing.assert_array_equal(changed, [[False, False], [True, False], [False, False]])


def test_rotors_stop_when_told_to(sim: Sim) -> None:
    sim.rotor_vel_control(commands())
    sim.step(500)
    assert (sim.data.states.rotor_vel > 10_000).all()
    low, high = np.asarray(sim.data.params.rotor_vel_limits)
    command = np.zeros((N, M, 4))
    command[0], command[1] = 100, 1e6
    sim.rotor_vel_control(command)
    sim.step(5000)
    speed = np.asarray(sim.data.states.rotor_vel)
    np.testing.assert_allclose(speed[0], low, rtol=1e-3)  # as slow as a turning rotor can be
    np.testing.assert_allclose(speed[1], high, rtol=1e-3)
    assert (speed[2] < 0.06 * low).all() and (speed[2] >= 0).all()


def test_unarmed_drones_do_not_turn_their_rotors(sim: Sim) -> None:
    armed = np.array([[[True], [False]]] * N)
    sim.data = sim.data.replace(controls=sim.data.controls.replace(armed=jnp.asarray(armed)))
    sim.rotor_vel_control(commands())
    sim.step(50)
    assert (sim.data.states.rotor_vel[:, 0] > 1000).all()
    np.testing.assert_array_equal(sim.data.states.rotor_vel[:, 1], 0)


def test_a_refused_command_changes_nothing(sim: Sim) -> None:
    sim.rotor_vel_control(commands())
    sim.step(3)
    before = sim.data
    bad = commands()
    bad[1, 1, 1] = np.nan
    for command, message in [
        (bad, "nan at index"),
        (commands()[0], "shape"),
        (np.ones(4), "shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            sim.rotor_vel_control(command)
        assert_equal(sim.data, before)
    with pytest.raises(ValueError, match="needs control=state"):
        sim.state_control(np.zeros((N, M, 13)))
    assert_equal(sim.data, before)


def test_a_masked_reset_touches_its_worlds_only(sim: Sim) -> None:
    data = sim.data
    mass = jnp.array([1.0, 2.0, 3.0])[:, None, None] * data.params.mass * jnp.ones((N, M, 1))
    sim.data = data.replace(params=data.params.replace(mass=mass, L=data.params.L * 1.01))
    sim.rotor_vel_control(commands())
    sim.step(20)
    before, default = sim.data, sim.default_data
    sim.reset([False, True, False])
    after = sim.data
    for tree in ("states", "controls"):
        now, was, initial = (jax.tree.leaves(getattr(d, tree)) for d in (after, before, default))
        for x, y, z in zip(now, was, initial):
            np.testing.assert_array_equal(x[::2], y[::2])
            np.testing.assert_array_equal(x[1], z[1])
    assert after.core.steps.ravel().tolist() == [20, 0, 20]
    # A figure that worlds have of their own is reset with its world, a shared one is not.
    np.testing.assert_array_equal(after.params.mass[::2], before.params.mass[::2])
    np.testing.assert_array_equal(
        after.params.mass[1], np.broadcast_to(default.params.mass, (M, 1))
    )
    np.testing.assert_array_equal(after.params.L, before.params.L)
    sim.step(20)
    assert sim.data.core.steps.ravel().tolist() == [40, 20, 40]


def test_a_mask_of_the_wrong_shape_is_refused(sim: Sim) -> None:
    for mask in ([True], np.ones((N, 1), bool), True):
        with pytest.raises(ValueError, match=r"mask must have shape \(3,\), got"):
            sim.reset(mask)
    for mask in ([2, 0, 1], [np.nan, 0, 1]):  # worlds, as one might think
        with pytest.raises(ValueError, match="mask holds a bool for each world, got"):
            sim.reset(mask)


def test_a_full_reset_restores_everything_but_the_random_key(sim: Sim) -> None:
    initial = sim.data
    sim.seed(7)
    key = jax.random.key_data(sim.data.core.rng_key)
    sim.rotor_vel_control(commands())
    sim.step(10)
    sim.reset()
    np.testing.assert_array_equal(jax.random.key_data(sim.data.core.rng_key), key)
    core = sim.data.core.replace(rng_key=initial.core.rng_key)
    assert_equal(sim.data.replace(core=core), initial)


def test_each_drone_may_have_figures_of_its_own(sim: Sim) -> None:
    sim.step(2)  # compiled for shared figures
    fall = sim.data.states
    push = fall.replace(force=fall.force.at[..., 2].set(0.3), vel=jnp.zeros_like(fall.vel))
    factor = jnp.arange(1.0, N * M + 1).reshape(N, M, 1)
    params, before = sim.data.params, sim.data.params
    sim.data = sim.data.replace(states=push, params=params.replace(mass=params.mass * factor))
    sim.step(1)
    acc = np.asarray(sim.data.states.vel[..., 2]) * 500 + 9.81
    np.testing.assert_allclose(acc, 0.3 / np.asarray(sim.data.params.mass[..., 0]), rtol=1e-4)
    unchanged = sim.data.params.replace(mass=before.mass)
    assert_equal(unchanged, before)
    sim.reset()  # back to shared figures
    sim.step(3)
    assert_equal(sim.data.params, before)
    np.testing.assert_allclose(sim.data.states.vel[..., 2], -9.81 * 3 / 500, rtol=3e-3)


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype float64")
def test_data_of_another_precision_are_stepped_in_it() -> None:
    with jax.enable_x64(True):
        sim = Sim(control="rotor_vel")
        sim.step(3)
        sim.reset([True])
        sim.step()
        leaves = jax.tree.leaves(sim.data)
        floats = [x.dtype for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)]
        assert set(floats) == {np.dtype("float64")}
        assert sim.data.core.steps.dtype == np.int32
        before = sim.data
    for use in (sim.step, sim.reset, lambda: sim.derivative(sim.data)):
        with pytest.raises(ValueError, match=r"within jax.enable_x64\(True\), too"):
            use()
    with pytest.raises(ValueError, match="built in double precision"):
        functional.rotor_vel_control(sim.data, np.ones((1, 1, 4)))
    with jax.enable_x64(True):
        assert_equal(sim.data, before)
        sim.step()
    assert sim.data.core.steps.tolist() == [[2]]
    assert Sim().data.states.pos.dtype == np.float32


def test_dtypes_survive_steps_and_resets(sim: Sim) -> None:
    dtypes = [x.dtype for x in jax.tree.leaves(sim.data)]
    sim.rotor_vel_control(commands())  # float64
    sim.step(2)
    assert [x.dtype for x in jax.tree.leaves(sim.data)] == dtypes
    sim.reset([True, False, True])
    assert [x.dtype for x in jax.tree.leaves(sim.data)] == dtypes


def test_step_functions_are_pure_and_go_through_jit_and_vmap(sim: Sim) -> None:
    sim.rotor_vel_control(commands())
    step, start = sim.build_step_fn(), sim.data
    end = step(start, 30)
    assert start.core.steps.ravel().tolist() == [0] * N
    sim.step(30)
    rtol = {"rtol": 1e-5, "atol": 1e-5}
    flown = lambda data: step(data, 30)  # noqa: E731
    jitted = jax.jit(flown)(start)
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), start)
    mapped = jax.jit(jax.vmap(flown))(batch)
    for other in (sim.data, jitted, jax.tree.map(lambda x: x[1], mapped)):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, **rtol), other.states, end.states
        )


def test_data_that_do_not_fit_are_refused(sim: Sim) -> None:
    sim.step()
    before = sim.data
    for field, changes, message in [
        ("states", {"pos": jnp.zeros(3)}, r"states.pos is float32\[3\], expected float32\[3,2,3\]"),
        ("states", {"force": jnp.zeros((N, 1, 3))}, r"force is float32\[3,1,3\], expected"),
        ("states", {"pos": jnp.zeros((N, M, 3), int)}, r"pos is int32\[3,2,3\], expected float32"),
        ("states", {"pos": [[[0.0] * 3] * M] * N}, r"states.pos must be an array, float32"),
        ("states", {"vel": None}, r"states.vel must be an array, float32\[3,2,3\]"),
        ("controls", {"armed": False}, r"controls.armed must be an array, bool.*, got False"),
        ("params", {"J": jnp.ones(3)}, r"params.J is float32\[3\], expected float32\[3,3\]"),
        (
            "params",
            {"mass": jnp.ones((N, 1, 2))},
            r"mass is float32\[3,1,2\], expected float32\[1\]",
        ),
        ("core", {"freq": 100}, "core.freq is 100, this simulation has 500"),
    ]:
        changed = before.replace(**{field: getattr(before, field).replace(**changes)})
        with pytest.raises(ValueError, match=message):
            sim.data = changed
    with pytest.raises(
        ValueError, match=r"plugins.mine is float32\[1\], expected \[3,2 or 1,...\]"
    ):
        sim.data = before.replace(plugins={"mine": jnp.ones(1)})
    with pytest.raises(ValueError, match="data must be a SimData, got 3"):
        sim.data = 3  # type: ignore[assignment]
    assert_equal(sim.data, before)
    for value, message in [
        (np.full((N, M, 3), None), r"states.vel must be an array, float32\[3,2,3\], got"),
        (np.ones((N, M, 3), int), r"states.vel is int32\[3,2,3\], expected float32"),
        (np.float64(1), r"states.vel must be an array, float32\[3,2,3\], got np.float64"),
    ]:
        with pytest.raises(ValueError, match=message):
            sim.data = before.replace(states=before.states.replace(vel=value))
    assert_equal(sim.data, before)


def test_arrays_of_numpy_fly_like_those_of_jax(
    sim: Sim, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, in each part of the data, also again and again; later changes do nothing."""
    rng, start = np.random.default_rng(4), sim.data
    pos, vel = rng.normal(size=(2, N, M, 3))
    speeds, mine = rng.uniform(14e3, 18e3, (N, M, 4)), rng.normal(size=(N, 1, 2))
    J = np.diag([1.7e-5, 1.9e-5, 3.1e-5]) + 1e-6
    masses = rng.uniform(0.03, 0.04, (N, M, 1))

    def given(convert: Callable[[Any], Any], number: Any) -> SimData:
        states, controls = start.states, start.controls
        return start.replace(
            states=states.replace(pos=convert(pos), vel=convert(vel.astype(np.float32))),
            controls=controls.replace(
                rotor_vel=convert(speeds), armed=convert(rng.random((N, M, 1)) < 2)
            ),
            params=start.params.replace(mass=convert(masses), J=convert(J), prop_inertia=number),
            plugins={"mine": convert(mine)},
        )

    def flown(data: SimData) -> SimData:
        sim.data = data
        sim.step(5)
        return sim.data

    expected = flown(given(jnp.asarray, jnp.array([2e-8])))
    result: list[SimData] = []
    for number in (2e-8, np.float32(2e-8), np.array([2e-8])):
        data = given(np.asarray, number)
        assert compilations(caplog, lambda d=data: result.append(flown(d))) == 0
        assert_equal(result[-1], expected)
    pos[:], mine[:] = 1e9, 1e9
    assert_equal(result[-1], expected)
    assert_equal(sim.data, expected)

    before = given(np.asarray, np.array([2e-8]))
    step, command = sim.build_step_fn(), functional.rotor_vel_control
    assert_equal(
        step(command(before, speeds), 3).states,
        step(command(jax.tree.map(jnp.asarray, before), speeds), 3).states,
    )
    monkeypatch.setattr(sim, "default_data", before)
    sim.reset()
    np.testing.assert_array_equal(sim.data.states.pos, np.float32(pos))


def test_numbers_stand_for_arrays_of_size_one(sim: Sim) -> None:
    data = sim.data
    sim.data = data.replace(params=data.params.replace(mass=0.05), core=data.core)
    assert sim.data.params.mass.shape == (1,) and sim.data.params.mass[0] == np.float32(0.05)
    with pytest.raises(ValueError, match=r"params.J must be an array, float32\[3,3\], got 0.5"):
        sim.data = data.replace(params=data.params.replace(J=0.5))


def test_stages_of_a_user_run_in_their_place() -> None:
    sim = Sim(2, control="rotor_vel")
    default = sim.step_pipeline
    assert isinstance(default, tuple) and isinstance(sim.reset_pipeline, tuple)

    def wind(data: SimData) -> SimData:
        force = data.states.force.at[..., 0].set(0.01)
        return data.replace(states=data.states.replace(force=force))

    before_change, not_called = sim.build_step_fn(), sim.build_step_fn()
    before_change(sim.data, 1)
    sim.step()
    sim.step_pipeline = (wind, *default)
    sim.step()  # without a call of build_step_fn
    expected = 0.01 / float(sim.data.params.mass[0]) / 500
    np.testing.assert_allclose(sim.data.states.vel[:, 0, 0], expected, rtol=1e-4)
    assert (sim.data.core.steps == 2).all()

    start = sim.default_data
    sim.step_pipeline = (wind, *default, add_to_steps(10))
    late = sim.build_step_fn()
    assert (late(start, 2).core.steps == 22).all()
    for step in (before_change, not_called):  # still the pipeline they were built of
        assert (step(start, 2).core.steps == 2).all()
        assert (step(start, 2).states.force == 0).all()
    sim.build_step_fn()
    sim.step_pipeline = default
    assert (late(start, 1).core.steps == 11).all()
    sim.reset()
    sim.step()
    assert (sim.data.core.steps == 1).all()


def test_a_stage_that_changes_the_structure_is_refused() -> None:
    sim = Sim(control="rotor_vel")

    def broken(data: SimData) -> SimData:
        return data.replace(params=None)

    sim.step_pipeline = (*sim.step_pipeline, broken)
    with pytest.raises(TypeError, match=r"stage broken returned no params.mass, expected float32"):
        sim.step()
    sim.step_pipeline = (
        lambda data: data.replace(states=data.states.replace(pos=data.states.pos[0])),
    )
    with pytest.raises(
        TypeError,
        match=r"<lambda> returned states.pos as float32\[1,3\], expected float32\[1,1,3\]",
    ):
        sim.step()


def test_reset_stages_get_data_defaults_and_mask() -> None:
    sim = Sim(N, control="rotor_vel")

    def shuffle(data: SimData, default: SimData, mask: jax.Array) -> SimData:
        key, use = jax.random.split(data.core.rng_key)
        assert mask.shape == (N,) and mask.dtype == bool
        drawn = jax.random.uniform(use, data.states.pos.shape, minval=1.0, maxval=2.0)
        pos = jnp.where(mask[:, None, None], default.states.pos + drawn, data.states.pos)
        states = data.states.replace(pos=pos)
        return data.replace(states=states, core=data.core.replace(rng_key=key))

    sim.reset_pipeline = (*sim.reset_pipeline, shuffle)
    sim.build_reset_fn()
    sim.reset()
    first = np.asarray(sim.data.states.pos)
    assert len(np.unique(first[..., 0])) == N and (first >= 1).all()
    sim.reset(np.array([True, False, False]))
    second = np.asarray(sim.data.states.pos)
    np.testing.assert_array_equal(second[1:], first[1:])
    assert (second[0] != first[0]).all()
    reset = sim.build_reset_fn()
    assert_equal(reset(sim.data, sim.default_data, None), reset(sim.data, sim.default_data, None))
    sim.reset_pipeline = ()
    sim.reset()
    np.testing.assert_array_equal(sim.data.states.pos, sim.default_data.states.pos)


def test_derivatives_belong_to_the_state_after_the_step(sim: Sim) -> None:
    sim.rotor_vel_control(commands())
    sim.step(25)
    before = sim.data
    sim.step()
    after = sim.data
    step = (np.asarray(after.states.vel) - np.asarray(before.states.vel)) * 500
    np.testing.assert_allclose(before.states_deriv.acc, step, atol=2e-3)  # Euler, float32
    np.testing.assert_array_equal(after.states_deriv.vel, after.states.vel)
    np.testing.assert_array_equal(after.states_deriv.ang_vel, after.states.ang_vel)
    sim.reset()
    np.testing.assert_allclose(sim.data.states_deriv.acc[0, 0], [0, 0, -9.81], rtol=1e-6)


def test_pure_functions_evaluate_derivatives_on_demand_only(sim: Sim) -> None:
    sim.rotor_vel_control(commands())
    sim.step(25)
    given = jax.tree.map(jnp.ones_like, sim.data.states_deriv)
    data, default = sim.data.replace(states_deriv=given), sim.default_data

    def stepping(derivative: bool) -> Callable[[SimData], SimData]:
        step = sim.build_step_fn(derivative)
        return lambda data: step(data, 3)

    def resetting(derivative: bool) -> Callable[[SimData], SimData]:
        reset = sim.build_reset_fn(derivative)
        return lambda data: reset(data, default, None)

    for advancing in (stepping, resetting):
        plain, deriving = advancing(False), advancing(True)
        flags = changed_leaves(traced(plain, data))
        changed = jax.tree.unflatten(jax.tree.structure(data), flags)
        assert changed.states.pos and not any(jax.tree.leaves(changed.states_deriv))
        assert_equal(plain(data).states_deriv, given)
        after = deriving(data)
        expected = jax.jit(sim.derivative)(after)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), after.states_deriv, expected)


def test_data_stay_what_they_were_when_they_were_taken(sim: Sim) -> None:
    def flown(look: bool) -> list[SimData]:
        sim.reset()
        sim.rotor_vel_control(commands())
        taken = []
        for i in range(3):
            sim.step(4)
            taken.append(sim.data)
            if look:
                jax.block_until_ready(taken[-1])
            sim.rotor_vel_control(commands(i + 1))
        sim.step()
        return taken

    for unseen, seen in zip(flown(look=False), flown(look=True)):
        changed = unseen.replace(plugins={"mine": jnp.ones(1)})  # looks at nothing else
        assert "states" not in vars(changed)
        assert_equal(copy.deepcopy(changed).states, seen.states)
        assert_equal(unseen, seen)


def test_a_transformation_may_look_at_the_data_of_a_simulation(sim: Sim) -> None:
    sim.rotor_vel_control(commands())
    sim.step(5)
    height, rate = jax.jit(lambda: (sim.data.states.pos, sim.data.states_deriv.acc))()
    np.testing.assert_array_equal(height, sim.data.states.pos)
    np.testing.assert_array_equal(rate, sim.data.states_deriv.acc)


def test_a_stage_may_read_the_derivatives_of_the_end_of_the_last_step() -> None:
    sim = Sim(control="rotor_vel", drone=["cf2x_L250"])
    read = {"read": jnp.zeros((1, 1, 3))}
    sim.data = sim.data.replace(plugins=read)

    def remember(data: SimData) -> SimData:
        return data.replace(plugins={"read": data.states_deriv.acc})

    sim.step_pipeline = (remember, *sim.step_pipeline)
    sim.rotor_vel_control(np.full((1, 1, 4), 17e3))
    for _ in range(3):
        before = sim.data.states_deriv.acc
        sim.step(5)
        np.testing.assert_array_equal(sim.data.plugins["read"], before)


def test_the_drones_stand_on_a_grid() -> None:
    pos = np.asarray(Sim(2, 7).data.states.pos)
    np.testing.assert_array_equal(pos[0], pos[1])
    np.testing.assert_array_equal(pos[..., 2], 0)
    gaps = np.linalg.norm(pos[0, :, None] - pos[0], axis=-1) + 10 * np.eye(7)
    np.testing.assert_allclose(gaps.min(axis=-1), 1)


def test_the_same_seed_gives_the_same_key() -> None:
    keys = [jax.random.key_data(Sim(rng_key=k).data.core.rng_key) for k in (1, 1, 2)]
    assert (keys[0] == keys[1]).all() and (keys[0] != keys[2]).any()


def test_a_second_thread_is_told_that_there_is_one() -> None:
    sim, begun, go_on = Sim(control="rotor_vel"), threading.Event(), threading.Event()

    def slow(data: SimData) -> SimData:  # while it is compiled, which is a part of the first step
        begun.set()
        assert go_on.wait(60)
        return data

    sim.step_pipeline = (slow, *sim.step_pipeline)
    first = threading.Thread(target=sim.step, name="first")
    first.start()
    try:
        assert begun.wait(60)
        for use in (sim.step, lambda: sim.data, lambda: sim.rotor_vel_control(np.zeros((1, 1, 4)))):
            with pytest.raises(RuntimeError, match="the thread 'first' is using this Sim"):
                use()
    finally:
        go_on.set()
        first.join()
    sim.step()  # one after the other they may
    assert sim.data.core.steps.max() == 2


def test_a_simulation_is_not_pickled_but_its_data_are(sim: Sim) -> None:
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied: build another one"):
            take(sim)
    assert_equal(pickle.loads(pickle.dumps(jax.device_get(sim.data))).states, sim.data.states)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            np.ones((N, M, 4)) + 1j,
            "a rotor_vel command holds real numbers, got .* complex",
        ),
        (np.full((N, M, 4), "1"), "a rotor_vel command holds real numbers, got an array of <U1"),
        (
            np.full((N, M, 4), None),
            "a rotor_vel command holds real numbers, got .* object",
        ),
        ([[[1.0, 2.0], [3.0]]], "a rotor_vel command is an array of numbers: .*inhomogeneous"),
    ],
)
def test_a_command_of_other_things_than_numbers_is_refused(
    sim: Sim, command: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sim.rotor_vel_control(command)
    sim.step()
    with pytest.raises(ValueError, match=message):
        sim.rotor_vel_control(command)
    if isinstance(command, np.ndarray) and command.dtype.kind == "c":
        with pytest.raises(ValueError, match=message):
            jax.jit(functional.rotor_vel_control)(sim.data, command)


def test_a_function_of_ones_own_runs_on_packed_data_as_it_does_by_itself() -> None:
    sims = [Sim(5, 2, control="rotor_vel") for _ in range(2)]
    fly = sims[0].build_step_fn()

    def hover(data: SimData, gain: jax.Array) -> tuple[SimData, jax.Array]:
        key, subkey = jax.random.split(data.core.rng_key)
        speeds = 15_000 - gain * data.states.vel[..., 2:] + jax.random.normal(subkey, (5, 2, 4))
        data = functional.rotor_vel_control(data, speeds)
        data = data.replace(core=data.core.replace(rng_key=key))
        return fly(data, 3), data.states.pos[..., 2]

    program, plain, gain = Composed(hover), jax.jit(hover), jnp.float32(100.0)
    for _ in range(3):  # between steps and commands of the simulation
        heights = sims[0].run(program, gain)
        sims[1].data, expected = plain(sims[1].data, gain)
        np.testing.assert_array_equal(heights, expected)
        for sim in sims:
            sim.step(2)
            sim.rotor_vel_control(np.full((5, 2, 4), 16_000.0))
    assert_equal(sims[0].data, sims[1].data)
    heights = sims[0].run(program, gain)  # twice without anything in between
    sims[0].run(program, gain)
    for _ in range(2):
        sims[1].data, expected = plain(sims[1].data, gain)
    assert_equal(sims[0].data.states, sims[1].data.states)
    assert sims[0].data.core.steps.tolist() == [[21]] * 5


def test_new_data_are_those_of_a_new_simulation_but_for_the_random_key() -> None:
    sim, other = (Sim(n_worlds=2, control="rotor_vel") for _ in range(2))
    for each in (sim, other):
        each.step_pipeline = pipeline.insert_before(
            each.step_pipeline, "integrate", ActionDelay(ticks=2)
        )
    sim.rotor_vel_control(np.full((2, 1, 4), 15e3))
    sim.seed(5)
    sim.step(3)
    assert (sim.data.states.rotor_vel > 0).all()
    data = sim.build_data()
    assert data is sim.data
    key = jax.random.key(5)
    np.testing.assert_array_equal(jax.random.key_data(data.core.rng_key), jax.random.key_data(key))
    new, fresh = (
        jax.tree.leaves(d.replace(core=d.core.replace(rng_key=None))) for d in (data, other.data)
    )
    for one, two in zip(new, fresh, strict=True):
        np.testing.assert_array_equal(one, two)


def test_default_rates_are_at_most_that_of_the_physics() -> None:
    controls = Sim(freq=50, control="state").data.controls
    levels = (controls.state, controls.attitude, controls.force_torque)
    assert [level.freq for level in levels] == [50, 50, 50]
    controls = Sim(freq=1000, control="state").data.controls
    assert (controls.state.freq, controls.attitude.freq) == (100, 500)
    with pytest.raises(ValueError, match="attitude_freq must divide the physics rate of 100 Hz"):
        Sim(freq=100, attitude_freq=500)


def test_data_can_be_donated_and_their_flag_can_be_a_bool() -> None:
    sim = Sim(n_worlds=2, control="state")
    buffers = [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(sim.data)]
    assert len(set(buffers)) == len(buffers)
    sim.data = sim.data.replace(core=sim.data.core.replace(mjx_synced=False))
    assert not sim.data.core.mjx_synced

"""Pipelines changed by name, and stages between command and rotors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.forces.aerodynamics import downwash, ground_effect
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.actuation import ActionDelay, Battery, MotorFailure
from crazyflow_ros.sim.compile.stepping import tick_of
from crazyflow_ros.sim.leaves import traced
from crazyflow_ros.sim.pipeline import insert_after, insert_before, names, remove, replace
from crazyflow_ros.sim.randomize import in_worlds
from crazyflow_ros.sim.stages import THRUST_MAX, Stage
from crazyflow_ros.sim.wind import Dryden
from crazyflow_ros.xla.kernels import fits_one_kernel

SHEET = {"capacity": 0.25, "full": 4.2, "knee": (0.03, 4.0), "nominal": (0.2, 3.6)}
RPM = 2 * np.pi / 60


def a(data): ...
def b(data): ...
def c(data): ...


def test_stages_are_found_by_name() -> None:
    pipeline = (a, partial(b, 1), ActionDelay(2))
    assert names(pipeline) == ("a", "b", "ActionDelay")
    assert names(insert_before(pipeline, "b", c, c)) == ("a", "c", "c", "b", "ActionDelay")
    assert names(insert_after(pipeline, "ActionDelay", c)) == ("a", "b", "ActionDelay", "c")
    assert replace(pipeline, "a", c) == (c, *pipeline[1:])
    assert remove(pipeline, "b") == (a, pipeline[2])
    with pytest.raises(ValueError, match="there is no stage 'd', only"):
        remove(pipeline, "d")
    with pytest.raises(ValueError, match="2 stages are called 'a'"):
        remove((a, a), "a")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"control": "state"},
            "control_state control_attitude control_force_torque limit_rotor_vel integrate "
            "increment_steps clip_floor_pos",
        ),
        (
            {"control": "attitude", "dynamics": "so_rpy"},
            "commit_attitude limit_thrust integrate increment_steps clip_floor_pos",
        ),
    ],
)
def test_names_of_the_ready_made_stages(options: dict[str, str], expected: str) -> None:
    assert names(Sim(**options).step_pipeline) == tuple(expected.split())


def test_what_comes_between_command_and_rotors() -> None:
    battery = Battery(**SHEET, resistance=0.1)
    sim = Sim(2, 2, drone="cf2x_L250", control="rotor_vel")
    stages = (battery, MotorFailure(2, time=0.02, drone=1), ActionDelay(3))
    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", *stages)
    sim.rotor_vel_control(np.full((2, 2, 4), 20_000.0))
    applied = []
    for _ in range(16):
        sim.step()
        applied.append(np.asarray(sim.data.controls.actuators[0]))
    delayed = np.array(applied)
    assert not delayed[:3].any() and (delayed[3:, 0] == 20_000).all()
    assert (delayed[3:13, 1] == 20_000).all()  # tick 10 is the first without power, 3 later
    np.testing.assert_array_equal(delayed[13:, 1, 2], 0)
    assert (sim.data.controls.rotor_vel == 20_000).all()  # as commanded

    sim.rotor_vel_control(np.full((2, 2, 4), 1e6))
    sim.step(2000)
    figures, speed = load_drone("cf2x_L250"), np.asarray(sim.data.states.rotor_vel[0, 0], float)
    power = (speed * RPM * np.polynomial.polynomial.polyval(speed, figures["rpm2torque"])).sum()
    drawn = np.asarray(sim.data.plugins["battery"])[0, 0]
    before = float(drawn[0])
    sim.step(50)
    after = float(sim.data.plugins["battery"][0, 0, 0])
    volts = np.asarray(sim.data.controls.actuators[0, 0]).max() / 23216 * SHEET["full"]
    source = float(battery.voltage(jnp.asarray(after)))
    current = power / battery.efficiency / volts
    assert source - volts == pytest.approx(0.1 * current, rel=0.02)  # Ohm's law
    assert (after - before) * 3600 / 0.1 == pytest.approx(current, rel=0.02)
    sim.reset()
    most = sim.data.plugins[THRUST_MAX]
    np.testing.assert_allclose(most, figures["thrust_max"], rtol=1e-5)
    assert not any(x.any() for name, x in sim.data.plugins.items() if name != THRUST_MAX)


def everything(*forces: External) -> Sim:
    drone = "cf2x_L250"
    forces = (ground_effect(drone), downwash(drone), *forces)
    sim = Sim(1, 2, drone=drone, control="rotor_vel", forces=forces)
    stages = (Battery(**SHEET, resistance=0.1), MotorFailure(2, drone=1), ActionDelay(2))
    stages = (*stages, Dryden((2.0, 1.0)))
    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", *stages)
    return sim


def test_a_tick_with_everything_is_one_kernel_but_not_with_a_call_of_a_library() -> None:
    sim = everything(floor_contact("cf2x_L250", 500))
    assert fits_one_kernel(traced(tick_of(sim.step_pipeline), sim.data))

    def ordered(data: SimData) -> SimData:
        return data.replace(states=data.states.replace(vel=jnp.sort(data.states.vel)))

    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", ordered)
    assert not fits_one_kernel(traced(tick_of(sim.step_pipeline), sim.data))


def test_flights_with_everything_differentiate_and_vectorise() -> None:
    with jax.enable_x64(True):
        sim = everything()
        pos = jnp.array([[[0.0, 0, 0.2], [0.01, 0.02, 0.1]]])
        rotor_vel = jnp.full((1, 2, 4), 19_000.0)
        states = sim.data.states.replace(pos=pos, rotor_vel=rotor_vel)
        data, step = sim.data.replace(states=states), sim.build_step_fn()

        def height(speed: jax.Array) -> jax.Array:
            controls = data.controls.replace(rotor_vel=jnp.full((1, 2, 4), speed))
            return step(data.replace(controls=controls), 8).states.pos[..., 2].sum()

        speeds = jnp.array([19_000.0, 18_000.0, 18_999.0, 19_001.0, 17_999.0, 18_001.0])
        both = jax.jit(jax.vmap(jax.value_and_grad(height)))
        heights, slopes = both(speeds)
        differences = (heights[3::2] - heights[2::2]) / 2
        np.testing.assert_allclose(slopes[:2], differences, rtol=1e-5)
        assert (slopes[:2] > 0).all()


def test_stages_that_leave_take_along_what_they_brought() -> None:
    sim = Sim(2, 2, control="rotor_vel")
    wind, mine = jnp.array([0.0, 1.0, 0.0]), {"mine": jnp.ones((2, 2, 1))}
    plain, params = sim.step_pipeline, sim.data.params.replace(wind=wind)
    sim.data = sim.data.replace(params=params, plugins=mine)
    before, default = sim.data, sim.default_data
    gusts, battery = Dryden((5.0, 0.0)), Battery(**SHEET, resistance=0.1)
    sim.step_pipeline = insert_before(plain, "integrate", gusts, battery, ActionDelay(2))
    for stage in (gusts, battery):
        sim.data = jax.jit(stage)(sim.data)
    assert (sim.data.params.wind[..., 0] != 0).all()
    drawn = sim.data.plugins["battery"]
    sim.step_pipeline = insert_before(plain, "integrate", battery)
    assert sorted(sim.data.plugins) == ["battery", "mine", THRUST_MAX]
    assert sim.data.plugins["battery"] is drawn  # it stayed
    np.testing.assert_array_equal(sim.data.params.wind, wind)

    sim.step_pipeline = plain
    after = sim.data.replace(states=before.states, states_deriv=before.states_deriv)
    unlike = {"core", "controls"}  # random key and ticks; the last commands
    for name in vars(before).keys() - unlike:
        jax.tree.map(np.testing.assert_array_equal, getattr(after, name), getattr(before, name))
    jax.tree.map(np.testing.assert_array_equal, sim.default_data.params, default.params)
    assert sim.default_data.plugins == {}


def test_a_stage_in_another_one_stays() -> None:
    sim = Sim(control="rotor_vel")
    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", ActionDelay(2))

    def both(data: SimData, stages: tuple[Stage, ...]) -> SimData:
        for stage in stages:
            data = stage(data)
        return data

    waiting = sim.data.plugins["action_delay"]
    whole = partial(both, stages=sim.step_pipeline)
    whole.stages = sim.step_pipeline  # type: ignore[attr-defined]
    sim.step_pipeline = (whole,)
    assert sim.data.plugins["action_delay"] is waiting


def test_two_stages_with_one_memory_are_refused() -> None:
    sim = Sim(control="rotor_vel")
    plain, before = sim.step_pipeline, sim.data
    for first, second, where in [
        (ActionDelay(2), ActionDelay(2), "ActionDelay and ActionDelay would share data.plugins"),
        (ActionDelay(2), ActionDelay(4), "data.plugins.action_delay"),
        (Dryden((1.0, 0.0)), Dryden((0.0, 2.0)), "Dryden and Dryden would share data.params.wind"),
    ]:
        with pytest.raises(ValueError, match=where):
            sim.step_pipeline = insert_before(plain, "integrate", first, second)
        assert sim.step_pipeline is plain and not sim.data.plugins
        sim.step_pipeline = insert_before(plain, "integrate", first)
        with pytest.raises(ValueError, match=where):
            sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", second)
        sim.step_pipeline = insert_before(plain, "integrate", second)
        sim.step_pipeline = plain
    assert sim.data.params.wind is before.params.wind


def test_battery_follows_its_data_sheet() -> None:
    battery = Battery(**SHEET, resistance=0.1, current=0.5)
    at = lambda drawn: float(battery.voltage(jnp.asarray(drawn))) - 0.1 * 0.5  # noqa: E731
    assert at(0.0) == pytest.approx(4.2, abs=1e-5)
    assert at(0.2) == pytest.approx(3.6, abs=1e-5)
    assert at(0.03) == pytest.approx(4.0, abs=0.05)
    curve = [at(x) for x in np.linspace(0, 0.3, 40)]
    assert all(x >= y for x, y in pairwise(curve)) and min(curve) >= -0.05


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="rotor must be one of 0 to 15, got 16"):
        MotorFailure(16)
    with pytest.raises(ValueError, match="ticks must be at least 1, got 0"):
        ActionDelay(0)
    with pytest.raises(ValueError, match=r"ticks must be an integer, got 2.5"):
        ActionDelay(2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="time must be finite, got nan"):
        MotorFailure(0, time=np.nan)
    for bad in ({"full": 3.5}, {"current": np.nan}, {"resistance": np.inf}):
        with pytest.raises(ValueError, match="the curve has to fall"):
            Battery(**SHEET | {"resistance": 0.1} | bad)
    sim = Sim(n_drones=2, dynamics="first_principles", control="rotor_vel")
    for drone in (2, -1):
        with pytest.raises(ValueError, match=f"drone must be one of 0 to 1, got {drone}"):
            sim.step_pipeline = (MotorFailure(0, drone=drone), *sim.step_pipeline)
    sim = Sim(dynamics="so_rpy")
    with pytest.raises(ValueError, match="MotorFailure needs rotors"):
        sim.step_pipeline = (MotorFailure(0), *sim.step_pipeline)
    with pytest.raises(ValueError, match="Battery needs rotors"):
        sim.step_pipeline = (Battery(**SHEET, resistance=0.1), *sim.step_pipeline)


def _with(data: SimData, **states: object) -> SimData:
    return data.replace(states=data.states.replace(**states))


WRONG: dict[str, tuple[Callable[[SimData], object], str]] = {
    "fewer worlds": (
        lambda data: _with(data, pos=data.states.pos[:1]),
        r"returned states.pos as float32\[1,1,3\], expected float32\[2,1,3\]",
    ),
    "another dtype": (
        lambda data: _with(data, vel=data.states.vel.astype(jnp.float16)),
        r"returned states.vel as float16\[2,1,3\], expected float32\[2,1,3\]",
    ),
    "no array": (lambda data: _with(data, quat=None), r"returned no states.quat, expected float32"),
    "a number": (lambda data: _with(data, vel=0.0), r"returned states.vel as 0.0, expected float"),
    "nothing": (lambda _: None, "returned None, expected SimData"),
    "a part": (lambda data: data.states, "returned a SimState, expected SimData"),
    "a plugin": (
        lambda data: data.replace(plugins={"mine": data.states.pos}),
        "added plugins.mine, which its SimData did not have",
    ),
    "another freq": (
        lambda data: data.replace(core=data.core.replace(freq=100)),
        "changed a field of its SimData that is no array",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_a_stage_returns_is_checked(what: str) -> None:
    wrong, message = WRONG[what]

    def mine(data: SimData) -> SimData:
        return wrong(data)  # type: ignore[return-value]

    def mine_of_resets(data: SimData, _: SimData, mask: jax.Array) -> SimData:
        return wrong(data)  # type: ignore[return-value]

    sim = Sim(2, control="rotor_vel")
    start = sim.data
    sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", mine)
    sim.reset_pipeline = (mine_of_resets,)
    with pytest.raises(TypeError, match=f"stage mine {message}"):
        sim.step()
    with pytest.raises(TypeError, match=f"stage mine {message}"):
        jax.jit(sim.build_step_fn(), static_argnums=1)(start, 1)
    for mask in (None, np.array([True, False])):
        with pytest.raises(TypeError, match=f"stage mine_of_resets {message}"):
            sim.reset(mask)
        with pytest.raises(TypeError, match=f"stage mine_of_resets {message}"):
            sim.build_reset_fn()(start, start, mask)


def test_a_reset_may_give_parameters_of_their_own_to_worlds_but_not_to_others() -> None:
    sim = Sim(3, 2, control="rotor_vel")

    def heavier(data: SimData, default: SimData, mask: jax.Array) -> SimData:
        mass = in_worlds(mask, 1.1 * default.params.mass * jnp.ones((3, 1, 1)), data.params.mass)
        return data.replace(params=data.params.replace(mass=mass))

    sim.reset_pipeline = (heavier,)
    sim.reset(np.array([True, False, True]))
    nominal = float(sim.default_data.params.mass[0])
    np.testing.assert_allclose(sim.data.params.mass[:, 0, 0] / nominal, [1.1, 1, 1.1], rtol=1e-6)

    def longer(data: SimData, _: SimData, mask: jax.Array) -> SimData:
        return data.replace(params=data.params.replace(mass=jnp.ones((5, 1, 1))))

    sim.reset_pipeline = (longer,)
    with pytest.raises(TypeError, match=r"stage longer returned params.mass as float32\[5,1,1\]"):
        sim.reset()

"""Calls of `Sim`'s interface in any order, with any numbers: nothing becomes NaN or stale.

A few sequences in one control mode; `pytest --hypothesis-profile=thorough` tries 10,000 in each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crazyflow_ros.control import Control
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.forces.collisions import drone_contact, obstacle_contact
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.actuation import ActionDelay, Battery, MotorFailure
from crazyflow_ros.sim.compile.stepping import StepFn
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.wind import Dryden

N, M = 2, 2
DRONE, FREQ = "cf21B_500", 500


# What takes long to compile.
THOROUGH = settings.get_current_profile_name() == "thorough"
CONTACTS = (floor_contact, obstacle_contact, drone_contact) if THOROUGH else (floor_contact,)


def modes(one: Control) -> list[Control]:
    """All, or just this one."""
    return list(Control) if THOROUGH else [one]


NUMBERS = st.one_of(
    st.sampled_from([0.0, -9.81, 1.0]),
    st.floats(-30, 30, width=32),
    st.floats(-1e9, 1e9, width=32),
    st.floats(width=32),
)


def arrays(*shape: int, values: st.SearchStrategy[float] = NUMBERS) -> st.SearchStrategy[Any]:
    size = int(np.prod(shape))
    flat = st.lists(values, min_size=size, max_size=size)
    return flat.map(lambda v: np.array(v, np.float32).reshape(shape))


MODERATE = st.floats(-3, 3, width=32)
COMMON = (
    st.tuples(st.just("command"), arrays(N, M, 4)),
    st.tuples(st.just("command"), arrays(N, M, 13)),
    st.tuples(st.just("command"), arrays(N, M, 16)),
    st.tuples(st.just("step"), st.integers(-1, 60)),
    st.tuples(st.just("reset"), st.none() | st.lists(st.booleans(), min_size=1, max_size=3)),
    st.tuples(st.just("push"), arrays(N, M, 3, values=MODERATE)),
    st.tuples(st.just("push"), arrays(N, 1, 3, values=MODERATE)),
    st.tuples(st.just("arm"), st.lists(st.booleans(), min_size=N * M, max_size=N * M)),
    st.tuples(st.just("seed"), st.integers(0, 9)),
)
CALLS = st.one_of(
    *COMMON,
    st.tuples(st.just("place"), arrays(N, M, 3, values=MODERATE)),
    st.tuples(st.just("contacts"), st.none()),
)
FACTOR = st.floats(0.5, 2, width=32)
HEIGHT = st.floats(0, 3, width=32)
CALLS_WITH_EVERYTHING = st.one_of(
    *COMMON,
    st.tuples(st.just("place"), arrays(N, M, 3, values=HEIGHT)),
    st.tuples(st.just("stages"), st.booleans()),
    st.tuples(st.just("mass"), arrays(N, M, 1, values=FACTOR)),
    st.tuples(st.just("mass"), arrays(N + 1, M, 1, values=FACTOR)),
    st.tuples(st.just("wind"), arrays(N, M, 3, values=MODERATE)),
    st.tuples(st.just("obstacles"), arrays(2, 3, values=HEIGHT)),
)


@cache
def simulation(control: str) -> Sim:
    return Sim(N, M, control=control)


def call(sim: Sim, name: str, value: Any) -> None:
    """One call; raises ValueError if the simulation refuses it."""
    states = sim.data.states
    match name:
        case "command":
            getattr(sim, f"{sim.control}_control")(value)
        case "step" | "reset" | "seed":
            getattr(sim, name)(value)
        case "place":
            sim.data = sim.data.replace(states=states.replace(pos=jnp.asarray(value)))
        case "push":
            sim.data = sim.data.replace(states=states.replace(force=jnp.asarray(value) / 10))
        case "arm":
            armed = jnp.array(value).reshape(N, M, 1)
            sim.data = sim.data.replace(controls=sim.data.controls.replace(armed=armed))
        case "contacts":
            check_contacts(sim)
        case "mass":
            mass = jnp.asarray(value * load_drone(DRONE)["mass"])
            sim.data = sim.data.replace(params=sim.data.params.replace(mass=mass))
        case "wind":
            sim.data = sim.data.replace(params=sim.data.params.replace(wind=jnp.asarray(value)))
        case "obstacles":
            params = sim.data.params
            obstacles = params.obstacles.replace(pos=jnp.asarray(value))
            sim.data = sim.data.replace(params=params.replace(obstacles=obstacles))


def check_contacts(sim: Sim) -> None:
    """Each drone's collision sphere against the floor and the other's."""
    touching, states = np.asarray(sim.contacts()), sim.data.states
    contact = sim.mjx_data._impl.contact
    sphere, model = [sim.mj_model.geom(f"col_sphere:{i}") for i in range(M)], sim.mj_model
    floor = [i for i in range(model.ngeom) if model.geom_type[i] == mujoco.mjtGeom.mjGEOM_PLANE]
    x, y, z, w = np.moveaxis(np.asarray(states.quat, float), -1, 0)
    up = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], -1)
    centre = np.asarray(states.pos, float) + up * sphere[0].pos[2]
    radius = sphere[0].size[0]
    for world in range(N):
        pairs = zip(contact.geom1[world], contact.geom2[world], touching[world])
        for first, second, seen in pairs:
            geoms = {int(first), int(second)}
            drones = [i for i in range(M) if sphere[i].id in geoms]
            if len(drones) == 2:
                gap = np.linalg.norm(centre[world, 0] - centre[world, 1]) - 2 * radius
            elif len(drones) == 1 and geoms & set(floor):
                gap = centre[world, drones[0], 2] - radius
            else:
                continue
            assert abs(gap) < 1e-4 or seen == (gap < 0), (world, geoms, gap)


def check_call(sim: Sim, act: Callable[[], None]) -> None:
    """A call changes nothing if it is refused, and leaves no NaN if it is not."""
    before = jax.tree.leaves(sim.data.states)
    try:
        act()
    except ValueError:
        after = jax.tree.leaves(sim.data.states)
        assert all((a == b).all() for a, b in zip(before, after))
    for path, leaf in jax.tree.leaves_with_path(sim.data):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            assert np.isfinite(leaf).all(), path


@pytest.mark.parametrize("control", modes(Control.state))
@given(calls=st.lists(CALLS, max_size=12))
def test_any_calls_leave_finite_numbers_and_fresh_contacts(
    control: str, calls: list[tuple[str, Any]]
) -> None:
    sim = simulation(control)
    sim.reset()
    for name, value in calls:
        check_call(sim, partial(call, sim, name, value))
    sim.step()
    check_contacts(sim)


class Everything(NamedTuple):
    """Drones of different masses that collide with all there is, without optional stages and with.

    Of both pipelines there is a function of the data, so that changing them compiles nothing.
    """

    sim: Sim
    start: SimData
    pipelines: tuple[tuple[Stage, ...], tuple[Stage, ...]]
    steps: tuple[StepFn, StepFn]

    def call(self, name: str, value: Any) -> None:
        """One call; raises ValueError if the simulation refuses it."""
        if name == "stages":
            self.sim.step_pipeline = self.pipelines[value]
        elif name == "step" and value > 0:
            step = self.steps[self.pipelines.index(self.sim.step_pipeline)]
            self.sim.data = step(self.sim.data, value)
        else:
            call(self.sim, name, value)


@cache
def everything(control: str) -> Everything:
    forces = tuple(kind(DRONE, FREQ) for kind in CONTACTS)
    obstacles = Obstacles.create(["sphere", "box"], [[0.2] * 3, [0.3] * 3], [[2.0] * 3] * 2)
    sim = Sim(N, M, drone=DRONE, control=control, forces=forces)
    params = sim.data.params
    each_own = {"mass": params.mass * jnp.ones((N, M, 1)), "wind": jnp.zeros((N, M, 3))}
    params = params.replace(obstacles=obstacles)
    sim.data = sim.data.replace(params=params.replace(**each_own))
    sim.build_default_data()
    sim.reset()
    sim.build_default_data()  # with the derivatives
    start, plain = sim.data, sim.step_pipeline
    stages = (
        Dryden((3.0, 1.0)),
        Battery.of("cf2x_L250"),
        MotorFailure(1, 0.1, drone=1),
        ActionDelay(3),
    )
    steps = [sim.build_step_fn()]
    sim.step_pipeline = insert_before(plain, "integrate", *stages)
    steps.append(sim.build_step_fn())
    pipelines = (plain, sim.step_pipeline)
    return Everything(sim, start, pipelines, (steps[0], steps[1]))


@pytest.mark.parametrize("control", modes(Control.attitude))
@given(stages=st.booleans(), calls=st.lists(CALLS_WITH_EVERYTHING, max_size=12))
def test_any_calls_with_every_stage_and_force_leave_nothing_behind(
    control: str, stages: bool, calls: list[tuple[str, Any]]
) -> None:
    everywhere = everything(control)
    sim, (plain, _) = everywhere.sim, everywhere.pipelines
    sim.step_pipeline = plain
    sim.reset()
    for name, value in [("stages", stages), *calls]:
        check_call(sim, partial(everywhere.call, name, value))
    sim.step_pipeline = plain
    sim.reset()
    for data in (sim.data, sim.default_data):
        jax.tree.map(np.testing.assert_array_equal, but_key(data), but_key(everywhere.start))


def but_key(data: SimData) -> SimData:
    """The data without the random key, which a reset does not restore."""
    return data.replace(core=data.core.replace(rng_key=None))

"""Drones and obstacles: distances against MuJoCo's, resting, bouncing, gradients, each other."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    Wrench,
    no_wrench,
    split,
    stack,
)
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.dynamics.forces.collisions import (
    contact_spheres,
    drone_contact,
    obstacle_contact,
)
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.dynamics.forces.impulses import FRICTION
from crazyflow_ros.dynamics.obstacles import Obstacles, Shape, signed_distance
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.pipeline import insert_after
from crazyflow_ros.sim.stages import move_obstacles

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE, FREQ, G = "cf21B_500", 500, 9.81
MASS = load_drone(DRONE)["mass"]
SIZES = {
    Shape.plane: [1.0, 1.0, 1.0],
    Shape.sphere: [0.3, 0.0, 0.0],
    Shape.capsule: [0.1, 0.4, 0.0],
    Shape.cylinder: [0.2, 0.3, 0.0],
    Shape.box: [0.3, 0.2, 0.1],
}


def test_drones_of_several_models_have_obstacles() -> None:
    models = [DRONE, "cf2x_L250"]
    obstacles = Obstacles.create(["box"] * 3, [[0.3] * 3] * 3, [[0.0, 0.0, 9.0]] * 3)
    each_own = jax.tree.map(lambda a: jnp.broadcast_to(a, (2, 1, *a.shape)), obstacles)
    owned = []
    for given in (obstacles, each_own):
        forces = (obstacle_contact(models, FREQ),)
        sim = Sim(2, drone=models, control="rotor_vel", forces=forces, obstacles=given)
        owned.append(sum(sim._worlds.owned(sim.data)))
    assert owned[1] - owned[0] == len(jax.tree.leaves(obstacles))


def test_obstacles_that_would_stop_nothing_are_refused() -> None:
    wall = Obstacles.create(["box"], [[0.3] * 3], [[0.0, 0.0, 9.0]])
    for forces in (None, (), (floor_contact(DRONE, FREQ),)):
        with pytest.raises(ValueError, match="obstacles without obstacle_contact in forces"):
            Sim(drone=DRONE, forces=forces, obstacles=wall)

    def own(state: BodyState, params: Params) -> Wrench:
        """Somebody else's law for obstacles."""
        assert params.obstacles is not None
        return no_wrench(state.pos[0])

    assert Sim(drone=DRONE, forces=(own,), obstacles=wall).data.params.obstacles is not None


@pytest.mark.parametrize("shape", SIZES)
def test_distances_are_mujocos(shape: Shape) -> None:
    size, radius = SIZES[shape], 1e-3
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(name="shape", type=int(shape), size=size)
    probe = spec.worldbody.add_body(name="probe", mocap=True)
    probe.add_geom(name="probe", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius, 0, 0])
    model = spec.compile()
    data, fromto = mujoco.MjData(model), np.zeros(6)
    points = np.random.default_rng(0).uniform(-0.7, 0.7, (300, 3))
    distances, normals = signed_distance(
        jnp.asarray(int(shape)), tuple(map(jnp.asarray, size)), split(jnp.asarray(points))
    )
    expected = []
    for point in points:
        data.mocap_pos[0] = point
        mujoco.mj_kinematics(model, data)
        expected.append(mujoco.mj_geomDistance(model, data, 0, 1, 10.0, fromto) + radius)
    outside = np.array(expected) > 2 * radius  # MuJoCo's penetrations are not exact
    assert 50 < outside.sum() < 300
    np.testing.assert_allclose(distances[outside], np.array(expected)[outside], atol=1e-5)
    assert (np.asarray(distances)[~outside] < 3 * radius).all()
    np.testing.assert_allclose(np.linalg.norm(stack(normals), axis=-1), 1)
    feet = points - np.asarray(distances)[:, None] * np.asarray(stack(normals))
    on_surface, _ = signed_distance(
        jnp.asarray(int(shape)), tuple(map(jnp.asarray, size)), split(jnp.asarray(feet))
    )
    np.testing.assert_allclose(on_surface, 0, atol=1e-9)


def test_inside_distance_and_normal_lead_to_the_surface() -> None:
    rng = np.random.default_rng(1)
    for shape, size in SIZES.items():
        args = jnp.asarray(int(shape)), tuple(map(jnp.asarray, size))
        points = rng.uniform(-0.1, 0.1, (200, 3))
        distance, normal = signed_distance(*args, split(jnp.asarray(points)))
        surface = points - np.asarray(distance)[:, None] * np.asarray(stack(normal))
        again, _ = signed_distance(*args, split(jnp.asarray(surface)))
        np.testing.assert_allclose(again, 0, atol=1e-9)
    nothing, _ = signed_distance(jnp.asarray(-1), args[1], split(jnp.zeros(3)))
    assert float(nothing) > 1e6


def drones(obstacles: Obstacles | None, pos: np.ndarray, **states: np.ndarray) -> Sim:
    """Drones of one model, rotors stopped: (n_worlds, n_drones, 3) positions."""
    n_worlds, n_drones, _ = pos.shape
    if (n_worlds, n_drones) not in _simulations:
        forces = (obstacle_contact(DRONE, FREQ), drone_contact(DRONE, FREQ))
        _simulations[n_worlds, n_drones] = Sim(
            n_worlds, n_drones, drone=DRONE, control="rotor_vel", freq=FREQ, forces=forces
        )
    sim = _simulations[n_worlds, n_drones]
    sim.reset()
    fields = {name: jnp.asarray(value) for name, value in (states | {"pos": pos}).items()}
    params = sim.data.params.replace(obstacles=obstacles)
    sim.data = sim.data.replace(states=sim.data.states.replace(**fields), params=params)
    return sim


_simulations: dict[tuple[int, int], Sim] = {}


def state_at(pos: np.ndarray, quat: np.ndarray, vel: np.ndarray, ang_vel: np.ndarray) -> BodyState:
    fields = (pos, quat, vel, ang_vel, np.zeros((len(pos), 4)))
    return BodyState(*(split(jnp.asarray(f, float)) for f in fields))


def wrench_on(
    obstacles: Obstacles | None, state: BodyState, params: Params | None = None
) -> Wrench:
    """On drones in free fall."""
    params = (params or Params.create(DRONE)).replace(obstacles=obstacles)
    zero = jnp.zeros_like(state.pos[0])
    still, falls = (zero, zero, zero), (zero, zero, zero - G)
    free = BodyDerivative(state.vel, state.ang_vel, falls, still, (*still, zero))
    return obstacle_contact(DRONE, FREQ)(state, free, params)


def test_a_drone_stands_on_a_box_as_on_the_floor_whichever_way_that_is_turned() -> None:
    turned = Rotation.from_euler("z", 40, degrees=True).as_quat()
    box = Obstacles.create(["box"], [[0.4, 0.3, 0.2]], [[0.2, -0.1, 0.7]], [turned], slots=4)
    height = 0.9 + rest_height(DRONE)
    sim = drones(box, np.array([[[0.15, -0.1, height + 0.1]], [[0.15, -0.1, height]]]))
    sim.step(1000)
    np.testing.assert_allclose(sim.data.states.pos[:, 0, 2], height, atol=1e-6)
    np.testing.assert_allclose(sim.data.states_deriv.acc, 0, atol=1e-3)
    force = wrench_on(box, sim.data.states.components).force
    np.testing.assert_allclose(force[2], MASS * G, rtol=1e-3)
    np.testing.assert_allclose(force[:2], 0, atol=1e-6)


def test_moved_and_new_obstacles_compile_nothing_and_worlds_may_have_their_own() -> None:
    pos = np.array([[[0.0, 0, 0.4]], [[0.0, 0, 0.4]]])
    below = Obstacles.create(["box"], [[0.3, 0.3, 0.1]], [[0, 0, 0]], slots=4)
    sim = drones(below, pos)
    sim.step(1000)
    (step,) = sim._live._programs.values()
    compiled = step._run._cache_size()  # type: ignore[attr-defined]
    two = Obstacles.create(["sphere", "box"], [[0.1, 1, 1], [0.3, 0.3, 0.1]],
                           [[3, 0, 0], [0, 0, -1]], slots=4)  # fmt: skip
    sim = drones(two, pos)
    sim.step(1000)
    np.testing.assert_allclose(sim.data.states.pos[:, 0, 2], -0.9 + rest_height(DRONE), atol=1e-5)
    assert list(sim._live._programs.values()) == [step]
    assert step._run._cache_size() == compiled  # type: ignore[attr-defined]
    own = jax.tree.map(lambda a, b: jnp.stack([a, b])[:, None], below, two)
    sim = drones(own, pos)
    sim.step(1000)
    heights = np.array([0.1, -0.9]) + rest_height(DRONE)
    np.testing.assert_allclose(sim.data.states.pos[:, 0, 2], heights, atol=1e-5)


def test_a_bounce_off_any_shape_gains_no_energy() -> None:
    rng, n = np.random.default_rng(0), 2
    for shape, size in SIZES.items():
        wall = Obstacles.create([shape], [size], [[0, 0, -0.5]], slots=4)
        quat = Rotation.random(n, rng=rng).as_quat()[:, None]
        vel = np.concatenate([rng.normal(0, 0.3, (n, 1, 2)), rng.uniform(-3, -1, (n, 1, 1))], -1)
        sim = drones(wall, np.tile([0.0, 0, 0.3], (n, 1, 1)), quat=quat, vel=vel)
        sim.data = sim.data.replace(
            params=sim.data.params.replace(gravity_vec=jnp.zeros(3), drag_matrix=jnp.zeros((3, 3)))
        )
        before = kinetic_energy(sim)
        sim.step(500)
        after = kinetic_energy(sim)
        assert np.asarray(sim.data.states.vel[..., 2]).max() > -1, shape  # they have hit it
        assert (after < before).all(), shape


def kinetic_energy(sim: Sim) -> np.ndarray:
    v, w = np.asarray(sim.data.states.vel), np.asarray(sim.data.states.ang_vel)
    inertia = np.array(load_drone(DRONE)["J"])
    return (MASS * (v**2).sum(-1) + ((w @ inertia) * w).sum(-1)) / 2


def test_the_gradient_is_that_of_finite_differences() -> None:
    shapes = Obstacles.create(
        list(SIZES), list(SIZES.values()),
        [[0, 0, -0.3], [0.33, 0, 0], [-0.13, 0.02, 0], [0, 0.24, 0], [0, -0.24, 0.05]],
    )  # fmt: skip
    state = state_at(
        np.array([[0.0, 0, 0]]), np.array([[0.1, -0.05, 0.02, 0.99]]),
        np.array([[0.3, 0.2, -0.4]]), np.array([[1.0, -2, 0.5]]),
    )  # fmt: skip

    def outcome(change: dict[str, jax.Array]) -> jax.Array:
        now = state._replace(
            pos=tuple(p + c for p, c in zip(state.pos, change["pos"])),
            vel=tuple(v + c for v, c in zip(state.vel, change["vel"])),
        )
        params = Params.create(DRONE)
        params = params.replace(mass=params.mass + change["mass"])
        wrench = wrench_on(shapes.replace(pos=shapes.pos + change["moved"]), now, params)
        f, t = jnp.stack(wrench.force), jnp.stack(wrench.torque)
        return (f[:, 0] * jnp.array([1.0, 2, 3])).sum() + 50 * t.sum()

    zero = {k: jnp.zeros(s) for k, s in {"pos": 3, "vel": 3, "mass": 1, "moved": (5, 3)}.items()}
    outcome_and_gradient = jax.jit(jax.value_and_grad(outcome))
    found, gradient = outcome_and_gradient(zero)
    assert abs(found) > 1e-3
    flat = jax.tree.leaves_with_path(zero)
    for path, value in flat:
        name = path[0].key
        for i in range(value.size):
            step = {**zero, name: zero[name].ravel().at[i].set(1e-7).reshape(value.shape)}
            back = {**zero, name: -step[name]}
            there, here = (outcome_and_gradient(changed)[0] for changed in (step, back))
            expected = (there - here) / 2e-7
            assert np.asarray(gradient[name]).ravel()[i] == pytest.approx(
                float(expected), rel=1e-5, abs=1e-4
            ), (name, i)


def test_without_obstacles_nothing_changes() -> None:
    with_stages = drones(None, np.array([[[0.0, 0, 3]], [[0.0, 0, 4]]]))
    alone = Sim(2, drone=DRONE, control="rotor_vel", freq=FREQ, forces=())
    alone.data = alone.data.replace(states=with_stages.data.states)
    for sim in (alone, with_stages):
        sim.rotor_vel_control(np.full((2, 1, 4), 12000.0))
        sim.step(300)
    for a, b in zip(jax.tree.leaves(alone.data.states), jax.tree.leaves(with_stages.data.states)):
        np.testing.assert_array_equal(a, b)


def test_drones_that_meet_keep_their_momentum_and_lose_energy() -> None:
    pos = np.array([[[-0.1, 0.01, 1], [0.1, 0, 1.01], [0, 5, 1]],
                    [[0, 0, 1], [0.02, 0.01, 1.2], [0, -5, 1]]])  # fmt: skip
    vel = np.array([[[1.0, 0, 0], [-0.5, 0, 0], [0, 0, 0]], [[0, 0, 0.5], [0, 0, -1], [0, 0, 0]]])
    sim = drones(None, pos, vel=vel)
    free = sim.data.params.replace(gravity_vec=jnp.zeros(3), drag_matrix=jnp.zeros((3, 3)))
    sim.data = sim.data.replace(params=free)
    inertia = np.array(load_drone(DRONE)["J"])

    def angular_momentum() -> np.ndarray:
        states = jax.tree.map(np.asarray, sim.data.states)
        spin = Rotation.from_quat(states.quat.reshape(-1, 4)).apply(
            (states.ang_vel @ inertia).reshape(-1, 3)
        )
        return (MASS * np.cross(states.pos, states.vel) + spin.reshape(pos.shape)).sum(1)

    turning, energy = angular_momentum(), kinetic_energy(sim)
    sim.step(200)
    after = np.asarray(sim.data.states.vel)
    np.testing.assert_allclose(after.sum(1), vel.sum(1), atol=1e-9)
    np.testing.assert_allclose(angular_momentum(), turning, atol=5e-4 * MASS)
    assert (kinetic_energy(sim).sum(1) < energy.sum(1)).all()
    assert (after[0, 0, 0] < after[0, 1, 0]) and (after[1, 0, 2] < after[1, 1, 2])
    np.testing.assert_array_equal(after[:, 2], 0)  # the one that is elsewhere does not notice


@pytest.mark.parametrize("integrator", ["euler", "symplectic_euler", "rk4"])
def test_a_glancing_collision_keeps_the_angular_momentum_about_the_common_centre(
    integrator: str,
) -> None:
    """Drones at any attitude that spin already; they meet once, off their centres."""
    n, rng = 16, np.random.default_rng(3)
    sim = Sim(
        n, 2, drone=DRONE, control="rotor_vel", freq=FREQ, integrator=integrator,
        forces=(drone_contact(DRONE, FREQ),),
    )  # fmt: skip
    pos, vel = np.zeros((n, 2, 3)), rng.uniform(-0.2, 0.2, (n, 2, 3))
    pos[:, 1] = rng.uniform([0.14, -0.05, -0.02], [0.16, 0.05, 0.02], (n, 3))
    pos[..., 2] += 10
    vel[:, 0, 0] += rng.uniform(1.5, 3.0, n)
    quat = Rotation.from_rotvec(rng.normal(0, 0.3, (2 * n, 3))).as_quat().reshape(n, 2, 4)
    states = sim.data.states.replace(
        pos=jnp.asarray(pos), vel=jnp.asarray(vel), quat=jnp.asarray(quat),
        ang_vel=jnp.asarray(rng.normal(0, 2, (n, 2, 3))),
    )  # fmt: skip
    falls = sim.data.params.replace(drag_matrix=jnp.zeros((3, 3)))
    sim.data = sim.data.replace(states=states, params=falls)
    inertia = np.array(load_drone(DRONE)["J"])

    def about_the_centre() -> np.ndarray:
        now = jax.tree.map(np.asarray, sim.data.states)
        arms, speeds = (x - x.mean(axis=1, keepdims=True) for x in (now.pos, now.vel))
        turning = Rotation.from_quat(now.quat.reshape(-1, 4))
        spin = turning.apply((now.ang_vel @ inertia).reshape(-1, 3)).reshape(pos.shape)
        return (MASS * np.cross(arms, speeds) + spin).sum(axis=1)

    before, spinning = about_the_centre(), np.asarray(sim.data.states.ang_vel)
    sim.step(FREQ // 10)
    changed = np.linalg.norm(about_the_centre() - before, axis=1)
    share = changed / np.linalg.norm(before, axis=1)
    hit = np.abs(np.asarray(sim.data.states.ang_vel) - spinning).max(axis=(1, 2)) > 2
    assert hit.sum() > n / 2
    assert share.mean() < 0.01 and share.max() < 0.05


@cache
def _on_boxes(integrator: str) -> Sim:
    """A drone without drag on a box of its own, in each of five worlds."""
    boxes = Obstacles.create(
        *(["box"], [[0.4, 0.4, 0.1]], [[0.0, 0.0, 0.5]]), vel=[[0.0] * 3], ang_vel=[[0.0] * 3]
    )
    sim = Sim(
        5, drone=DRONE, control="rotor_vel", freq=FREQ, integrator=integrator,
        forces=(obstacle_contact(DRONE, FREQ),),
        obstacles=jax.tree.map(lambda x: jnp.tile(x, (5, 1, *[1] * x.ndim)), boxes),
    )  # fmt: skip
    sim.step_pipeline = insert_after(sim.step_pipeline, "integrate", move_obstacles)
    pos = np.tile([0.2, 0.0, 0.6 + rest_height(DRONE)], (5, 1, 1))
    still = sim.data.params.replace(drag_matrix=jnp.zeros((3, 3)))
    states = sim.data.states.replace(pos=jnp.asarray(pos))
    sim.data = sim.data.replace(states=states, params=still)
    sim.build_default_data()
    return sim


def on_platforms(integrator: str = "euler", **moves: np.ndarray) -> Sim:
    """The drones on their boxes, which have moved for a second: (5, 3) velocities."""
    sim = _on_boxes(integrator)
    sim.reset()
    obstacles = sim.data.params.obstacles
    assert obstacles is not None
    moving = obstacles.replace(**{k: jnp.asarray(v)[:, None, None] for k, v in moves.items()})
    sim.data = sim.data.replace(params=sim.data.params.replace(obstacles=moving))
    sim.step(FREQ)
    return sim


def platforms(sim: Sim) -> Obstacles:
    """One for each world."""
    obstacles = sim.data.params.obstacles
    assert obstacles is not None
    return jax.tree.map(lambda x: np.asarray(x)[:, 0, 0], obstacles)


@pytest.mark.parametrize("integrator", ["euler", "symplectic_euler", "rk4"])
def test_a_moving_platform_carries_what_stands_on_it(integrator: str) -> None:
    """Along, up, down, and round: after a second it stands where it has come to stand."""
    vel = np.array([[0.5, 0, 0], [0.3, -0.4, 0], [0, 0, 0.4], [0.2, 0, -0.3], [0, 0, 0]])
    turning = np.array([[0, 0, 0]] * 4 + [[0, 0, 2.0]], float)
    sim = on_platforms(integrator, vel=vel, ang_vel=turning)
    seen = []
    for _ in range(2):
        box, states = platforms(sim), jax.tree.map(np.asarray, sim.data.states)
        to_box = Rotation.from_quat(box.quat).inv()
        seen.append(
            (
                to_box.apply(states.pos[:, 0] - box.pos),
                (to_box * Rotation.from_quat(states.quat[:, 0])).as_rotvec(),
            )
        )
        arms = states.pos[:, 0] - box.pos
        expected = box.vel + np.cross(box.ang_vel, arms)
        # The stages of an RK4 step find the box where it is at the beginning of the tick.
        tolerance = 8e-3 if integrator == "rk4" else 2e-3
        np.testing.assert_allclose(states.vel[:, 0], expected, atol=tolerance)
        sim.step(FREQ)
    (place, attitude), (later, attitude_later) = seen
    np.testing.assert_allclose(later[:4], place[:4], atol=5e-5)
    np.testing.assert_allclose(attitude_later, attitude, atol=2e-3)
    # On a turntable an explicit step leads along the tangent.
    np.testing.assert_allclose(later[4], place[4], atol=3e-3)
    np.testing.assert_allclose(box.pos - [0, 0, 0.5], 2 * vel, atol=1e-9)
    np.testing.assert_allclose(Rotation.from_quat(box.quat[4]).as_rotvec(), [0, 0, 4 - 2 * np.pi])


def test_a_platform_that_starts_faster_than_friction_leaves_the_drone_behind() -> None:
    sim = on_platforms()
    stood = sim.data
    for rise, lags in ((0.5 * FRICTION * G, False), (2 * FRICTION * G, True)):
        sim.data = stood
        start = np.asarray(sim.data.states.pos)[:, 0, 0] - platforms(sim).pos[:, 0]
        for tick in range(100):
            obstacles = sim.data.params.obstacles
            assert obstacles is not None
            vel = jnp.zeros((5, 1, 1, 3)).at[..., 0].set(rise * (tick + 1) / FREQ)
            moving = sim.data.params.replace(obstacles=obstacles.replace(vel=vel))
            sim.data = sim.data.replace(params=moving)
            sim.step()
        left = start - np.asarray(sim.data.states.pos)[:, 0, 0] + platforms(sim).pos[:, 0]
        # If it lags, by half of what the platform has gone.
        expected = (rise - FRICTION * G) * (100 / FREQ) ** 2 / 2 if lags else 0.0
        np.testing.assert_allclose(left, expected, rtol=0.1, atol=0.0 if lags else 0.003)


def test_platforms_move_only_if_they_have_velocities() -> None:
    still = Obstacles.create(["box"], [[0.4] * 3], [[0.0] * 3])
    assert still.moved(1.0) is still
    forces = (obstacle_contact(DRONE, FREQ),)
    sim = Sim(drone=DRONE, control="rotor_vel", forces=forces, obstacles=still)
    sim.step_pipeline = insert_after(sim.step_pipeline, "integrate", move_obstacles)
    with pytest.raises(ValueError, match="needs obstacles that have velocities"):
        sim.step()


def test_a_push_below_the_friction_limit_does_not_shift_a_drone_on_two_boxes() -> None:
    places = [[0.2, 0, 0.5], [-0.2, 0, 0.5]]
    boxes = Obstacles.create(["box"] * 2, [[0.2, 0.2, 0.1]] * 2, places, slots=4)
    pos = np.tile([0.0, 0, 0.6 + rest_height(DRONE)], (2, 1, 1))
    push = 0.5 * FRICTION * MASS * G * np.array([[[0.6, -0.8, 0]], [[0.0, 1.0, 0]]])
    sim = drones(boxes, pos, force=push)
    sim.step(100)
    before = np.array(sim.data.states.pos)
    sim.step(FREQ)
    np.testing.assert_allclose(sim.data.states.pos, before, atol=2e-5)


@pytest.mark.parametrize("shape", [Shape.plane, Shape.box, Shape.cylinder])
def test_a_drop_of_a_metre_onto_a_shape_sinks_in_by_less_than_10_mm(shape: Shape) -> None:
    top = {Shape.plane: 0.0, Shape.box: SIZES[shape][2], Shape.cylinder: SIZES[shape][1]}[shape]
    wall = Obstacles.create([shape], [SIZES[shape]], [[0.0, 0, 0]], slots=4)
    height = top + rest_height(DRONE)
    sim = drones(wall, np.array([[[0.0, 0, height + 1.0]], [[0.02, 0.03, height + 1.003]]]))
    lowest, highest = np.inf, 0.0
    for _ in range(FREQ):
        sim.step()
        z = np.asarray(sim.data.states.pos)[:, 0, 2]
        highest = max(highest, z.max()) if lowest < height + 0.01 else 0.0
        lowest = min(lowest, z.min())
    assert height - 10e-3 < lowest < height + 0.01
    assert highest < height + 0.2


def test_nothing_thin_slips_in_between_the_spheres() -> None:
    for name in ("cf2x_L250", "hb_x500"):
        spheres = contact_spheres(name)
        width = spheres[:, 0].max()
        for y in np.linspace(-width, width, 41):  # an upright pole that comes from ahead
            gap = np.abs(spheres[:, 1] - y) - spheres[:, 3]
            assert gap.min() < 0.2 * width


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["ball"], [[1.0]], [[0.0] * 3]), "there is no shape 'ball'"),
        ((["box"], [[1.0, 1, 0]], [[0.0] * 3]), "sizes of a box must be positive"),
        ((["sphere"], [[1.0]], [[0.0] * 2]), r"pos of obstacles must have shape \(1, 3\)"),
        ((["sphere"], [[1.0]], [[np.nan] * 3]), "pos of obstacles must be finite, got .*nan"),
        ((["sphere"], [[1.0]], [[0.0] * 3], [[0.0] * 4]), "zero quaternion"),
    ],
)
def test_unusable_obstacles_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Obstacles.create(*arguments)

"""Gravity, air and floor of a world, in the node's physics and in `Sim`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from physics_helpers import readings

from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.flight import GoTo, Land, Takeoff
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.sim import Sim

REST = rest_height("cf2x_L250")
MOON = 1.62
SECOND = 500  # ticks
T = 60.0

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def world(folder: Path, geoms: str = "", options: str = "") -> str:
    path = folder / "world.xml"
    path.write_text(f"<mujoco><option {options}/><worldbody>{geoms}</worldbody></mujoco>")
    return str(path)


def plane(height: float) -> str:
    return f'<geom name="ground" type="plane" size="5 5 .1" pos="0 0 {height}"/>'


@contextmanager
def flying(scene: str, **options: object) -> Iterator[PhysicsThread]:
    config = SimulationConfig(
        scene=scene, real_time_factor=0, start_paused=True, true_mass=True, **options
    )  # type: ignore[arg-type]
    physics = PhysicsThread(config, ["cf0"])
    physics.start()
    try:
        yield physics
    finally:
        physics.stop()


def step(physics: PhysicsThread, seconds: float) -> np.ndarray:
    physics.step(round(seconds * SECOND)).result(T)
    return physics.snapshot.pos[0]


def test_on_the_moon_drones_rest_fly_and_land(tmp_path: Path) -> None:
    with flying(world(tmp_path, plane(0), f'gravity="0 0 -{MOON}"')) as physics:
        step(physics, 0.5)
        felt = readings(physics.mirror, "accelerometer")[0]
        np.testing.assert_allclose(felt, (0, 0, MOON), atol=2e-3)
        np.testing.assert_allclose(physics.snapshot.specific_force[0], felt, atol=2e-3)
        physics.command("cf0", Takeoff(0.3))
        assert step(physics, 10)[2] == pytest.approx(0.3, abs=5e-3)
        physics.command("cf0", GoTo((0.5, 0.0, 0.3), 0.0))
        np.testing.assert_allclose(step(physics, 6), (0.5, 0, 0.3), atol=0.01)
        physics.command("cf0", Land())
        assert step(physics, 12)[2] == pytest.approx(REST, abs=1e-3)
        assert physics.commands.states["cf0"] == "landed"


@pytest.mark.parametrize("height", [-1.0, 1.5])
def test_drones_start_fly_and_land_above_the_floor_of_the_world(
    tmp_path: Path, height: float
) -> None:
    with flying(world(tmp_path, plane(height)), ground_effect=True) as physics:
        assert step(physics, 0.5)[2] == pytest.approx(height + REST, abs=1e-4)
        physics.command("cf0", Takeoff(0.4))
        assert step(physics, 3)[2] == pytest.approx(height + 0.4, abs=5e-3)
        assert physics.mirror.range()[0] == pytest.approx(0.4, abs=0.02)
        physics.command("cf0", Land())
        assert step(physics, 4)[2] == pytest.approx(height + REST, abs=1e-3)


def test_the_estimator_measures_above_the_floor_of_the_world(tmp_path: Path) -> None:
    scene = world(tmp_path, plane(-2), 'gravity="0 0 -3.71"')
    with flying(scene, estimator="kalman") as physics:
        step(physics, 0.5)
        physics.command("cf0", Takeoff(0.5))
        pos = step(physics, 5)
        assert pos[2] == pytest.approx(-1.5, abs=0.05)
        believed = physics.snapshot.believed
        assert believed is not None
        np.testing.assert_allclose(believed.pos[0], pos, atol=0.1)


def fallen(seconds: float, **options: object) -> Sim:
    """Let a drone without thrust and drag fall from 5 m above z = 0."""
    sim = Sim(control="rotor_vel", **options)  # type: ignore[arg-type]
    states, params = sim.data.states, sim.data.params
    sim.data = sim.data.replace(
        states=states.replace(pos=states.pos.at[..., 2].set(5.0)),
        params=params.replace(rpm2thrust=0 * params.rpm2thrust, drag_matrix=0 * params.drag_matrix),
    )
    sim.step(round(seconds * SECOND))
    return sim


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -MOON), (0.3, -0.2, -4.0), (0.0, 0.0, 0.0)])
def test_in_sim_drones_fall_as_the_world_says(gravity: tuple[float, float, float]) -> None:
    states = fallen(1.0, conditions=Conditions(gravity)).data.states
    way = np.array(gravity) / 2 + (0, 0, 5)
    np.testing.assert_allclose(states.pos[0, 0], way, atol=0.01)
    np.testing.assert_allclose(states.vel[0, 0], gravity, atol=1e-4)


def test_sim_reads_the_conditions_in_its_scene(tmp_path: Path) -> None:
    sim = fallen(0.5, scene=world(tmp_path, plane(-3), f'gravity="0 0 -{MOON}"'))
    assert sim.default_data.states.pos[0, 0, 2] == -3
    assert sim.data.states.vel[0, 0, 2] == pytest.approx(-0.5 * MOON, rel=1e-3)


@pytest.mark.parametrize("forces", [None, ("floor_contact",)])
@pytest.mark.parametrize("floor", [-2.0, 3.0, None])
def test_in_sim_the_floor_is_where_the_world_has_it(
    floor: float | None, forces: tuple[str, ...] | None
) -> None:
    sim = fallen(4.0, conditions=Conditions(floor=floor), forces=forces)
    low = 5 - 9.81 * 4**2 / 2 if floor is None else floor
    assert sim.data.states.pos[0, 0, 2] == pytest.approx(low, abs=0.1)


def test_thrust_and_drag_are_proportional_to_the_density_of_the_air() -> None:
    def wrench(density: float) -> np.ndarray:
        sim = Sim(control="rotor_vel", conditions=Conditions(density=density))
        states = sim.data.states
        sim.data = sim.data.replace(
            states=states.replace(
                rotor_vel=states.rotor_vel + 15_000, vel=states.vel + jnp.array([1.0, 0, 0])
            )
        )
        return np.asarray(sim.derivative(sim.data).acc[0, 0]) + np.array([0, 0, 9.81])

    np.testing.assert_allclose(wrench(0.6125), wrench(1.225) / 2, rtol=1e-5)

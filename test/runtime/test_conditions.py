"""Gravity, air and floor of a world, in the node's physics and in `Sim`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from physics_helpers import readings

from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.flight import GoTo, Land, Takeoff
from crazyflow_ros.runtime import Checkpoint, PhysicsThread, SimulationConfig, Wind
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.sim import Sim

REST = rest_height("cf2x_L250")
MOON = 1.62
SECOND = 500  # ticks
T = 60.0


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


def test_where_there_is_no_floor_drones_fall_and_are_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with flying(world(tmp_path)) as physics:
        assert "this world has no floor" in caplog.text
        assert step(physics, 1)[2] < -4
        step(physics, 8)
        assert "it fell below -100 m, and this world has no floor" in caplog.text
        assert -130 < physics.snapshot.pos[0, 2] < -100
        physics.state.reset().result(T)
        assert physics.snapshot.pos[0, 2] == pytest.approx(REST)


def test_the_wind_of_the_world_blows_unless_the_user_sets_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    windy = world(tmp_path, plane(0), 'wind="1 0.5 0"')
    with flying(windy) as physics:
        assert physics.world.wind.mean == (1.0, 0.5, 0.0)
        assert "the wind of the world blows: [1.0, 0.5, 0.0] m/s" in caplog.text
        physics.world.set_scene("floor").result(T)
        assert physics.world.wind.mean == (0.0, 0.0, 0.0)
        physics.world.disturb(Wind((0.0, 2.0, 0.0))).result(T)
        physics.world.set_scene(windy).result(T)
        assert physics.world.wind.mean == (0.0, 2.0, 0.0)
    with flying(windy, wind=(0.0, 0.0, 0.1)) as physics:
        assert physics.world.wind.mean == (0.0, 0.0, 0.1)


def test_in_another_world_drones_fly_by_its_gravity_and_above_its_floor(tmp_path: Path) -> None:
    with flying("floor") as physics:
        physics.world.set_scene(world(tmp_path, plane(-0.5), 'gravity="0 0 -3.71"')).result(T)
        assert step(physics, 2)[2] == pytest.approx(-0.5 + REST, abs=1e-3)
        felt = readings(physics.mirror, "accelerometer")[0]
        np.testing.assert_allclose(felt, (0, 0, 3.71), atol=5e-3)
        physics.command("cf0", Takeoff(0.4))
        assert step(physics, 5)[2] == pytest.approx(-0.1, abs=5e-3)
        physics.world.set_scene("floor").result(T)
        np.testing.assert_allclose(physics.commands.rules.gravity, 9.81)


PILLAR = '<geom name="pillar" type="cylinder" size=".2 1" pos="0 0 1"/>'


def test_default_starts_inside_something_are_moved_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with flying(world(tmp_path, plane(0.5) + PILLAR)) as physics:
        pos = physics.snapshot.pos[0]
        assert np.abs(pos[:2]).max() >= 0.5
        assert pos[2] == pytest.approx(0.5 + REST)
        assert "cf0 would start inside pillar: it starts at" in caplog.text
        np.testing.assert_allclose(step(physics, 0.5), pos, atol=1e-3)
        with pytest.raises(ValueError, match=r"pose of a: \(0.10, 0.00, 1.00\) m is inside pillar"):
            physics.world.spawn("a", (0.1, 0, 1, 0, 0, 0, 1)).result(T)
        spawned = physics.world.spawn("b").result(T).pos[1]
        assert np.abs(spawned[:2]).max() >= 0.5
        assert np.abs(spawned - pos).max() >= 0.5


def test_given_starts_inside_something_are_refused(tmp_path: Path) -> None:
    scene = world(tmp_path, plane(0) + PILLAR)
    poses = np.array([[0, 0, 1, 0, 0, 0, 1.0]])
    with pytest.raises(ValueError, match=r"initial_poses of cf0: .* is inside pillar"):
        PhysicsThread(SimulationConfig(scene=scene, initial_poses=poses), ["cf0"])
    on_top = np.array([[0, 0, 2 + REST, 0, 0, 0, 1.0]])
    with flying(scene, initial_poses=on_top) as physics:
        assert step(physics, 0.5)[2] == pytest.approx(2 + REST, abs=1e-3)


def test_without_a_floor_drones_start_on_what_is_there(tmp_path: Path) -> None:
    table = '<geom type="box" size="1 1 .1" pos="0 0 .7"/>'
    with flying(world(tmp_path, table)) as physics:
        assert physics.snapshot.pos[0, 2] == pytest.approx(0.8 + REST)
        assert step(physics, 0.5)[2] == pytest.approx(0.8 + REST, abs=1e-3)


def plateau(folder: Path, friction: float = 1.0) -> str:
    """Land that rises from x = -2 m to 0.5 m at x = 0, and a cube of 0.6 m on it."""
    heights = np.tile(np.clip(np.linspace(-1, 3, 81), 0, 1), (41, 1))
    numbers = " ".join(f"{height:.4g}" for height in heights.ravel())
    corners = "-1 -1 -1  1 -1 -1  -1 1 -1  1 1 -1  -1 -1 1  1 -1 1  -1 1 1  1 1 1"
    (folder / "plateau.xml").write_text(f"""<mujoco>
      <asset>
        <hfield name="land" nrow="41" ncol="81" size="4 2 0.5 0.1" elevation="{numbers}"/>
        <mesh name="cube" vertex="{corners}" scale=".3 .3 .3"/>
      </asset>
      <worldbody>
        <geom name="land" type="hfield" hfield="land" friction="{friction}"/>
        <geom name="rock" type="mesh" mesh="cube" pos="2 0 .8"/>
      </worldbody>
    </mujoco>""")
    return str(folder / "plateau.xml")


def test_drones_stand_on_height_fields_and_meshes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    poses = np.array([[0.5, 0, 0.5 + REST, 0, 0, 0, 1.0]])
    with flying(plateau(tmp_path), initial_poses=poses) as physics:
        np.testing.assert_allclose(step(physics, 1.0), poses[0, :3], atol=1e-3)
        physics.command("cf0", Takeoff(1.5))
        step(physics, 4)
        physics.command("cf0", GoTo((2.0, 0.0, 1.5), 0.0))
        step(physics, 4)
        physics.command("cf0", Land())
        assert step(physics, 8)[2] == pytest.approx(0.5 + 0.6 + REST, abs=2e-3)
        with pytest.raises(ValueError, match=r"pose of a: .* is inside rock"):
            physics.world.spawn("a", (2, 0, 0.7, 0, 0, 0, 1)).result(T)
        with pytest.raises(ValueError, match=r"pose of a: .* is inside land"):
            physics.world.spawn("a", (1, 1, 0.4, 0, 0, 0, 1)).result(T)
        spawned = physics.world.spawn("b").result(T).pos[1]
        assert spawned[2] == pytest.approx(0.5 * np.clip(1 + spawned[0] / 2, 0, 1) + REST, abs=0.02)
    assert not [record for record in caplog.records if "fly through" in record.message]


def test_a_slope_tilts_the_drone_that_stands_on_it(tmp_path: Path) -> None:
    start = np.array([[-1, 0, 0.25 + 2 * REST, 0, 0, 0, 1.0]])
    with flying(plateau(tmp_path, friction=3.0), initial_poses=start) as physics:
        step(physics, 2.0)
        x, y, z, w = physics.snapshot.quat[0]
        up = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        slope = np.array([-0.25, 0, 1]) / np.hypot(0.25, 1)
        np.testing.assert_allclose(up, slope, atol=0.02)


def test_drones_that_stood_on_the_floor_stand_on_the_terrain_of_another_world(
    tmp_path: Path,
) -> None:
    with flying("floor", initial_poses=np.array([[0.5, 0, REST, 0, 0, 0, 1.0]])) as physics:
        physics.world.set_scene(plateau(tmp_path)).result(T)
        np.testing.assert_allclose(step(physics, 0.5), [0.5, 0, 0.5 + REST], atol=1e-3)
        physics.state.reset().result(T)
        np.testing.assert_allclose(physics.snapshot.pos[0], [0.5, 0, 0.5 + REST], atol=1e-3)
        physics.world.set_scene("floor").result(T)
        physics.state.reset().result(T)
        np.testing.assert_allclose(physics.snapshot.pos[0], [0.5, 0, REST], atol=1e-3)


def test_drones_inside_something_of_another_world_are_moved_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with flying("floor") as physics:
        physics.world.set_scene(world(tmp_path, plane(1) + PILLAR)).result(T)
        pos = physics.snapshot.pos[0]
        assert "cf0 has moved to" in caplog.text and "cf0 will start at" in caplog.text
        assert np.abs(pos[:2]).max() >= 0.5
        assert pos[2] == pytest.approx(1 + REST)
        np.testing.assert_allclose(step(physics, 0.5), pos, atol=1e-3)
        physics.state.reset().result(T)
        np.testing.assert_allclose(physics.snapshot.pos[0], pos, atol=1e-6)
        for _ in range(2):  # where nothing is in the way, it starts where it was to start
            physics.world.set_scene("floor").result(T)
            physics.state.reset().result(T)
            np.testing.assert_allclose(physics.snapshot.pos[0], (0, 0, REST), atol=1e-6)


@pytest.mark.soak  # the filter and obstacles compile for minutes
def test_over_a_box_estimator_and_range_sensor_measure_its_top(tmp_path: Path) -> None:
    box = '<geom type="box" size=".3 .3 .2" pos="1 0 .2"/>'
    poses = np.array([[1, 0, 0.4 + REST, 0, 0, 0, 1.0]])
    with flying(
        world(tmp_path, plane(0) + box), estimator="kalman", initial_poses=poses
    ) as physics:
        step(physics, 0.5)
        physics.command("cf0", Takeoff(0.9))
        pos = step(physics, 4)
        believed = physics.snapshot.believed
        assert believed is not None
        # As on a real drone, the filter takes the box for the floor.
        assert believed.pos[0, 2] == pytest.approx(physics.mirror.range()[0], abs=0.06)
        assert pos[2] - believed.pos[0, 2] == pytest.approx(0.4, abs=0.1)


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (f'gravity="0 0 -{MOON}"', r"gravity \[0.0, 0.0, -9.81\], here it is \[0.0, 0.0, -1.62\]"),
        ('density="0.5"', r"density 1.225, here it is 0.5"),
        ('wind="1 0 0"', r"wind \[0.0, 0.0, 0.0\], here it is \[1.0, 0.0, 0.0\]"),
    ],
)
def test_a_checkpoint_of_a_world_with_other_conditions_is_refused(
    tmp_path: Path, there: str, message: str
) -> None:
    with flying(world(tmp_path, plane(0))) as physics:
        step(physics, 0.1)
        kept = Checkpoint.load(BytesIO(physics.state.checkpoint().result(T).to_bytes()))
        physics.world.set_scene(world(tmp_path, plane(0), there)).result(T)
        before = physics.snapshot
        with pytest.raises(ValueError, match=message):
            physics.state.restore(kept).result(T)
        np.testing.assert_array_equal(physics.snapshot.pos, before.pos)
        physics.world.set_scene(world(tmp_path, plane(0))).result(T)
        assert physics.state.restore(kept).result(T).tick == kept.about["tick"]


def test_a_checkpoint_of_a_world_with_another_floor_or_none_is_refused(tmp_path: Path) -> None:
    with flying(world(tmp_path, plane(0))) as physics:
        kept = physics.state.checkpoint().result(T)
        for geoms, here in ((plane(1.0), "1.0"), ("", "none")):
            physics.world.set_scene(world(tmp_path, geoms)).result(T)
            with pytest.raises(ValueError, match=rf"floor 0.0, here it is {here}: load that world"):
                physics.state.restore(kept).result(T)

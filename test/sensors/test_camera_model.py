"""Flow, shutters and chips: against moved points, pictures of other moments, and closed forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from opencv_lenses import projected
from scipy.spatial.transform import Rotation

from crazyflow_ros import Sim
from crazyflow_ros.raytracing.painter import develop
from crazyflow_ros.raytracing.renderer import RayCamera
from crazyflow_ros.scene import build_spec
from crazyflow_ros.sensors import (
    CameraSensor,
    CameraSensorCfg,
    MujocoBackend,
    SensorContext,
    SensorSet,
    SimBackend,
    SimPictures,
)
from crazyflow_ros.sensors.camera_model import Chip

EYE = CameraSensorCfg(
    name="eye", camera_name="fpv_cam:0", width=48, height=32, renderer="rays",
    data_types=("rgb", "depth", "segmentation"),
)  # fmt: skip
POS = np.array([[0.9, 1.0, 0.9], [0.73, 1.4, 0.95]])
QUAT = np.array([[0, 0, 0.8, 0.6], [0, 0, 0, 1]])
VEL = np.array([[0.2, 0.6, -0.1], [0.9, 0.1, 0.2]])
ANG_VEL = np.array([[0.3, -0.4, 1.2], [0.5, 1.0, 5.0]])
"""In the axes of the drones."""


def moved(time: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions and attitudes of the drones at a time [s]."""
    start = Rotation.from_quat(QUAT)
    turn = Rotation.from_rotvec(start.apply(ANG_VEL) * time)
    return POS + VEL * time, (turn * start).as_quat()


def put(sim: Sim, time: float) -> Any:
    """Data of the simulation with both drones in both worlds as they are at a time [s]."""
    pos, quat, vel, ang_vel = (
        jnp.broadcast_to(jnp.asarray(x, jnp.float32), (2, *x.shape))
        for x in (*moved(time), VEL, ANG_VEL)
    )
    states = sim.data.states.replace(pos=pos, quat=quat, vel=vel, ang_vel=ang_vel)
    return sim.data.replace(states=states)


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    sim = Sim(n_worlds=2, n_drones=2, drone="cf2x_L250", scene="room")
    sim.data = put(sim, 0.0)
    yield sim
    sim.close()


def scene_at(sim: Sim, time: float) -> mujoco.MjData:
    """MuJoCo's frames with the drones as they are at a time [s]."""
    model, data = sim.mj_model, mujoco.MjData(sim.mj_model)
    mocap = model.body_mocapid[[model.body(f"drone:{i}").id for i in range(2)]]
    data.mocap_pos[mocap], quat = moved(time)
    data.mocap_quat[mocap] = quat[:, [3, 0, 1, 2]]
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    return data


@pytest.mark.parametrize(
    "matrix",
    [pytest.param(None, marks=pytest.mark.soak), (14.5, 0.0, 22.0, 0.0, 15.0, 16.0, 0.0, 0.0, 1.0)],
)
def test_flow_is_that_of_moved_points(sim: Sim, matrix: tuple[float, ...] | None) -> None:
    """Through fisheyes, of which one sees more than half of the world around it.

    It is that of walls, of the other drone, of the sky, and of the drone's own parts.
    """
    cfg = replace(
        EYE, data_types=("flow", "depth", "segmentation"), distortion_model="equidistant",
        distortion=(0.06, -0.02, 0.004, -5e-4), intrinsic_matrix=matrix,
    )  # fmt: skip
    pictures = SimPictures(sim, replace(cfg, camera_name="fpv_cam"))
    of_each: Any = jax.jit(pictures)(sim.data)
    taken = jax.tree.map(lambda x: x[:, 0], of_each)
    camera = sim.mj_model.camera("fpv_cam:0").id
    optics = RayCamera.of(cfg, sim.mj_model, camera).optics
    lens = optics.lens()
    depth, geom = (
        np.asarray(taken.depth[0, ..., 0], float),
        np.asarray(taken.segmentation[0])[..., 0],
    )
    nothing = geom < 0
    far = np.where(nothing, 1e9, depth)
    assert (lens.z is None) == (matrix is None)
    seen = np.stack([lens.x * far, lens.y * far, (-1.0 if lens.z is None else lens.z) * far], -1)
    now = scene_at(sim, 0.0)
    axes = now.cam_xmat[camera].reshape(3, 3)
    point = now.cam_xpos[camera] + seen @ axes.T

    def pixels(time: float) -> np.ndarray:
        then = scene_at(sim, time)
        before, after = (d.geom_xmat[geom].reshape(*geom.shape, 3, 3) for d in (now, then))
        local = np.einsum("...ji,...j->...i", before, point - now.geom_xpos[geom])
        there = then.geom_xpos[geom] + np.einsum("...ij,...j->...i", after, local)
        there[nothing] = point[nothing]
        seen = (there - then.cam_xpos[camera]) @ then.cam_xmat[camera].reshape(3, 3)
        x, y, z = np.moveaxis(seen, -1, 0)
        return np.stack(projected(optics, x, -y, -z), axis=-1)

    step = 1e-5
    differences = (pixels(step) - pixels(-step)) / (2 * step)
    flow = np.asarray(taken.flow[0])
    np.testing.assert_allclose(flow, differences, rtol=1e-3, atol=0.02)
    owner = sim.mj_model.body_rootid[sim.mj_model.geom_bodyid]
    own, other = (owner[geom] == sim.mj_model.body(f"drone:{i}").id for i in range(2))
    assert (own & ~nothing).sum() > 3 and abs(flow[own & ~nothing]).max() < 0.02
    assert (other & ~nothing).sum() > 2 and nothing.sum() > 20 and abs(flow).max() > 20.0


def test_a_back_end_has_the_motions_of_drones_and_of_nothing_else(sim: Sim) -> None:
    bodies = [sim.mj_model.body(name).id for name in ("drone:0", "drone:1", "world")]
    found = SimBackend(sim).motions(np.array(bodies))
    turning = Rotation.from_quat(QUAT).apply(ANG_VEL)
    for part, expected in zip(found, (POS, VEL, turning)):
        np.testing.assert_allclose(part, [[*expected, [0, 0, 0]]] * 2, rtol=1e-5, atol=1e-6)


READOUT, INSTANTS = 0.04, 6


def test_rows_show_their_own_moments(sim: Sim) -> None:
    """That of colors is the mean of an exposure, see `test_a_moving_edge_is_slanted_and_soft`."""
    eye = replace(EYE, data_types=("depth", "segmentation"))
    shutter = replace(eye, exposure=0.02, readout=READOUT, instants=INSTANTS)
    taken: Any = jax.jit(SimPictures(sim, shutter))(sim.data)
    plain: Any = jax.jit(SimPictures(sim, eye))
    rows = READOUT * ((np.arange(32) + 0.5) / 32 - 0.5)
    times = READOUT * ((np.arange(INSTANTS) + 0.5) / INSTANTS - 0.5)
    pictures = [plain(put(sim, time)) for time in times]
    nearest = abs(rows[:, None] - times).argmin(axis=1)
    for kind in ("depth", "segmentation"):
        each = np.stack([getattr(p, kind)[0] for p in pictures])
        expected = each[nearest, np.arange(32)]
        found = np.asarray(getattr(taken, kind)[0])
        same = [np.isclose(found, other, rtol=1e-3).mean() for other in (expected, *each)]
        assert same[0] > 0.99 and same[0] > max(same[1:]), (kind, same)


EDGE = """
<mujoco>
  <visual><headlight active="0"/></visual>
  <asset><material name="lamp" emission="1" rgba="1 1 1 1"/></asset>
  <worldbody>
    <camera name="ahead" fovy="40"/>
    <body name="shade" pos="-2.9 0 -3.001">
      <freejoint/>
      <geom type="box" size="3 3 .001" material="lamp"/>
    </body>
  </worldbody>
</mujoco>"""


def test_a_moving_edge_is_slanted_and_soft() -> None:
    """White enters black from the left, seen with C MuJoCo's velocities."""
    exposure, readout, speed, depth = 0.05, 0.04, 9.0, 3.0
    cfg = CameraSensorCfg(
        name="eye", camera_name="ahead", width=64, height=32, renderer="rays", exposure=exposure,
        readout=readout, instants=32,
    )  # fmt: skip
    model = mujoco.MjModel.from_xml_string(EDGE)
    data = mujoco.MjData(model)
    data.qvel[0] = speed
    mujoco.mj_forward(model, data)
    sensors = SensorSet([cfg])
    sensors.initialize(MujocoBackend(model, data))
    sensors.sense()
    rgb = np.asarray(sensors["eye"].data.rgb[0], float).mean(axis=-1) / 255
    focal = 16 / np.tan(np.radians(20.0))
    column, row = np.meshgrid(np.arange(64), np.arange(32))
    edge = 31.5 + focal * 0.1 / depth  # now; 0.1 m to the right of the axis
    passes = (column - edge) * depth / (focal * speed)
    middle = readout * ((row + 0.5) / 32 - 0.5)
    covered = np.clip((middle + exposure / 2 - passes) / exposure, 0.0, 1.0)
    assert ((covered > 0.1) & (covered < 0.9)).sum() > 100
    errors = abs(rgb - covered)
    assert errors.max() < 1.1 * (exposure + readout) / 32 / exposure + 0.01 and errors.mean() < 0.01


def test_mocap_bodies_have_no_velocity() -> None:
    sensors = SensorSet([replace(EYE, exposure=0.01)])
    model = build_spec("cf2x_L250", ["0"], mocap=True).compile()
    data = mujoco.MjData(model)
    sensors.initialize(MujocoBackend(model, data))
    with pytest.raises(ValueError, match="the mocap body 'drone:0' has no velocity in MuJoCo"):
        sensors.sense()


def test_noise_has_the_variance_of_electrons() -> None:
    """EMVA 1288: shot noise and the noise of reading, amplified by the gain."""
    levels = np.array([0.0, 0.05, 0.2, 0.4])
    chip = Chip(gain=1.5, full_well=900.0, read_noise=6.0)
    colors = jnp.broadcast_to(jnp.asarray(levels, jnp.float32)[:, None], (2, 200, 4, 200))
    colors = jnp.moveaxis(colors, 2, -1)
    keys = jax.random.split(jax.random.key(1))
    read = np.asarray(develop(chip, colors, keys), float)
    std = 1.5 * np.sqrt(900.0 * levels + 36.0) / 900.0
    np.testing.assert_allclose(read.mean(axis=(0, 1, 2))[1:], 1.5 * levels[1:], rtol=2e-3)
    np.testing.assert_allclose(read.std(axis=(0, 1, 2))[1:], std[1:], rtol=0.02)
    dark = read[..., 0]  # half of it is cut off
    assert (dark == 0.0).mean() == pytest.approx(0.5, abs=0.01)
    assert np.sqrt((dark[dark > 0] ** 2).mean()) == pytest.approx(std[0], rel=0.03)
    np.testing.assert_array_equal(develop(chip, colors, keys), read.astype(np.float32))
    assert abs(np.corrcoef(read[0, ..., 2].ravel(), read[1, ..., 2].ravel())[0, 1]) < 0.02


def test_gain_and_gamma_are_those_of_a_formula() -> None:
    colors = jnp.linspace(0.0, 1.0, 12).reshape(1, 2, 2, 3)
    read = develop(Chip(gain=1.7, gamma=2.2), colors, None)
    np.testing.assert_allclose(read, np.clip(1.7 * colors, 0, 1) ** (1 / 2.2), rtol=1e-5)
    np.testing.assert_array_equal(develop(Chip(), colors, None), colors)


def test_noise_repeats_with_seed_world_reset_and_picture() -> None:
    cfg = CameraSensorCfg(
        name="eye", camera_name="ahead", width=64, height=32, renderer="rays", full_well=200.0,
        read_noise=30.0,
    )  # fmt: skip
    model = mujoco.MjModel.from_xml_string(EDGE)
    worlds = [mujoco.MjData(model) for _ in range(2)]
    for data in worlds:
        mujoco.mj_forward(model, data)
    backend = MujocoBackend(model, worlds)
    context = SensorContext(backend, ())

    def camera(seed: int) -> CameraSensor:
        sensor = replace(cfg, seed=seed).build()
        sensor.initialize(backend)
        sensor.set_context(context)
        return sensor

    def taken(sensor: CameraSensor) -> np.ndarray:
        sensor.sense()
        return np.asarray(sensor.data.rgb)

    def differ(one: np.ndarray, other: np.ndarray) -> bool:
        return bool((one != other).mean() > 0.3)

    eye = camera(0)
    first, second = taken(eye), taken(eye)
    assert differ(first[0], first[1]) and differ(first, second)
    np.testing.assert_array_equal(taken(camera(0)), first)
    assert differ(taken(camera(1)), first)
    eye.reset([1])
    after = taken(eye)
    assert differ(after[1], first[1]) and differ(after[1], second[1])
    numbered = []
    for number in (7, 8, 7):
        eye.number_pictures(number)
        numbered.append(taken(eye))
    np.testing.assert_array_equal(numbered[0], numbered[2])
    assert differ(numbered[0], numbered[1])


def test_noise_of_a_sim_depends_on_world_and_tick_or_on_given_keys(sim: Sim) -> None:
    cfg = replace(EYE, data_types=("rgb",), full_well=200.0, read_noise=30.0, camera_name="fpv_cam")
    pictures: Any = jax.jit(SimPictures(sim, cfg))
    now = np.asarray(pictures(sim.data).rgb)
    np.testing.assert_array_equal(pictures(sim.data).rgb, now)
    later = sim.data.replace(core=sim.data.core.replace(steps=sim.data.core.steps + 1))
    assert (now[0] != now[1]).mean() > 0.3 and (now[:, 0] != now[:, 1]).mean() > 0.3
    assert (pictures(later).rgb != now).mean() > 0.3
    keys = jax.random.split(jax.random.key(3))
    given = pictures(sim.data, keys=keys).rgb
    assert (given != now).mean() > 0.3
    np.testing.assert_array_equal(pictures(later, keys=keys).rgb, given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distortion": (0.1,)}, "plumb_bob has 0 or 4 or 5 coefficients, got 1"),
        ({"distortion": (float("nan"),) * 4}, "must be finite, got"),
        ({"exposure": -1.0}, "exposure must be a time in s, not negative, got -1.0"),
        ({"readout": float("inf")}, "readout must be a time in s, not negative, got inf"),
        ({"instants": 0}, "instants must be from 1 to 256, got 0"),
        ({"gain": 0.0}, "gain must be positive, got 0.0"),
        ({"full_well": -1.0}, "full_well must be electrons, not negative, got -1.0"),
        ({"read_noise": 2.0}, "read_noise 2 needs a full_well, got 0"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"renderer": "opengl", "exposure": 0.1}, "'opengl' has no exposure and readout"),
        ({"renderer": "opengl", "distortion": (0.1, 0, 0, 0)}, "'opengl' has no distortion"),
        ({"renderer": "opengl", "gamma": 2.2}, "'opengl' has no gain, gamma and noise"),
        ({"renderer": "opengl", "data_types": ("flow",)}, "'opengl' takes no flow"),
    ],
)
def test_what_a_camera_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^eye: .*{message}"):
        replace(EYE, **options)

"""What drones and bodies keep together: momentum without gravity and air, and energy of pendulums.

The drones have no drag. MuJoCo computes momentum and energy from positions and velocities.
"""

import math
import shutil

import mujoco
import numpy as np
import pytest
from physics_helpers import load, started

from crazyflow_ros.drones import load_drone
from crazyflow_ros.drones.folders import folder_of
from crazyflow_ros.flight import AttitudeThrust
from crazyflow_ros.runtime import DroneState, SimulationConfig

T = 300.0  # s, no wait of a test is longer; compiling is among them
G = 9.81
KIND = "cf2x_L250"
MASS = load_drone(KIND)["mass"]
LEVEL = (0.0, 0.0, 0.0, 1.0)
CUBE = '<freejoint/><geom type="box" size="0.03 0.03 0.03" mass="{}"/>'
WEIGHTLESS = (
    '<mujoco><option gravity="0 0 0"/><worldbody>'
    + "".join(
        f'<body name="b{i}" pos="{pos}" quat="0.8 0.3 0.5 0.1">{CUBE.format(mass)}</body>'
        for i, (pos, mass) in enumerate(
            (("0.3 0.01 1", 0.02), ("0.45 0 1.02", 0.05), ("-0.3 0 1", 0.1))
        )
    )
    + "</worldbody></mujoco>"
)
LENGTH, LOAD = 0.4, 0.01
HUNG = """<mujoco><worldbody><geom type="plane" size="0 0 1"/>{drone}
<body name="load" pos="0 0 2.6"><freejoint/><geom size="0.01" mass="0.01" contype="0"
conaffinity="0"/><site name="hook"/></body></worldbody>
<tendon><spatial limited="true" range="0 0.4"><site site="CoM:cf0"/><site site="hook"/></spatial>
</tendon></mujoco>"""
PENDULUM = """<mujoco><worldbody><body pos="0 0 2"><joint type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02" mass="0.1"/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def physics(tmp_path_factory):
    """Two drones without drag."""
    folder = tmp_path_factory.mktemp("drones") / "smooth"
    shutil.copytree(folder_of(KIND), folder)
    shutil.copy(folder_of(KIND).parent / "crazyflie.xml", folder)
    figures = (folder / "drone.toml").read_text().splitlines()
    figures = ["drag = [0.0, 0.0, 0.0]" if x.startswith("drag") else x for x in figures]
    (folder / "drone.toml").write_text("\n".join(figures))
    config = SimulationConfig(
        real_time_factor=0.0,
        start_paused=True,
        drone_model=str(folder),
        ground_effect=False,
        downwash=False,
    )
    with started(config, ("cf0", "cf1")) as physics:
        yield physics


def put(physics, name, pos, vel=(0.0, 0.0, 0.0), ang_vel=(0.0, 0.0, 0.0)):
    state = DroneState(pos=pos, quat=LEVEL, vel=vel, ang_vel=ang_vel)
    if name in physics.snapshot.names:
        physics.state.set_drone_states({name: state}).result(T)
    else:
        physics.state.set_body_state(name, state).result(T)


def momenta(physics):
    """Linear and angular momentum about the origin, of each body, (n, 2, 3)."""
    model, data = physics.mirror.model, physics.mirror.copy_physics_data()
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_subtreeVel(model, data)
    roots = np.flatnonzero(model.body_parentid == 0)[1:]
    linear = data.subtree_linvel[roots] * model.body_subtreemass[roots, None]
    angular = data.subtree_angmom[roots] + np.cross(data.subtree_com[roots], linear)
    return np.stack([linear, angular], axis=1)


def test_drones_and_bodies_keep_their_momentum_in_collisions(physics):
    """The rotors stand still."""
    load(physics, WEIGHTLESS)
    put(physics, "cf0", (0.0, 0.0, 1.0), vel=(1.0, 0.0, 0.05), ang_vel=(0.2, -0.3, 0.5))
    put(physics, "cf1", (0.0, 0.3, 1.0), vel=(0.2, -1.0, 0.0))
    put(physics, "b2", (-0.3, 0.0, 1.0), vel=(1.5, 0.1, 0.0), ang_vel=(1.0, 2.0, -1.0))
    before = momenta(physics)
    scale, most = np.abs(before).sum(axis=0).max(axis=1), np.zeros_like(before)
    for _ in range(100):
        physics.step(10).result(T)
        now = momenta(physics)
        most = np.maximum(most, np.abs(now - before))
        np.testing.assert_array_less(np.abs((now - before).sum(axis=0)).max(axis=1), 1e-4 * scale)
    assert (most[:, 0].max(axis=1) > 0.05 * scale[0]).sum() >= 4  # they have collided


def load_motion(physics):
    """Height and velocity of the load."""
    state, body = physics.mirror.copy_physics_data(), physics.mirror.model.body("load")
    start = body.dofadr[0]
    height = state.qpos[physics.mirror.model.jnt_qposadr[body.jntadr[0]] + 2]
    return height, *state.qvel[start : start + 3]


def test_a_load_under_a_drone_swings_with_the_energy_of_plain_mujoco(physics):
    """A constant thrust bears both; its work is that of a weight, so energy is kept."""
    load(physics, HUNG.format(drone=""))
    hover = AttitudeThrust(0.0, 0.0, 0.0, (MASS + LOAD) * G)
    put(physics, "cf1", (5.0, 5.0, 1.0))
    put(physics, "load", (0.0, 0.0, 1.0))
    for _ in range(20):  # until the rotors have their speed
        put(physics, "cf0", (0.0, 0.0, 1.0))
        physics.command("cf0", hover)
        physics.step(50).result(T)
    turns = physics.snapshot.rotor_vel[0] * 30 / math.pi
    thrust = np.polynomial.polynomial.polyval(turns, load_drone(KIND)["rpm2thrust"]).sum()
    angle = math.radians(30)
    hung_at = np.array([LENGTH * math.sin(angle), 0, 3 - LENGTH * math.cos(angle)])
    put(physics, "cf0", (0.0, 0.0, 3.0))
    put(physics, "load", hung_at)
    body = f'<geom size="0.03" mass="{MASS}" contype="0" conaffinity="0"/>'
    body = f'<body pos="0 0 3"><freejoint/><site name="CoM:cf0"/>{body}</body>'
    model = mujoco.MjModel.from_xml_string(HUNG.format(drone=body))
    model.opt.timestep = 1 / physics.freq
    alone = mujoco.MjData(model)
    alone.qpos[7:10], alone.xfrc_applied[1, 2] = hung_at, thrust
    mass, scale = np.array([MASS, LOAD]), LOAD * G * LENGTH * (1 - math.cos(angle))

    def energy(z, speeds):
        return mass @ (G * z + (speeds**2).sum(axis=1) / 2) - thrust * z[0]

    ours, theirs = [], []
    for _ in range(600):
        hung, now = load_motion(physics), physics.snapshot
        z, speeds = np.array([now.pos[0, 2], hung[0]]), np.array([now.vel[0], hung[1:]])
        ours.append(energy(z, speeds) / scale)
        theirs.append(energy(alone.qpos[[2, 9]], alone.qvel[[[0, 1, 2], [6, 7, 8]]]) / scale)
        physics.command("cf0", hover)
        physics.step(50).result(T)
        mujoco.mj_step(model, alone, 50)
    ours, theirs = np.array(ours) - ours[0], np.array(theirs) - theirs[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    # The cable takes a fifth, which is that of MuJoCo's default solref and solimp.
    assert ours.min() > -0.25
    assert ours.max() < 1e-4


def test_a_pendulum_beside_drones_keeps_its_energy_as_in_plain_mujoco(physics):
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    model.opt.timestep = 1 / physics.freq
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    alone = mujoco.MjData(model)
    load(physics, PENDULUM)
    scale = 0.1 * G * 0.25
    mujoco.mj_forward(model, alone)
    start, ours, theirs = alone.energy.sum(), [], []
    for _ in range(300):
        mujoco.mj_step(model, alone, 100)
        mujoco.mj_forward(model, alone)
        theirs.append(alone.energy.sum())
        physics.step(100).result(T)
        now = mujoco.MjData(model)
        state = physics.mirror.copy_physics_data()
        now.qpos[:], now.qvel[:] = state.qpos[:1], state.qvel[:1]
        mujoco.mj_forward(model, now)
        ours.append(now.energy.sum())
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * scale)
    np.testing.assert_allclose(ours, start, atol=0.01 * scale)

"""What MuJoCo's arrays mean, for our drones: states, loads, sensors, rotors.

Each statement is checked on the mirror, or on the same model simulated by MuJoCo (the twin).
Expected values come from SciPy and from Newton's and Euler's equations written out here.
"""

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest
from physics_helpers import readings
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.scene import Mirror, MirrorState, build_spec

G = 9.81
UP = np.array([0.0, 0.0, G])
NAME = "cf0"


def states(n_drones: int, seed: int) -> MirrorState:
    """Random states of drones in flight; no value occurs twice, no quaternion is symmetric."""
    rng = np.random.default_rng(seed)
    return MirrorState(
        time_ns=123_456_789,
        pos=rng.normal(size=(n_drones, 3)),
        quat=Rotation.random(n_drones, rng=rng).as_quat(),
        vel=rng.normal(size=(n_drones, 3)),
        ang_vel=rng.normal(size=(n_drones, 3)),
        acc=rng.normal(size=(n_drones, 3)),
        ang_acc=rng.normal(size=(n_drones, 3)),
        rotor_angle=rng.normal(size=(n_drones, 4)),
        rotor_vel=rng.uniform(500, 2000, size=(n_drones, 4)),
    )


def mirror_of(state: MirrorState, model: mujoco.MjModel | None = None) -> Mirror:
    names = [f"cf{i}" for i in range(len(state.pos))]
    mirror = Mirror(model or build_spec(Drone.cf2x_L250, names).compile(), names)
    mirror.write(state)
    return mirror


@dataclass
class Twin:
    """One drone that MuJoCo simulates, without gravity."""

    model: mujoco.MjModel
    data: mujoco.MjData
    figures: dict

    @property
    def joint(self) -> mujoco._structs._MjDataJointViews:
        return self.data.joint(f"free:{NAME}")

    @property
    def rotation(self) -> np.ndarray:
        return self.data.body(f"drone:{NAME}").xmat.reshape(3, 3)

    @property
    def load(self) -> np.ndarray:
        """Force and torque (6,) on the base, without rotors, at its own centre of mass."""
        return self.data.xfrc_applied[self.model.body(f"drone:{NAME}").id]

    def set_attitude(self, attitude: Rotation) -> None:
        x, y, z, w = attitude.as_quat()
        self.joint.qpos[3:] = [w, x, y, z]
        mujoco.mj_forward(self.model, self.data)

    def set_rotors(self, speeds: list[float]) -> None:
        for i, speed in enumerate(speeds):
            self.data.joint(f"rotor{i}:{NAME}").qvel[0] = speed

    def step(self, n: int) -> None:
        for _ in range(n):
            mujoco.mj_step(self.model, self.data)


@pytest.fixture(params=[Drone.cf2x_L250, Drone.cf21B_500])
def twin(request: pytest.FixtureRequest) -> Twin:
    spec = build_spec(request.param, [NAME], poses=[[0, 0, 10, 0, 0, 0, 1]])
    spec.option.gravity = [0, 0, 0]
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.timestep = 5e-4
    for actuator in spec.actuators:  # rotors without friction or drive
        actuator.gainprm[0] = actuator.biasprm[2] = 0.0
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return Twin(model, data, load_drone(request.param))


# Positions and attitudes


def test_attitude_is_the_active_rotation_from_world_to_body() -> None:
    state = states(5, seed=2)
    data = mirror_of(state).copy_physics_data()
    for i in range(5):
        rotation = Rotation.from_quat(state.quat[i]).as_matrix()
        np.testing.assert_allclose(
            data.body(f"drone:cf{i}").xmat.reshape(3, 3), rotation, atol=1e-14
        )
        x, y, z, w = state.quat[i]
        np.testing.assert_array_equal(data.joint(f"free:cf{i}").qpos[3:], [w, x, y, z])
        # A point of the body, the camera, is carried along.
        np.testing.assert_allclose(
            data.camera(f"fpv_cam:cf{i}").xpos, state.pos[i] + rotation @ [0.03, 0, 0], atol=1e-14
        )


# Velocities and loads


def test_velocity_is_that_of_the_centre_of_mass_at_the_origin() -> None:
    state = states(1, seed=6)
    mirror = mirror_of(state)
    data = mirror.copy_physics_data()
    mujoco.mj_subtreeVel(mirror.model, data)
    body = mirror.model.body("drone:cf0").id
    np.testing.assert_allclose(data.subtree_com[body], state.pos[0], atol=1e-12)
    np.testing.assert_allclose(data.subtree_linvel[body], state.vel[0], atol=1e-12)


# The twin under a wrench


def lever_correction(twin: Twin, force: np.ndarray) -> np.ndarray:
    """Torque that moves a force from the base's centre of mass to the drone's."""
    body = twin.data.body(f"drone:{NAME}")
    return np.cross(body.xpos - body.xipos, force)


def free_inertia(twin: Twin) -> np.ndarray:
    """Inertia felt by torques on the base while rotors turn freely: they don't follow its yaw."""
    inertia = twin.figures["J"].copy()
    inertia[2, 2] -= 4 * twin.figures["prop_inertia"]
    return inertia


def rotor_momentum(twin: Twin, speeds: np.ndarray) -> float:
    """H of Crazyflow's first_principles, minus the rotors' angular momentum along body z."""
    return float(twin.figures["mixing_matrix"][2] @ speeds) * twin.figures["prop_inertia"]


def test_accelerations_under_a_wrench_are_those_of_first_principles(twin: Twin) -> None:
    """Inverse dynamics: with our accelerations MuJoCo needs exactly our wrench."""
    rng = np.random.default_rng(10)
    attitude = Rotation.random(rng=rng)
    twin.set_attitude(attitude)
    ang_vel, speeds, speeds_dot = rng.normal(size=3), rng.uniform(500, 2000, 4), rng.normal(size=4)
    force, torque = rng.normal(size=3), 1e-3 * rng.normal(size=3)  # world axes
    momentum, momentum_dot = rotor_momentum(twin, speeds), rotor_momentum(twin, 1e3 * speeds_dot)
    inertia, mass = twin.figures["J"], twin.figures["mass"]
    gyroscopic = np.array([ang_vel[1] * momentum, -ang_vel[0] * momentum, momentum_dot])
    body_torque = attitude.inv().apply(torque)
    ang_acc = np.linalg.solve(
        inertia, body_torque + gyroscopic - np.cross(ang_vel, inertia @ ang_vel)
    )
    twin.set_rotors(list(speeds))
    twin.joint.qvel[3:] = ang_vel
    twin.joint.qacc[:] = [*(force / mass), *ang_acc]
    for i in range(4):
        twin.data.joint(f"rotor{i}:{NAME}").qacc[0] = 1e3 * speeds_dot[i]
    mujoco.mj_inverse(twin.model, twin.data)
    needed = twin.joint.qfrc_inverse
    np.testing.assert_allclose(needed[:3], force, rtol=1e-9)  # world axes
    np.testing.assert_allclose(needed[3:], body_torque, rtol=1e-9, atol=1e-12)  # body axes


def test_one_step_under_a_wrench(twin: Twin) -> None:
    attitude = Rotation.from_quat([0.1, 0.2, 0.3, 0.9])
    twin.set_attitude(attitude)
    ang_vel, force, torque = (
        np.array([1.0, -2.0, 0.5]),
        np.array([0.1, 0.2, 0.3]),
        1e-5 * np.ones(3),
    )
    twin.joint.qvel[3:] = ang_vel
    twin.load[:3] = force
    twin.load[3:] = torque + lever_correction(twin, force)
    mujoco.mj_forward(twin.model, twin.data)
    inertia = twin.figures["J"]
    # Freely turning rotors keep their momentum about their axis: they drop out of yaw.
    expected = attitude.inv().apply(torque) - np.cross(ang_vel, inertia @ ang_vel)
    expected = np.linalg.solve(free_inertia(twin), expected)
    np.testing.assert_allclose(twin.joint.qacc[:3], force / twin.figures["mass"], rtol=1e-9)
    np.testing.assert_allclose(twin.joint.qacc[3:], expected, rtol=1e-6)


# Spinning rotors


@pytest.mark.parametrize("speeds", [[1500, 0, 1500, 0], [0, 2000, 0, 1200], [1800, 400, 900, 1000]])
def test_spinning_rotors_turn_the_drone_like_gyroscopes(twin: Twin, speeds: list[float]) -> None:
    """MuJoCo's rotors move the drone as Crazyflow's gyroscopic torque says, sign included."""
    ang_vel = np.array([2.0, -1.0, 0.3])
    twin.set_rotors(speeds)
    twin.joint.qvel[3:] = ang_vel
    inertia = twin.figures["J"]
    spin = twin.figures["prop_inertia"]
    yaw_signs = twin.figures["mixing_matrix"][2]

    def derivative(_: float, state: np.ndarray) -> np.ndarray:
        rate, rotors = state[:3], state[3:]
        momentum = rotor_momentum(twin, rotors)
        gyroscopic = np.array([rate[1] * momentum, -rate[0] * momentum, 0.0])
        rate_dot = np.linalg.solve(free_inertia(twin), gyroscopic - np.cross(rate, inertia @ rate))
        # Nothing turns a rotor about its axis: its speed in the world stays.
        return np.concatenate([rate_dot, yaw_signs * rate_dot[2]])

    expected = solve_ivp(
        derivative, (0, 0.2), [*ang_vel, *speeds], method="DOP853", rtol=1e-10, atol=1e-10
    ).y[:, -1]
    twin.step(400)
    rotors = [twin.data.joint(f"rotor{i}:{NAME}").qvel[0] for i in range(4)]
    np.testing.assert_allclose(twin.joint.qvel[3:], expected[:3], atol=1e-5)
    np.testing.assert_allclose(rotors, expected[3:], atol=1e-5)
    assert spin * 2000 * 2.0 / inertia[0, 0] * 0.2 > 0.1  # the effect is not a small one


def test_angular_momentum_and_energy_of_a_free_drone_stay(twin: Twin) -> None:
    twin.set_rotors([1800, 400, 900, 1000])
    twin.joint.qvel[3:] = [2.0, -1.0, 0.3]

    def angular_momentum() -> np.ndarray:
        rotors = np.array([twin.data.joint(f"rotor{i}:{NAME}").qvel[0] for i in range(4)])
        body = twin.figures["J"] @ twin.joint.qvel[3:] - [0, 0, rotor_momentum(twin, rotors)]
        return twin.rotation @ body

    def energy() -> float:
        mujoco.mj_energyVel(twin.model, twin.data)
        return twin.data.energy[1]

    mujoco.mj_forward(twin.model, twin.data)
    before, energy_before, rotation_before = angular_momentum(), energy(), twin.rotation.copy()
    twin.step(400)
    mujoco.mj_forward(twin.model, twin.data)
    assert np.abs(twin.rotation - rotation_before).max() > 0.1
    np.testing.assert_allclose(angular_momentum(), before, rtol=1e-6)
    assert energy() == pytest.approx(energy_before, rel=1e-9)


# The mirror's inertial sensors


def test_gyro_and_orientation_are_the_state() -> None:
    state = states(4, seed=11)
    mirror = mirror_of(state)
    np.testing.assert_allclose(readings(mirror, "gyro"), state.ang_vel, atol=1e-12)
    attitude = np.roll(readings(mirror, "orientation"), -1, axis=1)
    np.testing.assert_allclose(attitude, state.quat, atol=1e-12)


def test_accelerometer_measures_specific_force() -> None:
    state = states(4, seed=12)
    force = readings(mirror_of(state), "accelerometer")
    expected = Rotation.from_quat(state.quat).inv().apply(state.acc + UP)
    np.testing.assert_allclose(force, expected, atol=1e-12)


def test_lever_arm_of_an_accelerometer_off_the_centre() -> None:
    spec = build_spec(Drone.cf2x_L250, [NAME])
    arm = np.array([0.03, -0.02, 0.01])
    spec.body(f"drone:{NAME}").add_site(name="tip", pos=arm)
    spec.add_sensor(
        name="tip",
        type=mujoco.mjtSensor.mjSENS_ACCELEROMETER,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname="tip",
    )
    state = states(1, seed=14)
    mirror = mirror_of(state, spec.compile())
    omega, alpha = state.ang_vel[0], state.ang_acc[0]
    expected = Rotation.from_quat(state.quat[0]).inv().apply(state.acc[0] + UP)
    expected += np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
    np.testing.assert_allclose(mirror.copy_physics_data().sensor("tip").data, expected, atol=1e-11)


def test_sensors_equal_those_of_mujocos_own_simulation(twin: Twin) -> None:
    """Mirrored with its own accelerations, a simulated drone has MuJoCo's own sensor readings."""
    twin.model.opt.gravity[2] = -G
    twin.set_attitude(Rotation.from_quat([0.1, 0.2, 0.3, 0.9]))
    twin.joint.qvel[:] = [1, 2, 3, 4, 5, 6]
    twin.set_rotors([1800, 400, 900, 1000])
    twin.load[:] = [0.1, 0.2, 0.3, 1e-5, 2e-5, 3e-5]
    mujoco.mj_forward(twin.model, twin.data)
    mirror = Mirror(twin.model, [NAME])
    joint = twin.joint
    rotors = [twin.data.joint(f"rotor{i}:{NAME}") for i in range(4)]
    mirror.write(
        MirrorState(
            time_ns=0,
            pos=joint.qpos[None, :3],
            quat=np.roll(joint.qpos[None, 3:], -1, axis=1),
            vel=joint.qvel[None, :3],
            ang_vel=joint.qvel[None, 3:],
            acc=joint.qacc[None, :3],
            ang_acc=joint.qacc[None, 3:],
            rotor_angle=np.array([[rotor.qpos[0] for rotor in rotors]]),
            rotor_vel=np.array([[rotor.qvel[0] for rotor in rotors]]),
        )
    )
    np.testing.assert_allclose(
        mirror.copy_physics_data().sensordata, twin.data.sensordata, rtol=1e-9
    )

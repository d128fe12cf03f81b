"""The mirror: consistency for readers, the lock, control inputs, requests to the physics."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import mujoco
import numpy as np
import pytest
from physics_helpers import applied_wrenches, readings

from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.scene import Controls, Mirror, MirrorState, build_spec

NAMES = ["cf0", "cf1", "cf2"]
N = len(NAMES)
T = 60.0  # s, no wait of a test is longer


class Physics:
    """Stands for the physics thread: carries requests out at once."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        self.initial: MirrorState | None = None
        self.set: list[MirrorState] = []
        self.log: list[str] = []
        self.applied: list[Controls] = []

    def apply_controls(self, names: Sequence[str], controls: Controls) -> None:
        assert tuple(names) == self.mirror.names
        self.applied.append(controls)

    def controls(self, names: Sequence[str]) -> Controls:
        assert tuple(names) == self.mirror.names
        return self.applied[-1] if self.applied else Controls(np.zeros((N, 4)), [])

    def set_state(self, state: MirrorState, controls: Controls) -> Future[None]:
        self.set.append(state)
        self.apply_controls(self.mirror.names, controls)
        self.mirror.write(state)
        return done()

    def capture_initial_state(self) -> Future[None]:
        self.log.append("capture")
        return done()

    def reset(self) -> Future[None]:
        self.log.append("reset")
        self.mirror.notify_reset(True)
        return done()

    def notify_reset(self) -> Future[None]:
        self.log.append("notify")
        self.mirror.notify_reset(False)
        return done()


def done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


@pytest.fixture
def mirror() -> Mirror:
    return Mirror(build_spec(Drone.cf2x_L250, NAMES).compile(), NAMES)


@pytest.fixture
def physics(mirror: Mirror) -> Physics:
    mirror.requests = Physics(mirror)
    return mirror.requests


def numbered(k: int) -> MirrorState:
    """A state that says `k` everywhere, so that a mix of two states shows."""
    value = float(k)
    return MirrorState(
        time_ns=k * 1_000_000_000,
        pos=np.full((N, 3), value),
        quat=np.tile([0.0, 0.0, np.sin(value), np.cos(value)], (N, 1)),
        vel=np.full((N, 3), value),
        ang_vel=np.full((N, 3), value),
        acc=np.full((N, 3), value),
        ang_acc=np.full((N, 3), value),
        rotor_angle=np.full((N, 4), value),
        rotor_vel=np.full((N, 4), value),
    )


def in_thread(function: Callable[[], object], timeout: float = T) -> bool:
    """Run in another thread; whether it came to an end."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(timeout)
    return not thread.is_alive()


# State and time


def test_starts_at_the_initial_poses(mirror: Mirror) -> None:
    data = mirror.copy_physics_data()
    height = -load_drone(Drone.cf2x_L250)["geometry"]["foot_z"]
    assert data.body("drone:cf1").xpos[2] == pytest.approx(height)
    assert data.time == 0
    np.testing.assert_allclose(readings(mirror, "accelerometer"), [[0, 0, 9.81]] * N, atol=1e-12)


def test_order_is_that_of_the_names() -> None:
    model = build_spec(Drone.cf2x_L250, NAMES).compile()
    names = ["cf2", "cf0", "cf1"]
    mirror = Mirror(model, names)
    state = numbered(0)
    state.pos[:, 0] = [20, 0, 10]
    state.ang_vel[:, 2] = [0.2, 0.0, 0.1]
    state.rotor_vel[:] = np.array([[2], [0], [1]]) * 100 + np.arange(4)
    mirror.write(state)
    data = mirror.copy_physics_data()
    for i in range(N):
        assert data.body(f"drone:cf{i}").xpos[0] == 10 * i
        assert data.sensor(f"gyro:cf{i}").data[2] == pytest.approx(0.1 * i)
        assert [data.joint(f"rotor{j}:cf{i}").qvel[0] for j in range(4)] == [
            100 * i + j for j in range(4)
        ]
    assert mirror.names == ("cf2", "cf0", "cf1")


def test_other_joints_of_the_scene_stay(tmp_path: Path) -> None:
    scene = tmp_path / "gate.xml"
    scene.write_text(
        "<mujoco><worldbody><body><joint name='gate' type='slide' ref='0.5'/>"
        "<geom size='.1'/></body></worldbody></mujoco>"
    )
    mirror = Mirror(build_spec(Drone.cf2x_L250, NAMES, scene=scene).compile(), NAMES)
    for k in range(3):
        mirror.write(numbered(k))
        data = mirror.copy_physics_data()
        assert data.joint("gate").qpos[0] == 0.5
        assert data.body("drone:cf2").xpos[0] == k


def test_a_model_without_the_drones_is_refused() -> None:
    model = build_spec(Drone.cf2x_L250, NAMES).compile()
    with pytest.raises(ValueError, match="free:cf7"):
        Mirror(model, ["cf0", "cf7"])
    model = build_spec(Drone.cf2x_L250, NAMES, mocap=True).compile()
    with pytest.raises(ValueError, match="free:cf0"):
        Mirror(model, NAMES)
    spec = build_spec(Drone.cf2x_L250, NAMES)
    spec.worldbody.add_body(name="drone:statue")
    with pytest.raises(ValueError, match="the scene has a body 'drone:statue'"):
        Mirror(spec.compile(), NAMES)


# Locking


def test_readers_see_one_state_or_another_but_no_mixture(mirror: Mirror) -> None:
    mirror.write(numbered(0))

    def check(data: mujoco.MjData) -> None:
        k = data.time
        assert (data.xpos[data.body("drone:cf2").id] == k).all()
        assert (data.qvel == k).all()
        assert (data.sensor("gyro:cf2").data.round(6) == k).all()

    ended = threading.Event()

    def read_data() -> set[float]:
        data, seen = mirror.copy_physics_data(), set()
        while len(seen) < 50 and not ended.is_set():
            check(mirror.copy_physics_data(data))
            seen.add(data.time)
        return seen

    def read_together() -> set[float]:
        data, other, seen = mirror.copy_physics_data(), mirror.copy_physics_data(), set()
        while len(seen) < 50 and not ended.is_set():
            with mirror.mutex:
                first = mirror.copy_physics_data(data).time
                check(mirror.copy_physics_data(other))
                assert other.time == first
            seen.add(first)
        return seen

    k, deadline = 0, time.monotonic() + T
    with ThreadPoolExecutor() as readers:
        reads = [readers.submit(read_data), readers.submit(read_together)]
        while not all(read.done() for read in reads) and time.monotonic() < deadline:
            k += 1
            mirror.write(numbered(k))
        ended.set()
    assert all(len(read.result()) == 50 for read in reads)


def test_holding_the_lock_keeps_the_state(mirror: Mirror) -> None:
    mirror.write(numbered(1))
    with mirror.mutex:
        assert in_thread(lambda: mirror.write(numbered(2)))  # the physics does not wait
        assert mirror.copy_physics_data().time == 1
        with mirror.mutex:  # re-entrant
            assert readings(mirror, "gyro")[0, 0] == pytest.approx(1.0)
        other = threading.Thread(target=mirror.copy_physics_data, daemon=True)
        other.start()
        assert mirror.copy_physics_data().time == 1
    other.join(T)
    assert mirror.copy_physics_data().time == 2


def test_the_lock_is_released_after_an_error(mirror: Mirror) -> None:
    with pytest.raises(KeyError), mirror.mutex:
        raise KeyError
    assert in_thread(mirror.copy_physics_data)
    mirror.write(numbered(1))
    assert mirror.copy_physics_data().time == 1


# Reading


def test_copies_are_of_the_right_kind(mirror: Mirror) -> None:
    mirror.write(numbered(3))
    destination = mujoco.MjData(mirror.model)
    destination.qpos[:] = destination.ctrl[:] = destination.xfrc_applied[:] = 7
    assert mirror.copy_physics_data(destination) is destination
    fresh = mirror.copy_physics_data()
    for field in ("time", "qpos", "ctrl", "xfrc_applied", "sensordata"):
        np.testing.assert_array_equal(getattr(destination, field), getattr(fresh, field))
    copied = mirror.copy_physics_model()
    copied.opt.gravity[2] = 0
    assert mirror.model.opt.gravity[2] == -9.81


def test_a_copy_can_be_collided_and_simulated_on(mirror: Mirror) -> None:
    state = numbered(0)
    state.pos[:] = [[0, 0, 0.01], [0, 0, 1], [0.09, 0, 1]]
    mirror.write(state)
    data = mirror.copy_physics_data()
    mujoco.mj_collision(mirror.model, data)
    pairs = {frozenset(mirror.model.geom(g).name for g in contact.geom) for contact in data.contact}
    assert pairs == {
        frozenset({"floor", "col_box:cf0"}),
        frozenset({"col_box:cf1", "col_box:cf2"}),
    }
    mujoco.mj_step(mirror.model, data)
    assert mirror.copy_physics_data().ncon == 0


def test_data_of_another_model_is_refused(mirror: Mirror, physics: Physics) -> None:
    other = mujoco.MjData(build_spec(Drone.cf2x_L250, ["cf0"]).compile())
    for use in (
        mirror.copy_physics_data,
        mirror.apply_control_data,
        mirror.overwrite_physics_data,
    ):
        with pytest.raises(ValueError, match="another model"):
            use(other)
    assert not physics.applied and not physics.set


# Control inputs


def loaded(mirror: Mirror, seed: int) -> mujoco.MjData:
    """Data with numbers of their own in all inputs of all drones."""
    rng, source = np.random.default_rng(seed), mujoco.MjData(mirror.model)
    source.ctrl[:] = rng.uniform(0, 2000, source.ctrl.shape)
    for name in NAMES:
        source.joint(f"free:{name}").qfrc_applied[:] = rng.normal(size=6) * ([1] * 3 + [1e-3] * 3)
        for body in ("drone", *(f"rotor{i}" for i in range(4))):
            load = rng.normal(size=6) * ([1] * 3 + [1e-3] * 3)
            source.body(f"{body}:{name}").xfrc_applied[:] = load
    return source


INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied")


def test_rotor_commands_are_handed_on_as_a_copy_within_their_range(
    mirror: Mirror, physics: Physics
) -> None:
    source = mujoco.MjData(mirror.model)
    source.ctrl[:] = np.arange(12)
    source.ctrl[:2] = -10, 1e9
    mirror.apply_control_data(source)
    source.ctrl[:] = -1
    (controls,) = physics.applied
    highest = mirror.model.actuator("rotor1:cf0").ctrlrange[1]
    expected = [0, highest, *range(2, 12)]
    np.testing.assert_array_equal(controls.rotor_speed.ravel(), expected)
    assert not controls.loads


def test_wrenches_have_the_effect_they_have_in_mujoco(mirror: Mirror, physics: Physics) -> None:
    """All loads that MuJoCo knows, against the accelerations that MuJoCo itself gives them."""
    rng = np.random.default_rng(20)
    mirror.apply_control_data(loaded(mirror, 20))  # they turn with the drones afterwards
    state = numbered(0)
    state.pos[:] = [[0, 0, 10], [5, 0, 10], [0, 5, 10]]
    state.quat[:] = rng.normal(size=(N, 4))
    state.quat[:] /= np.linalg.norm(state.quat, axis=1, keepdims=True)
    mirror.write(state)
    (controls,) = physics.applied
    data = mirror.copy_physics_data()
    for name, expected in zip(NAMES, applied_wrenches(mirror.model, data, NAMES)):
        rotation = data.body(f"drone:{name}").xmat.reshape(3, 3)
        total = sum(load.wrench(rotation) for load in controls.loads if load.drone == name)
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-15)


def test_bad_controls_are_refused_as_a_whole_with_their_names(
    mirror: Mirror, physics: Physics
) -> None:
    source = mujoco.MjData(mirror.model)
    source.actuator("rotor2:cf1").ctrl[0] = np.nan
    source.body("drone:cf2").xfrc_applied[3] = np.inf
    source.joint("free:cf0").qfrc_applied[5] = np.nan
    with pytest.raises(ValueError, match="finite") as caught:
        mirror.apply_control_data(source)
    for name in ("rotor2:cf1", "drone:cf2", "free:cf0"):
        assert name in str(caught.value)
    assert "rotor1:cf1" not in str(caught.value)
    assert not physics.applied


def test_joint_torques_on_rotors_are_refused(mirror: Mirror, physics: Physics) -> None:
    source = mujoco.MjData(mirror.model)
    source.joint("rotor3:cf1").qfrc_applied[0] = 1e-3
    with pytest.raises(ValueError, match="rotor3:cf1"):
        mirror.apply_control_data(source)
    assert not physics.applied


@pytest.mark.parametrize(
    ("part", "name", "field"),
    [("body", "slab", "xfrc_applied"), ("joint", "s", "qfrc_applied"), ("actuator", "a", "ctrl")],
)
def test_inputs_of_the_world_are_refused(tmp_path: Path, part: str, name: str, field: str) -> None:
    scene = tmp_path / "gate.xml"
    scene.write_text(
        "<mujoco><worldbody><body name='slab'><joint name='s' type='slide'/><geom size='.1'/>"
        "</body></worldbody><actuator><motor name='a' joint='s'/></actuator></mujoco>"
    )
    mirror = Mirror(build_spec(Drone.cf2x_L250, NAMES, scene=scene).compile(), NAMES)
    mirror.requests = Physics(mirror)
    data = mirror.copy_physics_data()
    mirror.apply_control_data(data)
    getattr(getattr(data, part)(name), field)[0] = 0.1
    with pytest.raises(ValueError, match=f"{field} of {name} must be zero"):
        mirror.apply_control_data(data)


# Requests to the physics


def test_overwriting_hands_the_state_to_the_physics(mirror: Mirror, physics: Physics) -> None:
    source = mujoco.MjData(mirror.model)
    rng = np.random.default_rng(21)
    source.qpos[:] = rng.normal(size=mirror.model.nq)
    source.qvel[:] = rng.normal(size=mirror.model.nv)
    mirror.overwrite_physics_data(source)
    (state,) = physics.set
    for i, name in enumerate(NAMES):
        free = source.joint(f"free:{name}")
        np.testing.assert_array_equal(state.pos[i], free.qpos[:3])
        w, x, y, z = free.qpos[3:] / np.linalg.norm(free.qpos[3:])
        np.testing.assert_allclose(state.quat[i], [x, y, z, w])
        np.testing.assert_array_equal(state.vel[i], free.qvel[:3])
        np.testing.assert_array_equal(state.ang_vel[i], free.qvel[3:])
        rotors = [source.joint(f"rotor{j}:{name}") for j in range(4)]
        assert list(state.rotor_angle[i]) == [rotor.qpos[0] for rotor in rotors]
        assert list(state.rotor_vel[i]) == [rotor.qvel[0] for rotor in rotors]


def test_a_copy_put_back_is_the_same_state(mirror: Mirror, physics: Physics) -> None:
    before = numbered(5)
    mirror.write(before)
    mirror.overwrite_physics_data(mirror.copy_physics_data())
    (state,) = physics.set
    assert state.time_ns == before.time_ns
    for field in ("pos", "quat", "vel", "ang_vel", "acc", "ang_acc", "rotor_angle", "rotor_vel"):
        np.testing.assert_allclose(getattr(state, field), getattr(before, field), atol=1e-15)


@pytest.mark.parametrize(
    ("array", "joint", "values"),
    [("qpos", "free:cf1", [0, 0, 1, 0, 0, 0, 0]), ("qvel", "rotor0:cf1", np.nan)],
)
def test_what_is_no_state_is_refused(
    mirror: Mirror, physics: Physics, array: str, joint: str, values: float | list[float]
) -> None:
    source = mujoco.MjData(mirror.model)
    getattr(source.joint(joint), array)[:] = values
    with pytest.raises(ValueError, match="cf1: states must be finite"):
        mirror.overwrite_physics_data(source)
    assert not physics.set


def test_keyframe(mirror: Mirror, physics: Physics) -> None:
    initial = mirror.copy_physics_data().qpos.copy()
    mirror.write(numbered(9))
    mirror.apply_control_data(loaded(mirror, 9))
    assert not mirror.apply_keyframe("nonsense")
    assert not physics.set
    assert mirror.apply_keyframe("home")
    assert len(physics.set) == 1
    data = mirror.copy_physics_data()
    np.testing.assert_allclose(data.qpos, initial, atol=1e-15)
    assert not data.qvel.any()
    assert not any(getattr(data, name).any() for name in INPUTS)  # as after mj_resetDataKeyframe


def test_overwriting_applies_the_inputs_too(mirror: Mirror, physics: Physics) -> None:
    source = loaded(mirror, 22)
    mirror.overwrite_physics_data(source)
    for name in INPUTS:
        copied = getattr(mirror.copy_physics_data(), name)
        np.testing.assert_array_equal(copied, getattr(source, name))
    source.ctrl[3] = np.nan
    with pytest.raises(ValueError, match="ctrl of rotor3:cf0 must be finite"):
        mirror.overwrite_physics_data(source)
    assert len(physics.set) == 1


def test_capture_and_reset(mirror: Mirror, physics: Physics) -> None:
    calls = []

    def callback(fill_initial_state: bool) -> None:
        with pytest.raises(RuntimeError, match="release"):  # it is held
            mirror.apply_keyframe("home")
        calls.append(fill_initial_state)

    mirror.set_reset_callback(callback)
    mirror.capture_initial_state()
    mirror.reset_world_state()
    assert physics.log == ["capture", "reset"]
    mirror.reset_world_state(fill_initial_state=False)
    assert physics.log == ["capture", "reset", "notify"]
    assert calls == [True, False]
    mirror.set_reset_callback(None)
    mirror.reset_world_state()
    assert len(calls) == 2


def test_requests_need_a_physics_thread_and_a_free_lock(mirror: Mirror) -> None:
    with pytest.raises(RuntimeError, match="no physics thread"):
        mirror.apply_keyframe("home")
    mirror.requests = Physics(mirror)
    with mirror.mutex, pytest.raises(RuntimeError, match="release"):
        mirror.reset_world_state()
    assert mirror.requests.log == []

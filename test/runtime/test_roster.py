"""Drones that come and go while the others fly, and scenes that are exchanged."""

import asyncio
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from physics_helpers import until

from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import (
    DroneState,
    InvalidState,
    PhysicsThread,
    ResetScope,
    SimulationConfig,
    TimedWrench,
)

T = 300.0  # s, no wait of a test is longer; compiling is among them
FIELDS = ("pos", "quat", "vel", "ang_vel", "rotor_vel", "rotor_angle")


@pytest.fixture(scope="module")
def physics():
    """One for all tests, with room for a third drone."""
    config = SimulationConfig(real_time_factor=0.0, start_paused=True, max_drones=3)
    physics = PhysicsThread(config, ("cf0", "cf1"))
    physics.every(100, lambda snapshot: None, "event")
    physics.start()
    yield physics
    physics.stop()
    assert physics.failed is None, physics.failed


@pytest.fixture(autouse=True)
def start(physics):
    """As at the start."""
    physics.state.reset(ResetScope.all).result(T)


def state_of(snapshot, name):
    i = snapshot.names.index(name)
    return np.hstack([getattr(snapshot, field)[i] for field in FIELDS])


def hover(physics, name):
    x, y, _ = physics.snapshot.pos[physics.snapshot.names.index(name)]
    physics.command(name, Pose((x, y, 1.0), 0.0))


def test_drones_come_and_go_and_the_others_fly_on_bit_for_bit(physics):
    flights, changes = [], []
    for visitor in (False, True):
        physics.state.reset(ResetScope.all).result(T)
        hover(physics, "cf1")
        physics.step(200).result(T)
        if visitor:
            changes.clear()
            before = physics.snapshot
            after = physics.world.spawn("guest", (3.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0)).result(T)
            assert after.names == physics.snapshot.names == ("cf0", "cf1", "guest")
            assert after.tick == before.tick and after.epoch == before.epoch
            np.testing.assert_allclose(state_of(after, "guest")[:7], (3, 0, 2, 0, 0, 0, 1))
            hover(physics, "guest")
            physics.step(50).result(T)
            there = physics.world.despawn("cf0").result(T)
            assert there.names == ("cf1", "guest")
            with pytest.raises(ValueError, match="there is no drone 'cf0', only cf1, guest"):
                physics.command("cf0", Pose((0, 0, 1), 0.0))
            flown = physics.step(250).result(T)
            assert 0.5 < state_of(flown, "guest")[2] < 1.9  # on its way down, under control
            data = physics.mirror.copy_physics_data()
            gyro = data.sensor("gyro:guest").data
            np.testing.assert_allclose(gyro, flown.ang_vel[1], atol=1e-6)
            body = physics.mirror.model.body("drone:guest").id
            np.testing.assert_allclose(data.xpos[body], state_of(flown, "guest")[:3], atol=1e-6)
        else:
            physics.step(50).result(T)
            flown = physics.step(250).result(T)
        flights.append(state_of(flown, "cf1"))
    np.testing.assert_array_equal(*flights)
    back = physics.state.reset(ResetScope.spawned).result(T)
    assert back.names == ("cf0", "cf1") and back.tick == flown.tick
    np.testing.assert_array_equal(state_of(back, "cf1"), flights[1])


def test_a_free_slot_has_no_memory_of_who_was_there(physics):
    physics.world.spawn("one", (3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)).result(T)
    hover(physics, "one")
    first = state_of(physics.step(300).result(T), "one")
    physics.world.despawn("one").result(T)
    physics.state.reset(ResetScope.time).result(T)
    physics.world.spawn("other", (3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)).result(T)
    assert not state_of(physics.step(100).result(T), "other")[13:17].any()  # told nothing
    physics.state.reset(ResetScope.state | ResetScope.time).result(T)
    hover(physics, "other")
    np.testing.assert_array_equal(state_of(physics.step(300).result(T), "other"), first)


def test_beyond_the_slots_it_compiles_anew_and_nothing_moves(physics, caplog):
    hover(physics, "cf0")
    physics.step(200).result(T)
    physics.world.spawn("third").result(T)
    hover(physics, "third")
    before = physics.step(100).result(T)
    assert not caplog.text
    after = physics.world.spawn("fourth").result(T)
    assert "no room for 4 drones: compiling for 6, time goes on" in caplog.text
    assert after.tick == before.tick and after.names == ("cf0", "cf1", "third", "fourth")
    for name in before.names:
        np.testing.assert_array_equal(state_of(after, name), state_of(before, name))
    floor = after.pos[:, :2]
    apart = np.linalg.norm(floor[:, None] - floor, axis=-1) + 9 * np.eye(4)
    assert apart.min() > 0.4  # each has a place of its own
    flown = physics.step(1000).result(T)
    np.testing.assert_allclose(flown.pos[[0, 2], 2], 1.0, atol=0.1)  # controllers go on
    assert flown.pos[[1, 3], 2].max() < 0.02


def test_what_cannot_be_is_refused_and_changes_nothing(physics):
    before, model = physics.snapshot, physics.mirror.model
    for request, message in (
        (lambda: physics.world.spawn("cf0"), "there is a drone 'cf0' already"),
        (lambda: physics.world.spawn("a b"), "letters, digits and underscores"),
        (lambda: physics.world.spawn("x", np.zeros(7)), "pose must be finite"),
        (lambda: physics.world.spawn("x", np.zeros(3)), r"shape \(7,\)"),
        (lambda: physics.world.despawn("x"), "there is no drone 'x'"),
        (lambda: physics.world.set_scene("nowhere"), "there is no scene 'nowhere'"),
        (lambda: physics.world.set_scene(None, lambda spec: spec.worldbody.add_geom()), "geom"),
    ):
        with pytest.raises(ValueError, match=message):
            request().result(T)
        assert physics.snapshot.names == before.names and physics.mirror.model is model
    with pytest.raises(InvalidState, match="all drones cannot be removed"):
        physics.world.despawn("cf0", "cf1").result(T)
    physics.world.despawn("cf1").result(T)
    with pytest.raises(InvalidState, match="cf0 is the last drone"):
        physics.world.despawn("cf0").result(T)


def test_objects_stay_in_the_scene_when_drones_come(physics):
    def add_box(spec):
        spec.worldbody.add_body(name="box", pos=[2, 0, 0.5]).add_geom(
            name="box", type=6, size=[0.1, 0.1, 0.5]
        )

    before = physics.mirror.model
    old_data = physics.mirror.copy_physics_data()
    physics.world.set_scene(edit=add_box).result(T)
    assert physics.mirror.model is not before
    assert physics.mirror.model.body("box").pos[2] == 0.5
    with pytest.raises(ValueError, match="another model"):
        physics.mirror.copy_physics_data(old_data)
    physics.world.spawn("third").result(T)
    assert physics.mirror.model.body("box").pos[0] == 2.0
    physics.world.set_scene().result(T)
    with pytest.raises(KeyError):
        physics.mirror.model.body("box")


def test_drones_collide_with_objects_wherever_those_are_put(physics):
    def table(z):
        def add(spec):
            body = spec.worldbody.add_body(name="table", pos=[*physics.snapshot.pos[0, :2], z])
            body.add_geom(name="table", type=6, size=[0.3, 0.3, 0.05])

        return add

    height = physics.snapshot.pos[0, 2]
    physics.world.set_scene(edit=table(0.35)).result(T)
    physics.state.set_drone_states(
        {"cf0": DroneState(pos=(*physics.snapshot.pos[0, :2], 0.6))}
    ).result(T)
    for z in (0.35, 0.15):
        if z < 0.3:
            physics.world.set_scene(edit=table(z)).result(T)
        stands = physics.step(1000).result(T).pos
        np.testing.assert_allclose(stands[:, 2], [z + 0.05 + height, height], atol=1e-4)
    physics.world.set_scene().result(T)
    falls = physics.step(1000).result(T).pos
    np.testing.assert_allclose(falls[:, 2], height, atol=1e-4)


def test_what_a_drone_is_told_while_it_goes_is_dropped(physics):
    """Whoever tells it has seen it, and the drone goes before it is written down."""
    simulation, push = physics.simulation, TimedWrench((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), 9.0)
    physics.world.despawn("cf1").result(T)
    simulation.commands.post({"cf1": Pose((0, 0, 1), 0.0)})
    pushed = simulation.wrenches.post("cf1", push, "key")
    physics.step(10).result(T)
    with pytest.raises(InvalidState, match="cf1 has gone"):
        pushed.result(T)
    back = physics.world.spawn("cf1").result(T)
    np.testing.assert_allclose(physics.step(50).result(T).pos, back.pos, atol=1e-6)


class Overtaking:
    """Has changes of the drones carried out directly before what is asked for next."""

    def __init__(self, physics, monkeypatch):
        self._physics, self._gate, self._entered = physics, threading.Event(), threading.Event()
        roster = physics.world._roster
        prepare = roster.prepare

        def prepare_and_hold(*args):
            prepared = prepare(*args)
            physics.show_to(self._hold)
            return prepared

        monkeypatch.setattr(roster, "prepare", prepare_and_hold)

    def _hold(self, _):
        self._entered.set()
        assert self._gate.wait(T)

    def begin(self, change):
        """Ask for a change, and wait until all of it but the change itself is done."""
        self._gate.clear()
        self._entered.clear()
        future = change()
        assert self._entered.wait(T)
        until(self._physics.loop.requests.pending, "the change to be prepared")
        return future

    async def result(self, future, timeout):
        self._gate.set()
        return future.result(timeout)


def test_states_are_edited_as_the_drones_are_when_it_is_done(physics, monkeypatch):
    """By the services of mujoco_ros2_control, whose drone goes while they are asked for."""
    services = pytest.importorskip(
        "crazyflow_ros.ros.services.mujoco_ros2_control", reason="not installed"
    )
    messages = pytest.importorskip("mujoco_ros2_control_msgs.msg", reason="not installed")

    overtaking = Overtaking(physics, monkeypatch)
    server = services.MujocoServices(
        SimpleNamespace(
            physics=physics,
            waiting=SimpleNamespace(group=None, result=overtaking.result),
            create_service=lambda *_, **__: None,
        ),
        put_keyframe=None,
    )
    request = SimpleNamespace(free_joints=[messages.FreeJointState(name="cf1")])
    overtaking.begin(lambda: physics.world.despawn("cf0"))
    assert "Successfully" in asyncio.run(server._set_free_joints(request, SimpleNamespace()))
    np.testing.assert_array_equal(physics.snapshot.pos, np.zeros((1, 3)))
    overtaking._gate.set()
    before = physics.world.spawn("cf2")
    before.result(T)
    overtaking.begin(lambda: physics.world.despawn("cf1"))
    with pytest.raises(ValueError, match=r"Entry 0 \('cf1'\): Unknown body name\."):
        asyncio.run(server._set_free_joints(request, SimpleNamespace()))
    np.testing.assert_array_equal(physics.snapshot.pos, before.result(T).pos[1:])

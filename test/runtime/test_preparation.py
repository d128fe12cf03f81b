"""What comes into a running simulation is prepared beside it: time goes on meanwhile."""

import gc
import threading
from contextlib import contextmanager
from dataclasses import replace

import jax
import numpy as np
import pytest
from physics_helpers import hover, until

from crazyflow_ros.checks import limits
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import InvalidState, PhysicsThread, ResetScope, SimulationConfig
from crazyflow_ros.xla import compiled_files

T = 300.0  # s, no wait of a test is longer; compiling is among them
COMPILED = "/jax/core/compile/backend_compile_duration"
STANDS = np.array([0.0, 0.0, 0.02, 0.0, 0.0, 0.0, 1.0])
POSE = (5.0, 5.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@contextmanager
def simulation():
    made = PhysicsThread(SimulationConfig(max_drones=2), ("cf0",))
    made.every(100, lambda snapshot: None, "event")
    made.start()
    yield made
    made.stop()
    assert made.failed is None, made.failed


@pytest.fixture(scope="module")
def shared():
    """One for all tests that leave it as it was."""
    with simulation() as made:
        yield made


@pytest.fixture
def physics(shared):
    """As at the start, but for what is compiled."""
    shared.world.set_scene().result(T)
    shared.state.reset(ResetScope.all).result(T)
    _put(shared, STANDS)
    shared.state.capture_initial_state().result(T)
    shared.resume().result(T)
    return shared


@pytest.fixture
def own():
    """One of its own."""
    with simulation() as made:
        yield made


def boxes(n, x=3.0):
    """Adds a body with some boxes, far from the drones."""

    def edit(spec):
        body = spec.worldbody.add_body(name="boxes", pos=[x, 3, 1])
        for i in range(n):
            body.add_geom(type=6, size=[0.1, 0.1, 0.1], pos=[i, 0, 0])

    return edit


class Held:
    """An edit of a scene that waits, as compiling would."""

    def __init__(self):
        self.begun, self.gate, self.calls = threading.Event(), threading.Event(), 0

    def __call__(self, spec):
        self.calls += 1
        self.begun.set()
        assert self.gate.wait(T)
        boxes(1)(spec)


def bodies(physics):
    model = physics.mirror.model
    return [model.body(i).name for i in range(model.nbody)]


def test_the_physics_thread_compiles_nothing(physics, monkeypatch):
    threads, found = [], compiled_files.compiled

    def note(event, duration, **_):
        if event == COMPILED:
            threads.append(threading.current_thread().name)

    def compiled(*args):
        threads.append(threading.current_thread().name)
        return found(*args)

    monkeypatch.setattr(compiled_files, "compiled", compiled)

    hover(physics)
    until(lambda: physics.snapshot.pos[0, 2] > 0.5, "the drone to fly")
    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        for change in (
            lambda: physics.world.set_scene(edit=boxes(1)),
            lambda: physics.world.spawn("cf1"),
            lambda: physics.world.spawn("cf2"),
            lambda: physics.world.despawn("cf1"),
            lambda: physics.state.reset(ResetScope.all),
        ):
            tick = change().result(T).tick
            until(lambda: physics.snapshot.tick > tick + 20, "time to go on")  # noqa: B023
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert "preparation" in threads
    assert "physics" not in threads
    assert physics.snapshot.names == ("cf0",) and physics.world.obstacles.n_slots == 32


def test_time_goes_on_and_can_be_stopped_while_something_is_prepared(physics):
    held = Held()
    change = physics.world.set_scene(edit=held)
    assert held.begun.wait(T)
    begun = physics.snapshot.tick
    until(lambda: physics.snapshot.tick > begun + 50, "time to go on")
    tick = physics.pause().result(T).tick
    assert physics.step(30).result(T).tick == tick + 30
    assert not change.done() and "boxes" not in bodies(physics)
    held.gate.set()
    assert change.result(T).tick == tick + 30
    assert "boxes" in bodies(physics)
    assert physics.snapshot.tick == tick + 30


def test_what_is_given_up_is_not_carried_out(physics):
    held, second = Held(), Held()
    under_way = physics.world.set_scene(edit=held)
    queued = physics.world.set_scene(edit=second)
    assert held.begun.wait(T)
    assert under_way.cancel() and queued.cancel()
    held.gate.set()
    physics.world.spawn("after", POSE).result(T)  # comes after both
    assert not second.calls and "boxes" not in bodies(physics)
    assert "drone:after" in bodies(physics)
    until(lambda: not physics.loop.busy, "a change that was given up is under way for ever")


def test_two_at_once_are_as_one_after_the_other(physics):
    changes = [
        physics.world.set_scene(edit=boxes(3)),
        physics.world.spawn("cf1", POSE),
        physics.world.spawn("cf1", POSE),
        physics.world.despawn("cf0"),
        physics.world.despawn("cf1"),
    ]
    fine = type(None)
    errors = [type(change.exception(T)) for change in changes]
    assert errors == [fine, fine, ValueError, fine, InvalidState]
    assert physics.snapshot.names == ("cf1",)
    assert {"boxes", "drone:cf1"} < set(bodies(physics)) and "drone:cf0" not in bodies(physics)
    assert np.count_nonzero(np.asarray(physics.world.obstacles.shape) >= 0) == 3


def test_what_was_prepared_for_another_state_is_prepared_anew(physics):
    held = Held()
    change = physics.world.set_scene(edit=held)
    assert held.begun.wait(T)
    pose = np.array([1.0, 2.0, 0.5, 0.0, 0.0, 1.0, 0.0])
    physics.pause().result(T)
    _put(physics, pose)
    physics.state.capture_initial_state().result(T)  # the model's keyframe is to have it
    held.gate.set()
    change.result(T)
    assert held.calls == 2
    np.testing.assert_allclose(physics.mirror.keyframe("home").pos[0], pose[:3], atol=1e-6)


def _put(physics, pose):
    """Put the drones there as they are."""
    moved = {"pos": pose[None, :3], "quat": pose[None, 3:]}
    physics.state.edit_state(lambda: lambda now: replace(now, **moved)).result(T)


def test_a_drone_without_a_pose_is_put_where_there_is_room_in_the_end(physics, monkeypatch):
    """Another one came to that place while it was prepared."""
    roster, moved = physics.world._roster, []
    prepare = roster.prepare

    def prepare_and_move(plan, before=None):
        prepared = prepare(plan, before)
        if not moved:
            moved.append(plan.poses["guest"])
            _put(physics, moved[0])
        return prepared

    physics.pause().result(T)
    monkeypatch.setattr(roster, "prepare", prepare_and_move)
    after = physics.world.spawn("guest").result(T)
    assert np.linalg.norm(after.pos[0] - after.pos[1]) > 0.5
    np.testing.assert_allclose(after.pos[0], moved[0][:3], atol=1e-6)


def test_what_is_prepared_when_the_simulation_ends_fails(own):
    physics = own
    held = Held()
    under_way, queued = physics.world.set_scene(edit=held), physics.world.spawn("cf1")
    assert held.begun.wait(T)
    physics.stop()
    for change in (under_way, queued, physics.world.spawn("cf2")):
        with pytest.raises(InvalidState, match="the simulation has ended"):
            change.result(T)
    held.gate.set()


def test_what_fails_while_it_is_prepared_is_refused_and_leaves_no_trace(physics):
    def fail(spec):
        raise ZeroDivisionError("an edit")

    before = physics.mirror.model
    with pytest.raises(ZeroDivisionError, match="an edit"):
        physics.world.set_scene(edit=fail).result(T)
    assert physics.mirror.model is before
    physics.world.set_scene(edit=boxes(1)).result(T)
    assert "boxes" in bodies(physics)


def test_a_scene_is_read_once_and_its_file_may_change_or_go(physics, tmp_path):
    scene = tmp_path / "scene.xml"
    scene.write_text("<mujoco><worldbody><body name='first'/></worldbody></mujoco>")
    physics.world.set_scene(scene).result(T)
    scene.write_text("<mujoco><worldbody><body name='second'/></worldbody></mujoco>")
    physics.world.spawn("cf1", POSE).result(T)
    assert {"first", "drone:cf1"} <= {*bodies(physics)} and "second" not in bodies(physics)
    scene.unlink()
    physics.world.despawn("cf1").result(T)
    physics.world.set_scene(edit=boxes(1)).result(T)
    assert {"first", "boxes"} <= {*bodies(physics)}
    physics.world.set_scene("floor").result(T)


def test_code_that_is_not_needed_any_more_is_freed(own, monkeypatch):
    physics, device = own, jax.devices()[0].client
    # The last programs stay loaded otherwise.
    monkeypatch.setattr(compiled_files, "_files", None)

    shapes = {
        slots: Obstacles.create(["box"], [[0.1] * 3], [[5.0, 5.0, 1.0]], slots=slots)
        for slots in (3, 4)
    }

    def flown(slots):
        physics.world.set_obstacles(shapes[slots]).result(T)
        tick = physics.snapshot.tick
        until(lambda: physics.snapshot.tick > tick + 20, "time to go on")
        gc.collect()
        return len(device.live_executables())

    first, second = [flown(slots) for slots in shapes]
    assert second == first

    # With as many slots nothing is prepared, so nothing has to be waited for.
    held = Held()
    physics.world.set_scene(edit=held)
    assert held.begun.wait(T)
    moved = shapes[4].replace(pos=shapes[4].pos + 1)
    physics.world.set_obstacles(moved).result(T)
    np.testing.assert_allclose(physics.world.obstacles.pos[0], [6.0, 6.0, 2.0])
    physics.state.reset(ResetScope.all).result(T)  # the drones are those of the start
    held.gate.set()


def test_the_number_of_drones_and_of_shapes_is_limited(physics, monkeypatch):
    monkeypatch.setattr(limits, "DRONES", 1)
    physics.world.spawn("cf1", POSE).result(T)  # max_drones is 2
    with pytest.raises(ValueError, match="there are 2 drones already"):
        physics.world.spawn("cf2", POSE).result(T)
    monkeypatch.setattr(limits, "OBSTACLES", 2)
    before = physics.mirror.model
    with pytest.raises(ValueError, match="collide with at most 2 shapes, got 3"):
        physics.world.set_scene(edit=boxes(3)).result(T)
    assert physics.mirror.model is before


def test_a_way_through_what_was_added_later_is_doubted_by_name(physics, caplog):
    """The drone flies on all the same: it does not avoid what is in its way."""

    def build(spec):
        spec.worldbody.add_body(name="mast").add_geom(type=5, size=[0.1, 1, 0], pos=[1, 3, 1])

    physics.pause().result(T)
    physics.world.set_scene(edit=build).result(T)
    physics.fly({"cf0": Pose((0.0, 6.0, 1.0), 0.0)}).result(T)
    assert "leads through" not in caplog.text  # beside it
    physics.fly({"cf0": Pose((2.0, 6.0, 1.0), 0.0)}).result(T)
    assert "cf0: the way to [2.0, 6.0, 1.0] m leads through mast, first at [0.9" in caplog.text
    caplog.clear()
    physics.world.set_scene().result(T)
    physics.fly({"cf0": Pose((2.0, 6.0, 1.1), 0.0)}).result(T)
    assert "leads through" not in caplog.text

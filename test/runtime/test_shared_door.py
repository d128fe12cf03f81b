"""A door that flies some of the drones, beside others that the commander flies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import physics_helpers
import pytest

from crazyflow_ros.drones import load_drone
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import rows
from crazyflow_ros.flight import Land, Pose, Takeoff
from crazyflow_ros.runtime import (
    DoorStatus,
    InvalidState,
    Level,
    PhysicsThread,
    SimulationConfig,
    Snapshot,
)
from crazyflow_ros.scene import Mirror

T = 120.0  # s, no wait is longer
WEIGHT = load_drone("cf2x_L250")["mass"] * 9.81
NAMES, BY_DOOR = ("cf0", "cf1", "cf2"), ("cf2", "cf0")  # not in the order of the drones
AIR = np.array([[x, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0] for x in range(3)])
CONFIG = SimulationConfig(initial_poses=AIR, start_paused=True, max_drones=4)
SPEEDS = np.array([1570.0, 1540.0, 1560.0, 1550.0])  # rad/s
until = partial(physics_helpers.until, timeout=T)


class Source:
    """A door in the process: its drones obey what is written here."""

    name = "source"

    def __init__(self, period: int = 2) -> None:
        self.period = period
        self.level, self.command = np.zeros(2), np.zeros((2, 4))
        self.shown: list[Snapshot] = []
        self.below: list[np.ndarray] = []
        self.forgotten: list[list[int]] = []

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        self.shown.append(snapshot)
        self.below.append(mirror.range(snapshot.names))

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        assert snapshot.names == BY_DOOR
        command[:], level[:] = self.command, self.level
        return True

    def forget(self, drones: np.ndarray) -> None:
        self.forgotten.append(drones.tolist())
        self.level[drones] = Level.held

    def interrupt(self) -> None:
        pass

    def set_paused(self, paused: bool) -> None:
        pass

    def close(self) -> None:
        pass

    def status(self) -> DoorStatus:
        return DoorStatus((), 0, 0, 0)


Start = Callable[..., PhysicsThread]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[PhysicsThread] = []

    def start(source: Source, config: SimulationConfig = CONFIG) -> PhysicsThread:
        physics = PhysicsThread(config, NAMES, source, door_drones=BY_DOOR)
        physics.start()
        started.append(physics)
        return physics

    yield start
    for physics in started:
        physics.stop()
        assert physics.failed is None
        assert not physics.statistics().failures


def state_command(pos: np.ndarray) -> np.ndarray:
    return rows(Level.state, np.array([[*pos, *[0.0] * 6, 0, 0, 0, 1, 0, 0, 0]]))


@pytest.mark.soak
def test_each_drone_flies_as_in_a_world_of_its_own_kind() -> None:
    commands = {
        Level.rotor_velocity: SPEEDS,
        Level.attitude: np.array([0.1, -0.05, 0.3, WEIGHT]),
        Level.body_rate: np.array([0.2, -0.1, 0.5, WEIGHT]),
    }
    shared = Engine(CONFIG, NAMES, n_slots=4, by_door=BY_DOOR)
    of_door = Engine(CONFIG, NAMES, by_door=NAMES)
    of_commander = Engine(CONFIG, NAMES)
    goal = AIR[1, :3] + (0.3, -0.2, 0.4)
    of_commander.set_commands(["cf1"], state_command(goal))
    (expected,) = of_commander.advance(1, [150], 0)
    for level, command in commands.items():
        numbers, levels = of_door.door_commands
        of_door.state.reset()
        numbers[:], levels[:] = command, level
        (flown,) = of_door.advance(1, [150], 0)
        shared.state.reset()
        shared.set_commands(["cf1"], state_command(goal))
        numbers, levels = shared.door_commands
        numbers[:], levels[:] = command, (level, Level.held)  # cf2 flies, cf0 is held
        (together,) = shared.advance(1, [150], 0)
        assert together.names == NAMES
        for field in ("pos", "quat", "vel", "ang_vel", "rotor_vel"):
            ours = getattr(together, field)
            np.testing.assert_allclose(ours[2], getattr(flown, field)[2], rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(ours[1], getattr(expected, field)[1], rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(together.pos[0], AIR[0, :3])
        assert np.linalg.norm(together.pos[2] - AIR[2, :3]) > 1e-3


def test_copies_of_the_mirror_have_the_rotor_speeds_that_the_door_commands(start: Start) -> None:
    source = Source()
    physics = start(source)
    source.level[:], source.command[:] = Level.rotor_velocity, SPEEDS
    physics.step(10).result(T)
    data = physics.mirror.copy_physics_data()
    for name in NAMES:
        ctrl = [data.actuator(f"rotor{i}:{name}").ctrl[0] for i in range(4)]
        np.testing.assert_allclose(ctrl, SPEEDS if name in BY_DOOR else 0.0, rtol=1e-6)
    before = physics.snapshot.rotor_vel
    data.ctrl[:] = 0.0
    data.body("drone:cf0").xfrc_applied[0] = 0.05
    physics.mirror.apply_control_data(data)
    after = physics.step(100).result(T)
    assert (after.rotor_vel[[0, 2]] >= before[[0, 2]]).all() and after.vel[0, 0] > 0.1


def test_the_door_sees_and_commands_its_own_drones_in_its_order(start: Start) -> None:
    source = Source()
    physics = start(source)
    source.level[:] = Level.rotor_velocity, Level.held
    source.command[0] = SPEEDS
    physics.step(100).result(T)
    now = physics.step(1).result(T)
    cf2, cf0 = source.shown[-1].pos
    np.testing.assert_array_equal((cf0, cf2), now.pos[[0, 2]])
    assert cf0[2] == 1.0 and not now.rotor_vel[0].any()  # held
    assert cf2[2] < 1.0 and (now.rotor_vel[2] > 1000).all()
    # Nobody commands it, and it is no drone of the door.
    assert now.pos[1, 2] < cf2[2] and not now.rotor_vel[1].any()
    np.testing.assert_allclose(source.below[-1], source.shown[-1].pos[:, 2], atol=0.05)
    assert [shown.tick for shown in source.shown[:4]] == [1, 2, 4, 6]


def test_commands_reach_the_others_and_the_refusal_names_the_door(start: Start) -> None:
    physics = start(Source())
    with pytest.raises(ValueError, match="cf0 obeys the door source alone"):
        physics.command("cf0", Pose((0.0, 0.0, 2.0), 0.0))
    answer = physics.fly({name: Takeoff(1.2, 1.0) for name in NAMES})
    physics.step(1000).result(T)
    assert answer.result(T).refused == [
        "cf0 obeys the door source alone",
        "cf2 obeys the door source alone",
    ]
    np.testing.assert_allclose(physics.snapshot.pos[:, 2], (1.0, 1.2, 1.0), atol=0.05)
    with pytest.raises(ValueError, match="gains have no effect"):
        physics.firmware.tune("cf0", "mellinger", {"attitude.kR": [1.0, 1.0, 1.0]})


def test_the_flights_of_both_repeat_to_the_bit_in_any_pieces(start: Start) -> None:
    ends = []
    for pieces in ((1500,), (1, 2, 97, 250, 1150)):
        source = Source(period=4)  # beside position controllers every 5 ticks
        physics = start(source)
        source.level[:] = Level.attitude
        source.command[:] = (0.02, 0.01, 0.0, WEIGHT)
        physics.fly({"cf1": Takeoff(1.5, 1.0)})
        for ticks in pieces:
            end = physics.step(ticks).result(T)
        ends.append(end)
        physics.stop()
    for field in ("pos", "quat", "vel", "rotor_vel"):
        np.testing.assert_array_equal(getattr(ends[0], field), getattr(ends[1], field))
    assert ends[0].pos[1, 2] == pytest.approx(1.5, abs=0.05)


def test_after_a_reset_the_door_begins_anew_and_the_others_wait(start: Start) -> None:
    source = Source()
    physics = start(source)
    source.level[:], source.command[:] = Level.rotor_velocity, SPEEDS
    physics.fly({"cf1": Land(0.0, 1.0)})
    physics.step(51).result(T)  # between two control ticks
    physics.state.reset().result(T)
    assert sorted(source.forgotten[-1]) == [0, 1]
    after = physics.step(101).result(T)
    np.testing.assert_array_equal(after.pos[[0, 2]], AIR[[0, 2], :3])  # held
    assert after.pos[1, 2] < 0.9 and not after.rotor_vel[1].any()
    physics.state.reset(drones=["cf1"]).result(T)
    assert len(source.forgotten) == 1
    physics.state.reset(drones=["cf0"]).result(T)
    assert source.forgotten[-1] == [1]


def test_drones_come_and_go_beside_those_of_the_door(start: Start) -> None:
    source = Source()
    physics = start(source)
    with pytest.raises(InvalidState, match="the door source flies cf0: it stays"):
        physics.world.despawn("cf0").result(T)
    physics.world.despawn("cf1").result(T)
    physics.world.spawn("cf3", AIR[1]).result(T)
    assert physics.snapshot.names == ("cf0", "cf2", "cf3")
    physics.fly({"cf3": Takeoff(1.3, 1.0)})
    source.level[:], source.command[:] = Level.attitude, (0.0, 0.0, 0.0, 1.1 * WEIGHT)
    after = physics.step(1500).result(T)
    assert after.pos[2, 2] == pytest.approx(1.3, abs=0.05)
    assert (after.pos[:2, 2] > 1.2).all()
    np.testing.assert_array_equal(source.shown[-1].pos, after.pos[[1, 0]])


def test_a_request_while_the_door_is_closed_is_no_fault_of_the_door(start: Start) -> None:
    class Closed(Source):
        is_closed = False

        def interrupt(self) -> None:
            if self.is_closed:
                raise OSError("bad file descriptor")

        def close(self) -> None:
            self.is_closed = True
            physics.pause()  # as another thread may do at this moment

    door = Closed()
    physics = start(door)
    physics.stop()
    assert door.is_closed
    assert not physics.statistics().failures


def test_a_door_that_flies_all_drones_leaves_no_room() -> None:
    physics = PhysicsThread(CONFIG, NAMES, Source())
    physics.start()
    with pytest.raises(InvalidState, match="the door source flies all drones: none can be added"):
        physics.world.spawn("cf3").result(T)
    physics.stop()


def test_a_checkpoint_is_for_the_same_drones_of_the_door(start: Start) -> None:
    source = Source()
    physics = start(source)
    kept = physics.state.checkpoint().result(T)
    other = PhysicsThread(CONFIG, NAMES, Source(), door_drones=("cf1", "cf2"))
    other.start()
    with pytest.raises(ValueError, match=r"a door flies the drones .*cf2.*cf0.*, here .*cf1.*cf2"):
        other.state.restore(kept).result(T)
    other.stop()
    source.level[:], source.command[:] = Level.rotor_velocity, SPEEDS
    first = physics.step(50).result(T)
    physics.state.restore(kept).result(T)
    assert source.level.tolist() == [Level.held] * 2
    source.level[:] = Level.rotor_velocity
    again = physics.step(50).result(T)
    np.testing.assert_array_equal(first.pos, again.pos)


@pytest.mark.parametrize(
    ("drones", "why"),
    [
        ((), "the door source needs drones, each once, got none"),
        (("cf0", "cf0"), "needs drones, each once, got cf0, cf0"),
        (("cf9",), "the door source: there is no drone 'cf9'"),
    ],
)
def test_a_door_needs_drones_that_exist(drones: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        PhysicsThread(CONFIG, NAMES, Source(), door_drones=drones)


def test_drones_beside_those_of_a_door_follow_states() -> None:
    changes: dict[str, Any] = vars(CONFIG) | {"control": "attitude"}
    with pytest.raises(ValueError, match="beside those of a door need control=state"):
        PhysicsThread(SimulationConfig(**changes), NAMES, Source(), door_drones=BY_DOOR)

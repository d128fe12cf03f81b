"""Simulators that share a world and a time: the bits of one, requests for all, going and coming."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import physics_helpers
import pytest
from host_flight import config
from host_network import Fleet, T
from moving_worlds import WORLDS

from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.engine.snapshot import SIZES
from crazyflow_ros.flight import Pose, Setpoint, Velocity
from crazyflow_ros.runtime import (
    BatteryCharge,
    Checkpoint,
    DroneState,
    InvalidState,
    MotorEfficiency,
    PhysicsThread,
    ResetScope,
    Snapshot,
    StepAborted,
    TimedWrench,
    Wind,
)
from crazyflow_ros.scene import MirrorState

Owned = dict[str, tuple[str, ...]]
NAMES = ("cf0", "cf1", "cf2", "cf3")
OWNED: Owned = {"left": ("cf0", "cf3"), "right": ("cf1", "cf2")}
ALONE: Owned = {"alone": NAMES}
CONFIG = config(len(NAMES))
until = partial(physics_helpers.until, timeout=T)
Fly = Callable[[Owned], Fleet]


@pytest.fixture
def fleet() -> Iterator[Fly]:
    fleets: list[Fleet] = []

    def start(owned: Owned) -> Fleet:
        fleets.append(Fleet(CONFIG, owned, NAMES))
        return fleets[-1]

    yield start
    for one in fleets:
        one.stop()


def bits(thread: PhysicsThread) -> bytes:
    state = thread.snapshot
    return b"".join(getattr(state, name).tobytes() for name in SIZES) + str(state.epoch).encode()


def same_bits(fleet: Fleet) -> bytes:
    """The bits of all simulators, which are the same."""
    (one,) = {bits(thread) for thread in fleet.threads.values()}
    return one


def goals(seed: int) -> dict[str, Setpoint]:
    """Places so near to each other that drones meet on the way."""
    places = np.random.default_rng(seed).uniform((-0.2, -0.2, 0.4), (0.2, 0.2, 0.7), (4, 3))
    return {name: Pose(tuple(place), 0.1 * seed) for name, place in zip(NAMES, places)}


def eventful(fleet: Fleet) -> list[bytes]:
    """A flight with all kinds of requests, in turns at all simulators; returns bits on the way."""
    seen = []

    def fly(n_ticks: int) -> None:
        fleet.step(n_ticks)
        seen.append(same_bits(fleet))

    def ask(request: Callable[[PhysicsThread], Any]) -> None:
        request(fleet.asked).result(T)

    fly(9)
    fleet.command(goals(1))
    fly(390)  # they meet, between two runs of the controllers
    fleet.owner("cf1").apply_wrench("cf1", TimedWrench((0.01, 0, 0.02), (0, 0, 1e-6), 0.063))
    fleet.command({"cf0": Velocity((0.3, 0.0, 0.0), 0.2)})
    fly(123)
    ask(
        lambda x: x.state.set_drone_states(
            {"cf2": DroneState(pos=(0.4, 0.4, 0.9), vel=(0, 0, 0.3))}
        )
    )
    ask(lambda x: x.world.disturb(Wind((0.5, 0.0, 0.0))))
    ask(lambda x: x.world.disturb(MotorEfficiency("cf3", 1, 0.95)))
    ask(lambda x: x.firmware.tune("cf0", "mellinger", {"state.kp": (0.5, 0.5, 1.3)}))
    fly(50)
    ask(lambda x: x.state.edit_state(lambda: lambda now: lifted(now, 3)))
    fleet.command(goals(2))
    fly(200)
    ask(lambda x: x.state.reset(drones=["cf1"]))
    ask(lambda x: x.firmware.restart("cf2", charged=True))
    fly(77)
    ask(lambda x: x.state.capture_initial_state())
    ask(lambda x: x.world.despawn("cf2"))
    fly(20)
    ask(lambda x: x.state.reset(ResetScope.all))
    fleet.command(goals(3))
    fly(300)
    return seen


def lifted(now: Snapshot, row: int) -> MirrorState:
    pos = now.pos.copy()
    pos[row, 2] += 0.25
    return replace(now, pos=pos)


def test_two_simulators_have_the_bits_of_one(fleet: Fly) -> None:
    assert eventful(fleet(OWNED)) == eventful(fleet(ALONE))


def test_bodies_move_alike_in_all_simulators(tmp_path: Path) -> None:
    world = tmp_path / "stack.xml"
    world.write_text(WORLDS["stack"].replace('mass="0.2"', 'mass="0.004"'))
    seen = []
    for owned in (OWNED, ALONE):
        fleet = Fleet(replace(CONFIG, scene=str(world)), owned, NAMES)
        try:
            fleet.command({"cf0": Pose((0.1, 0.0, 0.5), 0.0), "cf1": Pose((0.0, 0.1, 0.5), 0.0)})
            fleet.step(200)
            there = DroneState(pos=(0.1, 0.1, 0.8), vel=(0.0, 0.0, -0.5))
            fleet.asked.state.set_body_state("b2", there).result(T)
            if owned is OWNED:
                check_alone(fleet.asked)
            fleet.step(200)
            (bodies,) = {t.snapshot.bodies.state.tobytes() for t in fleet.threads.values()}
            seen.append((same_bits(fleet), bodies))
        finally:
            fleet.stop()
    assert seen[0] == seen[1]


def test_robots_obey_alike_in_all_simulators() -> None:
    seen = []
    for owned in (OWNED, ALONE):
        fleet = Fleet(replace(CONFIG, scene="robots"), owned, NAMES)
        try:
            fleet.step(50)
            robots = fleet.asked.robots
            robots.command_joints({"arm_joint1": 0.5}, {"left_wheel_joint": 3.0}).result(T)
            with pytest.raises(ValueError, match="no joint with an actuator 'arm_joint7'"):
                robots.command_joints(effort={"arm_joint7": 0.5}).result(T)
            fleet.step(200)
            (bodies,) = {t.snapshot.bodies.state.tobytes() for t in fleet.threads.values()}
            arm = fleet.asked.mirror.copy_physics_data().joint("arm_joint1").qpos[0]
            assert arm == pytest.approx(0.5, abs=0.05)
            seen.append(bodies)
        finally:
            fleet.stop()
    assert seen[0] == seen[1]


def check_alone(physics: Any) -> None:
    """What only a single simulator can do with bodies is refused, and changes nothing."""
    with pytest.raises(InvalidState, match="a force on a body is not possible with several hosts"):
        physics.apply_wrench("b2", TimedWrench((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 1.0))
    with pytest.raises(ValueError, match="'b7'"):
        physics.apply_wrench("b7", TimedWrench((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 1.0))
    for refused in (physics.world.attach("cf0", "b2"), physics.world.detach("cf0")):
        with pytest.raises(InvalidState, match="what a drone holds is not possible with several"):
            refused.result(T)

    def moved(now: Snapshot) -> MirrorState:
        assert now.bodies is not None
        return replace(now, bodies=replace(now.bodies, state=now.bodies.state + 0.1))

    with pytest.raises(InvalidState, match="a keyframe of bodies is not possible with several"):
        physics.state.edit_state(lambda: moved).result(T)


def test_a_third_simulator_need_not_own_drones(fleet: Fly) -> None:
    shared = fleet({"left": ("cf0",), "middle": (), "right": NAMES[1:]})
    shared.command(goals(1))
    shared.step(99)
    alone = fleet(ALONE)
    alone.command(goals(1))
    alone.step(99)
    assert same_bits(shared) == same_bits(alone)


def test_time_runs_and_stands_still_for_all_whoever_is_asked(fleet: Fly) -> None:
    shared = fleet(OWNED)
    left, right = shared.threads.values()
    left.resume().result(T)
    until(lambda: right.snapshot.tick > 200, "time to run")
    assert not right.paused
    stopped = right.pause().result(T)
    left.show_to(lambda _: None).result(T)
    assert left.paused and left.snapshot.tick == stopped.tick
    assert left.switch(paused=True).result(T)[0] is False
    same_bits(shared)
    steps = left.step(10**6)
    until(lambda: right.snapshot.tick > stopped.tick + 100, "steps")
    right.pause().result(T)
    with pytest.raises(StepAborted):
        steps.result(T)
    steps = right.step(10**6)
    until(lambda: right.snapshot.tick > left.snapshot.tick - 100, "steps")
    steps.cancel()
    until(steps.done, "steps to end")
    with pytest.raises(InvalidState, match="not paused"):
        left.resume().result(T) and right.step(3).result(T)
    left.set_real_time_factor(1e-6).result(T)  # the next tick is due in half an hour
    left.pause().result(T)
    same_bits(shared)


def test_time_that_jumps_back_while_it_runs_goes_on_in_rounds(fleet: Fly) -> None:
    shared = fleet(OWNED)
    left, right = shared.threads.values()
    left.resume().result(T)
    until(lambda: right.snapshot.tick > 5000, "time to run")
    right.state.reset(ResetScope.all).result(T)
    assert left.pause().result(T).tick < 5000
    left.show_to(lambda _: None).result(T)
    same_bits(shared)


def test_a_checkpoint_has_the_commands_of_all_and_is_that_of_one(fleet: Fly) -> None:
    kept: list[Checkpoint] = []
    for one in (fleet(OWNED), fleet(ALONE)):
        one.command(goals(1))
        one.step(101)
        one.owner("cf2").apply_wrench(
            "cf2", TimedWrench((0, 0, 0.01), (0, 0, 0), 3.0, in_body=True)
        )
        one.step(1)
        kept.append(one.asked.state.checkpoint().result(T))
    shared, alone = kept
    assert shared.about["orders"].keys() == set(NAMES)
    assert json.dumps(shared.about, sort_keys=True) == json.dumps(alone.about, sort_keys=True)
    for name, array in alone.arrays.items():
        assert np.array_equal(array, shared.arrays[name]), name


def test_one_that_dies_stops_the_others_and_comes_back_from_a_checkpoint(fleet: Fly) -> None:
    shared = fleet(OWNED)
    shared.command(goals(1))
    shared.step(100)
    kept = shared.asked.state.checkpoint().result(T)
    shared.step(200)
    as_if_nothing_were = same_bits(shared)
    left = shared.threads["left"]
    left.resume().result(T)
    until(lambda: left.snapshot.tick > 400, "time to run")
    shared.network.cut("right")
    until(lambda: left.paused, "the left one to stop")
    with pytest.raises(InvalidState, match="the simulator right has gone"):
        left.resume().result(T)
    shared.threads["right"].stop(T)
    right = shared.start("right")
    with pytest.raises(InvalidState, match=r"different states: left is at tick .* right is at"):
        right.resume().result(T)
    with pytest.raises(InvalidState, match="different states"):
        left.step(1).result(T)
    right.state.restore(kept).result(T)
    shared.step(200)
    assert same_bits(shared) == as_if_nothing_were


def test_states_that_differ_are_found_in_the_next_round(fleet: Fly) -> None:
    shared = fleet(OWNED)
    shared.step(20)

    def pushed(sender: str, message: bytes) -> bytes:
        """Let a force act on a drone of the right one, as the left one sees it."""
        if sender == "right" and b'"until"' in message:
            return message[:-4] + np.float32(1e-3).tobytes()
        return message

    shared.network.change = pushed
    with pytest.raises(InvalidState, match="left and right round differently"):
        shared.asked.step(100).result(T)
    assert shared.threads["left"].snapshot.tick < 40
    shared.network.change = lambda _, message: message
    shared.asked.state.reset().result(T)
    shared.step(20)
    same_bits(shared)


def test_drones_obey_those_that_own_them(fleet: Fly) -> None:
    shared = fleet(OWNED)
    left, right = shared.threads["left"], shared.threads["right"]
    shared.step(1)
    with pytest.raises(ValueError, match="cf1 obeys the simulator right alone"):
        left.command("cf1", goals(1)["cf1"])
    with pytest.raises(ValueError, match="cf1 obeys the simulator right alone"):
        left.apply_wrench("cf1", TimedWrench((0, 0, 1), (0, 0, 0), 1.0))
    assert left.fly({"cf1": goals(1)["cf1"]}).result(T).refused == [
        "cf1 obeys the simulator right alone"
    ]
    right.world.spawn("cf9", (2, 2, 1, 0, 0, 0, 1)).result(T)
    with pytest.raises(ValueError, match="cf9 obeys the simulator right"):
        left.command("cf9", goals(1)["cf0"])
    right.command("cf9", goals(1)["cf0"])
    shared.step(20)
    same_bits(shared)


def test_the_mirror_of_each_simulator_pushes_its_own_drones(fleet: Fly) -> None:
    """One after the other, each with what it has read before."""
    flights = []
    for owned in (OWNED, ALONE):
        shared = fleet(owned)
        for name, force in (("cf0", 1.0), ("cf3", 0.9), ("cf1", 0.8), ("cf0", 0.7)):
            mirror = shared.owner(name).mirror
            data = mirror.copy_physics_data()
            data.body(f"drone:{name}").xfrc_applied[2] = force
            data.joint(f"free:{name}").qfrc_applied[5] = 1e-5 * force
            mirror.apply_control_data(data)
            shared.step(20)
        flights.append(same_bits(shared))
        if owned is OWNED:
            data = shared.owner("cf1").mirror.copy_physics_data()
            assert data.body("drone:cf1").xfrc_applied[2] == 0.8
            data.body("drone:cf0").xfrc_applied[2] = 0.1
            with pytest.raises(ValueError, match="cf0 obeys the simulator left alone"):
                shared.owner("cf1").mirror.apply_control_data(data)
    assert flights[0] == flights[1]


def test_impossible_requests_are_refused_by_all_and_change_nothing(fleet: Fly) -> None:
    shared = fleet(OWNED)
    shared.step(5)
    before = same_bits(shared)
    asked = shared.asked
    for refused, text in (
        (asked.state.reset(drones=["cf7"]), "cf7"),
        (asked.state.set_drone_states({"cf0": DroneState(pos=(np.nan, 0, 0))}), "pos of cf0"),
        (asked.world.disturb(BatteryCharge("cf0", 0.5)), "no batteries"),
        (asked.firmware.tune("cf0", "mellinger", {"nothing": 1.0}), "no gain"),
        (asked.state.edit_state(lambda: 1 / 0), "division"),
    ):
        with pytest.raises((ValueError, ZeroDivisionError), match=text):
            refused.result(T)
    for impossible in (
        asked.world.set_scene("floor"),
        asked.world.set_obstacles(None),
        asked.hold("a reason"),
    ):
        with pytest.raises(InvalidState, match="not possible with several hosts"):
            impossible.result(T)
    shared.step(1)
    assert same_bits(shared) != before and plain(shared.asked.snapshot.tick) == 7


def test_time_begins_when_all_are_there(
    fleet: Fly, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crazyflow_ros.hosts.rounds._WAITING", 0.0)
    shared = fleet(OWNED)
    shared.stop()
    caplog.clear()
    left = shared.start("left")
    asked = left.step(7)
    until(lambda: "time waits for the simulator right" in caplog.text, "a warning")
    assert not asked.done() and left.snapshot.tick == 1
    shared.start("right")
    assert asked.result(T).tick == 8

"""The thread of the sensors, fed by hand: nothing is left out that somebody waits for."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from physics_double import RATE, TIMEOUT, Physics
from physics_helpers import until
from sensor_msgs.msg import Image

from crazyflow_ros.ros.sensors import sensors_file
from crazyflow_ros.ros.sensors.camera_topics import CameraTopics
from crazyflow_ros.ros.sensors.device_topics import Scene
from crazyflow_ros.ros.sensors.sensor_threads import SensorThread
from crazyflow_ros.runtime import Life, Snapshot
from crazyflow_ros.sensors.rendering import Room

N = 300  # snapshots, more than wait at most
NEW = ({"cf0": (0, 0)},)
"""What topics are told of a drone that was never put back."""


class Topics:
    """Notes what it is given, once it may."""

    def __init__(self, *, needs_scene: bool, fails_in: str = "") -> None:
        self.needs_scene, self.listeners = needs_scene, {("cf0", 0)}
        self.fails_in = fails_in
        self.may, self.begun, self.done = (threading.Event() for _ in range(3))
        self.told: list[Any] = []
        self.last = 0

    def look(self, drones: Sequence[str]) -> None:
        pass

    def names(self, drones: Sequence[str]) -> list[str]:
        return [f"{drone}/camera" for drone in drones]

    def __str__(self) -> str:
        return "all/bad"

    def initialize(self, scene: Any) -> None:
        self._fail("initialize")
        self.told.append(scene.names)

    def reset(self, lives: Mapping[str, Life]) -> None:
        self._fail("reset")
        self.told.append({drone: tuple(life) for drone, life in lives.items()})

    def _fail(self, where: str) -> None:
        if where == self.fails_in:
            raise ValueError(where)

    def sense(self, snapshots: Sequence[Snapshot], scene: Any) -> None:
        self._fail("sense")
        self.begun.set()
        assert self.may.wait(TIMEOUT)
        assert len(snapshots) == 1 or not self.needs_scene
        self.told += [snapshot.tick for snapshot in snapshots]
        if self.told[-1] == self.last:
            self.done.set()


def thread(physics: Physics, topics: dict[int, Topics], *, is_awaited: bool) -> SensorThread:
    node: Any = physics
    sensors = SensorThread(node, "sensors", is_awaited=is_awaited)
    for rate, some in topics.items():
        sensors.add(some, rate)  # type: ignore[arg-type]
    sensors.look(physics.drones, set())
    return sensors


@pytest.mark.parametrize("needs_scene", [False, True])
def test_the_physics_waits_and_nothing_is_left_out(needs_scene: bool) -> None:
    physics, fast, slow = Physics(), Topics(needs_scene=needs_scene), Topics(needs_scene=True)
    thread(physics, {RATE: fast, RATE // 10: slow}, is_awaited=True)
    fast.last, slow.last = N, N
    slow.may.set()
    feeder = threading.Thread(target=physics.feed, args=(range(1, N + 1),), daemon=True)
    feeder.start()
    assert fast.begun.wait(TIMEOUT)
    assert feeder.is_alive()  # for there is no room
    fast.may.set()
    feeder.join(TIMEOUT)
    assert fast.done.wait(TIMEOUT) and slow.done.wait(TIMEOUT)
    assert fast.told == [("cf0",), *NEW, *range(1, N + 1)]
    assert slow.told == [("cf0",), *NEW, *range(10, N + 1, 10)]
    assert not physics.warnings


def test_a_row_ends_at_a_reset_and_where_drones_come() -> None:
    physics, topics = Physics(), Topics(needs_scene=False)
    thread(physics, {RATE: topics}, is_awaited=True)
    topics.last = 13
    physics.feed([1])
    assert topics.begun.wait(TIMEOUT)
    physics.feed([2, 3])
    physics.put_back(["cf0"])
    physics.feed([4])
    physics.use(["cf0", "cf1"])
    physics.lives.note_drones(physics.snapshot)
    physics.feed([5, 6])
    physics.put_back(["cf0"])
    physics.put_back(["cf1"])
    physics.feed([12, 13])
    topics.may.set()
    assert topics.done.wait(TIMEOUT)
    assert topics.told == [
        ("cf0",), {"cf0": (0, 0)}, 1, 2, 3, {"cf0": (1, 3)}, 4,
        ("cf0", "cf1"), {"cf0": (1, 3), "cf1": (0, 4)}, 5, 6,
        {"cf0": (2, 6), "cf1": (1, 6)}, 12, 13,
    ]  # fmt: skip


def test_cameras_are_not_waited_for_and_it_is_said() -> None:
    physics, topics = Physics(), Topics(needs_scene=True)
    thread(physics, {RATE: topics}, is_awaited=False)
    topics.may.set()
    topics.last = 1
    physics.feed([1])
    assert topics.done.wait(TIMEOUT)
    topics.last = N
    for begin in (topics.begun, topics.done, topics.may):
        begin.clear()
    physics.feed([2])
    assert topics.begun.wait(TIMEOUT)
    physics.feed(range(3, N + 1))
    topics.may.set()
    assert topics.done.wait(TIMEOUT)
    assert topics.told == [("cf0",), *NEW, 1, 2, N]
    assert physics.warnings[0].startswith(f"sensors: readings were left out {N - 3} times so far")


def test_cameras_are_waited_for_in_steps() -> None:
    physics, topics = Physics(), Topics(needs_scene=True)
    thread(physics, {RATE: topics}, is_awaited=False)
    topics.last, physics.stepping = N, True
    feeder = threading.Thread(target=physics.feed, args=(range(1, N + 1),), daemon=True)
    feeder.start()
    assert topics.begun.wait(TIMEOUT)
    assert feeder.is_alive()  # for there is no room
    topics.may.set()
    feeder.join(TIMEOUT)
    assert topics.done.wait(TIMEOUT)
    assert topics.told == [("cf0",), *NEW, *range(1, N + 1)] and not physics.warnings


def test_a_picture_that_was_not_due_before_time_stands_still_is_taken_then() -> None:
    physics, topics = Physics(), Topics(needs_scene=True)
    topics.may.set()
    camera = thread(physics, {RATE // 10: topics}, is_awaited=False)
    camera.look(physics.drones, {"cf0/camera"})
    for last, ticks in ((7, range(1, 8)), (10, range(8, 14)), (16, range(14, 17))):
        topics.last = last
        physics.feed(ticks)
        physics.paused = True
        new = {"cf0/camera"} if last == 16 else set[str]()
        camera.look(physics.drones, new)
        assert topics.done.wait(TIMEOUT)
        topics.done.clear()
        physics.paused = False
    assert topics.told == [("cf0",), *NEW, 7, 10, 16]


def test_what_is_left_out_while_a_first_picture_is_prepared_is_no_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Something may be compiled for it, and how long that takes is said."""
    monkeypatch.setattr("crazyflow_ros.xla.start_up._PERIOD", 0.01)
    physics, topics = Physics(), Topics(needs_scene=True)
    thread(physics, {RATE: topics}, is_awaited=False)
    topics.last = N
    physics.feed([1])
    assert topics.begun.wait(TIMEOUT)
    until(lambda: len(physics.infos) > 2, "the progress", TIMEOUT)
    physics.feed(range(2, N + 1))
    topics.may.set()
    assert topics.done.wait(TIMEOUT)
    assert topics.told == [("cf0",), *NEW, 1, N] and not physics.warnings
    until(lambda: "left out" in physics.infos[-1], "what was left out", TIMEOUT)
    *progress, last = physics.infos
    assert all(text.startswith("still preparing sensors, for ") for text in progress)
    assert last == f"sensors: {N - 2} readings were left out while they were prepared"


def test_what_hangs_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crazyflow_ros.ros.sensors.sensor_threads._PATIENCE", 0.01)
    physics, topics = Physics(), Topics(needs_scene=False)
    thread(physics, {RATE: topics}, is_awaited=True)
    topics.last = N
    physics.feed([1])
    assert topics.begun.wait(TIMEOUT)
    physics.feed(range(2, N + 1))
    topics.may.set()
    assert topics.done.wait(TIMEOUT)
    assert topics.told == [("cf0",), *NEW, 1, *range(N - 63, N + 1)]


@pytest.mark.parametrize("where", ["initialize", "reset", "sense"])
def test_what_fails_is_named_and_left_out(where: str) -> None:
    physics, bad = Physics(), Topics(needs_scene=False, fails_in=where)
    good, also_good = Topics(needs_scene=False), Topics(needs_scene=True)
    node: Any = physics
    sensors = SensorThread(node, "sensors", is_awaited=True)
    for topics in (good, bad, also_good):
        sensors.add(topics, RATE)  # type: ignore[arg-type]
        topics.may.set()
        topics.last = 3
    sensors.look(physics.drones, set())
    physics.feed([1])
    physics.put_back(["cf0"])
    physics.feed([2, 3])
    for topics in (good, also_good):
        assert topics.done.wait(TIMEOUT)
        assert topics.told == [("cf0",), *NEW, 1, {"cf0": (1, 1)}, 2, 3]
    assert physics.warnings == [f"sensors: all/bad left out: ValueError('{where}')"]  # once
    physics.use(["cf0", "cf1"])
    bad.fails_in, bad.last = "", 4
    physics.feed([4])
    assert bad.done.wait(TIMEOUT)  # in another scene it is tried again


def test_a_picture_of_the_time_before_a_reset_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eye.yaml").write_text("all: {eye: {type: camera, data_types: [depth]}}")
    file = sensors_file.load(str(tmp_path / "eye.yaml"), ["cf0"], "cf2x_L250")
    physics: Any = Physics()
    topics = CameraTopics(physics, file, file.devices[0])
    published: list[int] = []
    monkeypatch.setattr(CameraTopics, "_message", lambda *_: Image())
    monkeypatch.setattr(topics, "_publish", lambda *_: published.append(physics.tick))
    topics.listeners[("cf0", 0)] = "heard"
    scene = Scene(physics.mirror.model, ["cf0"], Room())
    topics.initialize(scene)
    for began_anew in (False, True):

        def draw(*_: Any, to: int = 0 if began_anew else 51) -> None:
            physics.tick = to

        monkeypatch.setattr(topics, "_sense", draw)
        physics.tick = 50
        topics.sense([physics.snapshot], scene)
    assert published == [51]

"""Files of checkpoints with any bytes in them, and files that are complete or not there."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import signal
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crazyflow_ros.checks.archive import write_arrays
from crazyflow_ros.checks.files import write_file
from crazyflow_ros.control import Control
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.flight import (
    AltitudeHold,
    Arm,
    AttitudeThrust,
    Brake,
    Emergency,
    FlightConfig,
    FlightState,
    FlyTrajectory,
    FullState,
    Goal,
    GoTo,
    HoldHeight,
    Hover,
    HoverOn,
    Land,
    LevelOut,
    PolynomialTrajectory,
    Pose,
    Position,
    Raw,
    Recover,
    Setpoint,
    Spiral,
    Stop,
    SwitchOff,
    Takeoff,
    Trajectory,
    Velocity,
    VelocityWorld,
)
from crazyflow_ros.flight.commander import Commander, Order
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.moving_goal import TimedPose
from crazyflow_ros.flight.plan import Plan, Rules, StartState
from crazyflow_ros.flight.setpoint_values import (
    from_commander,
    from_setpoint,
    to_commander,
    to_setpoint,
)
from crazyflow_ros.runtime import (
    Checkpoint,
    PhysicsThread,
    SimulationConfig,
    TimedWrench,
)
from crazyflow_ros.runtime.checkpoint_content import check_kept, check_orders

T = 120.0  # s, no wait of a test is longer
NAMES = ("cf0", "cf1", "cf2")
MUTATIONS = 10_000 if "CRAZYFLOW_ROS_SOAK" in os.environ else 1_000
RESTORED = 25  # of those that are accepted


@pytest.fixture(scope="module")
def physics() -> Iterator[PhysicsThread]:
    physics = PhysicsThread(SimulationConfig(real_time_factor=0.0, start_paused=True), NAMES)
    physics.start()
    zeros = np.zeros((2, 3))
    trajectory = Trajectory([10**8, 10**9], [(0, 0, 1), (1, 0, 1)], [0, 1], zeros, zeros)
    for name, setpoint in zip(NAMES, (Pose((0, 0, 1), 0.3), Velocity((0, 1, 0), 0.5), trajectory)):
        physics.command(name, setpoint)
    physics.apply_wrench("cf0", TimedWrench((0.01, 0, 0), (0, 0, 0), 1.0, ramp_down=0.5))
    physics.apply_wrench("cf1", TimedWrench((0.01, 0, 0), (0, 0, 0), np.inf), key=("a", "b"))
    physics.step(20).result(T)
    yield physics
    physics.stop()
    assert physics.failed is None, physics.failed


@pytest.fixture(scope="module")
def good(physics: PhysicsThread) -> Checkpoint:
    return physics.state.checkpoint().result(T)


def load(content: bytes) -> Checkpoint:
    return Checkpoint.load(io.BytesIO(content))


def plain(checkpoint: Checkpoint) -> str:
    return json.dumps(checkpoint.about)


# Mutations.

ODD = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**400, 0.5, -0.0, 1e9, 1e308, np.nan),
    *(np.inf, -np.inf, "", "cf0", "cf7", "x" * 10_000, "\0", "Pose", [], {}, [[]], [0, 0, 0]),
    *(["a"], {"kind": "Pose"}, {"a": {}}, [[1, 2], [3]], [None] * 3, {"cf0": 1}, [1e400] * 3),
)


def flip_bit(rng: random.Random, content: bytes) -> bytes:
    bit = rng.randrange(8 * len(content))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def truncate(rng: random.Random, content: bytes) -> bytes:
    start = rng.choice((0, 0, 0, rng.randrange(len(content))))
    return content[start : rng.randrange(len(content))]


def splice(rng: random.Random, content: bytes) -> bytes:
    """Bytes of one place in another one, or random ones."""
    size, to = rng.randrange(1, 64), rng.randrange(len(content))
    start = rng.randrange(len(content))
    what = rng.choice((content[start : start + size], rng.randbytes(size), b"\xff" * size))
    return content[:to] + what + content[to + rng.choice((0, size)) :]


def swap_members(rng: random.Random, content: bytes) -> bytes:
    """Contents under other names, with right checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names, out = list(members), io.BytesIO()
    a, b = rng.sample(names, 2)
    how = rng.randrange(4)
    if how == 0:
        members[a], members[b] = members[b], members[a]
    elif how == 1:
        members[a] = flip_bit(rng, members[a])
    elif how == 2:
        del members[a]
    else:
        members[rng.choice(("x", "../x.npy", "about", "about.npy.npy"))] = members[a]
    packing = rng.choice((zipfile.ZIP_STORED,) * 9 + (zipfile.ZIP_DEFLATED,))
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return out.getvalue()


def edit_array(rng: random.Random, good: Checkpoint) -> Checkpoint:
    name = rng.choice(list(good.arrays))
    array = good.arrays[name].copy()
    if rng.random() < 0.3:
        return Checkpoint(good.arrays | {name: np.resize(array, rng.randrange(1, 50))}, good.about)
    if array.dtype.kind == "f":
        array.flat[rng.randrange(array.size)] = rng.choice((np.nan, np.inf, 1e30, -1e8, 1e-40, 7.5))
    else:
        array.flat[rng.randrange(array.size)] = rng.choice((-2, 5, 2**62, -(2**63)))
    return Checkpoint(good.arrays | {name: array}, good.about)


def edit_json(rng: random.Random, good: Checkpoint) -> Checkpoint:
    about = json.loads(json.dumps(good.about))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        places = list(_places(about))
        if not places:
            break
        parent, key = rng.choice(places)
        how = rng.random()
        if how < 0.15:
            del parent[key]
        elif how < 0.4:
            parent[key] = json.loads(json.dumps(rng.choice(places)[0]))
        elif isinstance(parent, dict) and how < 0.5:
            parent[rng.choice(("x", "kind", "cf0", "", "end"))] = deepcopy(rng.choice(ODD))
        else:
            parent[key] = deepcopy(rng.choice(ODD))
    return Checkpoint(good.arrays, about)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


BYTES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(flip_bit, flip_bit, flip_bit, truncate, splice, swap_members),
)


def test_mutations_are_loaded_or_refused(physics: PhysicsThread, good: Checkpoint) -> None:
    """Those that are accepted are flown, too: nothing of the simulation fails."""
    rng, content = random.Random(15), good.to_bytes()
    counts = {"refused at loading": 0, "refused by the simulation": 0, "accepted": 0}
    config = SimulationConfig(real_time_factor=0.0, start_paused=True)
    control, arrays = physics.control, good.arrays
    restored, messages = 0, list[str]()
    for i in range(MUTATIONS):
        try:
            if i % 2:
                checkpoint = load(rng.choice(BYTES)(rng, content))
            else:
                checkpoint = rng.choice((edit_array, edit_json, edit_json))(rng, good)
                if i % 8 == 0:  # the others are what can come from within the process
                    checkpoint = load(checkpoint.to_bytes())
        except ValueError as error:
            messages.append(str(error))
            counts["refused at loading"] += 1
            continue
        try:
            checkpoint.check(config, control, NAMES, arrays, [])
        except ValueError as error:
            messages.append(str(error))
            counts["refused by the simulation"] += 1
            continue
        counts["accepted"] += 1
        if restored < RESTORED and i % 2 == 0:
            restored += 1
            assert physics.state.restore(checkpoint).result(T).tick == checkpoint.about["tick"]
            physics.step(12).result(T)
    print(counts)
    assert max(map(len, messages)) < 1000
    assert physics.failed is None
    assert restored == RESTORED and counts["refused by the simulation"] > 100
    physics.state.restore(good).result(T)


PIECE = PolynomialTrajectory([1.0], np.zeros((1, 4, 8)))
KEPT = (
    *(Pose((1, 2, 3), np.nan), Velocity((1, 2, 3), 0.4), Raw(np.zeros(16)), Brake(), Stop()),
    *(
        Takeoff(1.0, 2.0),
        Land(0.1, 2.0, 0.5),
        GoTo((1, 2, 3), 0.4, 5.0, relative=True, group_mask=3),
    ),
    *(
        Takeoff(0.5, velocity=0.3, relative=True),
        GoTo((1, 2, 3), 0.4, linear=True),
        Spiral(1.0, 0.5, 0.2, 0.1, 3.0, sideways=True, clockwise=True, group_mask=2),
        FlyTrajectory(PIECE, 2.0, reversed=True, relative_yaw=True),
    ),
    *(Arm(False), Emergency(), Recover(), SwitchOff(), Goal((1, 2), 0.4)),
    *(Hover((0.1, 0.2), 0.3, 1.0), HoverOn(), AttitudeThrust(0.1, 0.2, 0.3, 0.4), LevelOut(0.4)),
    *(HoldHeight(0.5), HoldHeight(climb=-0.2)),
    FullState((1, 2, 3), (4, 5, 6), (7, 8, 9), 0.5, (0.1, 0.2, 0.3)),
    *(Position((1, 2, 3), 0.4), VelocityWorld((1, 2, 3), 0.4), AltitudeHold(0.1, 0.2, 0.3, 1.0)),
)


@pytest.mark.parametrize("setpoint", KEPT, ids=lambda setpoint: type(setpoint).__name__)
def test_setpoints_are_kept_as_they_are_and_odd_ones_are_refused(setpoint: Setpoint) -> None:
    """What is accepted can be followed, or is refused as an order."""
    rules = Rules.of("cf2x_L250", FlightConfig())
    kept = json.loads(json.dumps(from_setpoint(setpoint)))
    again = from_setpoint(to_setpoint(kept))
    assert json.dumps(again) == json.dumps(kept)
    state = FlightState.idle if isinstance(setpoint, Takeoff) else FlightState.flying
    start = StartState(0, Reference.at_rest((0.0, 0.0, 1.0), 0.0), state)
    values = remembered(Order(setpoint, start, Plan()))
    assert values["order"]["setpoint"] == kept
    check_kept(about_of(values), 500)
    values["order"]["setpoint"] = kept
    places = [(parent, key) for parent, key in _places(kept) if key != "kind"]
    for parent, key in places:
        before = parent[key]
        for odd in ODD:
            parent[key] = odd
            with suppress(ValueError):
                check_kept(about_of(values), 500)
                check_orders(about_of(values), Control.state, rules, 10**8)
        parent[key] = before
    assert not places or from_setpoint(to_setpoint(kept))


def remembered(order: Order | None = None) -> dict[str, Any]:
    """JSON values of a commander that follows an order."""
    commander = Commander(Rules.of("cf2x_L250", FlightConfig()))
    commander.state, commander.order = FlightState.flying, order
    values: dict[str, Any] = json.loads(json.dumps(from_commander(commander)))
    return values | {"moving": order is not None}


def about_of(values: dict[str, Any]) -> dict[str, Any]:
    """The rest of a checkpoint around the values of one commander."""
    return {
        "names": ["cf0"],
        "tick": 9,
        "epoch": 0,
        "lives": {"cf0": {"resets": 0, "tick": 0}},
        "orders": {"cf0": values},
        "wind": vars(Wind()),
        "gusts": False,
        "wrenches": [],
    }


STREAM = tuple(TimedPose(k * 10**8, (0.05 * k, 0.0, 1.0, 0.3)) for k in range(4))


def following() -> Commander:
    """A weak drone that follows a moving goal, and that has hit something before."""
    rules = Rules.of("cf2x_P250", FlightConfig())
    commander = Commander(rules)
    commander.state, commander.hit = FlightState.flying, (2 * 10**8, "pole_3")
    motion = Reference(*np.array([[0.1, 0, 1, 0], [0.4, 0, 0, 0], [0, 0.1, 0, 0]], float))
    start = StartState(3 * 10**8, motion, authority=0.6, fastest=0.99, restless=True)
    commander.stream = STREAM[:-1]
    commander.order = Order(Brake(), start, Plan())
    commander.command(Pose((0.15, 0.0, 1.0), 0.3), start)
    assert len(commander.order.start.stream) == len(STREAM)
    return commander


def test_what_a_commander_remembers_of_a_stream_is_kept() -> None:
    commander = following()
    kept = json.loads(json.dumps(from_commander(commander)))
    check_kept(about_of(kept | {"moving": True}), 500)
    again = to_commander(kept, commander.rules)
    assert from_commander(again) == from_commander(commander)
    assert again.hit == commander.hit and again.stream == commander.stream
    order, other = commander.order, again.order
    assert order is not None and other is not None
    assert other.start.authority == 0.6 and other.start.fastest == 0.99
    assert other.plan.course is not None and order.plan.course is not None
    times = np.linspace(0.0, 1.5, 40)
    np.testing.assert_array_equal(other.plan.course.along(times), order.plan.course.along(times))


@pytest.mark.parametrize(
    ("name", "odd", "message"),
    [
        ("authority", 1.5, "authority.* from 0 to 1, got 1.5"),
        ("authority", "all", "authority.* number, got 'all'"),
        ("fastest", 0, "fastest.* positive, got 0"),
        ("fastest", float("nan"), "fastest.* got nan"),
        ("restless", 1, "restless.* true or false, got 1"),
        ("start", ["flying", 0.0], "start.* 12 numbers, got"),
        ("start", ["resting", *[0.0] * 12], "start.* landed, .*, got 'resting'"),
        ("stream", [[3 * 10**8, 0, 0, 1]], r"stream.* 4 numbers, got \[300000000, 0, 0, 1\]"),
        ("stream", [[5, 0, 0, 1, 0], [5, 0, 0, 1, 0]], r"stream.* rise, got \[5, 5\]"),
        ("stream", [[k, 0, 0, 1, 0] for k in range(99)], "stream.* 24 poses, got 99"),
        ("time_ns", -1, "time_ns.* from 0 to .*, got -1"),
        ("known", 3, "known.* a list of strings, got 3"),
        ("moving", None, "moving.* true or false, got None"),
        ("hit", ["pole_3", 4], "hit.* a whole number and a string, got"),
        ("hit", [2 * 10**19, "pole_3"], "hit.* whole number from .*, got 2"),
    ],
)
def test_odd_memories_of_a_commander_are_refused_by_name(name: str, odd: Any, message: str) -> None:
    values = from_commander(following()) | {"moving": True}
    changed: dict[str, Any] = values if name in values else values["order"]
    changed[name] = odd
    with pytest.raises(ValueError, match=rf"orders\.cf0.*{message}"):
        check_kept(about_of(values), 500)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tick": -1}, "tick .* from 0 to 500000000000, got -1"),
        ({"tick": 2.0}, "tick: .*, got 2.0"),
        ({"epoch": None}, "epoch: .*, got None"),
        ({"lives": {}}, "lives: .* cf0, cf1, cf2"),
        ({"orders": {"cf9": {}}}, "orders.cf9: 'state' is missing"),
        ({"orders": {"cf0": {}}}, "orders.cf0: 'state' is missing"),
        ({"orders": []}, "orders: .* by name, got \\[\\]"),
        ({"wind": {"mean": [0, 0, 0]}}, "wind must have mean, gust_intensity, gust_altitude"),
        ({"wrenches": [{}]}, "wrenches: 'name' is missing"),
        ({"wrenches": 3}, "wrenches: .* a list .*, got 3"),
        ({"gains": {"cf9": {}}}, "gains: there is no drone 'cf9', only cf0, cf1, cf2"),
        ({"gains": {"cf0": []}}, "gains.cf0: .* by name, got \\[\\]"),
        ({"gains": {"cf0": {"lqr": {}}}}, "gains.cf0: there is no controller 'lqr', only"),
        ({"gains": {"cf0": {"pid": [1]}}}, "gains.cf0.pid: .* by name, got \\[1\\]"),
        ({"gains": {"cf0": {"pid": {"x": 1}}}}, "gains.cf0: pid: there is no gain 'x', only"),
        (
            {"gains": {"cf0": {"pid": {"state.kp": [1.0]}}}},
            "gains.cf0: state.kp must be 3 finite numbers, got",
        ),
    ],
)
def test_what_cannot_be_restored_is_refused_by_name_and_changes_nothing(
    physics: PhysicsThread, good: Checkpoint, changes: dict[str, Any], message: str
) -> None:
    bad = Checkpoint(good.arrays, good.about | changes)
    told: list[Checkpoint] = []
    physics.news.on_restore(told.append)
    with pytest.raises(ValueError, match=message):
        load(bad.to_bytes())
    before, orders = physics.snapshot, physics.state.checkpoint().result(T).about
    with pytest.raises(ValueError, match=message):
        physics.state.restore(bad).result(T)
    assert physics.snapshot is before and not told
    assert physics.state.checkpoint().result(T).about == orders


def test_numbers_that_no_drone_has_are_refused_but_of_one_that_is_lost(
    physics: PhysicsThread, good: Checkpoint
) -> None:
    controls = good.arrays["state/controls.actuators"].copy()
    controls[0, 1, 0] = np.nan
    arrays = good.arrays | {"state/controls.actuators": controls}
    with pytest.raises(ValueError, match=r"state/controls\.actuators of the checkpoint holds nan"):
        physics.state.restore(Checkpoint(arrays, good.about)).result(T)
    arrays["lost"] = np.array([-1, 3, -1])
    physics.state.restore(Checkpoint(arrays, good.about)).result(T)
    assert list(physics.statistics().faults) == ["cf1"]
    physics.state.restore(good).result(T)
    assert not physics.statistics().faults


def archive(**arrays: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in arrays.items():
            file.writestr(f"{name}.npy", content)
    return out.getvalue()


def array_file(shape: str, descr: str = "<f8", rest: bytes = b"") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + rest


def zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("about.npy", bytes(60_000_000))
    return out.getvalue()


def overlapping() -> bytes:
    """Entries that all are the same bytes: a bomb without compression."""
    content = archive(a=bytes(1_000_000))
    end = content.rindex(b"PK\x05\x06")
    start = content.rindex(b"PK\x01\x02", 0, end)
    entry, n = content[start:end], 900
    count = n.to_bytes(2, "little")
    tail = content[end : end + 8] + count * 2 + (n * len(entry)).to_bytes(4, "little")
    return content[:start] + entry * n + tail + content[end + 16 :]


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not a zip file"),
    "array": (array_file("(3,)", rest=bytes(24)), "not a zip file"),
    "nothing in it": (archive(), "there is no text 'about'"),
    "huge": (archive(about=array_file("(1000000000000,)")), "wrong size for its shape"),
    "negative": (archive(about=array_file("(-1, -3)", rest=bytes(24))), "wrong size"),
    "no bytes": (archive(about=array_file("(99999999999,)", "<U0")), "expected numbers"),
    "objects": (archive(about=array_file("()", "|O", bytes(8))), "holds object"),
    "nested": (archive(about=array_file("(" * 3000 + ")" * 3000)), "is not an array"),
    "bomb": (zip_bomb(), "is compressed"),
    "overlapping": (overlapping(), "arrays of 900000000 bytes, expected at most 67108864"),
    "deep": (archive(about=array_file("()", "<U40000", b"[\0\0\0" * 40000)), "too deeply"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_file_is_refused_by_name_and_costs_no_memory(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    path = tmp_path / "flight"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"{path} is not a checkpoint.*{message}"):
            Checkpoint.load(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_path_that_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(10**12)
    for path, message in (
        (tmp_path / "fifo", "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path / "large", "too large"),
        ("\0", "not a path"),
    ):
        with pytest.raises(ValueError, match=message):
            Checkpoint.load(path)


# Writing.


def test_writing_leaves_what_is_not_its_own_alone(tmp_path: Path, good: Checkpoint) -> None:
    path, link = tmp_path / "flight", tmp_path / "link"
    mine = Path(f"{path}.part")
    mine.write_text("mine")
    link.symlink_to(path)
    good.save(link)
    assert mine.read_text() == "mine" and link.is_symlink()
    assert plain(Checkpoint.load(path)) == plain(good)
    assert {p.name for p in tmp_path.iterdir()} == {"flight", "flight.part", "link"}
    os.mkfifo(tmp_path / "fifo")
    for other in ("/dev/null", tmp_path, tmp_path / "fifo"):
        with pytest.raises(OSError, match="not a regular file"):
            good.save(other)
    assert Path("/dev/null").is_char_device()
    (tmp_path / "no folder").write_text("")
    with pytest.raises(NotADirectoryError, match=r"no folder/flight"):
        good.save(tmp_path / "no folder" / "flight")
    name = "n" * 255
    good.save(tmp_path / name)
    assert plain(Checkpoint.load(tmp_path / name)) == plain(good)


VICTIMS = {
    "notes.txt": b"dear diary",
    "empty": b"",
    "arrays.npz": write_arrays({"about": np.array("{}"), "a": np.zeros(3)}),
    "numbers.npz": write_arrays({"about": np.zeros(3)}),
    "policy.npz": write_arrays({"about": np.array('{"format": "crazyflow_ros policy 1"}')}),
    "near.npz": write_arrays({"about": np.array('{"format": "crazyflow_ros checkpoints 4"}')}),
}


@pytest.mark.parametrize("name", VICTIMS)
@pytest.mark.parametrize("through", ["itself", "link to link"])
def test_only_a_checkpoint_is_replaced(
    tmp_path: Path, good: Checkpoint, name: str, through: str
) -> None:
    victim, link, far = tmp_path / name, tmp_path / "link", tmp_path / "far"
    victim.write_bytes(VICTIMS[name])
    link.symlink_to(name)
    far.symlink_to(link)
    path = victim if through == "itself" else far
    with pytest.raises(ValueError, match=f"{name} is not replaced, for it is not a checkpoint: "):
        good.save(path)
    assert victim.read_bytes() == VICTIMS[name]
    assert {p.name for p in tmp_path.iterdir()} == {name, "link", "far"}


def test_checkpoints_of_other_versions_are_replaced(tmp_path: Path, good: Checkpoint) -> None:
    path = tmp_path / "flight"
    for version in ("crazyflow_ros checkpoint 2", "crazyflow_ros checkpoint 5"):
        about = json.dumps({"format": version, "new": 1})
        path.write_bytes(write_arrays({"about": np.array(about)}))
        with pytest.raises(ValueError, match=f"{version}, not a crazyflow_ros checkpoint 4"):
            Checkpoint.load(path)
        good.save(path)
        assert plain(Checkpoint.load(path)) == plain(good)
    for _ in range(2):
        good.save(path)
    assert list(tmp_path.iterdir()) == [path]


OLDER_NAMES = {
    "controls.state.memory.integral": "controls.state.pos_err_i",
    "controls.attitude.memory.r_int_error": "controls.attitude.r_int_error",
    "controls.attitude.memory.prev_ang_vel": "controls.attitude.prev_ang_vel",
    "controls.attitude.memory.rates": "controls.attitude.prev_ang_vel_des",
}


def test_checkpoints_of_version_0_1_are_restored(physics: PhysicsThread, good: Checkpoint) -> None:
    older = {f"state/{new}": f"state/{old}" for new, old in OLDER_NAMES.items()}
    assert older.keys() <= good.arrays.keys()
    arrays = {older.get(name, name): array for name, array in good.arrays.items()}
    inputs = arrays["inputs"] = arrays["inputs"].copy()
    inputs[:, 16] = inputs[:, 16] > 0  # whether it is armed; attitudes had no quaternion
    arrays["state/plugins.gusts"] = arrays["state/plugins.gusts"][0, 0]  # the same for all
    config = {k: v for k, v in good.about["config"].items() if k != "forces"}
    about = {k: v for k, v in good.about.items() if k != "version"} | {"config": config}
    loaded = load(Checkpoint(arrays, about).to_bytes())
    for name, array in good.arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array, err_msg=name)
    physics.state.restore(loaded).result(T)


def test_a_file_too_large_to_be_a_checkpoint_stays(tmp_path: Path, good: Checkpoint) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(10**10)
    with pytest.raises(ValueError, match=r"large is not replaced, .* too large"):
        good.save(large)
    assert large.stat().st_size == 10**10


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_or_written_is_named(tmp_path: Path, good: Checkpoint) -> None:
    secret, inside = tmp_path / "secret", tmp_path / "locked" / "flight"
    secret.touch(0o200)
    with pytest.raises(ValueError, match=r"secret is not replaced, .* Permission denied"):
        good.save(secret)
    inside.parent.mkdir(0o500)
    with pytest.raises(PermissionError, match="locked/flight"):
        good.save(inside)


@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
def test_a_file_that_appears_meanwhile_stays(
    tmp_path: Path, good: Checkpoint, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    path = tmp_path / "flight"
    real = os.link

    def link(source: Path, target: Path) -> None:
        path.write_text("first")
        if not has_links:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(source))
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(FileExistsError, match="flight"):
        good.save(path)
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


def test_file_systems_without_links_have_checkpoints(
    tmp_path: Path, good: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    for _ in range(2):
        good.save(tmp_path / "flight")
        assert plain(Checkpoint.load(tmp_path / "flight")) == plain(good)
    assert [p.name for p in tmp_path.iterdir()] == ["flight"]


FULL = """
import resource, signal, sys
from crazyflow_ros.checks.files import write_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_file(sys.argv[1], bytes(5000))
except OSError as error:
    print(error)
"""


def test_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """As far as the limit of a process is one: it also writes a part before it fails."""
    path = tmp_path / "flight"
    path.write_bytes(b"old")
    out = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True, check=True
    )
    assert "File too large" in out.stdout and str(path) in out.stdout
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from crazyflow_ros.checks import files
for name in sys.argv[2].split(","):
    real = getattr(os, name)
    def dying(*arguments, real=real):
        real(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(files.os, name, dying)
files.write_file(sys.argv[1], b"new")
"""


@pytest.mark.parametrize(
    ("after", "found"), [("write", b"old"), ("fsync", b"old"), ("replace", b"new")]
)
def test_killed_while_writing_leaves_the_old_or_the_new_file(
    tmp_path: Path, after: str, found: bytes
) -> None:
    path = tmp_path / "flight"
    path.write_bytes(b"old")
    killed = subprocess.run([sys.executable, "-c", KILLED, path, after], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == found
    write_file(path, b"next")
    assert path.read_bytes() == b"next"

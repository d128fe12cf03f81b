"""cflib against our Crazyflies: its own tests of devices, a swarm, what its examples leave out."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from crazyflie_helpers import MODEL, Crazyflies, asked, connected, crazyflies, free_port, until

from crazyflow_ros.checks.compressed_quaternions import compressed, decompressed
from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.crazyflie.parameters import CrazyflieParameters, table
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight import AttitudeThrust, FlightState, FullState, Takeoff
from crazyflow_ros.runtime import Snapshot

pytest.importorskip("cflib", reason="cflib is not installed")

import cflib.crtp
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.mem import CompressedSegment, CompressedStart, MemoryElement
from cflib.crazyflie.swarm import CachedCfFactory, Swarm
from cflib.crazyflie.syncLogger import SyncLogger
from cflib.crtp.udpdriver import UdpDriver
from cflib.utils.encoding import compress_quaternion, decompress_quaternion
from cflib.utils.multiranger import Multiranger

N = 10  # drones, as many as cflib's own tests use
T = 60.0  # s
SEEN: list[Snapshot] = []


@pytest.fixture(scope="module")
def served() -> Iterator[Crazyflies]:
    cflib.crtp.init_drivers()
    with crazyflies(N, watch=SEEN.append, wind=(1.0, 0.6, 0.0)) as found:
        yield found


@pytest.fixture(scope="module")
def by_pid() -> Iterator[Crazyflies]:
    with crazyflies(2, controller="pid") as found:
        yield found


@pytest.fixture(autouse=True)
def calm(served: Crazyflies) -> None:
    """All drones stand, and follow nobody."""
    served.physics.state.reset().result(T)
    until(lambda: served.physics.snapshot.pos[:, 2].max() < 0.1, "on the floor")
    SEEN.clear()


def state(served: Crazyflies, i: int = 0) -> FlightState:
    return served.physics.commands.states.get(f"cf{i}", FlightState.idle)


def flown(served: Crazyflies, height: float = 1.0) -> None:
    """Let all drones hover."""
    names = served.physics.snapshot.names
    assert not served.physics.fly({name: Takeoff(height) for name in names}).result(T).refused
    until(lambda: served.physics.snapshot.pos[:, 2].min() > 0.95 * height, "in the air")


RIG = """
import sys, unittest
from sys_test.swarm_test_rig import rig_support
uris = sys.argv[2].split(",")
rig_support.RigSupport.__init__ = lambda self: setattr(self, "all_uris", uris)
rig_support.RigSupport.restart_devices = lambda self, uris: None
unittest.main(f"sys_test.swarm_test_rig.test_{sys.argv[1]}", argv=[sys.argv[0], *sys.argv[3:]])
"""


_LOGGING = "logging TestLogging.test_that_requested_logging_is_received_properly_from_all_cfs"
_MEMORY = "memory_map TestMemoryMapping.test_memory_mapping_with"


@pytest.mark.parametrize(
    ("names", "n"),
    [
        # One at a time: cflib ends a link with a setpoint of no thrust, after which drones fall.
        *((_LOGGING, 4), (f"{_MEMORY}_all_cfs", 4), ("connection", 4), ("response_time", 4)),
        # It connects more than a hundred times.
        pytest.param("connection", N, marks=pytest.mark.soak),
        # It sleeps for two minutes.
        pytest.param(f"{_MEMORY}_reuse_of_cf_object", 1, marks=pytest.mark.soak),
    ],
)
def test_its_own_tests_of_devices_pass(
    served: Crazyflies, tmp_path: Path, names: str, n: int
) -> None:
    """With the addresses of our drones; they hover in wind, so that their roll is never zero."""
    flown(served)
    name, *only = names.split()
    command = [sys.executable, "-c", RIG, name, ",".join(served.uris[:n]), *only]
    for _ in range(3 if name == "response_time" else 1):  # 10 ms, on a computer that may be busy
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=4 * T)
        if not done.returncode:
            break
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stderr


def test_it_finds_the_drones(served: Crazyflies, monkeypatch: pytest.MonkeyPatch) -> None:
    first = int(served.uris[0].rpartition(":")[2])
    monkeypatch.setattr("cflib.crtp.udpdriver._BASE_PORT", first)
    # Each `init_drivers` of this process adds the drivers once more.
    monkeypatch.setattr("cflib.crtp.CLASSES", [UdpDriver])
    assert [uri for uri, _ in cflib.crtp.scan_interfaces()] == served.uris


def test_a_swarm_flies(served: Crazyflies, tmp_path: Path) -> None:
    """Eight drones at once, with the positions that the swarm reads."""
    with Swarm(served.uris[:8], factory=CachedCfFactory(rw_cache=str(tmp_path))) as swarm:
        swarm.reset_estimators()
        swarm.parallel_safe(lambda scf: scf.cf.high_level_commander.takeoff(0.6, 1.0))
        until(lambda: served.physics.snapshot.pos[:8, 2].min() > 0.57, "takeoff of eight")
        read = swarm.get_estimated_positions()
        now = served.physics.snapshot.pos
        for i, uri in enumerate(served.uris[:8]):
            np.testing.assert_allclose((read[uri].x, read[uri].y, read[uri].z), now[i], atol=0.05)
        swarm.parallel_safe(lambda scf: scf.cf.high_level_commander.land(0.0, 1.0))
        until(lambda: {state(served, i) for i in range(8)} == {FlightState.landed}, "landing")
    assert state(served, 8) is FlightState.idle


LOGGED: dict[str, Callable[[Snapshot], float]] = {
    "stateEstimate.x": lambda s: s.pos[0, 0],
    "stateEstimate.z": lambda s: s.pos[0, 2],
    "stateEstimate.vx": lambda s: s.vel[0, 0],
    "stabilizer.pitch": lambda s: -np.degrees(2 * (s.quat[0, 3] * s.quat[0, 1])),
    "gyro.y": lambda s: np.degrees(s.ang_vel[0, 1]),
    "acc.z": lambda s: s.specific_force[0, 2] / 9.81,
}
MORE_LOGGED: dict[str, Callable[[Snapshot], float]] = {
    # Ten counts a pixel, of which 35 cover 0.71674 rad, in 10 ms.
    "motion.deltaY": lambda s: (s.ang_vel[0, 1] - s.body_vel[0, 0] / s.pos[0, 2]) * 3.5 / 0.71674,
    "rpm.m1": lambda s: s.rotor_vel[0, 0] * 30 / np.pi,
    "motor.m3_rpm": lambda s: s.rotor_vel[0, 2] * 30 / np.pi,
    "posCtl.bodyX": lambda s: s.pos[0, 0],  # it looks along x
    "posCtl.bodyVX": lambda s: s.vel[0, 0],
}


@pytest.mark.parametrize("names", [LOGGED, MORE_LOGGED])
def test_logs_are_the_state(
    served: Crazyflies, tmp_path: Path, names: dict[str, Callable[[Snapshot], float]]
) -> None:
    """At the instants of their stamps, in the firmware's units and signs."""
    flown(served)
    config = LogConfig("state", 20)
    for name in names:
        config.add_variable(name, "float")
    with connected(served.uris[0], tmp_path) as cf:
        cf.high_level_commander.go_to(0.5, 0.0, 1.0, 0.0, 1.0)
        with SyncLogger(cf, config) as logger:
            entries = [entry for entry, _ in zip(logger, range(60))]
    by_time = {s.time_ns // 1_000_000: s for s in list(SEEN)}
    compared, noise = 0, []
    for stamp, values, _ in entries:
        if stamp in by_time:
            compared += 1
            for name, value in names.items():
                expected = value(by_time[stamp])
                if name.startswith("motion"):
                    noise.append(values[name] - expected)
                    continue
                # The pitch is nearly twice the product above where the roll is small.
                assert values[name] == pytest.approx(expected, abs=0.05, rel=0.02), name
    assert compared > 40
    if noise:  # 2 counts, as the firmware assumes (flowdeck_v1v2.c)
        assert abs(np.mean(noise)) < 1.0 and 1.4 < np.std(noise) < 2.6
    later = entries[1:]  # the first one comes at once
    assert not any((b[0] - a[0]) % 20 for a, b in pairwise(later))


def test_targets_are_logged_along_axes_that_turn_with_the_heading(
    served: Crazyflies, tmp_path: Path
) -> None:
    """As the firmware's PID controller has them; cfclient plots them."""
    flown(served)
    config = LogConfig("targets", 20)
    for name in ("targetX", "targetY", "targetZ", "targetVX", "targetVY", "targetVZ"):
        config.add_variable(f"posCtl.{name}", "float")
    with connected(served.uris[0], tmp_path) as cf, SyncLogger(cf, config) as logger:
        cf.high_level_commander.go_to(0.5, 0.2, 1.0, np.pi / 2, 2.0)
        expected = (0.2, -0.5, 1.0, 0.0, 0.0, 0.0)
        deadline = time.monotonic() + T
        for _, values, _ in logger:
            if np.allclose(list(values.values()), expected, atol=0.02):
                break
            assert time.monotonic() < deadline, values


def test_the_attitude_that_the_controller_wants_is_logged(
    served: Crazyflies, tmp_path: Path
) -> None:
    """In steady wind the drone has it, but for the sway; the thrust balances gravity and drag."""
    flown(served)
    config = LogConfig("wanted", 50)
    for axis in ("roll", "pitch", "yaw"):
        config.add_variable(f"controller.{axis}", "float")
        config.add_variable(f"stateEstimate.{axis}", "float")
    more = LogConfig("thrusts", 50)
    more.add_variable("controller.actuatorThrust", "float")
    more.add_variable("stabilizer.thrust", "float")
    with connected(served.uris[0], tmp_path) as cf:
        with SyncLogger(cf, config) as logger:
            found = [values for (_, values, _), _ in zip(logger, range(40))]
        mean = {name: np.mean([values[name] for values in found]) for name in found[0]}
        assert mean["controller.pitch"] > 1.0 and mean["controller.roll"] > 0.5  # against the wind
        for axis in ("roll", "pitch", "yaw"):
            wanted, has = mean[f"controller.{axis}"], mean[f"stateEstimate.{axis}"]
            assert has == pytest.approx(wanted, abs=0.3), axis
        with SyncLogger(cf, more) as logger:
            found = [values for (_, values, _), _ in zip(logger, range(20))]
        wanted, has = (np.mean([v[name] for v in found]) for name in found[0])
        assert has == pytest.approx(wanted, rel=0.05) and 30_000 < wanted < 60_000


def test_the_output_of_the_controller_is_logged(served: Crazyflies, tmp_path: Path) -> None:
    """With the firmware's mixer and the figures of the rotors, these change their speed by it."""
    flown(served)
    config = LogConfig("output", 10)
    for name in ("thrust", "roll", "pitch", "yaw"):
        config.add_variable(f"ctrlMel.cmd_{name}", "float")
    for i in range(1, 5):
        config.add_variable(f"rpm.m{i}", "uint16_t")
    tilted = AttitudeThrust(0.15, -0.1, 0.8, 0.33)
    with connected(served.uris[0], tmp_path) as cf, SyncLogger(cf, config) as logger:
        next(logger)
        served.physics.command("cf0", tilted)  # it lapses after half a second
        rows = [(at, *values.values()) for (at, values, _), _ in zip(logger, range(31))]
    found = np.array(rows)[1:]
    assert (np.diff(found[:, 0]) == 10).all(), found[:, 0]  # ms, no packet was lost
    found = found[:, 1:]
    mixer = np.array([[1, -0.5, 0.5, 1], [1, -0.5, -0.5, -1], [1, 0.5, -0.5, 1], [1, 0.5, 0.5, -1]])
    figures, has = load_drone(MODEL), found[:, 4:]
    k0, k1, k2 = figures["rpm2thrust"]
    thrust = found[:, :4] @ mixer.T / 65535 * figures["thrust_max"]
    wanted = (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - thrust))) / (2 * k2)
    rise, rise2, fall, fall2 = figures["rotor_dyn_coef"]
    w, h = ((x[1:] + x[:-1]) / 2 for x in (wanted, has))
    up, down = (a * (w - h) + b * (w**2 - h**2) for a, b in ((rise, rise2), (fall, fall2)))
    expected, change = np.where(w > h, up, down), np.diff(has, axis=0) / 0.01
    for axis, unmixed in enumerate(np.linalg.inv(mixer)):
        x, y = expected @ unmixed, change @ unmixed
        assert np.corrcoef(x, y)[0, 1] > 0.9, axis
        assert np.polyfit(x, y, 1)[0] == pytest.approx(1.0, abs=0.15), axis


def test_integers_compressed_values_and_half_precision(served: Crazyflies, tmp_path: Path) -> None:
    config = LogConfig("mixed", 100)
    for name, kind in (
        ("stateEstimateZ.z", "int16_t"),
        ("stateEstimateZ.quat", "uint32_t"),
        ("stateEstimate.z", "FP16"),
        ("supervisor.info", "uint16_t"),
        ("pm.batteryLevel", "uint8_t"),
        ("range.up", "uint16_t"),
    ):
        config.add_variable(name, kind)
    with connected(served.uris[0], tmp_path) as cf, SyncLogger(cf, config) as logger:
        _, values, _ = next(logger)
    height = served.physics.snapshot.pos[0, 2]
    assert values["stateEstimateZ.z"] == int(height * 1000)
    assert values["stateEstimate.z"] == pytest.approx(height, rel=1e-3)
    quat = decompress_quaternion(values["stateEstimateZ.quat"])
    np.testing.assert_allclose(quat, (0, 0, 0, 1), atol=2e-3)
    assert values["supervisor.info"] & 0b1111111 == 0b0001110  # armed by itself, can fly
    assert values["pm.batteryLevel"] == 100 and values["range.up"] == 32767


def test_quaternions_are_compressed_as_in_cflib() -> None:
    for quat in np.random.default_rng(3).normal(size=(500, 4)):
        quat /= np.linalg.norm(quat)
        assert compressed(quat) == compress_quaternion(quat)
        back = decompressed(compressed(quat))
        np.testing.assert_allclose(back, decompress_quaternion(compressed(quat)), atol=2e-3)
        assert abs(back @ quat) > 0.99999


def test_a_compressed_trajectory_flies(served: Crazyflies, tmp_path: Path) -> None:
    flown(served)
    x, y, _ = served.physics.snapshot.pos[0]
    with connected(served.uris[0], tmp_path) as cf:
        memory = cf.mem.get_mems(MemoryElement.TYPE_TRAJ)[0]
        memory.trajectory = [
            CompressedStart(x, y, 1.0, 0.0),
            CompressedSegment(2.0, [x, x + 0.5, x + 0.5], [], [1.0, 1.4, 1.4], []),
        ]
        assert memory.write_data_sync()
        kind = cf.high_level_commander.TRAJECTORY_TYPE_POLY4D_COMPRESSED
        cf.high_level_commander.define_trajectory(3, 0, 1, kind)
        cf.high_level_commander.start_trajectory(3)
        until(
            lambda: np.linalg.norm(served.physics.snapshot.pos[0] - (x + 0.5, y, 1.4)) < 0.05,
            "end of the trajectory",
        )


def test_the_supervisor_tells_how_it_flies(served: Crazyflies, tmp_path: Path) -> None:
    with connected(served.uris[0], tmp_path) as cf:
        until(lambda: cf.supervisor.can_fly, "can fly")
        assert cf.supervisor.is_armed and not cf.supervisor.is_flying
        cf.high_level_commander.takeoff(0.5, 1.0)
        until(lambda: cf.supervisor.is_flying and cf.supervisor.hl_control_active, "flying")
        until(lambda: cf.supervisor.hl_traj_finished, "end of the takeoff")
        cf.supervisor.send_emergency_stop()
        until(lambda: cf.supervisor.is_locked, "locked")
        assert not cf.supervisor.can_fly and state(served) is FlightState.locked
        text = []
        cf.console.receivedChar.add_callback(text.append)
        cf.high_level_commander.takeoff(0.5, 1.0)
        until(lambda: "cf0: it is locked: reset it first" in "".join(text), "a word on the console")


def test_rates_are_flown(by_pid: Crazyflies, tmp_path: Path) -> None:
    """By the PID loops; the log has the firmware's sign of the pitch."""
    with connected(by_pid.uris[0], tmp_path) as cf:
        flown(by_pid, 2.0)
        config = LogConfig("rates", 20)
        for name in ("controller.rollRate", "controller.pitchRate", "gyro.x", "gyro.y"):
            config.add_variable(name, "float")
        deadline = time.monotonic() + T
        with SyncLogger(cf, config) as logger:
            for _, values, _ in logger:
                cf.commander.send_setpoint_manual(60.0, 30.0, 0.0, 75, True)
                wanted, has = np.split(np.array(list(values.values())), 2)
                if np.allclose(wanted, (60.0, -30.0)) and np.abs(has - (60.0, 30.0)).max() < 15:
                    break
                assert time.monotonic() < deadline, values


def test_a_stream_is_followed_until_it_is_ended(served: Crazyflies, tmp_path: Path) -> None:
    flown(served)
    with connected(served.uris[0], tmp_path) as cf:

        def follows() -> bool:
            cf.commander.send_hover_setpoint(0.3, 0.0, 0.0, 0.8)
            now = served.physics.snapshot
            return bool(abs(now.vel[0, 0] - 0.3) < 0.03 and abs(now.pos[0, 2] - 0.8) < 0.03)

        until(follows, "a velocity ahead at a height")
        cf.high_level_commander.land(0.0, 1.0)
        waits = "cf0: it follows streamed setpoints: call notify_setpoints_stop first"
        until(lambda: waits in served.log, "a refusal")
        cf.commander.send_notify_setpoint_stop()
        cf.high_level_commander.land(0.0, 1.0)
        until(lambda: state(served) is FlightState.landed, "landing")


def test_poses_from_outside_are_logged(served: Crazyflies, tmp_path: Path) -> None:
    config = LogConfig("outside", 100)
    for name in ("ext_pos.X", "locSrv.z", "locSrv.qw"):
        config.add_variable(name, "float")
    with connected(served.uris[0], tmp_path) as cf, SyncLogger(cf, config) as logger:
        cf.extpos.send_extpose(1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8)
        values = {}
        for _, values, _ in logger:
            if values["locSrv.z"]:
                break
    assert values == pytest.approx({"ext_pos.X": 1.0, "locSrv.z": 3.0, "locSrv.qw": 0.8})


ROOM_OF_BOXES = """
<mujoco><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <geom type="box" size="0.1 3 3" pos="2.1 0 0"/>
  <geom type="box" size="0.1 3 3" pos="-1.6 0 0"/>
  <geom type="box" size="3 0.1 3" pos="0 1.1 0"/>
  <geom type="box" size="3 3 0.1" pos="0 0 2.6"/>
  <geom type="plane" size="5 5 0.1" contype="1" conaffinity="1"/>
</worldbody></mujoco>
"""
"""Drones do not collide with its boxes, so that it compiles as an empty world does."""


def test_a_multiranger_sees_walls(tmp_path: Path) -> None:
    """At known distances; to the right there is none."""
    scene = tmp_path / "room.xml"
    scene.write_text(ROOM_OF_BOXES)
    poses = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], [30.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]])
    with (
        crazyflies(2, scene=str(scene), initial_poses=poses, start_paused=True) as served,
        connected(served.uris[0], tmp_path) as cf,
        Multiranger(cf, rate_ms=10) as ranger,
    ):
        served.physics.step(20).result(T)
        until(lambda: served.physics.step(5).result(T) and ranger.front, "readings")
        height = served.physics.snapshot.pos[0, 2]
        read = (ranger.front, ranger.back, ranger.left, ranger.up, ranger.down)
        expected = (2.0, 1.5, 1.0, 2.5 - height, height)
        np.testing.assert_allclose(read, expected, atol=0.03)
        assert ranger.right is None


def test_groups_are_set_by_a_parameter(served: Crazyflies, tmp_path: Path) -> None:
    with connected(served.uris[0], tmp_path) as cf:
        cf.param.set_value("hlCommander.groupmask", 4)
        until(lambda: cf.param.get_value("hlCommander.groupmask") == "4", "the group")
        cf.high_level_commander.takeoff(0.5, 1.0, group_mask=2)
        cf.high_level_commander.takeoff(0.7, 1.0, group_mask=6)
        until(lambda: served.physics.snapshot.pos[0, 2] > 0.66, "takeoff of the group")


def test_parameters_have_limits(served: Crazyflies, tmp_path: Path) -> None:
    with connected(served.uris[0], tmp_path) as cf:
        cf.param.set_value("stabilizer.controller", 9)
        known = "1 pid, 2 mellinger, 3 indi, 4 brescianini"
        refused = f"cf0: there is no controller 9, only {known}"
        until(lambda: refused in served.log, "a refusal")
        until(lambda: cf.param.get_value("stabilizer.controller") == "2", "the value in force")
        assert asked(cf.param.get_default_value, "ring.effect") == 6
        cf.param.set_value_raw("led.bitmask", 0x08, 7)
        cf.param.request_param_update("led.bitmask")
        until(lambda: cf.param.get_value("led.bitmask") == "7", "a parameter set by name")


def test_a_drone_changes_its_controller_in_flight(tmp_path: Path) -> None:
    with crazyflies(2) as served, connected(served.uris[0], tmp_path) as cf:
        cf.high_level_commander.takeoff(1.0, 2.0)
        until(lambda: served.physics.snapshot.pos[0, 2] > 0.97, "takeoff")
        cf.param.set_value("stabilizer.controller", 1)
        until(lambda: "cf0: all drones fly with the controller pid now" in served.log, "the change")
        assert cf.param.get_value("stabilizer.controller") == "1"
        x = served.physics.snapshot.pos[0, 0]
        cf.high_level_commander.go_to(0.5, 0.0, 0.0, 0.0, 1.5, relative=True)
        until(lambda: served.physics.snapshot.pos[0, 0] > x + 0.4, "a flight with it")
        assert state(served) is FlightState.flying


def test_memories_say_which_decks_there_are(served: Crazyflies, tmp_path: Path) -> None:
    with connected(served.uris[0], tmp_path) as cf:
        decks = cf.mem.get_mems(MemoryElement.TYPE_1W)
        assert all(deck.valid for deck in decks)
        names = [deck.elements["Board name"] for deck in decks]
        assert names == ["bcFlow2", "bcMultiranger"]
        (eeprom,) = cf.mem.get_mems(MemoryElement.TYPE_I2C)
        done = threading.Event()
        eeprom.update(lambda _: done.set())
        assert done.wait(T) and eeprom.valid
        assert eeprom.elements["radio_address"] >> 8 == 0xE7E7E7E7


def test_gains_change_the_flight(by_pid: Crazyflies, tmp_path: Path) -> None:
    """A weaker spring of the height: the time constant of the PID loop is that of its gain."""
    served = by_pid
    served.physics.state.reset().result(T)
    with connected(served.uris[0], tmp_path) as cf:
        flown(served)
        assert cf.param.get_value("posCtlPid.zKp") == "2.0"
        checkpoint = served.physics.state.checkpoint().result(T)
        slow = {"posCtlPid.zKp": "0.25", "posCtlPid.zKi": "0.0"}
        for name, value in slow.items():
            cf.param.set_value(name, value)
            until(lambda n=name, v=value: cf.param.get_value(n) == v, name)  # type: ignore[misc]
        before = served.physics.snapshot.pos[:, 2]
        still = np.zeros(3)
        for i in range(2):
            pos = (*served.physics.snapshot.pos[i, :2], before[i] + 0.3)
            served.physics.command(f"cf{i}", FullState(pos, still, still, 0.0))
        start = served.physics.snapshot.time_ns
        served.physics.pause().result(T)
        climbed = []
        while len(climbed) < 15:  # 3 s
            for i in range(2):
                pos = (*served.physics.snapshot.pos[i, :2], before[i] + 0.3)
                served.physics.command(f"cf{i}", FullState(pos, still, still, 0.0))
            now = served.physics.step(100).result(T)
            climbed.append(now.pos[:, 2] - before)
        assert now.time_ns > start
        # An exponential with 4 s: 0.3 (1 - exp(-3 / 4)) after 3 s; the other one is there.
        assert climbed[-1][0] == pytest.approx(0.3 * (1 - np.exp(-3 / 4)), abs=0.02)
        assert climbed[-1][1] > 0.27
        for value, why in (("nan", "must be finite, got nan"), ("1e9", "must be within 1e+07")):
            cf.param.set_value("posCtlPid.zKp", value)
            refused = f"posCtlPid.zKp {why}"
            until(lambda r=refused: any(r in x for x in served.log), refused)  # type: ignore[misc]
        assert cf.param.get_value("posCtlPid.zKp") == "0.25"
        cf.param.set_value("pid_attitude.attFiltCut", "10")
        kept = "cf0: parameter pid_attitude.attFiltCut is kept, and has no effect in the simulator"
        until(lambda: kept in served.log, "a note")
        # A checkpoint has its gains, and the parameters show them.
        served.physics.state.restore(checkpoint).result(T)
        until(lambda: cf.param.get_value("posCtlPid.zKp") == "2.0", "the gain of the checkpoint")
        assert served.physics.state.checkpoint().result(T).about["gains"] == {}


def test_stored_parameters_survive_a_restart(tmp_path: Path) -> None:
    """Until they are cleared; the default is what it was, and other drones have theirs."""
    folder = tmp_path / "stored" / "parameters"

    def link() -> LinkConfig:
        return LinkConfig(port=free_port(2), storage=str(folder))

    with crazyflies(2, link()) as served, connected(served.uris[0], tmp_path) as cf:
        for name, value in (("ring.effect", "9"), ("ctrlMel.kp_z", "2.5")):
            cf.param.set_value(name, value)
            until(lambda n=name, v=value: cf.param.get_value(n) == v, name)  # type: ignore[misc]
            assert asked(cf.param.persistent_store, name) is True
        state = asked(cf.param.persistent_get_state, "ring.effect")
        assert (state.is_stored, state.default_value, state.stored_value) == (True, 6, 9)
        served.physics.state.reset().result(T)
    assert json.loads((folder / "cf0.json").read_text()) == {"ctrlMel.kp_z": 2.5, "ring.effect": 9}
    (folder / "cf1.json").write_text('{"ring.effect": 300, "no.such": 1, "ring.solidRed": "x"}')

    with crazyflies(2, link()) as served, connected(served.uris[0], tmp_path) as cf:
        assert cf.param.get_value("ring.effect") == "9"
        assert cf.param.get_value("ctrlMel.kp_z") == "2.5"
        assert asked(cf.param.persistent_clear, "ring.effect") is True
        assert not asked(cf.param.persistent_get_state, "ring.effect").is_stored
        assert any("cf1.json is not read: expected numbers by name" in x for x in served.log)
    assert json.loads((folder / "cf0.json").read_text()) == {"ctrlMel.kp_z": 2.5}


def test_what_cannot_be_stored_or_restored_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cf0.json").mkdir()  # to where nothing can be written
    storage, reports = Storage(str(tmp_path)), list[str]()
    parameters = CrazyflieParameters(
        {}, lambda *_: None, reports.append, save=lambda values: storage.save("cf0", values)
    )
    parameters.restore({"ring.effect": 300, "no.such": 1, "led.bitmask": 1})
    names = ("ring.effect", "no.such", "led.bitmask")
    assert all(name in report for name, report in zip(names, reports, strict=True))
    number = [entry.full_name for entry in table()].index("ring.effect").to_bytes(2, "little")
    answer = parameters.answer(Packet(Port.parameters, 3, b"\x03" + number))
    assert answer is not None and answer.data[3] == errno.EIO and len(reports) == 4
    assert parameters.get("ring.effect") == 6
    with pytest.raises(ValueError, match="/dev/null/x"):
        Storage("/dev/null/x")
